"""Augmented Lagrangian Newton: all nonsmooth terms at once, for problems with few weights.

The multipliers of L1, bounds, differences, group norms and hinges are kept from one augmented Lagrangian to the next
(:mod:`~cvxstructreg.solvers.general.lagrangian`). Each is minimised by Newton's method with an exact line search. The
Newton system also gives the dual point: with the step dx and the derivatives J and h,

    p' = p + sigma J K dx,      u' = u + h A dx,      x' = x + dx      satisfy      A'u' + 2 M w' + sum K'p' = 0

exactly, whatever the penalties. Certificates of these points therefore need no search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.general.dense_system import DenseSystem
from cvxstructreg.solvers.general.excess import excess, into_domain
from cvxstructreg.solvers.general.few_weights import DualSets, FewWeights, RowsApart
from cvxstructreg.solvers.general.lagrangian import (
    AugmentedLagrangian,
    Images,
    State,
    Step,
)
from cvxstructreg.solvers.general.matrix_free import FINE_ACCURACY, MatrixFreeLagrangian, NewtonOperator
from cvxstructreg.solvers.general.newton_matrix import Hessians, bent
from cvxstructreg.solvers.general.row_system import RowSystem
from cvxstructreg.solvers.general.starts.alternating import alternating_start
from cvxstructreg.solvers.general.starts.first_penalties import STEEP, set_penalties
from cvxstructreg.solvers.iterate import Iterate, SolverFailedError
from cvxstructreg.solvers.sizes import NoLooseWeights
from cvxstructreg.solvers.solver import COPIED, Solver

#: Unknowns and numbers in the data up to which dense Newton matrices are made.
MOST_UNKNOWNS, MOST_ENTRIES = 1_500, 5_000_000
#: If Newton systems have one unknown for each row at a kink, penalties are STRONG where the mean pull on a weight at
#: zero is at most so many times what they hold. Then few rows are near their kinks, Newton steps are cheap, and first
#: sigmas of the loss and of the penalties are multiplied by these. Beside weaker penalties, and if systems are dense,
#: alternating steps come first, unless the start is NEAR the solution: the largest slope is at most this part of the
#: mean pull. (Found on hinge, absolute and pinball losses with 1,000 x 500 data and groups.)
STRONG, SHARP_SCORES, SHARP_WEIGHTS, NEAR = 1.2, 6.0, 6.0, 1e-3
#: The same for systems solved by products with the data.
STRONG_BY_PRODUCTS, SHARP_BY_PRODUCTS = 4.0, 3.0
#: All sigmas grow by GROWTH unless the complementarity falls by FALL.
GROWTH, FALL = 1.5, 0.1
#: FALL and LAST_STEP where quadratic terms couple many bounded weights: systems are hard to solve for large sigmas.
FALL_COUPLED, LAST_STEP_COUPLED = 0.5, 0.1
#: A Newton step is the last one if its decrease is this part of the complementarity, or of a tenth of the tolerance.
#: The part falls if the complementarity after the step is FAR above that before it.
LAST_STEP, FAR = 0.3, 10.0
#: The line search ends at this part of the first slope; steps are at most so long.
FLAT, LONGEST = 0.03, 1e4
#: A slope this many times the first one cannot be that of a convex function.
FALLING = 1.001
#: Where Newton steps are found by products and some direction has no curvature: the longest step in typical scores, the
#: first part of the curvature of all rows that is added, growing by 10, and what is kept of it for the next system.
LONG_BY_PRODUCTS, SMALL_BY_PRODUCTS, KEPT = 1.0, 1e-3, 0.7
#: Dense Newton matrices beside a piecewise linear loss are in single precision until the complementarity is so small,
#: in so many augmented Lagrangians at the most, and if their entries and sigmas are in this range.
SINGLE_GAP, MOST_SINGLE, SINGLE_RANGE = 1e-6, 20, 1e12
#: Newton steps for one augmented Lagrangian.
MOST_STEPS = 60
#: Augmented Lagrangians, each of at most so many Newton steps, and the growth of all sigmas together.
MOST_LAGRANGIANS, MOST_GROWTH = 100, 1e10
#: Dual points are scaled into their domains by this factor at the least, else clipped.
LEAST_FACTOR = 0.9
#: The last step may be corrected by this part of its length.
CORRECTION = 1e-3
#: A decrease of this part of the objective is round-off.
ROUND_OFF = 1e-15
System = DenseSystem | RowSystem | NewtonOperator
LineFunction = Callable[[float], float]


def run(problem: Problem, start: Iterate, tol: float, sigma: float = 1.0) -> Iterator[Iterate]:
    """``sigma`` multiplies the first penalty parameters of the augmented Lagrangian."""
    yield from _run(AugmentedLagrangian(problem), start, tol, sigma)


def run_matrix_free(problem: Problem, start: Iterate, tol: float, sigma: float = 1.0) -> Iterator[Iterate]:
    """``sigma`` multiplies the first penalty parameters of the augmented Lagrangian."""
    yield from _run(MatrixFreeLagrangian(problem), start, tol, sigma)


def _run(function: AugmentedLagrangian, start: Iterate, tol: float, sigma: float) -> Iterator[Iterate]:
    """Minimise one augmented Lagrangian after the other."""
    if not sigma > 0:
        raise ValueError(f"sigma must be positive, got {sigma}")
    x = function.joined(start.theta, start.b)
    pull = set_penalties(function, sigma)
    limit, sharp = (STRONG, SHARP_SCORES) if function.is_dense else (STRONG_BY_PRODUCTS, SHARP_BY_PRODUCTS)
    strong = pull <= limit * _held(function)
    if function.by_rows and strong:
        for term in function.rough:
            term.sigma *= sharp if term.of_scores else SHARP_WEIGHTS
    if not all(np.isfinite(STEEP * term.sigma) for term in function.rough):
        if sigma == 1.0:  # the strengths of the problem are at fault
            raise SolverFailedError("the penalty parameters overflow")
        raise ValueError(f"sigma = {sigma:g} makes penalty parameters overflow; choose a number nearer to 1")
    _warm_start(function, start, x)
    function.single = function.by_rows and _in_single_range(function)
    last, most = np.inf, [MOST_GROWTH * term.sigma for term in function.rough]
    if function.single and function.is_dense and not strong and np.max(np.abs(function.at(x).gradient())) > NEAR * pull:
        x = alternating_start(function, x)
    fall, part = (FALL_COUPLED, LAST_STEP_COUPLED) if function.coupled else (FALL, LAST_STEP)
    known: Images | None = None
    for count in range(1, MOST_LAGRANGIANS + 1):
        at, step, rows, accurate, H = _minimised(function.at(x, known), tol, part)
        ahead = at.x + step.dx if accurate else at.x
        found = _dual_points(function, at, step, rows, ahead)
        if accurate and found.promising(tol) and not isinstance(H, NewtonOperator):
            for _ in range(2 if function.single else 1):
                step = _refined(H, at, step, rows)
            ahead = at.x + step.dx
            found = _dual_points(function, at, step, rows, ahead)
        stuck = not function.rough and np.array_equal(ahead, x)  # the next step would be the same
        yield found.iterate(tol, exhausted=stuck or count == MOST_LAGRANGIANS)
        gap = found.complementarity
        if gap <= max(SINGLE_GAP, tol) * found.scale or count == MOST_SINGLE:
            function.single = False
        outside = gap <= tol * found.scale < found.outside * found.scale
        if outside or (gap > fall * last and gap > FAR * at.complementarity()):  # the last step is at fault
            part = max((FALL**2 if outside else FALL) * part, ROUND_OFF)
        for term, p, limit in zip(function.rough, found.multipliers, most, strict=True):
            if not (outside and accurate):  # else a shorter step from here brings the multipliers inside
                term.q = term.dual_set.project(p)
            if gap > fall * last and accurate and not outside and term.sigma < limit:
                term.sigma *= GROWTH
        known = step.images_ahead(1.0) if accurate else (at.smooth_scores, at.images)
        x, last = ahead, gap


def _in_single_range(function: AugmentedLagrangian) -> bool:
    """Whether the entries of Newton matrices are far from the ends of the range of single precision."""
    sizes = np.concatenate([function.capacity, [term.sigma for term in function.rough]])
    return bool(np.all((sizes > 1.0 / SINGLE_RANGE) & (sizes < SINGLE_RANGE)))


def _held(function: AugmentedLagrangian) -> float:
    """The typical pull on a weight that the penalties hold at zero."""
    return sum(term.dual_set.size for term in function.rough if not term.of_scores)


def _warm_start(function: AugmentedLagrangian, start: Iterate, x: Array) -> None:
    """Multipliers from the dual points of the start; L1 and bounds take what these leave."""
    for term in function.rough:
        if term.piece is not None and term.piece.number in start.dual and not term.centred:
            given = start.dual[term.piece.number]
            if given.shape == term.q.shape:
                term.q = term.dual_set.project(given)
    if {piece.number for piece in (*function.parts.score_pieces, *function.parts.weight_pieces)} <= set(start.dual):
        at = function.at(x)
        left = -at.quadratic_grad - sum(term.adjoint(term.q) for term in function.rough)
        for smooth, u in zip(function.smooth, at.smooth_grads, strict=True):
            left -= smooth.rows.T @ u
        for term in function.rough:
            if term.piece is None:
                term.q = term.dual_set.project(left[: function.n_weights])
                left[: function.n_weights] -= term.q


def _minimised(at: State, tol: float, part: float) -> tuple[State, Step, list[Hessians], bool, System]:
    """Newton's method on one augmented Lagrangian: the last point, the next step there, whether it is accurate, and H.

    The last step decreases the function by at most a part of the complementarity, or of a tenth of the tolerance.
    """
    function, count = at.function, 0
    scale = function.scale(at.x, at.scores)
    while True:
        deadline.check()
        count += 1
        gradient = at.gradient()
        H, rows = function.newton_matrix(at)
        step = Step(at, _direction(function, H, -gradient, at.x))
        decrease = -0.5 * float(np.vdot(gradient, step.dx))
        enough = max(at.complementarity(), 0.1 * tol * scale)
        done = decrease <= part * enough and (function.smooth or excess(function, gradient, scale) <= enough)
        if done or decrease <= ROUND_OFF * scale or count == MOST_STEPS:
            if isinstance(H, NewtonOperator):  # the dual point needs an accurate step
                step = Step(at, H.solve(-gradient, FINE_ACCURACY, step.dx))
            return at, step, rows, decrease <= enough, H
        s = _line_search(partial(function.slope, at, step), -2.0 * decrease)
        moved = step.moved(s)
        if np.array_equal(moved.x, at.x):
            return at, step, rows, decrease <= enough, H
        at = moved


def _refined(H: DenseSystem | RowSystem, at: State, step: Step, rows: list[Hessians]) -> Step:
    """The step, corrected for the regularisation of H, if this brings the dual points nearer to balance."""
    left, lengths = _imbalance(at, step, rows), at.function.lengths[:, None]
    correction = H.solve(left)
    if not np.max(np.abs(correction) * lengths) <= CORRECTION * np.max(np.abs(step.dx) * lengths):
        return step  # a direction of round-off
    better = Step(at, step.dx - correction)
    return better if np.max(np.abs(_imbalance(at, better, rows))) < np.max(np.abs(left)) else step


def _imbalance(at: State, step: Step, rows: list[Hessians]) -> Array:
    """A'u' + 2 M w' + sum K'p', which is zero for an exact step."""
    function = at.function
    total = np.asarray(at.quadratic_grad + function.quadratic_product(step.dx))
    for term, u, h, dz in zip(function.smooth, at.smooth_grads, rows, step.smooth_scores, strict=True):
        total += term.rows.T @ (u + bent(h, dz))
    for rough, p in zip(function.rough, _multipliers(at, step), strict=True):
        total += rough.adjoint(p)
    return total


