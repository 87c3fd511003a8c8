"""The largest strength of a path, also for quadratic terms, which make no weight exactly zero."""

from __future__ import annotations

import math

import numpy as np

from cvxstructreg.certificates.directions.free_directions import free_directions
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_penalty import MatrixPenalty
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.paths.largest_strength import gauge, gradient_at_zero, is_sum_of_norms, lambda_max
from cvxstructreg.paths.strength import is_smooth, sparsifying_terms, with_strength
from cvxstructreg.penalties import Ridge
from cvxstructreg.reductions.kernel_to_linear import as_linear
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers import InaccurateWarning

#: Tolerance of the fit of what a path does not scale.
FIT_TOL = 1e-9
#: A path of quadratic terms starts with a nearly constant model, where their curvature is this many times the loss's.
DOMINANCE = 100.0
#: At the strength itself, a loss with kinks has several optima beside unseen directions; the start is this much above.
ABOVE = 1e-3
#: The slope of penalties along a line is measured by changes of this part of the length.
STEP = 1e-3


def largest_strength(problem: Problem, numbers: tuple[int, ...]) -> float:
    """Return where a path starts.

    - Norms and smooth losses: :func:`lambda_max`. Smooth terms that are scaled with norms have no slope at zero, and do
      not change where weights vanish.
    - Norms of differences, and losses with kinks: :func:`zero_strength`.
    - Quadratic terms and smooth losses: :func:`quadratic_path_start`.
    - All others: :func:`pull_strength`.
    """
    if not numbers:
        raise ValueError("only bounds act on the weights, and a path scales other terms; add one, such as csr.Ridge()")
    sparsifying = tuple(number for number in numbers if number in sparsifying_terms(problem))
    smooth = all(is_smooth(problem, term) for term in problem.terms if term.target == "rows")
    if sparsifying and all(is_sum_of_norms(problem, problem.terms[number]) for number in sparsifying):
        return (
            lambda_max(problem, sparsifying)
            if smooth and not has_maps(problem)
            else zero_strength(problem, sparsifying)
        )
    if smooth and all(problem.terms[number].atom.can("quadratic") for number in numbers):
        return quadratic_path_start(problem, numbers)
    return pull_strength(problem, numbers)


def has_maps(problem: Problem) -> bool:
    """Whether a term is a norm of differences or other combinations of weights, and no L1 is on all single weights."""
    parts = as_linear(problem).normal_form
    single = parts.separable is not None and bool(np.all(parts.separable.weights > 0))
    return bool(parts.weight_pieces) and parts.piece_diagonal is None and not single


def zero_strength(problem: Problem, numbers: tuple[int, ...]) -> float:
    """Return a strength t at which the scaled terms Omega are zero: max_w <-g, w> / Omega(w).

    g is the gradient of the other terms where Omega is zero, the intercept and the directions that Omega does not see
    (such as equal weights, for differences) being fitted. For losses with kinks it is a subgradient that proves the fit
    optimal. If there are others, a smaller strength may be enough.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [3.0]], intercept=False), csr.Absolute([1.0, 1.0]) + csr.L1())
    >>> round(zero_strength(problem, (1,)), 4)
    4.0
    """
    problem = as_linear(problem)
    chosen = Objective(tuple(problem.terms[number] for number in numbers))
    unseen = _unseen(problem, chosen)
    downhill = -_gradient_of_fit(problem, unseen)
    if unseen.size:
        _require_smooth_others(problem, numbers)
        downhill -= unseen @ (unseen.T @ downhill)  # zero up to round-off, which Omega would not hold
    above = ABOVE if unseen.size and not problem.normal_form.scores_are_smooth else 0.0
    return (1.0 + above) * gauge(downhill, chosen, len(numbers)) if np.any(downhill) else 0.0


def _unseen(problem: Problem, chosen: Objective) -> Array:
    """An orthonormal basis (d x q) of the weights that the chosen terms do not see."""
    rows = tuple(term for term in problem.terms if term.target == "rows")
    parts = NormalForm(Problem(problem.model, Objective(rows + chosen.terms)))
    found = free_directions(parts, np.zeros(parts.shape))
    bounded = any(term.is_constraint and term.target == "weights" for term in problem.terms)
    if found is None or (found.size and bounded):
        why = "beside bounds" if bounded else "in too many directions"
        raise ValueError(
            f"the terms that a path scales do not see some weights or equal weights, {why}, so the start of the path "
            "is not known; add csr.L1() to the penalty, or give strengths="
        )
    return found


