"""Primal and dual values of a stack of centred hinges, on the working rows and on all rows.

Only rows with a positive hinge affect the solution, and often these are few of the pairs. So a solver works on some
rows W. With U = 0 elsewhere, a dual point on W is a dual point of the whole problem, and the primal value lacks only
the hinges of the other rows. So the gap of the whole problem is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.certificates.certificate import SCALE_FLOOR
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.multiclass.hinge_intercepts import best_intercepts
from cvxstructreg.solvers.multiclass.hinge_rows import HingeRows


@dataclass(frozen=True, eq=False)
class Point:
    """A primal point (A, b) on the working rows, with its value on these rows."""

    A: Array
    b: Array
    value: float


class Bounds:
    """The best primal point and the best dual point on the working rows W."""

    def __init__(self, rows: HingeRows, W: np.ndarray, q: Array | None) -> None:
        from cvxstructreg.solvers.multiclass import compiled_hinge

        self.compiled, self.rows, self.W = compiled_hinge, rows, W
        self.costs, self.tau, self.squared = rows.costs[W], rows.tau[W], rows.squared[W]
        self.q = None if q is None else q[W]
        self.at_zero = rows.value_at_zero()
        self.best: Point | None = None
        self.U: Array | None = None
        self.lower = -np.inf

    def feasible(self, U: Array) -> Array | None:
        """A feasible dual point near U; None if the constraint of the intercept cannot be satisfied."""
        U = np.array(U, order="C")
        self.compiled.into_domain(U, self.costs, self.squared)
        if self.q is not None and not self.compiled.balance(U, self.costs, self.squared, self.q):
            return None
        return U

    def offer_dual(self, U: Array, norm: float) -> None:
        """Keep a feasible U, with <A, K A> in ``norm``, if its bound is the best."""
        value = -self.compiled.dual_sum(U, self.costs, self.tau, self.squared) - 0.5 * norm
        if value > self.lower:
            self.lower, self.U = value, U

    def offer_primal(self, A: Array, b: Array, Z: Array, norm: float) -> None:
        """Keep a point (A, b), with Z and <A, K A> in ``norm``, if its value is the best."""
        value = self.compiled.hinge_sum(Z, self.costs, self.tau, self.squared) + 0.5 * norm
        if self.best is None or value < self.best.value:
            self.best = Point(A, b, value)

    def offer(self, U: Array, b: Array, K: Array) -> None:
        """Make a dual point feasible, and offer it with its primal point."""
        feasible = self.feasible(U)
        if feasible is None:
            return
        A = -centred(feasible)
        Z = K @ A
        norm = max(0.0, float(np.vdot(A, Z)))
        self.offer_dual(feasible, norm)
        if self.q is not None:
            Z += np.outer(self.q, b)
        self.offer_primal(A, b, Z, norm)

    def offer_best_intercepts(self, A: Array, Z: Array) -> Array | None:
        """Offer A with its best b, given Z = K A without intercept; returns this b, or None if there is none."""
        b = None if self.q is None else best_intercepts(Z, self.costs, self.tau, self.squared, self.q)
        if b is not None and self.q is not None:
            self.offer_primal(A, b, Z + np.outer(self.q, b), max(0.0, float(np.vdot(A, Z))))
        return b

    @property
    def gap(self) -> float:
        """The relative gap on the working rows."""
        return np.inf if self.best is None else self.relative(self.best.value - self.lower, self.best.value)

    def relative(self, gap: float, value: float) -> float:
        """A gap relative to the objective, as in certificates."""
        return gap / max(value, SCALE_FLOOR * self.at_zero, np.finfo(float).tiny)
