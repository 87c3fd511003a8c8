"""Disjoint groups: working sets, prox-Newton steps and block coordinate descent.

    minimize over (w, b)   sum_i loss_i(x_i'w + b) + w'Mw + sum_j lam_j |w_j| + sum_g c_g ||w_g||

The groups have no feature in common. With several outputs, a group contains all weights of its features. An outer
iteration selects the nonzero groups and those that violate optimality most. Prox-Newton steps on these groups minimise
a quadratic model (:mod:`block_model`) by passes over the groups and by conjugate gradients on the nonzero ones, with a
line search on the objective. The solver stops when the gap over all features is small enough.

References: Qin, Scheinberg and Goldfarb (2013) for block coordinate descent; Massias, Gramfort and Salmon (2018) for
working sets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.certificates.directions.free_directions import refit
from cvxstructreg.core.model import Linear, Model
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.quadratic_form import to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.groups.block_model import BlockModel, Given, by_rows
from cvxstructreg.solvers.groups.disjoint_blocks import Ints, blocks_of, quadratic_rows, ratio
from cvxstructreg.solvers.groups.large_groups import FEW_NUMBERS, SmallGroups
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.lasso.working_set import as_columns
from cvxstructreg.solvers.lasso.working_set_rounds import ROUND_OFF, rounds
from cvxstructreg.solvers.needs import GroupNorms, Matrices, NoBounds, NoScoreForms, ScoresCan
from cvxstructreg.solvers.smooth.score_curvature import PieceCurvature
from cvxstructreg.solvers.solver import COPIED, Solver

#: What block coordinate descent requires of a problem.
NEEDS = (
    GroupNorms(disjoint=True),
    NoBounds(),
    NoScoreForms(),
    ScoresCan((("hess_diag",), ("hess_rows",)), "curvature for each row (hess_diag or hess_rows)", rowwise=True),
    Matrices(),
)


#: The size of the working set in features: at least SMALLEST_SET, and GROWTH times the support.
SMALLEST_SET, GROWTH = 100, 2.0
#: A quadratic model is solved to INNER times the violation, and a working set to ENOUGH times its first violation.
INNER, ENOUGH = 0.3, 0.1
#: A gap that requires scaling the dual point below this is treated as infinite: its value does not matter.
LEAST_SCALE = 0.9
#: The line search: required part of the predicted decrease, and smallest step size.
SUFFICIENT, SHORTEST = 0.01, 1e-9
#: If no step size decreases the objective, the Hessian of every row is raised by these parts of the largest one.
RAISES = (0.1, 1.0)
#: For few data, NumPy code is used, unless this compiled module is already loaded.
KERNELS = "cvxstructreg.solvers.groups.compiled_group_descent"


def run(problem: Problem, start: Iterate, tol: float, max_newton: int = 10, max_epochs: int = 50) -> Iterator[Iterate]:
    """At most ``max_newton`` prox-Newton steps on one working set, each of at most ``max_epochs`` passes."""
    nothing = Iterate(np.zeros_like(start.theta), np.zeros_like(start.b))
    if not problem.value_at(start.theta, start.b) <= problem.value_at(nothing.theta, nothing.b):
        start = nothing  # Newton's method converges slowly from many weights that are far too large
    state = State(problem, start)
    yield from rounds(state, tol, lambda _: state.evaluate(), lambda _: state.improve(max_newton, max_epochs))


class State:
    """A point in the order of the slots, its scores, Q w, and derived quantities."""

    def __init__(self, problem: Problem, start: Iterate) -> None:
        self.problem, self.parts = problem, problem.normal_form
        parts, self.shape = self.parts, self.parts.shape
        self.blocks = blocks = blocks_of(parts)
        self.w, self.b = start.theta[blocks.column].ravel(), start.b.copy()
        self.scores = problem.model.scores(start.theta, start.b)
        Q = quadratic_rows(parts, blocks.column)
        self.Qw = np.asarray(Q @ self.w.reshape(-1, blocks.k)).ravel()
        self.ridge = np.repeat(parts.ridge[blocks.column], blocks.k)
        self.refresh()
        sizes = blocks.radii + blocks.least(blocks.lam)
        self.always = sizes == 0.0
        if self.always.any():
            self.pull()
            sizes = np.where(self.always, max(float(np.abs(self.slope).max(initial=0.0)), 1e-300), sizes)
        self.sizes = sizes
        squares = parts.column_norms[blocks.column] ** 2
        self.steepness = np.sqrt(np.maximum(np.maximum.reduceat(squares, blocks.starts[:-1]), 1e-300))
        compiled, self.columns = _compiled(problem.model)
        self.given = Given(compiled, self.columns.arrays, Q, blocks, sizes, squares)

    def iterate(self, exhausted: bool = False, promising: bool | None = None) -> Iterate:
        """The point for the driver, with the dual points of the group norms."""
        theta, left = np.zeros(self.shape), np.zeros(self.shape)
        theta[self.blocks.column] = self.w.reshape(-1, self.blocks.k)
        left[self.blocks.column] = -self.slope.reshape(-1, self.blocks.k)
        if self.parts.separable is not None:
            left -= self.parts.separable.absorb(left)
        dual = {piece.number: piece.prox_conj(piece.forward(left), 1.0)[0] for piece in self.parts.weight_pieces}
        return Iterate(theta, self.b.copy(), dual, exhausted, promising)

    def loss(self, scores: Array) -> float:
        """The losses at given scores."""
        return float(sum(piece.value(scores) for piece in self.parts.score_pieces))

    def refresh(self, loss: float | None = None) -> None:
        """Update value (unless given) and gradient of the losses at the scores."""
        self.loss_value = self.loss(self.scores) if loss is None else loss
        self.g = self.parts.smooth_score_grad(self.scores)

    def pull(self) -> None:
        """Update the gradient of the smooth terms with respect to all weights."""
        self.slope = self.problem.model.adjoint(self.g)[self.blocks.column].ravel() + self.Qw

    def hess(self, rise: float = 0.0) -> tuple[Array, Array, Array]:
        """(direct, root, inverse): row Hessians diag(direct_i) - root_i root_i', and the inverse of their sum.

        With one output, or outputs that do not interact, root has no rows. ``rise`` adds this part of the largest entry
        to all of them: rows without curvature let steps be far too long.
        """
        direct, root = np.zeros_like(self.g), np.zeros_like(self.g)
        for piece in self.parts.score_pieces:
            rows = PieceCurvature(piece, piece.forward(self.scores)).rows
            assert rows is not None
            direct += piece.adjoint(rows[0])
            if rows[1] is not None:
                root += piece.adjoint(rows[1])
        if self.blocks.k == 1:
            direct = direct - root**2
        if self.blocks.k == 1 or not root.any():
            root = np.zeros((0, self.blocks.k))
        if rise:
            direct = direct + rise * float(direct.max(initial=0.0))
        between = np.diag(direct.sum(axis=0)) - root.T @ root
        inverse = np.zeros_like(between)
        if self.problem.model.intercept:
            inverse = np.asarray(np.linalg.pinv(between, rcond=1e-13, hermitian=True), dtype=float)
        return by_rows(direct), by_rows(root), inverse

    def evaluate(self) -> float:
        """Compute the gradient and the violations of all features; return the relative gap."""
        if self.problem.model.intercept:
            theta = np.zeros(self.shape)
            _, self.b, self.scores = refit(self.parts, theta, self.b, self.scores, np.zeros((self.shape[0], 0)))
            self.refresh()
        self.pull()
        self.violation = self.blocks.violations(self.w, self.slope)
        self.worst = float(np.max(self.violation / self.sizes, initial=0.0))
        self.quadratic = 0.5 * float(self.w @ self.Qw)
        self.objective = self.loss_value + self.blocks.value(self.w) + self.quadratic
        return self.gap() / objective_scale(self.problem, self.objective)

    def gap(self) -> float:
        """The duality gap at u = s g with the largest feasible s <= 1, similar to a certificate.

        Features without penalty are left to the certificate, which minimises over them exactly. The gap is returned as
        infinite if it is too large to matter.
        """
        blocks, left = self.blocks, -self.slope
        beyond, excess = self._excess(left)
        stuck = np.abs(np.where((self.ridge > 0.0) | self.always[blocks.group], 0.0, excess))
        by_norm = blocks.norms(np.where(stuck > 0.0, beyond, 0.0))
        by_norm = np.where(by_norm > blocks.radii, ratio(blocks.radii, by_norm), 1.0)
        by_lam = blocks.least(np.where(stuck > 0.0, ratio(blocks.lam, blocks.lam + stuck), 1.0))
        s = float(np.min(np.maximum(by_norm, by_lam), initial=1.0))
        if s < LEAST_SCALE:
            return np.inf
        cost, held = 0.0, self.ridge > 0.0
        if held.any():
            excess = np.where(held, self._excess(s * left)[1], 0.0)
            cost = s * float(self.w @ excess) + float(np.sum(ratio(excess**2, 4.0 * self.ridge)))
        points = [piece.grad(piece.forward(self.scores)) for piece in self.parts.score_pieces]
        conj = sum(piece.conj(s * u) for piece, u in zip(self.parts.score_pieces, points, strict=True))
        return float(self.objective + conj + s * s * self.quadratic + cost)

    def _excess(self, left: Array) -> tuple[Array, Array]:
        """The part of ``left`` that exceeds the L1 terms, and the part of that which exceeds the group norms."""
        beyond = self.blocks.beyond(left)
        norms = self.blocks.norms(beyond)
        over = np.where(norms > self.blocks.radii, 1.0 - ratio(self.blocks.radii, norms), 0.0)
        return beyond, beyond * over[self.blocks.group]

    def working_set(self) -> Ints:
        """The groups that are nonzero or have no penalty, and the groups with the largest violations."""
        blocks = self.blocks
        counts = np.diff(blocks.starts)
        inside = self.always | (blocks.sums((self.w != 0.0).astype(float)) > 0.0)
        size = max(SMALLEST_SET, int(GROWTH * counts[inside].sum()))
        if size >= blocks.column.size:
            return np.arange(counts.size)
        order = np.argsort(np.where(inside, -np.inf, -self.violation / self.steepness), kind="stable")
        enough = int(np.searchsorted(np.cumsum(counts[order]), size)) + 1
        return np.sort(order[: max(enough, np.count_nonzero(inside) + 1)])

    def improve(self, max_newton: int, max_epochs: int) -> None:
        """Prox-Newton steps on a working set."""
        chosen = self.working_set()
        part, flat = self.blocks.part(chosen)
        self.columns.need(part.column)
        first = worst = float(np.max(self.violation[chosen] / self.sizes[chosen], initial=0.0))
        for _ in range(max_newton):
            if not any(self.newton_step(chosen, INNER * worst, max_epochs, rise) for rise in (0.0, *RAISES)):
                break
            self.given.compiled.slopes(self.given.X, self.given.layout, chosen, by_rows(self.g), part.k, self.slope)
            self.slope[flat] += self.Qw[flat]
            violation = part.violations(self.w[flat], self.slope[flat])
            worst = float(np.max(violation / self.sizes[chosen], initial=0.0))
            if worst <= ENOUGH * first or deadline.passed():
                break

    def newton_step(self, chosen: Ints, tol: float, max_epochs: int, rise: float = 0.0) -> bool:
        """Minimise the quadratic model over the groups, then backtrack on the objective."""
        model = BlockModel(self.given, chosen, self.hess(rise), self.g, self.w, self.Qw)
        model.minimise(tol, max_epochs)
        change, shift = model.change()
        penalty, after = self.penalty(self.w, self.Qw), self.penalty(model.w, model.Qw)
        before = self.loss_value + penalty
        decrease = float(np.sum(self.g * change)) + after - penalty
        t, slack = 1.0, ROUND_OFF * abs(before)
        if not decrease < slack:
            return False
        w, Qw, scores = model.w, model.Qw, self.scores + change
        while not (loss := self.loss(scores)) + after <= before + SUFFICIENT * t * decrease + slack:
            t *= 0.5
            if t < SHORTEST:
                return False
            w, Qw = self.w + t * (model.w - self.w), self.Qw + t * (model.Qw - self.Qw)
            scores = self.scores + t * change
            after = self.penalty(w, Qw)
        self.w, self.Qw, self.scores, self.b = w, Qw, scores, self.b + t * shift
        self.refresh(loss)
        return True

    def penalty(self, w: Array, Qw: Array) -> float:
        """The terms on the weights."""
        return self.blocks.value(w) + 0.5 * float(w @ Qw)


class Columns:
    """The columns of a design matrix for the compiled loops; a dense matrix stored by rows is copied on demand."""

    def __init__(self, model: Model) -> None:
        self.design = None
        if sp.issparse(model.design) or model.design.flags.f_contiguous or "columns" in vars(model):
            self.arrays = as_columns(model.columns)
            return
        self.design, self.known = model.design, np.zeros(model.n_weights, dtype=bool)
        self.store = np.empty(model.design.shape[::-1])  # pages that are never written take no memory
        self.arrays = as_columns(self.store.T)

    def need(self, features: Ints) -> None:
        """Copy the columns of these features if that has not been done."""
        if self.design is not None:
            missing = features[~self.known[features]]
            self.store[missing] = self.design[:, missing].T
            self.known[missing] = True


def _compiled(model: Model) -> tuple[Any, Columns]:
    """The functions for block coordinate descent, compiled if that pays off, and the design matrix in their format."""
    if model.design.shape[0] * model.design.shape[1] <= FEW_NUMBERS and KERNELS not in sys.modules:
        from cvxstructreg.solvers.groups import plain_group_descent

        return plain_group_descent, Columns(Linear(to_dense(model.design)))
    from cvxstructreg.solvers.groups import compiled_group_descent

    return compiled_group_descent, Columns(model)


SOLVER = Solver("group_descent", run, NEEDS, COPIED, fastest_if=(SmallGroups(),))
