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
LANES, STEPS = 32, 64
#: Entries are read too often if each is read more often than this, from a share of the chain on. After another share,
#: pieces are short enough if so many have ended in each part on average: others are found one after the other.
MOST_READ, SLACK, LOOK, SHORT_ENOUGH = 8, 1 / 16, 1 / 4, 1
#: Numbers that are written for each piece; those beyond its end are overwritten by the next ones.
WRITTEN = 8


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
        state[4 * LANES + part] = (0.0 if falls else -2.0 * lam) if ends else low_sum
        state[5 * LANES + part] = 1.0 if ends else low_size
        state[6 * LANES + part] = (2.0 * lam if falls else 0.0) if ends else high_sum
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
def search_parts(v: Floats, lam: float, x: Floats, begins: Ints, rows: Floats) -> int:
    """Take steps of all parts until one is at its end, and write their pieces to ``x``.

    Returns 1, 0 if pieces are too long for this, and -1 if entries are read too often.
    """
    n, taken, ended, looked = len(v), 0, 0, False
    sums, sizes, written = np.empty((LANES, STEPS + 1)), np.empty((LANES, STEPS + 1)), begins.copy()
    rows[0], rows[1] = begins[:-1] + 1.0, begins[:-1]
    rows[4], rows[6] = -lam, lam
    rows[3] = rows[5] = rows[7] = 1.0
    while True:
        many = min(STEPS, int((begins[1:] - rows[0]).min()) - 1)
        if many < WRITTEN:
            break
        steps(v, lam, rows.reshape(-1), many, sums, sizes)
        for part in range(LANES):
            count = int(rows[9, part])
            written[part] = write(v, x, written[part], begins[part + 1], count, sums[part], sizes[part])
            ended += count
        taken += many * LANES
        done = (rows[0] - begins[:-1]).sum()
        if taken > MOST_READ * (done + SLACK * n):
            return -1
        if not looked and done >= LOOK * n:
            looked = True
            if ended < SHORT_ENOUGH * LANES:
                return 0
    for part in range(LANES):
        x[written[part] : begins[part + 1]] = np.nan
    return 1


@njit(cache=True)
def denoise_long_chain(v: Floats, lam: float, x: Floats) -> bool:
    """Write the minimiser for s = 1 and equal lam to ``x``; False if entries would be read too often."""
    n = len(v)
    begins, rows, slack = np.arange(LANES + 1) * n // LANES, np.zeros((13, LANES)), np.int64(SLACK * n)
    found = search_parts(v, lam, x, begins, rows) if n >= LANES * STEPS else 0
    if found <= 0:
        state = v[0] - lam, v[0] + lam, lam, -lam
        return found == 0 and follow(v, lam, x, (0, 0, 0, 0), state, False, slack) == n
    place = 0
    while 0 <= place < n:  # from the part that has this place on
        part = np.searchsorted(begins, place, side="right") - 1
        first, total, size = np.int64(rows[1, part]), rows[2, part], rows[3, part]
        low, high = rows[4, part] / rows[5, part], rows[6, part] / rows[7, part]
        last_low, last_high = first + np.int64(rows[5, part]) - 1, first + np.int64(rows[7, part]) - 1
        places = np.int64(rows[0, part]) - 1, first, last_low, last_high
        state = v[first] + low, v[first] + high, total - low * size, total - high * size
        place = follow(v, lam, x, places, state, True, slack)
    return place == n
