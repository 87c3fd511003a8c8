"""Working rows: the outer loop that the solvers for centred hinges share.

Such a solver iterates on some rows W, with a point v there (scores plus multipliers / sigma). From time to time, this
class computes the gap of the whole problem. Rows outside W with a positive hinge enter W, and rows without effect leave
it.
"""

from __future__ import annotations

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.multiclass.hinge_bounds import Bounds, Point
from cvxstructreg.solvers.multiclass.hinge_rows import HingeRows, KernelGeometry, LinearGeometry

#: The other rows are checked when the gap on the working rows is this part of the gap at the last check.
CHECK_OTHERS = 0.2
#: The first check is at a gap of CHECK_OTHERS * FIRST.
FIRST = 0.1
#: Rows without effect leave when they are more than the part LEAVE of W, but only after the gap has decreased by the
#: factor SHRINK since rows last left, so that this happens finitely often.
LEAVE, SHRINK = 0.2, 0.1
#: A point is worth certifying if its gap is below this part of the tolerance.
PROMISING = 0.9


class WorkingRows:
    """The working rows of a solver, and the gap of the whole problem."""

    v: Array  # on the rows W
    sigma: float

    def __init__(
        self, problem: Problem, rows: HingeRows, geometry: KernelGeometry | LinearGeometry, start: Iterate, tol: float
    ) -> None:
        from cvxstructreg.solvers.multiclass import compiled_hinge

        self.compiled, self.tol, self.rows = compiled_hinge, tol, rows
        m, n = rows.R.shape
        self.q = np.asarray(rows.R @ np.ones(n)) if geometry.free_intercept else None
        self.Z_start = np.zeros_like(rows.costs)
        if start.theta.any() or start.b.any():
            self.Z_start += centred(np.asarray(rows.R @ problem.model.scores(start.theta, start.b)))
        self.U_start = rows.multipliers(start.dual)
        used = self._reached(self.Z_start) | self.U_start.any(axis=1)
        self.W = np.flatnonzero(used) if used.any() else np.arange(min(m, 1))
        self.left = FIRST  # the last known relative gap of the whole problem
        self.shrunk_at = np.inf
        self.iterate = Iterate(start.theta, start.b, start.dual, promising=False)

    def _all_scores(self, best: Point) -> Array:
        """Z of a point, on all rows."""
        raise NotImplementedError

    def _weights(self, best: Point) -> tuple[Array, Array]:
        """(theta, b) of a point."""
        raise NotImplementedError

    def _exchange(self, staying: np.ndarray, entering: np.ndarray, Z: Array) -> None:
        """Change the working rows; rows that enter start with their Z and zero multipliers."""
        raise NotImplementedError

    def new_bounds(self) -> Bounds:
        """New bounds for the current working rows."""
        self.bounds = Bounds(self.rows, self.W, self.q)
        return self.bounds

    def _reached(self, Z: Array) -> np.ndarray:
        """Whether each row has a positive hinge."""
        return np.asarray(((self.rows.tau[:, None] < Z) & (self.rows.costs > 0)).any(axis=1))

    def most_sigma(self) -> float:
        """The largest cost over the margin 1 / (k - 1): a natural ratio of multipliers to scores."""
        costs = self.rows.costs[self.W]
        return self.rows.costs.shape[1] * float(costs.max(initial=0.0)) or 1.0

    def check_other_rows_if_due(self) -> None:
        """Check the other rows if the gap on the working rows is small enough."""
        if self.bounds.gap <= max(0.5 * self.tol, CHECK_OTHERS * self.left):
            self._check_other_rows()

    def _check_other_rows(self) -> None:
        """Compute the gap of the whole problem; add rows outside W with a positive hinge to W."""
        bounds, rows = self.bounds, self.rows
        best = bounds.best
        assert best is not None and bounds.U is not None
        outside = np.ones(len(rows.tau), dtype=bool)
        outside[self.W] = False
        extra, entering, Z = 0.0, np.zeros(0, dtype=int), self.v
        if outside.any():
            Z = self._all_scores(best)
            entering = np.flatnonzero(outside & self._reached(Z))
            extra = self.compiled.hinge_sum(
                Z[entering], rows.costs[entering], rows.tau[entering], rows.squared[entering]
            )
        value = best.value + extra
        self.left = bounds.relative(value - bounds.lower, value)
        U = np.zeros_like(rows.costs)
        U[self.W] = bounds.U
        theta, b = self._weights(best)
        self.iterate = Iterate(theta, b, rows.dual_points(U), promising=bool(self.left <= PROMISING * self.tol))
        if entering.size > len(self.W):  # only the worst: with them in W, many other hinges become zero
            worst = np.argsort(-_violation(Z[entering], rows, entering))[: len(self.W)]
            entering = np.sort(entering[worst])
        staying = self._staying()
        if entering.size or len(staying) < len(self.W):
            self._exchange(staying, entering, Z)

    def _staying(self) -> np.ndarray:
        """Positions in W of the rows that may still affect the solution."""
        everything = np.arange(len(self.W))
        if self.left > SHRINK * self.shrunk_at or self.left > SHRINK:
            return everything
        tau, U = self.bounds.tau[:, None], self.bounds.U
        assert U is not None
        staying = np.flatnonzero((self.v > tau).any(axis=1) | U.any(axis=1))
        if not 0 < len(staying) < (1.0 - LEAVE) * len(self.W):
            return everything
        self.shrunk_at = self.left
        return staying


def _violation(Z: Array, rows: HingeRows, which: np.ndarray) -> Array:
    """The sum of the hinges of each of these rows, weighted by their costs (without squares)."""
    return np.asarray(np.sum(rows.costs[which] * np.maximum(0.0, Z - rows.tau[which, None]), axis=1))
