"""Certificates: how far a point is from the optimum, from the point (and a dual point) alone.

This module knows no solver. It builds a feasible dual point (see :mod:`cvxstructreg.core.dual`) and reports

- ``duality_gap``: objective minus dual objective, an upper bound of the distance of the objective from its minimum;
- ``strong_convexity``: the same kind of bound from a subgradient s, ||s||^2 / (2 mu), where some term has no
  conjugate but the objective is mu-strongly convex;
- ``kkt``: no bound, only how far the optimality conditions are from holding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cvxstructreg.core import dual as dual_points
from cvxstructreg.core.atom import Array
from cvxstructreg.core.model import Kernel

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: A gap is measured relative to the objective, but never to less than this part of its value at zero weights.
SCALE_FLOOR = 1e-3
#: A dual point is feasible to round-off only, and the gap is a difference of two nearly equal sums: a gap below zero by
#: less than this, relative to the objective, is zero. Anything more negative is a bug and stays visible.
ROUND_OFF = 1e-11


@dataclass(frozen=True)
class Certificate:
    """What is proved about a point.

    Attributes
    ----------
    kind : str
        "duality_gap", "strong_convexity" or "kkt".
    objective, lower_bound : float
        The optimum lies between the two (``lower_bound`` is NaN for kind "kkt").
    gap : float
        ``objective - lower_bound``: the point is at most this far from the optimum. NaN for kind "kkt".
    relative_gap : float
        ``gap / max(|objective|, 0.001 * objective at zero weights)``. NaN for kind "kkt".
    residual : float
        For kind "kkt" the relative violation of the optimality conditions, else NaN.
    """

    kind: str
    objective: float
    lower_bound: float
    gap: float
    relative_gap: float
    residual: float = float("nan")

    @property
    def error(self) -> float:
        """The number a tolerance is compared with: the relative gap, or the residual for kind "kkt"."""
        return self.residual if self.kind == "kkt" else self.relative_gap

    def status(self, tol: float) -> str | None:
        """What the point may be called: "optimal" if its gap is proved, "stationary" if only a residual is; or None."""
        if not self.error <= tol:
            return None
        return "stationary" if self.kind == "kkt" else "optimal"

    def __str__(self) -> str:
        if self.kind == "kkt":
            return f"kkt residual {self.residual:.1e} (no bound of the objective)"
        return f"{self.kind} {self.gap:.3g} (relative {self.relative_gap:.1e})"


def certify_point(
    problem: Problem,
    theta: Array,
    b: Array,
    dual: Mapping[int, Array] | None = None,
    known_bound: float = -np.inf,
    sweeps: int = 200,
    tol: float = 0.0,
) -> Certificate:
    """The certificate of ``(theta, b)``, with a dual point by term number where one is known.

    ``known_bound`` is a lower bound of the optimum that an earlier dual point of the same problem has proved.
    ``sweeps`` limits the search for the dual points of group norms and the like, which also ends where it cannot gain
    more than a tenth of the relative gap ``tol``.
    """
    model = problem.model
    if isinstance(model, Kernel) and any(term.target == "function" and term.scale > 0 for term in problem.terms):
        model.require_psd()  # the norm of the function is convex for no other gram
    scores = problem.model.scores(theta, b)
    parts = problem.normal_form
    quadratic = parts.quadratic_value_and_grad(theta)
    objective = problem.value_at(theta, b, scores, quadratic[0])
    if not np.isfinite(objective):
        return Certificate("duality_gap", objective, known_bound, np.inf, np.inf)
    if all(piece.has_conjugate for piece in parts.pieces):
        kind, known = "duality_gap", (objective, tol)
        bound = dual_points.lower_bound(parts, theta, b, scores, dual or {}, sweeps, known, quadratic)
    else:
        kind, bound = "strong_convexity", dual_points.strong_convexity_bound(problem, theta, b)
    bound = max(bound, known_bound)
    if bound > -np.inf:  # all atoms are nonnegative, so that the optimum is at least 0 in any case
        return _from_bound(problem, kind, objective, max(bound, 0.0))
    if objective < SCALE_FLOOR * _value_at_zero(problem):  # a perfect fit: the bound 0 says enough
        return _from_bound(problem, kind, objective, 0.0)
    residual = dual_points.kkt_residual(parts, theta, b, dual or {})
    return Certificate("kkt", objective, np.nan, np.nan, np.nan, residual)


def _from_bound(problem: Problem, kind: str, objective: float, bound: float) -> Certificate:
    gap = objective - bound
    scale = objective_scale(problem, objective)
    if -ROUND_OFF * scale <= gap < 0:
        gap = 0.0
    return Certificate(kind, objective, bound, gap, gap / scale if gap else 0.0)


def objective_scale(problem: Problem, objective: float) -> float:
    """What gaps are divided by: the objective, but at least a small part of its value at zero weights."""
    at_zero = _value_at_zero(problem)
    floor = SCALE_FLOOR * at_zero if np.isfinite(at_zero) else 0.0
    return max(abs(objective), floor, np.finfo(float).tiny)


def _value_at_zero(problem: Problem) -> float:
    cached = problem.__dict__.get("_value_at_zero")
    if cached is None:
        parts = problem.normal_form
        scores, theta = np.zeros((problem.model.n_rows, problem.n_outputs)), np.zeros(parts.shape)
        cached = sum(piece.value(scores) for piece in parts.score_pieces)  # quadratic terms and norms are zero
        cached += sum(piece.scale * problem.terms[piece.number].atom.value(theta) for piece in parts.weight_pieces)
        if parts.separable is not None and parts.separable.bounded:
            cached += parts.separable.value(theta)
        problem.__dict__["_value_at_zero"] = cached
    return float(cached)
