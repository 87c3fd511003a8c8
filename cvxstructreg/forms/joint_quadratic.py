"""The CVXPY form of quadratic terms of a dense model: one dense matrix of the weights.

    lam1 theta'gram theta + lam2 (A theta + 1b)'M(A theta + 1b) = x'Q x     with x = theta, or (theta, b) if M sees b

compiles and solves several times faster than sums of squares of dense factors times theta, or scores as variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.objective import Term
from cvxstructreg.forms.composed_forms import PulledForm
from cvxstructreg.runtime.lazy_cvxpy import cp

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: Up to this many weights, quadratic forms of the scores are made dense matrices of the weights.
DENSE_FORM = 2000


def numbers(problem: Problem) -> frozenset[int]:
    """The terms, by number, that go into the one matrix."""
    return frozenset(number for number, term in enumerate(problem.terms) if _belongs(problem, term))


def _belongs(problem: Problem, term: Term) -> bool:
    if term.scale == 0 or not term.atom.can("quadratic"):
        return False
    if term.target == "function":
        return problem.given.kernel is not None
    few = not sp.issparse(problem.model.design) and problem.model.n_weights <= DENSE_FORM
    return few and term.target in ("scores", "values")


def joint_form(problem: Problem, theta: cp.Variable, b: cp.Variable | None) -> list[cp.Expression]:
    """x_j'Q x_j for every column j; nothing if no term belongs to it."""
    terms = [problem.terms[number] for number in sorted(numbers(problem))]
    if not terms:
        return []
    model = problem.model
    n, d = model.design.shape
    sees_b = b is not None and any(term.target == "scores" for term in terms)
    Q = np.zeros((d + sees_b, d + sees_b))
    for term in terms:
        if term.target == "function":
            Q[:d, :d] += term.scale * model.design
            continue
        design = model.design
        if sees_b and term.target == "scores":
            design = np.column_stack([design, np.ones(n)])
        size = design.shape[1]
        Q[:size, :size] += term.scale * PulledForm(term.atom.quadratic(n), design).matrix
    matrix = cp.psd_wrap(Q)
    if problem.n_outputs == 1 and not sees_b:
        return [cp.quad_form(theta, matrix)]  # of the variable itself: a column of it would be copied
    x = cp.vstack([theta, b]) if sees_b else theta
    return [cp.quad_form(x[:, j], matrix) for j in range(problem.n_outputs)]
