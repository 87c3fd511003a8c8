"""The largest strength of a path, also for quadratic terms, which make no weight exactly zero."""

from __future__ import annotations

import numpy as np

from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective
from cvxstructreg.core.problem import Problem
from cvxstructreg.paths.largest_strength import gauge, gradient_at_zero, lambda_max
from cvxstructreg.paths.strength import is_smooth, sparsifying_terms, with_strength
from cvxstructreg.penalties import Ridge
from cvxstructreg.reductions.kernel_to_linear import as_linear

#: A path of quadratic terms starts with a nearly constant model, where their curvature is this many times the loss's.
DOMINANCE = 100.0


def largest_strength(problem: Problem, numbers: tuple[int, ...]) -> float:
    """Return where a path starts: :func:`lambda_max`, or :func:`quadratic_path_start` if all terms are quadratic.

    Smooth terms that are scaled with sparsifying ones have no slope at zero, and do not change where weights vanish.
    For a loss with kinks the start is :func:`zero_strength`, which is at least as large.
    """
    sparsifying = tuple(number for number in numbers if number in sparsifying_terms(problem))
    if sparsifying and all(is_smooth(problem, term) for term in problem.terms if term.target == "rows"):
        return lambda_max(problem, sparsifying)
    if sparsifying:
        return zero_strength(problem, sparsifying)
    return quadratic_path_start(problem, numbers)


def zero_strength(problem: Problem, numbers: tuple[int, ...]) -> float:
    """Return a strength t at which all weights are zero, for losses with kinks: max_w <-X'u, w> / Omega(w).

    u is a subgradient of the losses at the best constant scores, the one that proves them optimal. If there are other
    subgradients, a smaller strength may be enough.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [3.0]], intercept=False), csr.Absolute([1.0, 1.0]) + csr.L1())
    >>> round(zero_strength(problem, (1,)), 4)
    4.0
    """
    problem = as_linear(problem)
    losses = Objective(tuple(term for term in problem.terms if term.target == "rows"))
    constant = Problem(Linear(np.zeros((problem.model.n_rows, 1)), problem.model.intercept), losses + Ridge())
    proof = constant.solve().certificate.dual
    if proof is None:
        raise ValueError("the strength that makes all weights zero has no bound for this loss; give strengths=")
    downhill = -problem.model.adjoint(proof.scores.reshape(problem.model.n_rows, -1))
    chosen = Objective(tuple(problem.terms[number] for number in numbers))
    return gauge(downhill, chosen, len(numbers)) if np.any(downhill) else 0.0


def quadratic_path_start(problem: Problem, numbers: tuple[int, ...]) -> float:
    """Return the strength t at which quadratic terms have 100 times the curvature of the loss at zero weights.

    Let g be the gradient of the other terms at zero weights, H the Hessian of the loss there and M the matrix of the
    quadratic terms. Then  t = 100 g'Hg / (2 g'Mg):  a step along -g is a hundredth of the step without the terms.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([1.0, 1.0]) + csr.Ridge())
    >>> quadratic_path_start(problem, (1,))  # the loss has curvature 1 + 4, the ridge term 2
    250.0
    """
    problem = as_linear(problem)
    parts, model = problem.normal_form, problem.model
    if not parts.scores_are_smooth or not all(problem.terms[number].atom.can("quadratic") for number in numbers):
        raise ValueError("the start of a path is only computed for smooth losses and quadratic terms; give strengths=")
    others = tuple(term for number, term in enumerate(problem.terms) if number not in numbers)
    gradient, scores = gradient_at_zero(problem, others, np.ones((model.n_weights, problem.n_outputs), dtype=bool))
    direction = model.scores(gradient, np.zeros(problem.n_outputs))
    of_loss = float(np.vdot(direction, parts.smooth_score_hessp(scores, direction)))
    rest = with_strength(problem, 0.0, numbers).normal_form
    of_terms = float(np.vdot(gradient, parts.quadratic_grad(gradient) - rest.quadratic_grad(gradient)))
    return DOMINANCE * of_loss / of_terms if of_terms > 0 else 0.0
