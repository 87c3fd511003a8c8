"""Orthant-wise Newton-CG steps on a problem of :mod:`group_subproblem` with fixed multipliers.

:class:`Newton` takes the steps. Values, gradients and directions come from :class:`PlainSteps`, or from
:class:`CompiledSteps` for one output and a sparse X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.groups.radial_curvature import RadialCurvature
from cvxstructreg.solvers.groups.single_precision import ROUGHEST

if TYPE_CHECKING:
    from cvxstructreg.solvers.groups.group_subproblem import Subproblem

#: Limits of the Newton steps for one set of multipliers, and of the conjugate gradient steps for one Newton step.
NEWTON_STEPS, CG_STEPS = 20, 150
#: Step sizes that a line search tries, and the part of the predicted decrease that it requires.
LENGTHS, SUFFICIENT = 12, 1e-4
#: A step size that is too long is multiplied by at least, and at most, this.
SHRINK = (0.1, 0.5)
#: An exact line search ends at this part of the first slope; its steps are at most so long.
FLAT, LONGEST = 0.1, 1e4
#: The range of the damping: the multiple of the diagonal that is added to the Hessian.
LEAST_DAMPING, MOST_DAMPING = 1e-10, 1e8
#: Added to the diagonal of a Hessian, relative to a typical entry.
FLOOR = 1e-10
#: Up to this many free weights the Hessian may be a dense matrix.
MOST_DENSE = 2000
#: The cost of one entry of a dense Hessian and one row of X, relative to one value of X or entry of a group in a
#: product.
DENSE_COST = 0.01
#: The number of products that a step is expected to need at first.
PATIENCE = 30.0
#: The search for the minimum of the dense model: sweeps between two linear systems, number of rounds, and accuracy
#: relative to that of the step.
MODEL_SWEEPS, MODEL_ROUNDS, MODEL_ACCURACY = 3, 30, 0.1
#: Entries of the unit vectors of groups below this, relative to the accuracy of a step, are left out of the Hessian.
NEGLIGIBLE = 0.3
#: Rows of X that are made dense at a time.
DENSE_ROWS = 2000


class OfScores(NamedTuple):
    """Scores, the value of all terms on them, its gradient there, and the pull X'gradient."""

    scores: Array
    loss: float
    slope: Array
    pull: Array


@dataclass(eq=False)
class Point:
    """Weights and intercepts, with the objective and the subgradient of smallest norm."""

    w: Array
    b: Array
    scores: Array
    value: float
    slope: Array
    slope_b: Array
    error: float  # the largest entry of the subgradient, relative to its scale
    of_scores: OfScores | None = None  # it does not change with the multipliers; compiled steps compute it again


