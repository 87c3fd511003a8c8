"""Augmented Lagrangian with semismooth Newton for centred hinges and few features.

    minimize over (w, b)   sum of hinges(Z) + 1/2 ||w||^2   subject to  Z = Phi w + q b',   w 1 = 0,  1'b = 0

After eliminating Z, the augmented Lagrangian is a piecewise quadratic function of (w, b). Its Newton system has a block
H_j = I + sigma Phi_S'Phi_S for each class, where S are the rows whose hinge is at its kink. The classes are coupled
only by ``w 1 = 0``: H_j step_j + mu = -gradient_j with a common multiplier mu. A step costs k small factorisations,
independent of the number of rows. With few features, the hinges at their kinks nearly determine the solution, like a
vertex of a linear program, and first-order methods converge very slowly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.forms.quadratic_form import to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.memory import require_memory
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.multiclass.hinge_bounds import Point
from cvxstructreg.solvers.multiclass.hinge_rows import NEEDS, HingeRows, LinearGeometry
from cvxstructreg.solvers.multiclass.working_rows import WorkingRows
from cvxstructreg.solvers.needs import FewFeatures, LinearModel
from cvxstructreg.solvers.solver import Solver

#: Features are few up to FEW_FEATURES, or up to PART_OF_ROWS times the labelled rows; they must also be fewer than all
#: rows.
FEW_FEATURES, PART_OF_ROWS = 32, 0.25
#: sigma is multiplied by GROWTH after each outer step. An inner problem is solved to ACCURACY times the change of the
#: multipliers, in at most INNER steps.
GROWTH, ACCURACY, INNER = 2.0, 0.5, 50
#: Added to the curvature along the intercepts, times sigma; without a hinge at its kink, the curvature would be zero.
HOLD = 1e-2
#: The line search: required part of the predicted decrease, and smallest step size.
SUFFICIENT, SHORTEST = 1e-4, 1e-6
#: The solver stops after this many steps without progress; progress is a gap below PROGRESS times the best one.
PATIENCE, PROGRESS = 300, 0.99


def run(
    problem: Problem, start: Iterate, tol: float, sigma: float | None = None, growth: float = GROWTH
) -> Iterator[Iterate]:
    """``sigma`` is the first penalty, by default from the problem's scale; ``growth``: its factor per outer step."""
    if sigma is not None and not sigma > 0:
        raise ValueError(f"sigma must be positive, got {sigma!r}")
    if not growth > 1:
        raise ValueError(f"growth must be greater than 1, got {growth!r}")
    yield from _Run(problem, start, tol, sigma, growth).steps()


