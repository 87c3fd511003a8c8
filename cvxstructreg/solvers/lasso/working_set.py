"""Working sets, prox-Newton steps and coordinate descent, for L1, bounds and sparse quadratic terms.

    minimize over (w, b)   sum_i loss_i(x_i'w + b) + sum_j c_j |w_j| + w'Mw   subject to   lower <= w <= upper

The loss needs a gradient and a curvature for each row (``grad`` and ``hess_diag``). An outer iteration selects the
features with nonzero weights and those that violate optimality most. Prox-Newton steps on these features minimise a
quadratic model by coordinate descent in compiled code, with a line search on the objective. The solver stops when the
gap over all features is small enough.

The dual point for this gap comes from the last quadratic model. It is the derivative that the loss would have at the
minimum of the model if the loss were quadratic. Its infeasibility is only that of the solution of the model. The
derivative of the loss at the new point has the error of the Newton step in addition, and would need another step.

References: Friedman, Hastie and Tibshirani (2010) for coordinate descent; Yuan, Ho and Lin (2012) for prox-Newton steps
by coordinate descent; Massias, Gramfort and Salmon (2018) for working sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.model import Model
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.scaled_form import ScaledForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.lasso.deferred_pull import LazyPull
from cvxstructreg.solvers.lasso.quadratic_model import Coefficients, QuadraticModel, compiled_modules
from cvxstructreg.solvers.lasso.working_set_rounds import ROUND_OFF, rounds
from cvxstructreg.solvers.needs import L1OrBounds, Matrices, OneLoss, Outputs, ScoresCan
from cvxstructreg.solvers.solver import Solver

#: What coordinate descent on a working set requires of a problem.
NEEDS = (
    Outputs(most=1),
    OneLoss(),
    ScoresCan((("grad", "hess_diag"), ("grad", "hess_bound")), "curvature for each row (hess_diag or hess_bound)"),
    L1OrBounds(),
    Matrices(),
)


#: The smallest working set.
SMALLEST_SET = 100
#: The accuracy of a quadratic model: at least INNER times the violation v, and v^POWER near the optimum (with v
#: relative to the strength), but no more than a gap of FINAL times the target requires.
INNER, POWER, FINAL = 0.3, 4.0, 0.3
#: A working set is solved until its violation is ENOUGH times the first one.
ENOUGH = 0.1
#: Beyond that, steps go on while the violation is above the part NEAR of the strength. If at most the part FEW of the
#: set has nonzero weights, they are on these and on the features with slopes of at least KEPT times their thresholds.
NEAR, FEW, KEPT = 0.3, 0.25, 0.5
#: If features are correlated, the steps of a pass say little about the violation. If two successive Newton steps reduce
#: the violation by a factor of less than SLOW, INNER is multiplied by SHARPER for the next steps, down to SHARPEST.
SLOW, SHARPER, SHARPEST = 0.7, 0.1, 0.01
#: A gap that requires scaling the dual point below this is treated as infinite: its value does not matter.
LEAST_SCALE = 0.9
#: The line search: required part of the predicted decrease, and smallest step size.
SUFFICIENT, SHORTEST = 0.01, 1e-9
#: After a step shorter than SHORT, rows get RAISE times the largest curvature more, then MORE times that, and LESS of
#: it after each longer step, down to LEAST_RAISE; in so many attempts. (Chosen on the hinge loss with sparse data.)
SHORT, RAISE, MORE, LESS, LEAST_RAISE, ATTEMPTS = 0.1, 1e-3, 10.0, 0.3, 3e-5, 4
#: Newton steps for the intercept at most, and the part of the tolerance below which their gain is negligible.
INTERCEPT_STEPS, NEGLIGIBLE = 3, 1e-3


def run(problem: Problem, start: Iterate, tol: float, max_newton: int = 10, max_epochs: int = 50) -> Iterator[Iterate]:
    """At most ``max_newton`` prox-Newton steps on one working set, each of at most ``max_epochs`` passes."""
    state = State(problem, start, tol)
    yield from rounds(state, tol, state.evaluate, lambda target: state.improve(target, max_newton, max_epochs))


class State:
    """A point, its scores, Q w with Q = 2M, and derived quantities."""

    def __init__(self, problem: Problem, start: Iterate, tol: float) -> None:
        self.compiled, self.problem, self.tol = compiled_modules()[0], problem, tol
        parts, model = problem.normal_form, problem.model
        (self.piece,), self.separable = parts.score_pieces, parts.separable
        assert self.separable is not None
        self.rows_apart = self.piece.atom.can("hess_diag")  # else the model is above the loss, and steps are shorter
        self.at_once = self.piece.atom.can("derivatives")
        d = model.n_weights
        self.design, self.X, self.pull = design_columns(problem)
        Q, diagonal = quadratic_columns(parts)
        self.quadratic = bool(parts.weight_forms)
        self.box = np.empty((3, d))
        part = self.separable
        for row, values in zip(self.box, (part.weights, part.lower, part.upper), strict=True):
            row[:, None] = values
        self.intercept = model.intercept
        self.given = Coefficients(self.compiled, self.X, Q, diagonal, self.box, self.intercept)
        self.ridge = parts.ridge
        self.all = self.pull.all
        self.always = np.flatnonzero(self.box[0] == 0.0) if self.box[0].min(initial=np.inf) == 0.0 else self.all[:0]
        self.w = start.theta[:, 0].copy()
        self.bounded = part.bounded
        if self.bounded:
            np.clip(self.w, self.box[1], self.box[2], out=self.w)
        self.b = float(start.b[0])
        self.z = np.full(self.design.shape[0], self.b)
        self.support = self.w.nonzero()[0]
        self.Qw = np.zeros(d)
        if self.support.size:
            self.compiled.add_columns(self.X, self.support, self.w[self.support], self.z)
            self.compiled.add_columns(Q, self.support, self.w[self.support], self.Qw)
        self.slope, self.score = np.empty(d), np.empty(d)
        self.size: int = 0  # the size of the last working set
        self.raised, self.length = 0.0, 1.0  # how much curvatures are raised, and the last step size
        self.inner, self.slow, self.strength = INNER, 0, float(self.box[0].max())
        self.before: float | None = None  # the violation before the last step, if that is not judged yet
        self.predicted: Array | None = None  # the dual point at the minimum of the last model
        self.dual: Array | None = None  # the dual point in use; None for the gradient of the loss
        self.refresh()

    def iterate(self, exhausted: bool = False, promising: bool | None = None) -> Iterate:
        """The point for the driver, with its dual point unless that is the gradient of the loss."""
        dual = {} if self.dual is None else {self.piece.number: self.dual[:, None]}
        return Iterate(self.w[:, None].copy(), np.array([self.b]), dual, exhausted=exhausted, promising=promising)

    def loss(self, z: Array) -> float:
        """The loss at given scores; its derivatives there are kept for :meth:`refresh` if they cost little more."""
        if not self.at_once:
            return self.piece.scale * self.piece.atom.value(z[:, None])
        value, *self.ahead = self.piece.atom.derivatives(z[:, None])
        return self.piece.scale * value

    def refresh(self, loss: float | None = None) -> None:
        """Update value, gradient and curvature of the loss at the scores; a given value is the last one computed."""
        self.loss_value = self.loss(self.z) if loss is None else loss
        z, atom = self.z[:, None], self.piece.atom
        if self.at_once:
            gradient, curvature = self.ahead
        else:
            gradient, curvature = atom.grad(z), atom.hess_diag(z) if self.rows_apart else atom.hess_bound(z)
        self.g, self.h = self.piece.scale * gradient[:, 0], self.piece.scale * curvature[:, 0]

    def penalty(self, w: Array, Qw: Array, support: Any) -> float:
        """The terms on the weights, for a w that is zero outside the support."""
        return float(self.compiled.weight_terms(support, w, Qw, self.box))

    def evaluate(self, target: float) -> float:
        """Compute the slope of all features at a dual point and their violations; return the relative gap."""
        self.support = self.w.nonzero()[0]
        penalty = self.weight_value = self.penalty(self.w, self.Qw, self.support)
        misfit = self.choose_dual(0.5 * target * (self.loss_value + penalty))
        u = self.g if self.dual is None else self.dual
        # with bounds, a weight at zero may stay beyond its threshold even at the optimum
        kept = self.all if self.bounded else self.support
        self.slope = self.pull.at(self.compiled, u, self.Qw, self.box[0], kept)
        self.worst = self.compiled.violations(self.all, self.w, self.slope, self.box, self.score)
        self.objective = self.loss_value + penalty
        scale = objective_scale(self.problem, self.objective)
        s, gap = self.scaled_gap(u)
        if self.dual is None and gap <= target * scale:  # otherwise the exact value does not matter
            misfit = self.misfit(s * u)
        return (gap + misfit) / scale

    def choose_dual(self, most: float) -> float:
        """Use the predicted dual point if its misfit is at most ``most``, else the gradient; return the misfit."""
        if self.predicted is not None and (misfit := self.misfit(self.predicted)) <= most:
            self.dual = self.predicted
            return misfit
        self.dual = None
        self.centre_intercept()
        return 0.0

    def misfit(self, u: Array) -> float:
        """The Fenchel gap loss(z) + loss*(u) - u'z: zero if u is the gradient, infinite outside the domain."""
        return self.loss_value + self.piece.conj(u[:, None]) - float(u @ self.z)

    def centre_intercept(self) -> None:
        """Newton steps for the intercept alone, as long as their gain matters for the tolerance."""
        for _ in range(INTERCEPT_STEPS if self.intercept else 0):
            z, b, g, h = self.z, self.b, self.g, self.h
            excess, mass = float(g.sum()), float(h.sum())
            if excess * excess <= NEGLIGIBLE * self.tol * mass * abs(self.loss_value) or mass <= 0.0:
                return
            loss, shift = self.loss_value, excess / mass
            self.z, self.b = z - shift, b - shift
            self.refresh()
            if self.loss_value > loss:
                self.z, self.b, self.g, self.h, self.loss_value = z, b, g, h, loss
                return

    def scaled_gap(self, u: Array) -> tuple[float, float]:
        """The largest feasible s <= 1, and the duality gap at s u without the misfit of the loss.

        The gap is the sum of the Fenchel gaps of all terms on the weights. Features without penalty are left to the
        certificate, which minimises over them exactly. The gap is returned as infinite if it is too large to matter.
        """
        s, excess_cost, taken_cost = self.compiled.dual_scale(self.w, self.slope, self.box, self.ridge)
        if s < LEAST_SCALE:
            return s, np.inf
        v, slope = self.w[self.support], self.slope[self.support]
        slack = s * float(v @ slope) + float(self.box[0][self.support] @ np.abs(v)) + taken_cost
        quadratic = 0.5 * (1.0 - s) ** 2 * float(v @ self.Qw[self.support]) + excess_cost
        return s, slack + quadratic + s * self.b * float(u.sum())

    def working_set(self) -> Any:
        """The support, the features without L1 term, and the features with the largest violations.

        The set is twice as large as the support, or twice as large as the last set if that many features violate.
        """
        violating = int(np.count_nonzero(self.score > 0.0))
        size = max(SMALLEST_SET, 2 * self.support.size, min(2 * self.size, self.support.size + violating))
        self.size = size
        if size >= self.w.size:
            return self.all
        priority = self.score.copy()
        priority[self.support] = priority[self.always] = np.inf
        size = max(size, self.support.size + self.always.size)
        return np.sort((-priority).argpartition(size - 1)[:size]) if size < self.w.size else self.all

    def improve(self, target: float, max_newton: int, max_epochs: int) -> None:
        """Prox-Newton steps on a working set: only one near the optimum, where its error is of second order."""
        features = self.working_set()
        first = worst = self.compiled.violations(features, self.w, self.slope, self.box, self.score)
        late = first <= NEAR * self.strength
        features = self.near(features) if late else features
        if self.before is not None:
            self.judge(worst)
        for _ in range(max_newton):
            self.before = worst
            if not self.newton_step(features, self.accuracy(worst, target), max_epochs):
                break
            if late and self.rows_apart and self.predicted is not None and not self.slow:
                break
            self.slope_on(features)
            worst = self.compiled.violations(features, self.w, self.slope, self.box, self.score)
            self.judge(worst)
            near = self.near(features) if worst > NEAR * self.strength else features
            if (worst <= ENOUGH * first and near is features) or deadline.passed():
                break
            features = near

    def judge(self, worst: float) -> None:
        """Choose the accuracy of the next models by what the last step left of the violation."""
        self.slow = self.slow + 1 if self.before is not None and worst > SLOW * self.before else 0
        self.inner = max(SHARPER * self.inner, SHARPEST) if self.slow > 1 else min(3.0 * self.inner, INNER)
        self.before = None

    def near(self, features: Any) -> Any:
        """The features that may move next, if these are few: then more steps cost less than the slopes of all.

        A set with few nonzero weights far from the optimum probably has all that it needs. Only nonzero weights and
        slopes near their thresholds are kept. With bounds, and if many weights are nonzero, all features are.
        """
        nonzero = self.w[features] != 0.0
        if self.bounded or np.count_nonzero(nonzero) > FEW * features.size:
            return features
        return features[nonzero | (np.abs(self.slope[features]) >= KEPT * self.box[0][features])]

    def slope_on(self, features: Any) -> None:
        """Update the slope of some features, with the gradient of the loss as dual point."""
        self.compiled.gradient_on(self.X, features, self.g, self.slope)
        if self.quadratic:
            self.slope[features] += self.Qw[features]

    def accuracy(self, worst: float, target: float) -> float:
        """How accurately to solve the next model. A violation v adds about v / c times the L1 term to the gap."""
        if not self.rows_apart:  # the model is not the loss near the point, so that its exact minimum is worth little
            return INNER * worst
        loosest, c = self.inner * worst, self.strength
        values = float(self.box[0][self.support] @ np.abs(self.w[self.support]))
        if c == 0.0 or values == 0.0:
            return loosest
        return min(loosest, max(c * (worst / c) ** POWER, FINAL * target * self.objective * c / values))

    def newton_step(self, features: Any, tol: float, max_epochs: int) -> bool:
        """Minimise the quadratic model over the features, then backtrack on the objective.

        Where some rows have no curvature, steps may be far too long. If one has to be shortened much, the curvature of
        all rows is raised for the next ones.
        """
        for _ in range(ATTEMPTS):
            h = self.h + self.raised * float(self.h.max(initial=0.0)) if self.raised else self.h
            model = QuadraticModel(self.given, features, h, self.g, self.w, self.Qw)
            model.minimise(tol, max_epochs)
            self.epochs = model.passes
            moved = self.backtrack(model)
            short = self.length < SHORT and bool(self.h.any()) and not self.h.all()
            if short:
                self.raised = max(MORE * self.raised, RAISE)
            elif moved:
                self.raised = LESS * self.raised if LESS * self.raised >= LEAST_RAISE else 0.0
            if moved or not short:
                return moved
        return False

    def backtrack(self, model: QuadraticModel) -> bool:
        """Line search from the current point to the minimum of the model; whether a step was taken."""
        w, Qw, features = model.w, model.Qw, model.features
        change, shift = model.change()
        penalty, after = self.weight_value, self.penalty(w, Qw, features)
        before = self.loss_value + penalty
        decrease = float(self.g @ change) + after - penalty
        t, slack = 1.0, ROUND_OFF * abs(before)
        self.length = t
        if not decrease < slack:
            return False
        trial_w, trial_Qw, trial_z = w, Qw, self.z + change
        while not (loss := self.loss(trial_z)) + after <= before + SUFFICIENT * t * decrease + slack:
            t *= 0.5
            self.length = t
            if t < SHORTEST:
                return False
            trial_w, trial_Qw = self.w + t * (w - self.w), self.Qw + t * (Qw - self.Qw)
            trial_z = self.z + t * change
            after = self.penalty(trial_w, trial_Qw, features)
        self.w, self.Qw, self.z, self.b = trial_w, trial_Qw, trial_z, self.b + t * shift
        self.weight_value = after
        self.refresh(loss)
        self.predicted = model.residual() if t == 1.0 else None
        return True