class PlainSteps:
    """Values, gradients and directions for any number of outputs and dense or sparse X."""

    def __init__(self, sub: Subproblem, sigma: Array, scale: Array) -> None:
        from cvxstructreg.solvers.groups import compiled_huber as compiled

        self.sub, self.scale, self.compiled = sub, scale, compiled
        self.huber = sub.norms.flat(sigma)
        self.radial = RadialCurvature(self.huber)
        self.crosses, self.patience = False, PATIENCE
        self.reached: tuple[Array, Array] | None = None  # the last scores of slope_along, and the gradient there

    def of_scores(self, scores: Array, slope: Array | None = None) -> OfScores:
        """The terms on the scores; their gradient is computed unless it is known."""
        slope = self.sub.parts.smooth_score_grad(scores) if slope is None else slope
        return OfScores(scores, self.sub.loss(scores), slope, self.sub.pull(slope))

    def at(self, w: Array, b: Array, of_scores: OfScores | None = None) -> Point:
        """The point with its value and gradient; the terms on the scores are computed unless they are known."""
        sub, of_scores = self.sub, of_scores or self.of_scores(self.sub.scores(w, b))
        quadratic = sub.quadratic_grad(w)
        grad = of_scores.pull + quadratic
        value = of_scores.loss + 0.5 * float(quadratic @ w) + float(sub.lam @ np.abs(w))
        value += self.compiled.huber(*self.huber, w, grad)
        least = np.where(w != 0, grad + sub.lam * np.sign(w), grad - np.clip(grad, -sub.lam, sub.lam))
        slope_b = of_scores.slope.sum(axis=0) if sub.intercept else np.zeros(sub.k)
        error = float(np.max(np.abs(least) / self.scale, initial=0.0))
        return Point(w, b, of_scores.scores, value, least, slope_b, error, of_scores)

    def below(self, w: Array, b: Array, limit: float, likely: bool) -> Point | float:
        """The point if its value is within the limit, else the value. Unless likely, the gradient is left for last."""
        sub, known = self.sub, None
        if not likely:
            scores, unused = sub.scores(w, b), np.zeros_like(w)
            value = sub.loss(scores) + 0.5 * float(sub.quadratic_grad(w) @ w) + float(sub.lam @ np.abs(w))
            value += self.compiled.huber(*self.huber, w, unused)
            if not value <= limit:
                return float(value)
            known = self.of_scores(scores)
        point = self.at(w, b, known)
        return point if point.value <= limit else point.value

    def slope_along(self, point: Point, step: Array, scores: Array) -> Callable[[float], float]:
        """The derivative at s times a step with these scores, for a problem without L1 term; no products with X."""
        sub, quadratic = self.sub, self.sub.quadratic_grad(step)
        first, bend = float(quadratic @ point.w), float(quadratic @ step)
        unused = np.empty_like(step)

        def slope(s: float) -> float:
            of_norms = unused
            of_norms[:] = 0.0
            self.compiled.huber(*self.huber, point.w + s * step, of_norms)
            at = point.scores + s * scores
            self.reached = at, sub.parts.smooth_score_grad(at)
            return float(np.vdot(self.reached[1], scores)) + first + s * bend + float(of_norms @ step)

        return slope

    @np.errstate(over="ignore", invalid="ignore")
    def direction(self, point: Point, damping: float, accuracy: float) -> tuple[Array, Array]:
        """The solution of H p = -slope on the free weights and intercepts, by preconditioned conjugate gradients."""
        sub, compiled = self.sub, self.compiled
        free = (point.w != 0) | (point.slope != 0)
        curvature = sub.score_curvature(point.scores)
        identity = np.zeros_like(point.w)
        position = np.where(free, np.arange(len(free)), -1).astype(np.int32)
        rest = compiled.huber_curvature(*self.huber, point.w, position, identity, 0.0, *sub.norms.memory)
        rest = (*rest[:3], rest[3] * self.radial.agreement(point.w, position))
        diagonal = identity + sub.quadratic_diagonal + np.asarray(sub.rows.squares @ curvature).ravel()
        compiled.subtract_squares(*rest, diagonal)
        floor = FLOOR * typical_size(diagonal[free])
        added = damping * np.maximum(diagonal, 0.0) + floor
        added_b = (damping + FLOOR) * curvature.sum(axis=0) + np.finfo(float).tiny
        identity += added
        m = len(free)
        diagonal = np.concatenate([np.where(free, diagonal + added, 1.0), curvature.sum(axis=0) + added_b])

        fixed, some_fixed = ~free, not free.all()
        single = sub.single if accuracy >= ROUGHEST else None
        gram = None if single is None or sub.gram is None else sub.gram.of(curvature, sub.features)

        def of_scores(p: Array) -> tuple[Array, Array]:
            if sub.gram is not None:
                sub.gram.spent += m
            s = sub.scores(p[:m], p[m:]) if single is None else single.adjoint(p[:m].reshape(-1, sub.k)) + p[m:]
            s = curvature * s if sub.rows_apart else sub.parts.smooth_score_hessp(point.scores, s)
            return sub.pull(s) if single is None else (single @ s).ravel(), s.sum(axis=0)

        def product(p: Array) -> Array:
            out, sums = of_scores(p) if gram is None else gram.product(p[:m].reshape(-1, sub.k), p[m:])
            out += identity * p[:m]
            if sub.parts.weight_forms:
                out += sub.quadratic_grad(p[:m])
            compiled.subtract_products(*rest, p[:m], out)
            if some_fixed:
                out[fixed] = 0.0
            return np.concatenate([out, sums + added_b * p[m:] if sub.intercept else np.zeros(sub.k)])

        downhill = -np.concatenate([np.where(free, point.slope, 0.0), point.slope_b])
        step = conjugate_gradients(product, downhill, diagonal, accuracy)
        return step[:m], step[m:]