class _Run(WorkingRows):
    """The state of one run on its working rows W; if b is free, it is the last row of w."""

    def __init__(self, problem: Problem, start: Iterate, tol: float, sigma: float | None, growth: float) -> None:
        rows = HingeRows.of(problem)
        self.geometry = LinearGeometry(problem, rows)
        super().__init__(problem, rows, self.geometry, start, tol)
        self.growth = growth
        m, d = rows.R.shape[0], self.geometry.rank
        k = rows.costs.shape[1]
        need = 8.0 * (m * (d + 4.0 * k) + 2.0 * k * d * d)
        require_memory(need, f"{m:,} rows with {d:,} features and {k:,} classes", "use fewer features or rows")
        features = to_dense(self.geometry.features)
        self.free = self.q is not None
        self.Phi_all = np.column_stack([features, self.q]) if self.q is not None else np.ascontiguousarray(features)
        self.held = np.ones((self.Phi_all.shape[1], 1))
        self.unit = np.ones_like(self.held)  # the scale of the gradient by the weights and by b
        if self.q is not None:
            self.held[-1] = 0.0
            self.unit[-1] = np.linalg.norm(features) / (np.sqrt(d) * np.linalg.norm(self.q))
        self.sigma = sigma or self.most_sigma()
        self.U = self.U_start[self.W]
        self.w = self._first_weights(start)
        self._enter()

    def _first_weights(self, start: Iterate) -> Array:
        """Weights that fit the scores of the starting point by least squares on the working rows."""
        if self.free and not start.theta.any():
            w = np.zeros((self.Phi_all.shape[1], self.rows.costs.shape[1]))
            w[-1] = centred(start.b[None])[0]
            return w
        scaled = self.Phi_all[self.W] * self.unit.T
        return np.asarray(self.unit * np.linalg.lstsq(scaled, self.Z_start[self.W], rcond=1e-10)[0])

    def _enter(self) -> None:
        """Set up the arrays of the current working rows."""
        self.Phi = np.ascontiguousarray(self.Phi_all[self.W])
        self.F = self.Phi @ self.w
        bounds = self.new_bounds()
        self.steep = bounds.squared[:, None] & (bounds.costs > 0)

    def _pulled(self, F: Array, sigma: float) -> tuple[Array, float]:
        """The multipliers U for the scores F, and the value of the hinges after eliminating Z."""
        bounds = self.bounds
        v = F + self.U / sigma
        s = np.maximum(v - bounds.tau[:, None], 0.0)
        U = np.where(self.steep, s * (2.0 * bounds.costs / (1.0 + 2.0 * bounds.costs / sigma)), sigma * s)
        np.minimum(U, bounds.costs, out=U, where=~bounds.squared[:, None])
        U[bounds.costs == 0] = 0.0
        value = self.compiled.hinge_sum(v - U / sigma, bounds.costs, bounds.tau, bounds.squared)
        return U, value + float(np.vdot(U, U)) / (2.0 * sigma)

    def steps(self) -> Iterator[Iterate]:
        """The iterates, until there is no more progress."""
        best, idle = np.inf, 0
        while True:
            for _ in range(INNER):
                U, value = self._pulled(self.F, self.sigma)
                gradient = centred(self.Phi.T @ U + self.held * self.w)
                self.v = self.F + self.U / self.sigma
                count = len(self.W), self.shrunk_at
                self._update_bounds(U)
                yield self.iterate
                if count != (len(self.W), self.shrunk_at):
                    continue
                idle = 0 if self.bounds.gap < PROGRESS * best else idle + 1
                best = min(best, self.bounds.gap)
                if idle > PATIENCE:
                    yield Iterate(self.iterate.theta, self.iterate.b, self.iterate.dual, exhausted=True)
                    return
                moved = float(np.linalg.norm(U - self.U)) / np.sqrt(self.sigma)
                if float(np.linalg.norm(self.unit * gradient)) <= ACCURACY * moved or not self._newton(
                    U, value, gradient
                ):
                    break
            self.U = self._pulled(self.F, self.sigma)[0]
            self.sigma *= self.growth

    def _update_bounds(self, U: Array) -> None:
        """Update the bounds by the current point and its multipliers; check the other rows if that is due."""
        bounds = self.bounds
        norm = float(np.sum(self.held * self.w**2))
        bounds.offer_primal(self.w, self._b(self.w), self.F, norm)
        feasible = bounds.feasible(U)
        if feasible is not None:
            w = -(self.Phi.T @ centred(feasible))
            if self.free:
                w[-1] = self.w[-1]
            norm = float(np.sum(self.held * w**2))
            bounds.offer_dual(feasible, norm)
            bounds.offer_primal(w, self._b(w), self.Phi @ w, norm)
        self.check_other_rows_if_due()

    def _b(self, w: Array) -> Array:
        return np.array(w[-1]) if self.free else np.zeros(w.shape[1])

    def _newton(self, U: Array, value: float, gradient: Array) -> bool:
        """Take one step with line search; return whether the point has moved."""
        bounds, sigma = self.bounds, self.sigma
        s = self.F + self.U / sigma - bounds.tau[:, None]
        at_kink = (s > 0) & (bounds.costs > 0) & (self.steep | (bounds.costs > U))
        slope = np.where(self.steep, 2.0 * bounds.costs / (1.0 + 2.0 * bounds.costs / sigma), sigma)
        step = _newton_step(self.Phi, np.where(at_kink, slope, 0.0), gradient, self.held, HOLD * sigma)
        if step is None:
            return False
        image, promised = self.Phi @ step, float(np.vdot(gradient, step))
        value += 0.5 * float(np.sum(self.held * self.w**2))
        length = 1.0
        while length > SHORTEST:
            w = self.w + length * step
            reached = self._pulled(self.F + length * image, sigma)[1] + 0.5 * float(np.sum(self.held * w**2))
            if reached <= value + SUFFICIENT * length * promised:
                self.w, self.F = w, self.F + length * image
                return True
            length *= 0.5
        return False

    def _all_scores(self, best: Point) -> Array:
        return np.asarray(self.Phi_all @ best.A)

    def _weights(self, best: Point) -> tuple[Array, Array]:
        return self.geometry.to_weights(best.A[:-1] if self.free else best.A, best.b)

    def _exchange(self, staying: np.ndarray, entering: np.ndarray, Z: Array) -> None:
        self.W = np.concatenate([self.W[staying], entering])
        self.U = np.vstack([self.U[staying], np.zeros((len(entering), Z.shape[1]))])
        self._enter()


def _newton_step(Phi: Array, curvature: Array, gradient: Array, held: Array, hold: float) -> Array | None:
    """The steps with zero sum over the classes and (held + Phi'diag(curvature_j) Phi) step_j + mu = -gradient_j."""
    from cvxstructreg.solvers.multiclass.compiled_hinge import mirror

    r, k = gradient.shape
    inverses, total = np.empty((k, r, r)), np.zeros((r, r))
    diagonal = np.where(held[:, 0] > 0, held[:, 0], hold)
    for j in range(k):
        S = np.flatnonzero(curvature[:, j])
        rows = np.sqrt(curvature[S, j])[:, None] * Phi[S]
        H = rows.T @ rows
        H[np.diag_indices(r)] += diagonal
        factor, failed = scipy.linalg.lapack.dpotrf(H.T, lower=1, overwrite_a=True)
        if failed:
            return None
        inverses[j] = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=True)[0].T
        mirror(inverses[j])
        total += inverses[j]
    solved = np.einsum("jrs,sj->rj", inverses, gradient, optimize=True)
    mu, failed = scipy.linalg.lapack.dposv(total, -solved.sum(axis=1))[1:]
    return None if failed else -(solved + np.asarray(inverses @ mu).T)


SOLVER = Solver("hinge_newton", run, (LinearModel(), *NEEDS, FewFeatures(FEW_FEATURES, PART_OF_ROWS)))
