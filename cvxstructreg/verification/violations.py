"""Which features and groups violate the optimality conditions most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.kkt import Slope, gradient_mapping, slope_at
from cvxstructreg.core.problem import Problem
from cvxstructreg.verification.given import GivenWeights

#: A violation below this part of the largest slope of any feature is round-off.
ROUND_OFF = 1e-9


@dataclass(frozen=True)
class Violation:
    """A feature, a group or the intercept whose optimality condition does not hold.

    Attributes
    ----------
    name : str
        The name of the feature or group, or its number.
    kind : str
        "feature" ("example" in a kernel model), "group" or "intercept".
    weight : float
        The weight; of a group, or with several outputs, its Euclidean norm.
    slope : float
        The derivative of the loss and of the quadratic terms by this weight (or its norm), which the penalties with a
        kink must balance. For the intercept the sum of the derivatives by the scores.
    size : float
        The violation: the length of a proximal gradient step per unit of step size. Zero at an optimum. For a nonzero
        weight with L1 of strength lam it is ``|slope + lam sign(w)|``, for a zero weight ``max(|slope| - lam, 0)``.
    """

    name: str
    kind: str
    weight: float
    slope: float
    size: float

    def __str__(self) -> str:
        if self.kind == "intercept":
            return f"intercept: the derivatives by the scores add up to {self.slope:.3g}, which must be 0"
        return f"{self.kind} {self.name}: weight {self.weight:.3g}, slope {self.slope:.3g}, violation {self.size:.3g}"


def violations(problem: Problem, given: GivenWeights) -> tuple[Violation, ...]:
    """Return all violations above round-off, the largest first."""
    parts, theta = problem.normal_form, given.theta
    slope = slope_at(parts, theta, given.b, given.dual)
    mapping = gradient_mapping(parts, theta, slope.gradient, given.dual)
    smallest = ROUND_OFF * float(np.abs(slope.pull).max(initial=0.0))
    found = [*_features(problem, theta, slope, mapping), *_groups(problem, theta, slope, mapping)]
    found += _intercept(problem, slope)
    return tuple(sorted((item for item in found if item.size > smallest), key=lambda item: -item.size))


def _features(problem: Problem, theta: Any, slope: Slope, mapping: Any) -> list[Violation]:
    by_row = problem.given.kernel is not None  # one weight for each example
    names = (problem.row_names if by_row else problem.feature_names) or tuple(map(str, range(len(theta))))
    sizes, kind = np.linalg.norm(mapping, axis=1), "example" if by_row else "feature"
    return [
        Violation(names[j], kind, _signed(theta[j]), _signed(slope.gradient[j]), float(sizes[j]))
        for j in np.flatnonzero(sizes)
    ]


def _groups(problem: Problem, theta: Any, slope: Slope, mapping: Any) -> list[Violation]:
    """Return the violations of all groups of features in the terms."""
    found = []
    for term in problem.terms:
        groups = getattr(term.atom, "groups", None)
        if groups is None or term.scale == 0 or term.target != "weights":
            continue
        names = groups.names or tuple(map(str, range(len(groups))))
        for name, start, end in zip(names, groups.indptr[:-1], groups.indptr[1:], strict=True):
            members = groups.indices[start:end]
            sizes = (float(np.linalg.norm(x[members])) for x in (theta, slope.gradient, mapping))
            found.append(Violation(name, "group", *sizes))
    return found


def _intercept(problem: Problem, slope: Slope) -> list[Violation]:
    if not problem.model.intercept:
        return []
    sums = slope.total.sum(axis=0)
    if float(np.abs(sums).max()) <= ROUND_OFF * float(np.abs(slope.total).sum()):
        return []
    return [Violation("intercept", "intercept", 0.0, _signed(sums), float(np.linalg.norm(sums)))]


def _signed(values: Any) -> float:
    """Return a single number as it is, and several by their norm."""
    return float(values[0]) if len(values) == 1 else float(np.linalg.norm(values))