class CompiledSteps:
    """The same for one output, sparse X, losses that are sums over rows, and diagonal quadratic terms."""

    def __init__(self, sub: Subproblem, sigma: Array, scale: Array) -> None:
        from cvxstructreg.solvers.groups import compiled_group_newton as compiled

        self.sub, self.scale, self.compiled = sub, scale, compiled
        self.huber = sub.norms.flat(sigma)
        self.ridge = sub.ridge
        self.crosses, self.patience = False, PATIENCE

    def at(self, w: Array, b: Array) -> Point:
        """The point with its value and gradient."""
        sub = self.sub
        scores = self.compiled.scores(*sub.columns, w, b[0])[:, None]
        slope = sub.parts.smooth_score_grad(scores)
        value, least, error = self.compiled.gradient(
            *sub.columns, slope[:, 0], self.ridge, sub.lam, w, *self.huber, self.scale
        )
        slope_b = slope.sum(axis=0) if sub.intercept else np.zeros(1)
        return Point(w, b, scores, sub.loss(scores) + value, least, slope_b, error)

    def below(self, w: Array, b: Array, limit: float, likely: bool) -> Point | float:
        """The point if its value is within the limit, else the value."""
        point = self.at(w, b)
        return point if point.value <= limit else point.value

    def direction(self, point: Point, damping: float, accuracy: float) -> tuple[Array, Array]:
        """As in :class:`PlainSteps`, or the minimum of the quadratic model plus the L1 terms."""
        sub, compiled = self.sub, self.compiled
        curvature = sub.score_curvature(point.scores)[:, 0]
        how = NEGLIGIBLE * accuracy, sub.column_memory, sub.norms.memory
        chosen, *model = compiled.free_part(*sub.columns, self.ridge, point.w, point.slope, *self.huber, *how)
        slope = point.slope[chosen]
        self.crosses = self.prefers_model(len(chosen), len(model[2]), len(model[4]))
        if self.crosses:
            found, step_b = self.model_step(point, chosen, model, curvature, damping, accuracy)
        else:
            limits = damping, accuracy, CG_STEPS, sub.intercept
            found, step_b, _ = compiled.conjugate_gradients(*model, curvature, slope, point.slope_b[0], *limits)
        step = np.zeros(len(point.w))
        step[chosen] = found
        return step, np.array([step_b])

    def prefers_model(self, n_free: int, n_values: int, n_entries: int) -> bool:
        """Whether a dense Hessian costs no more than the expected number of products."""
        if n_free > MOST_DENSE or not n_entries:
            return False
        dense = DENSE_COST * n_free**2 * (len(self.sub.columns[0]) + 50.0 * self.patience)
        return dense <= self.patience * (n_values + n_entries)

    def model_step(
        self, point: Point, chosen: Array, model: list[Any], curvature: Array, damping: float, accuracy: float
    ) -> tuple[Array, float]:
        """The minimum over p of the quadratic model plus sum_j lam_j |w_j + p_j|."""
        sub, compiled, f = self.sub, self.compiled, len(chosen)
        starts, places, kept, *rest, identity = model
        H, roots = np.zeros((f + 1, f + 1)), np.sqrt(curvature)
        unit = power_of_two(float(roots.max(initial=0.0)) * float(np.abs(kept).max(initial=0.0)))
        roots /= unit  # within the range of single precision
        chunk = np.empty((min(DENSE_ROWS, len(roots)), f + 1), dtype=np.float32)
        for first in range(0, len(roots), len(chunk)):
            compiled.dense_rows(starts, places, kept, roots, first, sub.intercept, chunk)
            H += chunk.T @ chunk
        H *= unit**2
        compiled.subtract_outer(*rest, H)
        H = np.tril(H)
        H += np.tril(H, -1).T
        H[np.arange(f), np.arange(f)] += identity
        diagonal = np.maximum(np.diag(H), 0.0)
        floor = np.r_[np.full(f, typical_size(diagonal[:f])), diagonal[f] or 1.0]
        H[np.diag_indices(f + 1)] = diagonal * (1.0 + damping + 1e-6) + FLOOR * floor
        w, slope, lam = np.r_[point.w[chosen], 0.0], point.slope[chosen], np.r_[sub.lam[chosen], 0.0]
        g = np.r_[slope - lam[:f] * np.where(w[:f] != 0, np.sign(w[:f]), -np.sign(slope)), point.slope_b]
        p = model_minimum(compiled.model_sweeps, H, g, w, lam, accuracy)
        return p[:f], float(p[f]) if sub.intercept else 0.0


