"""The smallest strength at which all penalised weights are zero."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_penalty import MatrixPenalty
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.paths.strength import checked_terms, is_smooth, simple_parts, with_strength
from cvxstructreg.reductions.kernel_to_linear import as_linear
from cvxstructreg.runtime.quiet import muted, warn
from cvxstructreg.solvers import InaccurateWarning

#: Tolerances of the fit of the unpenalised part, and of the gauge of its gradient.
FIT_TOL, GAUGE_TOL = 1e-12, 1e-9
#: Most iterations of that fit, and the relative gap above which the user is warned.
FIT_STEPS, FIT_ENOUGH = 2_000, 1e-6
#: Most steps of Dinkelbach's iteration, and the relative progress at which it stops.
GAUGE_STEPS, GAUGE_PROGRESS = 100, 1e-9
#: Strengths found by iteration are rounded up by this fraction, so that the weights are zero there.
ROUND_UP = 1e-7


def lambda_max(problem: Problem, terms: Iterable[int] | None = None) -> float:
    """Return the smallest t at which t times the sparsifying terms makes all the weights they penalise zero.

    Let g be the gradient of all other terms at the point where these weights are zero and the intercept and the
    unpenalised weights have been fitted. Then t is the gauge  max_w <-g, w> / Omega(w)  of the sparsifying terms Omega.
    For L1 this is max_j |g_j| / c_j. For overlapping groups, sums of terms and bounds, t is computed by Dinkelbach's
    iteration  t <- <-g, w> / Omega(w),  w = prox of t Omega at -g,  and rounded up in the seventh digit.

    Parameters
    ----------
    problem : Problem
        Its losses must be smooth. t multiplies the current strengths, so ``1.0 * L1()`` gives the usual lambda_max.
    terms : indices of terms, optional
        The terms to scale; by default all terms on the weights that are not differentiable at zero.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 2.0, 3.0]
    >>> problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + csr.L1())
    >>> lambda_max(problem)
    7.0
    """
    problem = problem.now
    numbers = checked_terms(problem, terms)
    problem = as_linear(problem)
    _check(problem, numbers)
    chosen = Objective(tuple(problem.terms[number] for number in numbers))
    others = tuple(term for number, term in enumerate(problem.terms) if number not in numbers)
    penalised = _penalised_weights(NormalForm(Problem(problem.model, _losses(problem) + chosen)))
    downhill = -gradient_at_zero(problem, others, penalised)[0]
    downhill[~penalised] = 0.0
    if not np.abs(downhill).max(initial=0.0) > 0:
        return 0.0
    bounds = tuple(term for term in others if term.is_constraint and term.target == "weights")
    return gauge(downhill, Objective(chosen.terms + bounds), len(chosen.terms))


def _losses(problem: Problem) -> Objective:
    return Objective(tuple(term for term in problem.terms if isinstance(term.atom, Loss)))


def _check(problem: Problem, numbers: tuple[int, ...]) -> None:
    for number, term in enumerate(problem.terms):
        if number in numbers:
            if term.target != "weights" or is_smooth(problem, term) or term.scale == 0:
                raise ValueError(
                    f"{term!r} has no kink at zero, so no strength makes weights zero; leave it out of terms="
                )
            if not is_sum_of_norms(problem, term):
                raise ValueError(
                    f"{term!r} is not a norm, so the strength that makes weights zero has no formula; write the norm "
                    "as one term and the rest as another, or give strengths="
                )
        elif term.is_constraint and term.target == "weights":
            part = term.atom.separable()
            if np.any(part.lower > 0) or np.any(part.upper < 0):
                raise ValueError(f"{term!r} excludes zero weights, so no strength makes them zero; give strengths=")
        elif term.scale > 0 and not is_smooth(problem, term):
            raise ValueError(f"{term!r} is not smooth, so the gradient at zero weights is not unique; scale it too")


def is_sum_of_norms(problem: Problem, term: Term) -> bool:
    """Whether every part of the term is a norm, as far as is known."""
    is_sum = term.atom.can("parts")
    return all(_is_norm(part, unknown=not is_sum) for part in simple_parts(problem, term))


def _is_norm(part: Term, unknown: bool) -> bool:
    """Whether the part is a norm; ``unknown`` if it has neither a dual norm nor a conjugate."""
    outer = part.atom.split()[0] if part.atom.can("split") else part.atom
    return outer.can("dual_norm") or (unknown and not outer.can("conj"))


def _penalised_weights(parts: NormalForm) -> Any:
    """Return which weights (d x k) the sparsifying terms penalise; raise if only differences of some are penalised."""
    penalised = np.zeros(parts.shape, dtype=bool)
    if parts.separable is not None:
        penalised |= np.broadcast_to(parts.separable.weights, parts.shape) > 0
    if parts.weight_pieces:
        if parts.piece_diagonal is None and not penalised.all():
            raise ValueError(
                "a term penalises only differences of weights, so equal weights cost nothing and never become zero; "
                "add L1 to the scaled terms"
            )
        if parts.piece_diagonal is not None:
            penalised |= parts.piece_diagonal[:, None] > 0
    return penalised


def gradient_at_zero(problem: Problem, others: tuple[Term, ...], penalised: Any) -> tuple[Array, Array]:
    """Return the gradient of the other terms in the weights, and the scores.

    The weights marked in ``penalised`` are zero; the other weights and the intercept are fitted.
    """
    parts, model = problem.normal_form, problem.model
    free = np.flatnonzero(~penalised.all(axis=1))
    on_scores = tuple(term for term in others if term.target in ("rows", "scores"))
    if free.size:
        design = model.columns[:, free]
        forms = tuple(
            Term(MatrixPenalty(scaled.form.matrix[free][:, free]), scaled.scale, "weights")
            for scaled in parts.weight_forms
        )
    else:
        design, forms = np.zeros((model.n_rows, 1)), (Term(MatrixPenalty(np.eye(1)), 1.0, "weights"),)
    fit = Problem(Linear(design, model.intercept), Objective(on_scores + forms))
    with muted(InaccurateWarning):  # round-off may prevent a proof to FIT_TOL; the check below is looser
        rest = fit.solve(tol=FIT_TOL, max_iter=FIT_STEPS)
    if not rest.certificate.error <= FIT_ENOUGH:
        warn(f"lambda_max: the fit without the penalty is only accurate to {rest.certificate}", InaccurateWarning, 4)
    theta = np.zeros(parts.shape)
    small, b = rest.problem.shaped(rest.coef, rest.intercept)
    if free.size:
        theta[free] = small
    scores = model.scores(theta, b)
    return model.adjoint(parts.smooth_score_grad(scores)) + parts.quadratic_grad(theta), scores


def gauge(downhill: Array, objective: Objective, n_chosen: int) -> float:
    """Return max_w <downhill, w> / Omega(w), where Omega is the first ``n_chosen`` terms and the others are bounds."""
    from cvxstructreg.losses import Squared

    d = downhill.shape[0]
    prox = Problem(Linear(sp.eye_array(d, format="csr"), intercept=False), Squared(downhill) + objective)
    numbers = tuple(range(1, 1 + n_chosen))
    parts = prox.normal_form
    if not parts.weight_pieces and parts.separable is not None:
        weights = np.broadcast_to(parts.separable.weights, downhill.shape)
        room = np.where(downhill > 0, parts.separable.upper > 0, parts.separable.lower < 0)
        usable = room & (weights > 0)
        return float(np.max(np.abs(downhill[usable]) / weights[usable], initial=0.0))

    def omega(w: Array) -> float:
        return math.fsum(prox.terms[number].scale * prox.terms[number].atom.value(w) for number in numbers)

    strength, start = 0.0, None
    for _ in range(GAUGE_STEPS):
        solution = with_strength(prox, strength, numbers).solve(tol=GAUGE_TOL, warm_start=start)
        w = prox.shaped(solution.coef)[0]
        size = omega(w)
        if size <= 0.0:
            break
        reached = float(np.vdot(downhill, w)) / size
        if reached <= strength * (1.0 + GAUGE_PROGRESS):
            break
        strength, start = reached, replace(solution, dual={})
    return strength * (1.0 + ROUND_UP)