def _multipliers(at: State, step: Step) -> list[Array]:
    """p' = p + sigma J K dx."""
    terms = zip(at.function.rough, at.multipliers, at.arguments, step.images, strict=True)
    return [p + term.sigma * term.dual_set.moved(u, dz) for term, p, u, dz in terms]


def _direction(function: AugmentedLagrangian, H: System, right: Array, x: Array) -> Array:
    """H^-1 right for a positive semidefinite H, regularised as little as possible."""
    # in scores, so that the units of the columns do not matter
    typical = function.typical_score + float(np.max(np.abs(x) * function.lengths[:, None]))
    if isinstance(H, NewtonOperator):
        return _short_step(H, right, LONG_BY_PRODUCTS * typical)
    return H.direction(right, typical)


def _short_step(H: NewtonOperator, right: Array, longest: float) -> Array:
    """H^-1 right by conjugate gradients; where some direction has no curvature, H is lifted until the step is short.

    The next system is lifted by nearly as much from the start.
    """
    function = H.function
    part = KEPT * function.lifted if function.lifted >= SMALL_BY_PRODUCTS else 0.0
    H.lift(part)
    dx = H.solve(right)
    while part <= 1.0 and not float(np.max(np.abs(dx) * function.lengths[:, None])) <= longest:
        part = max(10.0 * part, SMALL_BY_PRODUCTS)
        H.lift(part)
        dx = H.solve(right)
    function.lifted = part
    return dx