# The columns of a model and of its last quadratic terms are cached as long as the model exists, so that they are
# computed only once for a regularization path.
_KNOWN: WeakKeyDictionary[Model, tuple[Any, Any, tuple[Any, ...], LazyPull]] = WeakKeyDictionary()
_QUADRATIC: WeakKeyDictionary[Model, tuple[tuple[ScaledForm, ...], tuple[Any, ...], Array]] = WeakKeyDictionary()


def design_columns(problem: Problem) -> tuple[Any, tuple[Any, ...], LazyPull]:
    """The rows of the design matrix used by the loss, stored by columns.

    Returned are the matrix, its arrays for the compiled loops, and its cached products with gradients.
    """
    piece, model = problem.normal_form.score_pieces[0], problem.model
    rows = None if piece.K is None else sp.csr_array(piece.K)
    known = _KNOWN.get(model)
    if known is None or not _same(known[0], rows):
        design = model.columns
        if piece.K is not None:
            design = piece.K @ model.design
            design = sp.csc_array(design) if sp.issparse(design) else np.asfortranarray(design)
        X = as_columns(design)
        last = model.last_product if piece.K is None else None
        pull = LazyPull(X, problem.normal_form.column_norms, design, last)
        known = _KNOWN[model] = (rows, design, X, pull)
    return known[1:]


