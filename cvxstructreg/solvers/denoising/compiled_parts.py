"""Exact total variation denoising of long chains with equal weights and strengths, in many parts at once, compiled.

The constant pieces of a chain are found from the left to the right
(:mod:`~cvxstructreg.solvers.denoising.compiled_chain`). Each step needs the one before, and a processor cannot foresee
whether it ends a piece. So LANES parts of the chain take their steps together, in vectors and without branches. Each
part begins as if the chain began there. Its first pieces are wrong, but mostly only these: a piece depends on its first
place and on whether the value rises or falls there, and on nothing else to its left. As soon as the search that comes
from the left begins such a piece, all others follow.

A piece that starts at ``first`` has a value v_first + z. Let S be the sum of v - v_first over ``size`` places, plus lam
if the value falls at the start of the piece, or minus lam if it rises. The bounds on z are

    max (S - lam) / size = low_sum / low_size    and    min (S + lam) / size = high_sum / high_size

The piece ends as soon as they cross: then it takes the bound that was there before, and ends where that was reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit
from cvxstructreg.solvers.denoising.compiled_chain import follow

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Parts that take their steps together, and steps between two looks at them.
LANES, STEPS = 16, 256
#: Entries are read too often if each is read more often than this, from a share of the chain on. After another share,
#: pieces are short enough if so many have ended in each part on average: others are found one after the other.
MOST_READ, SLACK, LOOK, SHORT_ENOUGH = 8, 1 / 16, 1 / 4, 1
#: Parts at most, and how many pieces of average length must be left of a part for it to be split.
MOST_PARTS, WORTH = 8 * LANES, 4
#: Numbers that are written for each piece; those beyond its end are overwritten by the next ones.
WRITTEN = 6


@njit(cache=True)
def step(state: Floats, lam: float) -> None:
    """One step of all parts.

    ``state`` has rows of LANES numbers. Their distances are written out, because the compiler makes vectors only of
    rows that it knows to be apart. The rows are: 0 the next place, 1 ``first``, 2 S, 3 ``size``, 4 ``low_sum``,
    5 ``low_size``, 6 ``high_sum``, 7 ``high_size``, 8 the next v - v_first, 9 the ended pieces; and, for a piece that
    ends in this step, 10 the ended pieces before, 11 its sum of z, 12 its size.
    """
    for part in range(LANES):
        place, first = state[part], state[LANES + part]
        total, size = state[2 * LANES + part] + state[8 * LANES + part], state[3 * LANES + part] + 1.0
        low_sum, low_size = state[4 * LANES + part], state[5 * LANES + part]
        high_sum, high_size = state[6 * LANES + part], state[7 * LANES + part]
        under, over = total - lam, total + lam
        falls, rises = over * low_size < low_sum * size, under * high_size > high_sum * size
        ends = falls | rises
        its_sum, its_size = low_sum if falls else high_sum, low_size if falls else high_size
        following = first + its_size
        lower, higher = under * low_size >= low_sum * size, over * high_size <= high_sum * size
        low_sum, low_size = under if lower else low_sum, size if lower else low_size
        high_sum, high_size = over if higher else high_sum, size if higher else high_size
        state[10 * LANES + part] = state[9 * LANES + part]
        state[11 * LANES + part], state[12 * LANES + part] = its_sum, its_size
        state[9 * LANES + part] += 1.0 if ends else 0.0
        state[part] = (following if ends else place) + 1.0
        state[LANES + part] = following if ends else first
        state[2 * LANES + part] = (lam if falls else -lam) if ends else total
        state[3 * LANES + part] = 1.0 if ends else size
        state[4 * LANES + part] = (0.0 if falls else -lam - lam) if ends else low_sum
        state[5 * LANES + part] = 1.0 if ends else low_size
        state[6 * LANES + part] = (lam + lam if falls else 0.0) if ends else high_sum
        state[7 * LANES + part] = 1.0 if ends else high_size


@njit(cache=True)
def steps(v: Floats, lam: float, state: Floats, many: int, sums: Floats, sizes: Floats) -> None:
    """So many steps of all parts; ``sums`` and ``sizes`` get those of pieces that end."""
    state[9 * LANES : 10 * LANES] = 0.0
    for _ in range(many):
        for part in range(LANES):
            state[8 * LANES + part] = v[np.uint64(np.int64(state[part]))] - v[np.uint64(np.int64(state[LANES + part]))]
        step(state, lam)
        for part in range(LANES):
            count = np.uint64(np.int64(state[10 * LANES + part]))
            sums[part, count], sizes[part, count] = state[11 * LANES + part], state[12 * LANES + part]


@njit(cache=True, error_model="numpy")
def write(v: Floats, x: Floats, first: int, end: int, count: int, sums: Floats, sizes: Floats) -> int:
    """Write so many pieces to ``x``, from ``first`` on, and no place from ``end`` on; returns where the next begins."""
    for piece in range(count):
        value, following = v[first] + sums[piece] / sizes[piece], first + int(sizes[piece])
        if first + WRITTEN <= end:  # a fixed number takes less time
            for i in range(WRITTEN):
                x[first + i] = value
            for i in range(first + WRITTEN, following):
                x[i] = value
        else:
            x[first:following] = value
        first = following
    return first


@njit(cache=True)
def start(rows: Floats, lane: int, place: int, lam: float) -> None:
    """Begin a part at a place as if the chain began there."""
    rows[0, lane], rows[1, lane], rows[2, lane] = place + 1.0, place, 0.0
    rows[3, lane] = rows[5, lane] = rows[7, lane] = 1.0
    rows[4, lane], rows[6, lane] = -lam, lam


@njit(cache=True)
def search_parts(v: Floats, lam: float, x: Floats, begins: Ints, found: Floats) -> int:
    """Take steps of all parts until they are at their ends or nearly so, and write their pieces to ``x``.

    When a part is at its end, another is split: the last half of what is left of it becomes a part. ``begins`` and
    ``found`` get where the parts begin and the first rows of their states. Returns the number of parts; 0 if pieces are
    too long for this, and a negative number if entries are read too often.
    """
    n, parts, taken, ended, closed, looked = len(v), LANES, 0, 0, 0.0, False
    begins[:LANES], ends = np.arange(LANES) * n // LANES, np.full(len(begins), n)
    ends[: LANES - 1] = begins[1:LANES]
    sums, sizes, written = np.empty((LANES, STEPS + 1)), np.empty((LANES, STEPS + 1)), begins.copy()
    own, rows = np.arange(LANES), np.zeros((13, LANES))  # the part that each lane takes steps of
    for lane in range(LANES):
        start(rows, lane, begins[lane], lam)
    left = ends[:LANES] - rows[0]
    while True:
        many = min(STEPS, int(left.min()) - 1)
        if many < WRITTEN:
            break
        steps(v, lam, rows.reshape(-1), many, sums, sizes)
        for lane in range(LANES):
            count, part = int(rows[9, lane]), own[lane]
            written[part] = write(v, x, written[part], ends[part], count, sums[lane], sizes[lane])
            ended += count
        taken += many * LANES
        left = ends[own] - rows[0]
        done = closed + (rows[0] - begins[own]).sum()
        if taken > MOST_READ * (done + SLACK * n):
            return -1
        if not looked and done >= LOOK * n:
            looked = True
            if ended < SHORT_ENOUGH * LANES:
                return 0
        while left.min() <= WRITTEN and parts < len(begins):
            lane, longest = left.argmin(), left.argmax()
            if left[longest] * ended < WORTH * done:
                break
            middle = ends[own[longest]] - int(left[longest]) // 2
            closed += rows[0, lane] - begins[own[lane]]
            found[own[lane]] = rows[:8, lane]
            begins[parts], written[parts], ends[parts] = middle, middle, ends[own[longest]]
            ends[own[longest]], own[lane] = middle, parts
            start(rows, lane, middle, lam)
            left[longest], left[lane] = middle - rows[0, longest], ends[parts] - rows[0, lane]
            parts += 1
    for lane in range(LANES):
        found[own[lane]] = rows[:8, lane]
    for part in range(parts):
        x[written[part] : ends[part]] = np.nan
    return parts


@njit(cache=True)
def denoise_long_chain(v: Floats, lam: float, x: Floats) -> bool:
    """Write the minimiser for s = 1 and equal lam to ``x``; False if entries would be read too often."""
    n = len(v)
    begins, found, slack = np.zeros(MOST_PARTS, np.int64), np.empty((MOST_PARTS, 8)), np.int64(SLACK * n)
    parts = search_parts(v, lam, x, begins, found) if n >= LANES * STEPS else 0
    if parts <= 0:
        state = v[0] - lam, v[0] + lam, lam, -lam
        return parts == 0 and follow(v, lam, x, (0, 0, 0, 0), state, False, slack) == n
    order, place = np.argsort(begins[:parts]), 0
    while 0 <= place < n:  # from the part that has this place on
        part = order[np.searchsorted(begins[order], place, side="right") - 1]
        at, first, total, size, low_sum, low_size, high_sum, high_size = found[part]
        low, high, here = low_sum / low_size, high_sum / high_size, np.int64(first)
        places = np.int64(at) - 1, here, here + np.int64(low_size) - 1, here + np.int64(high_size) - 1
        state = v[here] + low, v[here] + high, total - low * size, total - high * size
        place = follow(v, lam, x, places, state, True, slack)
    return place == n
