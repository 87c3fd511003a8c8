"""The partial likelihood of Cox's proportional hazards model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from cvxstructreg.core.atom import as_columns, freeze
from cvxstructreg.core.loss import Loss
from cvxstructreg.losses.survival.at_scores import AtScores
from cvxstructreg.losses.survival.labels import checked_event, checked_strata
from cvxstructreg.losses.survival.risk_sets import RiskSets
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.monotone_root import increasing_root
from cvxstructreg.runtime.lazy_cvxpy import cp

#: The largest relative error of the sums of a dual point that is round-off.
ROUND_OFF = 1e-12
#: Sums of exp(z) below this part of the largest exp(z) count as zero in second derivatives.
SMALLEST = 1e-150
#: Newton steps of the prox, conjugate gradient steps for each, and halvings of a step.
NEWTON_STEPS, INNER_STEPS, HALVINGS = 60, 200, 40


@dataclass(frozen=True, eq=False, repr=False)
class Cox(Loss):
    """sum_(i: event) s_i (log sum_(j at risk at t_i) s_j exp(f_j) - f_i - log s_i): minus the log partial likelihood.

    With ``ties="efron"``, sum_(i: event) (m_i log((S_i - r_i D_i) / m_i) - s_i f_i): S_i is the sum of s_j exp(f_j)
    over the rows at risk at t_i, D_i over the m events tied with i, m_i the mean of their s_j, and r_i = 0/m, 1/m, ...,
    (m-1)/m one after the other. Both are the same without ties.

    A sum over events, not averaged. Row j is at risk at t_i if its time is at least t_i (and its stratum the same). The
    hazard of row i is exp(f_i) times a common function of time, which drops out; so does an intercept, and models must
    have none.

    Parameters
    ----------
    y : array of n nonnegative numbers
        Times of the events, or of the end of the observation.
    rows, sample_weight, offset
        As for every loss: the rows of the model, the s_i, and scores known in advance.
    event : array of n booleans, optional
        Whether the time is that of an event (True) or of the end of the observation (False, censored); by default
        there was an event in every row.
    ties : "breslow" or "efron"
        How events at the same time are treated. Efron's terms remove a part of these events from the risk set.
    strata : array of n labels, optional
        Rows of different strata have different baseline hazards: they are never in the same risk set.

    Examples
    --------
    >>> round(Cox([1.0, 2.0, 3.0], event=[True, True, False])([0.0, 0.0, 0.0]), 4)
    1.7918
    """

    event: Any = None
    ties: str = "breslow"
    strata: Any = None

    attains_infimum: ClassVar[bool] = False
    couples_rows: ClassVar[bool] = True
    ignores_constants: ClassVar[bool] = True
    has_slow_prox: ClassVar[bool] = True
    formula: ClassVar[str] = "sum_(i: event) s_i (log sum_(j at risk at t_i) s_j exp(f_j) - f_i - log s_i)"
    convention: ClassVar[str] = "summed over events (not averaged), minus the log partial likelihood"

    def described(self) -> tuple[str, str]:
        """The formula of the rule for ties in use."""
        weighted, note = bool(np.any(self.sample_weight != 1)), f"{self.convention}; ties by {self.ties.capitalize()}"
        if self.ties == "breslow":
            whole = self.formula if weighted else "sum_(i: event) (log sum_(j at risk at t_i) exp(f_j) - f_i)"
            return whole, note
        note += (
            f": S_i sums {'s_j ' if weighted else ''}exp(f_j) over the rows at risk at t_i, D_i over the m events tied"
        )
        note += " with i, and r_i = 0/m, ..., (m-1)/m" + ("; m_i is the mean of their s_j" if weighted else "")
        if weighted:
            return "sum_(i: event) (m_i log((S_i - r_i D_i) / m_i) - s_i f_i)", note
        return "sum_(i: event) (log(S_i - r_i D_i) - f_i)", note

    def _encode(self, y: Any) -> Array:
        raw = np.asarray(y)
        if raw.dtype.kind == "f" and not np.isfinite(raw).all():
            remedy = "drop these rows, or censor them at the last time at which they were seen (event=0)"
            raise ValueError(f"{np.count_nonzero(~np.isfinite(raw))} of the times y are NaN or infinite; {remedy}")
        time = as_columns(y, "the times y") if np.size(y) else np.zeros((0, 1))
        if time.shape[1] != 1:
            raise ValueError(f"y must be the times, one for each row, got shape {time.shape}; pass events as event=")
        if (time < 0).any():
            raise ValueError(f"times must be nonnegative, got {float(time.min()):g}; measure them from the entry")
        return time

    def __post_init__(self) -> None:
        if self.ties not in ("breslow", "efron"):
            raise ValueError(f"ties must be 'breslow' or 'efron', got {self.ties!r}")
        super().__post_init__()
        n = len(self.y)
        freeze(self, event=checked_event(self.event, n), strata=checked_strata(self.strata, n))
        if not np.any(self.event & (np.asarray(self.sample_weight) > 0)):
            raise ValueError("there is no event of positive weight: the partial likelihood is constant; add events")

    @property
    def _sets(self) -> RiskSets:
        known: tuple[Any, RiskSets] | None = self.__dict__.get("_known_sets")
        if known is None or known[0] is not self.sample_weight:
            strata = np.zeros(len(self.y), dtype=np.int64) if self.strata is None else self.strata
            weight = np.asarray(self.sample_weight)
            known = self.sample_weight, RiskSets.of(self.y[:, 0], self.event, strata, weight, self.ties == "efron")
            self.__dict__["_known_sets"] = known
        return known[1]

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        sets = self._sets
        total = -sets.constant - cp.sum(cp.multiply(sets.weight[sets.event], z[sets.order[sets.event], 0]))
        ends = np.concatenate([np.full(end - begin, last) for begin, end, last in self._block_ends()])
        for k, w, part in zip(sets.term_block, sets.term_weight, sets.term_part, strict=True):
            risk = np.arange(sets.starts[k], ends[k])
            inside = sets.event[risk] & (sets.block[risk] == k)
            logs = np.log(sets.weight[risk] * np.where(inside, 1.0 - part, 1.0))
            total = total + w * cp.log_sum_exp(z[sets.order[risk], 0] + logs)
        return total

    def _block_ends(self) -> list[tuple[int, int, int]]:
        """The blocks of each stratum, and the end of its rows."""
        pairs = zip(self._sets.stratum_blocks, self._sets.strata, strict=True)
        return [(begin, end, last) for (begin, end), (_, last) in pairs]

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """True: each event is in its own risk set, which the sign rules of CVXPY do not detect."""
        return True

    def _at(self, z: Array) -> AtScores:
        """The sums over risk sets at these scores. Those of the last scores are kept."""
        known: AtScores | None = self.__dict__.get("_known_sums")
        sets = self._sets
        if known is None or known.sets is not sets or not (known.scores == z).all():
            known = self.__dict__["_known_sums"] = AtScores(sets, z.copy())
        return known

    def value(self, z: Array) -> float:
        """sum_l w_l log(S - f_l D) - sum over events of s z."""
        sets = self._sets
        x, at_risk, left = self._at(z).logs
        parts = sets.event_row_weight * (at_risk[sets.event_blocks] - x[sets.event_rows])
        return float(np.sum(parts) + np.sum(sets.term_weight * left) + sets.excess)

    def _spread(self, x: Array) -> Array:
        """Numbers of the sorted rows as an (n, 1) array, zero for rows of weight zero."""
        out = np.zeros(len(self.y))
        out[self._sets.order] = x
        return out[:, None]

    def grad(self, z: Array) -> Array:
        """q - s for events, q for others."""
        sets = self._sets
        return self._spread(self._at(z).mass - sets.observed)

    def hessp(self, z: Array, p: Array) -> Array:
        """q p - sum_l w_l v_l <v_l, p>, with v_l the shares in the l-th risk set."""
        at = self._at(z)
        sets, (sizes, left) = at.sets, at.shares
        if sets.compiled is not None:
            out, terms = np.zeros((len(self.y), 1)), (sets.term_block, sets.term_weight, sets.term_part)
            rows = sets.order, sets.block, sets.bounds, sets.event
            sets.compiled.curvature_product(*rows, *terms, at.mass, sizes, left, p[:, 0], out[:, 0])
            return out
        moved = sizes * p[sets.order, 0]
        means = sets.rows_behind(moved)[sets.term_block]
        if sets.has_parts:
            means -= sets.term_part * sets.by_block(np.where(sets.event, moved, 0.0))[sets.term_block]
        pull = _over(sets.term_weight * _over(means, left), left)
        back = sets.blocks_before(sets.by_term(pull))[sets.block]
        if sets.has_parts:
            back -= np.where(sets.event, sets.by_term(sets.term_part * pull)[sets.block], 0.0)
        return self._spread(at.mass * p[sets.order, 0] - sizes * back)

    def hess_factor(self, z: Array) -> tuple[Array, Array]:
        """q, and the columns sqrt(w_l) v_l."""
        sets, (sizes, left) = self._sets, self._at(z).shares
        L = np.zeros((len(self.y), len(sets.term_block)))
        ends = np.concatenate([np.full(end - begin, last) for begin, end, last in self._block_ends()])
        for number, k in enumerate(sets.term_block):
            risk = slice(sets.starts[k], ends[k])
            inside = sets.event[risk] & (sets.block[risk] == k)
            kept = sizes[risk] * np.where(inside, 1.0 - sets.term_part[number], 1.0)
            scale = np.sqrt(sets.term_weight[number]) / left[number] if left[number] > SMALLEST else 0.0
            L[sets.order[risk], number] = scale * kept
        return self._spread(self._at(z).mass), L

    def hess_bound(self, z: Array) -> Array:
        """q."""
        return self._spread(self._at(z).mass)

    def lipschitz(self) -> float:
        """The sum of the weights of the events, over 2: diag(v) - vv' has eigenvalues of at most 1/2."""
        return 0.5 * float(np.sum(self._sets.event_weight))

    def prox(self, v: Array, t: float) -> Array:
        """Damped Newton steps, each by conjugate gradients; v minus t times the last gradient."""
        x = v.copy()

        def energy(x: Array) -> float:
            return t * self.value(x) + 0.5 * float(np.sum((x - v) ** 2))

        size = 1.0 + float(np.abs(v).max(initial=0.0)) + t * float(self._sets.event_weight.max())
        for _ in range(NEWTON_STEPS):
            gradient = t * self.grad(x) + x - v
            if np.abs(gradient).max() <= 1e-13 * size:
                break
            step = self._newton_step(x, gradient, t)
            length, before, slope = 1.0, energy(x), float(np.vdot(gradient, step))
            for _ in range(HALVINGS):
                if energy(x - length * step) <= before - 0.1 * length * slope + 1e-13 * (1.0 + abs(before)):
                    break
                length *= 0.5
            x = x - length * step
        return v - t * self.grad(x)

    def _newton_step(self, z: Array, gradient: Array, t: float) -> Array:
        """(I + t H)^-1 times the gradient."""
        step, residual = np.zeros_like(gradient), gradient.copy()
        direction, square = residual.copy(), float(np.vdot(residual, residual))
        goal = 1e-20 * square
        for _ in range(INNER_STEPS):
            if square <= goal:
                break
            product = direction + t * self.hessp(z, direction)
            length = square / float(np.vdot(direction, product))
            step = step + length * direction
            residual = residual - length * product
            square, before = float(np.vdot(residual, residual)), square
            direction = residual + (square / before) * direction
        return step

    def _flows(self, u: Array) -> tuple[Array, Array, Array]:
        """q = u + s by row for events (u for others), and T by block: what the events so far leave to later blocks."""
        sets = self._sets
        q = u[:, 0][sets.order] + sets.observed
        surplus = sets.by_block(q) - sets.event_weight
        return q, sets.blocks_behind(surplus) - surplus, surplus

    def _round_off(self, u: Array) -> tuple[Array, Array]:
        """What negative q of rows and T of blocks may be: a part of the numbers that are added up."""
        sets = self._sets
        sizes = np.abs(u[:, 0][sets.order]) + sets.observed
        return ROUND_OFF * sizes, ROUND_OFF * sets.blocks_behind(sets.by_block(sizes))

    def conj(self, u: Array) -> float:
        """sum q log(q / s) + sum_k (T log T - R log R + R log(1 - r) + Q log(r / Q) - sum_l w_l log(1 - f_l r)) + c.

        T is what the events up to block k leave to later blocks, Q the sum of q over the events of the block, R what
        the block leaves to its other rows and to later ones, and r the share D / S that fits: the largest value over r.
        """
        sets = self._sets
        q, after, surplus = self._flows(u)
        of_rows, of_blocks = self._round_off(u)
        begins = [begin for begin, _ in sets.stratum_blocks]
        totals = (after + surplus)[begins]
        outside = (q < -of_rows).any() or (after < -of_blocks).any() or np.any(np.abs(totals) > of_blocks[begins])
        if outside or np.any(u[np.asarray(self.sample_weight) == 0]):
            return np.inf
        q, after = np.maximum(q, 0.0), np.maximum(after, 0.0)
        of_events, of_others = (sets.by_block(np.where(chosen, q, 0.0)) for chosen in (sets.event, ~sets.event))
        rest = after + of_others
        entropy = float(np.sum(xlogy(q, q / sets.weight)))
        # T log T - R log R with R = T + others, without cancellation
        passed = -_times_log1p(after, of_others) - xlogy(of_others, rest)
        return entropy + float(np.sum(passed)) + self._event_parts(of_events, rest) + sets.constant

    def _event_parts(self, of_events: Array, rest: Array) -> float:
        """sum_k R log(1 - r) + Q log(r / Q) - sum_l w_l log(1 - f_l r) at the best r."""
        sets, whole = self._sets, of_events + rest
        if not sets.has_parts:  # r = Q / (Q + R)
            return float(np.sum(_log_share(rest, of_events) - xlogy(of_events, whole)))
        arriving = np.maximum(whole - sets.event_weight, 0.0)

        def residual(r: Array) -> tuple[Array, Array]:
            at = r[sets.term_block]
            left = 1.0 - sets.term_part * at
            mass = sets.term_weight * (1.0 - sets.term_part) * at / left
            slope = sets.term_weight * (1.0 - sets.term_part) / left**2
            return r * arriving + sets.by_term(mass) - of_events, arriving + sets.by_term(slope)

        held = whole > 0
        start = np.divide(of_events, whole, out=np.zeros_like(whole), where=held)
        r = increasing_root(residual, np.zeros_like(start), np.ones_like(start), start, 1e-15 * whole)
        left = 1.0 - sets.term_part * r[sets.term_block]
        # R = (1 - r) times the first sum and Q = r times the second one; 1 - r itself would lose digits
        of_rest = _ratio(rest, arriving + sets.by_term(sets.term_weight / left))
        taken = _ratio(of_events, arriving + sets.by_term(sets.term_weight * (1.0 - sets.term_part) / left))
        parts = xlogy(rest, of_rest) + xlogy(of_events, taken) - xlogy(of_events, of_events)
        return float(np.sum(parts) - np.sum(sets.term_weight * np.log(left)))

    def into_domain(self, u: Array) -> Array:
        """u, moved towards the gradient at zero as far as needed, after each stratum is made to sum to zero."""
        sets, centre = self._sets, self.without_offset.grad(np.zeros_like(u))
        inner, inner_after, _ = self._flows(centre)
        x = np.where(inner > 0, u[sets.order, 0], 0.0)
        for begin, end in sets.strata:
            total = inner[begin:end].sum()
            if total > 0:
                x[begin:end] -= x[begin:end].sum() * inner[begin:end] / total
            else:
                x[begin:end] = 0.0
        moved = self._spread(x)
        q, after, _ = self._flows(moved)
        share = 1.0
        for have, want, slack in zip((q, after), (inner, inner_after), self._round_off(moved), strict=True):
            bad = have < -0.1 * slack
            if bad.any():
                room = np.maximum(want[bad], 0.0)
                share = min(share, float(np.min(room / (room - have[bad]))))
        return share * moved + (1.0 - share) * centre

    def rebalance(self, u: Array, target: Array) -> Array | None:
        """u itself if the target is zero, as dual points always sum to zero; else None."""
        size = float(np.abs(u).sum()) + float(np.sum(self._sets.event_weight))
        return u.copy() if abs(float(target[0])) <= ROUND_OFF * size else None

    def gains(self, columns: Array) -> sp.csr_array:
        """The gains of events over the other rows at risk: over those before the next event, and over that event."""
        sets = self._sets
        winners = np.full(len(sets.starts), -1)
        rows_of_events = np.flatnonzero(sets.event)
        winners[sets.block[rows_of_events]] = rows_of_events  # one event of each block
        rows = []
        for (begin, end), (first, last) in zip(sets.strata, sets.stratum_blocks, strict=True):
            leading = np.maximum.accumulate(np.where(winners[first:last] >= 0, np.arange(first, last), -1))
            leader = np.where(leading >= 0, winners[leading], -1)[sets.block[begin:end] - first]
            behind = np.arange(begin, end)
            kept = (leader >= 0) & (leader != behind)
            rows.append(columns[sets.order[leader[kept]]] - columns[sets.order[behind[kept]]])
            tied = kept & sets.event[begin:end]
            rows.append(columns[sets.order[behind[tied]]] - columns[sets.order[leader[tied]]])
            chain = winners[first:last][winners[first:last] >= 0]
            rows.append(columns[sets.order[chain[:-1]]] - columns[sets.order[chain[1:]]])
        return sp.csr_array(np.vstack(rows))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        time, event = [3.0, 1.0, 2.0, 2.0, 5.0, 2.0], [1, 1, 0, 1, 0, 1]
        weights = [1.0, 2.0, 0.5, 0.0, 1.5, 1.0]
        return [
            (cls(time, event=event), (6, 1)),
            (cls(time, event=event, ties="efron", offset=rng.normal(size=6)), (6, 1)),
            (cls(time, event=event, strata=[0, 1, 0, 1, 0, 0], sample_weight=weights), (6, 1)),
            (
                cls(time, event=event, strata=list("abbaab"), ties="efron", sample_weight=weights),
                (6, 1),
            ),
        ]


def _over(a: Array, b: Array) -> Array:
    """a / b, zero where b nearly underflowed."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > SMALLEST)


def _ratio(a: Array, b: Array) -> Array:
    """a / b, zero where both are zero."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _times_log1p(a: Array, b: Array) -> Array:
    """a log(1 + b / a), zero where a is zero."""
    return np.asarray(a * np.log1p(np.divide(b, a, out=np.zeros_like(a), where=a > 0)))


def _log_share(rest: Array, part: Array) -> Array:
    """rest log(rest / (rest + part)), zero where rest is zero."""
    return -_times_log1p(rest, part)