def _require_smooth_others(problem: Problem, numbers: tuple[int, ...]) -> None:
    for number, term in enumerate(problem.terms):
        scaled = number in numbers or term.is_constraint or term.scale == 0
        if term.target == "weights" and not scaled and not is_smooth(problem, term):
            raise ValueError(f"{term!r} is not smooth, so the fit beside the path is not known; scale it too")


def _gradient_of_fit(problem: Problem, basis: Array) -> Array:
    """The gradient (d x k) in the weights of all terms that are not scaled, fitted over a basis and the intercept."""
    model, forms = problem.model, problem.normal_form.weight_forms
    on_scores = tuple(term for term in problem.terms if term.target in ("rows", "scores"))
    design, weights = np.zeros((model.n_rows, 1)), tuple(Objective.of(Ridge()).terms)
    if basis.size:
        design = np.asarray(model.design @ basis)
        weights = tuple(
            Term(MatrixPenalty(basis.T @ np.asarray(scaled.form.matrix @ basis)), scaled.scale, "weights")
            for scaled in forms
        )
    fit = Problem(Linear(design, model.intercept), Objective(on_scores + weights))
    with muted(InaccurateWarning):  # the start of a path needs few digits
        solution = fit.solve(tol=FIT_TOL)
    proof = solution.certificate.dual
    if proof is None:
        raise ValueError("the strength that makes all weights zero has no bound for this loss; give strengths=")
    gradient = model.adjoint(proof.scores.reshape(model.n_rows, -1))
    return (
        gradient + problem.normal_form.quadratic_grad(basis @ fit.shaped(solution.coef)[0]) if basis.size else gradient
    )


def pull_strength(problem: Problem, numbers: tuple[int, ...]) -> float:
    """Return the strength t at which the scaled terms hold the weights at a hundredth of a step downhill.

    Let g be the gradient of the loss at zero weights, and s the length at which the loss would vanish along -g if it
    fell at its rate at zero: s = loss / g'g. Then  t = g'g / phi'(s / 100),  phi(s) the scaled terms at -s g. For
    smooth losses, s is where the curvature stops the fall: s = g'g / g'Hg, as in :func:`quadratic_path_start`.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [3.0]], intercept=False), csr.Absolute([1.0, 1.0]) + csr.Ridge())
    >>> round(pull_strength(problem, (1,)), 4)  # the loss falls by 4 in each unit of w, from 2
    400.0
    """
    problem = as_linear(problem)
    parts, model = problem.normal_form, problem.model
    downhill = -_gradient_of_fit(problem, np.zeros((model.n_weights, 0)))
    if parts.separable is not None and parts.separable.bounded:
        room = np.where(downhill > 0, parts.separable.upper > 0, parts.separable.lower < 0)
        downhill = np.where(room, downhill, 0.0)
    fall = float(np.vdot(downhill, downhill))
    if fall == 0.0:
        return 0.0
    scores, null = model.scores(downhill, np.zeros(problem.n_outputs)), null_point(problem)
    if parts.scores_are_smooth:
        at_zero = model.scores(np.zeros(parts.shape), null.b)
        length = fall / float(np.vdot(scores, parts.smooth_score_hessp(at_zero, scores)))
    else:
        length = null.with_intercept / fall
    chosen = [problem.terms[number] for number in numbers]

    def phi(s: float) -> float:
        return math.fsum(term.scale * term.atom.value(s * downhill) for term in chosen)

    ahead = length / DOMINANCE
    slope = (phi((1.0 + STEP) * ahead) - phi((1.0 - STEP) * ahead)) / (2.0 * STEP * ahead)
    return fall / slope if slope > 0 else 0.0


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
    others = tuple(term for number, term in enumerate(problem.terms) if number not in numbers)
    gradient, scores = gradient_at_zero(problem, others, np.ones((model.n_weights, problem.n_outputs), dtype=bool))
    direction = model.scores(gradient, np.zeros(problem.n_outputs))
    of_loss = float(np.vdot(direction, parts.smooth_score_hessp(scores, direction)))
    rest = with_strength(problem, 0.0, numbers).normal_form
    of_terms = float(np.vdot(gradient, parts.quadratic_grad(gradient) - rest.quadratic_grad(gradient)))
    return DOMINANCE * of_loss / of_terms if of_terms > 0 else 0.0