def _same(one: Any, other: Any) -> bool:
    """Whether two maps from all rows to those of the loss are equal; None is the identity."""
    if one is None or other is None:
        return one is other
    parts = zip((one.indptr, one.indices, one.data), (other.indptr, other.indices, other.data), strict=True)
    return all(np.array_equal(mine, its) for mine, its in parts)


def as_columns(matrix: Any) -> tuple[Any, ...]:
    """The arrays of a matrix stored by columns, with the types that the compiled loops expect."""
    if not sp.issparse(matrix):
        return (_frozen(np.require(matrix.T, float, ["C", "A"])),)
    indices = matrix.indices
    # a view of int32 indices needs no copy
    unsigned = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)
    parts = (np.require(matrix.data, float, "A"), unsigned, matrix.indptr.astype(np.int64))
    return tuple(_frozen(np.ascontiguousarray(part)) for part in parts)


def _frozen(array: Array) -> Array:
    """A read-only view. Numba compiles separately for writable and read-only arrays, and users pass both."""
    view = array.view()
    view.flags.writeable = False
    return view


def quadratic_columns(parts: NormalForm) -> tuple[tuple[Any, ...], Array]:
    """Q = 2M by rows, which equal the columns by symmetry, and the diagonal of Q."""
    d, known = parts.model.n_weights, _QUADRATIC.get(parts.model)
    if known is not None and _same_forms(known[0], parts.weight_forms):
        return known[1:]
    scaled = [(2.0 * part.scale) * sp.csr_array(part.form.matrix) for part in parts.weight_forms]
    diagonals = [(2.0 * part.scale) * part.form.matrix_diagonal for part in parts.weight_forms]
    matrix = sum(scaled[1:], scaled[0]) if scaled else sp.csr_array((d, d))
    found = as_columns(matrix), np.asarray(sum(diagonals, np.zeros(d)))
    _QUADRATIC[parts.model] = (parts.weight_forms, *found)
    return found


def _same_forms(some: tuple[ScaledForm, ...], others: tuple[ScaledForm, ...]) -> bool:
    """Whether these are the same forms at the same strengths."""
    return [(id(one.form), one.scale) for one in some] == [(id(other.form), other.scale) for other in others]


SOLVER = Solver("working_set", run, NEEDS, patience=40)
