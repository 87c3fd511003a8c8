"""The quadratic model of a loss, compressed to a least-squares problem with as many rows as weights.

At (w, b) with slopes g and curvatures h of the rows, and the intercept eliminated, the model of the loss is

    1/2 (v - w)'H(v - w) + q'(v - w) = 1/2 ||R v - t||^2 + constant,     H = R'R

so any solver for the squared loss minimises it together with all penalties, without the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.losses.squared import Squared
from cvxstructreg.numerics.arrays import Array

#: Eigenvalues below this part of the largest one are raised to it, so that the model has a minimum.
LEAST = 1e-13


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """The model of a loss at (w, b): X'g, X'h and X'diag(h)X, and the sums of g and h (zero without intercept)."""

    w: Array
    b: float
    slope: Array
    centre: Array
    gram: Array
    slope_b: float
    total: float

    def least_squares(self) -> tuple[Array, Term]:
        """R and the term 1/2 ||R v - t||^2."""
        H, q = self.gram, self.slope
        if self.total > 0.0:  # the intercept follows the weights
            H = H - np.outer(self.centre, self.centre) / self.total
            q = q - self.centre * (self.slope_b / self.total)
        values, vectors = scipy.linalg.eigh(H)
        roots = np.sqrt(np.maximum(values, LEAST * max(float(values[-1]), np.finfo(float).tiny)))
        R = roots[:, None] * vectors.T
        t = R @ self.w - (vectors.T @ q) / roots
        return R, Term(Squared(t), 1.0, "rows")

    def problem(self, problem: Problem) -> Problem:
        """The model plus all terms on the weights, as a least-squares problem."""
        R, target = self.least_squares()
        terms = [target if isinstance(term.atom, Loss) else term for term in problem.terms]
        return Problem(Linear(R, intercept=False), Objective(tuple(terms)))

    def intercept(self, w: Array) -> float:
        """The best intercept for new weights."""
        if not self.total > 0.0:
            return self.b
        return self.b - (self.slope_b + float(self.centre @ (w - self.w))) / self.total

    def pulled(self, w: Array, b: float) -> Array:
        """X'u for the dual point u = g + h (X (w - w0) + b - b0)."""
        return np.asarray(self.slope + self.gram @ (w - self.w) + self.centre * (b - self.b))


def model_of(passed: Any, w: Array, b: float, intercept: bool) -> QuadraticModel:
    """The model from the results of a pass: X'g, X'h, X'diag(h)X and the slopes and curvatures of the rows."""
    slope, centre, gram, g, h = passed
    if not intercept:
        return QuadraticModel(w, b, slope, centre, gram, 0.0, 0.0)
    return QuadraticModel(w, b, slope, centre, gram, float(g.sum()), float(h.sum()))