def model_minimum(sweep: Callable[..., float], H: Array, g: Array, w: Array, lam: Array, accuracy: float) -> Array:
    """argmin_p  g'p + 1/2 p'Hp + sum_j lam_j |w_j + p_j|.

    Sweeps of coordinate descent find the zero weights. For the other weights a linear system is solved; those that
    would change their sign become zero.
    """
    p, grad, first = np.zeros_like(g), g.copy(), 0.0
    for _ in range(MODEL_ROUNDS):
        change = sweep(H, grad, w, lam, p, MODEL_SWEEPS)
        first = first or change
        if change <= (MODEL_ACCURACY * accuracy) ** 2 * first:
            break
        at = w + p
        kept = np.flatnonzero((at != 0) | (lam == 0))
        sign = np.sign(at[kept])
        try:
            factor = scipy.linalg.cho_factor(H[np.ix_(kept, kept)], check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        step = -scipy.linalg.cho_solve(factor, grad[kept] + lam[kept] * sign, check_finite=False)
        moved = at[kept] + step
        crossing = (moved * sign < 0) & (lam[kept] > 0)
        step[crossing] = -at[kept][crossing]
        pulled = H[:, kept] @ step
        if (grad[kept] + 0.5 * pulled[kept] + lam[kept] * sign) @ step > 0:  # too many weights would change sign
            continue
        p[kept] += step
        grad += pulled
    return p


class Newton:
    """Damped Newton steps with a line search."""

    def __init__(self, sub: Subproblem, sigma: Array, scale: Array) -> None:
        self.sub, self.largest = sub, float(scale.max()) * sub.intercept_unit
        self.steps: Any = (CompiledSteps if sub.compiled else PlainSteps)(sub, sigma, scale)
        self.damping = LEAST_DAMPING
        self.smooth = isinstance(self.steps, PlainSteps) and not sub.lam.any()  # no L1 term: smooth along every line

    def error(self, point: Point) -> float:
        """The largest entry of the subgradient, relative to its scale."""
        return max(point.error, float(np.max(np.abs(point.slope_b))) / self.largest)

    def solve(self, point: Point, tol: float, steps: int = NEWTON_STEPS) -> Point:
        """Take steps until the error is at most ``tol`` or there is no more progress."""
        for _ in range(steps):
            error = self.error(point)
            if error <= tol or deadline.passed():
                break
            accuracy = min(0.1, max(np.sqrt(error), 0.3 * tol / error))  # no more accurate than tol requires
            step = self.steps.direction(point, self.damping, accuracy)
            point, length = self.exact_search(point, *step) if self.smooth else self.search(point, *step)
            if isinstance(self.steps, PlainSteps):
                self.steps.radial.follow(step[0], length)
            if length < 1.0:
                self.steps.patience *= 4.0
            # the model may be poor if a loss is flat or weights stop at zero: then increase the damping
            self.damping = self.damping / 10 if length > 0.5 else max(1e-4, 10 * self.damping)
            if self.damping > MOST_DAMPING:
                break
            self.damping = max(self.damping, LEAST_DAMPING)
        return point

    def exact_search(self, point: Point, step: Array, step_b: Array) -> tuple[Point, float]:
        """The step size where the derivative is small beside the first one, by regula falsi inside a bracket."""
        scores = self.sub.scores(step, step_b)
        slope = self.steps.slope_along(point, step, scores)
        first = float(point.slope @ step + point.slope_b @ step_b)
        if not first < 0.0:
            return point, 0.0
        length = flat_point(slope, first)
        w, b = point.w + length * step, point.b + length * step_b
        trial = self.steps.at(w, b, self.steps.of_scores(*self.steps.reached))  # the last slope was at this length
        if trial.value <= point.value + 1e-14 * abs(point.value):
            return trial, length
        return self.search(point, step, step_b)

    def search(self, point: Point, step: Array, step_b: Array) -> tuple[Point, float]:
        """A step size of at most 1 with sufficient decrease; weights stop at a change of sign.

        Where one is too long, the next is the minimum of the parabola through its value, within SHRINK parts of it.
        """
        orthant = np.where(point.w != 0, np.sign(point.w), -np.sign(point.slope))
        length = 1.0
        for _ in range(LENGTHS):
            w = point.w + length * step
            if not self.steps.crosses:
                w[(self.sub.lam > 0) & (w * orthant <= 0)] = 0.0
            b = point.b + length * step_b
            gain = float(point.slope @ (w - point.w) + point.slope_b @ (b - point.b))
            limit = point.value + SUFFICIENT * min(gain, 0.0) + 1e-14 * abs(point.value)
            trial = self.steps.below(w, b, limit, length == 1.0)
            if isinstance(trial, Point):
                return trial, length
            rise = trial - point.value - gain  # of the objective above its tangent
            length *= min(max(-0.5 * gain / rise, SHRINK[0]), SHRINK[1]) if gain < 0.0 < rise < np.inf else SHRINK[1]
        return point, 0.0


def flat_point(slope: Callable[[float], float], first: float) -> float:
    """An s where the increasing function is at most FLAT times its value ``first`` < 0 at 0, in size."""
    low, at_low, s, at_s = 0.0, first, 1.0, slope(1.0)
    while at_s < FLAT * first and s < LONGEST:
        low, at_low, s = s, at_s, 4.0 * s
        at_s = slope(s)
    if not at_s > -FLAT * first:
        return s
    high, at_high = s, at_s
    for _ in range(LENGTHS):
        s = low - at_low * (high - low) / (at_high - at_low) if np.isfinite(at_high) else 0.5 * (low + high)
        s = min(max(s, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        at_s = slope(s)
        if abs(at_s) <= -FLAT * first:
            break
        low, at_low, high, at_high = (s, at_s, high, at_high) if at_s < 0 else (low, at_low, s, at_s)
    return s


def typical_size(diagonal: Array) -> float:
    """The geometric mean of the positive entries, rounded to a power of two; columns may differ a lot in scale.

    It is 1 if no entry is positive, as where a loss is flat to the last digit: a floor made of it keeps steps finite.
    """
    positive = diagonal[diagonal > 0]
    return float(np.exp2(np.round(np.mean(np.log2(positive))))) if positive.size else 1.0


def conjugate_gradients(product: Callable[[Array], Array], r: Array, diagonal: Array, accuracy: float) -> Array:
    """Solve H x = r to a relative accuracy, in the norm of the preconditioner."""
    x, p = np.zeros_like(r), r / diagonal
    rho = first = float(r @ p)
    for _ in range(CG_STEPS):
        Hp = product(p)
        bend = float(p @ Hp)
        if not 0.0 < bend < np.inf:  # data of extreme sizes overflow
            break
        x, r = x + (rho / bend) * p, r - (rho / bend) * Hp
        z = r / diagonal
        rho, last = float(r @ z), rho
        if rho <= accuracy**2 * first or deadline.passed():
            break
        p = z + (rho / last) * p
    return x if x.any() else r / diagonal