def _line_search(slope: LineFunction, first: float) -> float:
    """A step where the derivative is small beside the first one: regula falsi inside a bracket.

    The derivative of a convex function never falls. If this one does, it consists of round-off, and the step is 0.
    """
    low, at_low, s, at_s = 0.0, first, 1.0, slope(1.0)
    while at_s < 0 and abs(at_s) > FLAT * abs(first) and s < LONGEST:
        if at_s < FALLING * first:
            return 0.0
        low, at_low, s = s, at_s, 4.0 * s
        at_s = slope(s)
    if at_s <= 0 or abs(at_s) <= FLAT * abs(first):
        return s
    high, at_high = s, at_s
    for _ in range(30):
        s = low - at_low * (high - low) / (at_high - at_low)
        s = min(max(s, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        s = s if low > 0.01 * high else min(s, 0.1 * high)  # far from the kinks a secant is no guide
        at_s = slope(s)
        if abs(at_s) <= FLAT * abs(first):
            break
        low, at_low, high, at_high = (s, at_s, high, at_high) if at_s < 0 else (low, at_low, s, at_s)
    return s


@dataclass(frozen=True, eq=False)
class Found:
    """A point with its dual points, its complementarity, how far multipliers were outside, and the scale of gaps."""

    theta: Array
    b: Array
    dual: dict[int, Array]
    multipliers: list[Array]
    complementarity: float
    outside: float
    scale: float

    def promising(self, tol: float) -> bool:
        """Whether the complementarity leaves room for a proof."""
        return bool(self.complementarity + self.outside * self.scale <= tol * self.scale)

    def iterate(self, tol: float, exhausted: bool) -> Iterate:
        """The iterate."""
        return Iterate(self.theta, self.b, self.dual, exhausted=exhausted, promising=self.promising(tol))


def _dual_points(function: AugmentedLagrangian, at: State, step: Step, rows: list[Hessians], ahead: Array) -> Found:
    """The point ``ahead`` with the dual points of the Newton system, inside the domains of the conjugates."""
    theta, b = function.inside(ahead)
    dual: dict[int, Array] = {}
    for term, u, h, dz in zip(function.smooth, at.smooth_grads, rows, step.smooth_scores, strict=True):
        dual[term.piece.number] = u + bent(h, dz)
    multipliers = _multipliers(at, step)
    s = 1.0 if _absorbs(function) else _factor_inside(function, multipliers, dual)
    s = s if s > LEAST_FACTOR else 1.0  # far from feasible: the multipliers are clipped
    for rough, p in zip(function.rough, multipliers, strict=True):
        if rough.piece is not None:
            dual[rough.piece.number] = rough.dual(rough.dual_set.project(s * p))
    for term in function.smooth:
        dual[term.piece.number] = into_domain(term.piece, s * dual[term.piece.number])
    left = sum(
        term.complementarity(z + dz, term.dual_set.project(p))
        for term, z, dz, p in zip(function.rough, at.images, step.images, multipliers, strict=True)
    )
    scores = at.scores
    if scores is not None and step.scores is not None and ahead is not at.x:
        scores = scores + step.scores
    return Found(s * theta, b, dual, multipliers, left, 1.0 - s, function.scale(ahead, scores))


def _absorbs(function: AugmentedLagrangian) -> bool:
    """Whether L1 or ridge terms take what clipped multipliers leave on each weight."""
    part = function.parts.separable
    held = function.parts.ridge > 0
    if part is not None:
        held = held | (np.broadcast_to(part.weights, function.parts.shape) > 0).all(axis=1)
    return bool(held.all())


def _factor_inside(function: AugmentedLagrangian, multipliers: list[Array], dual: dict[int, Array]) -> float:
    """The largest s <= 1 that brings all dual points into their domains."""
    s = min((term.dual_set.factor_inside(p) for term, p in zip(function.rough, multipliers, strict=True)), default=1.0)
    for term in function.smooth:
        for _ in range(30):
            if s <= 0 or term.piece.conj(s * dual[term.piece.number]) < np.inf:
                break
            s *= 1.0 - 1e-3
    return s


NEEDS = (DualSets(), FewWeights(MOST_UNKNOWNS, MOST_ENTRIES))
SOLVER = Solver("semismooth_newton", run, NEEDS, COPIED, rough_zeros=True)
MATRIX_FREE = Solver(
    "semismooth_cg",
    run_matrix_free,
    (DualSets(), RowsApart()),
    COPIED,
    rough_zeros=True,
    fastest_if=(NoLooseWeights(),),
    patience=60,
)
