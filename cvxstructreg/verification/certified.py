"""Certify weights from any source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate, certify_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers import InaccurateWarning, registry, solve
from cvxstructreg.verification.given import GivenWeights, checked_problem, given_weights

#: Iterations of the search for a dual point when no solver has found one.
SWEEPS = 5000
#: Iterations of the first search: usual, and where the gradient of a loss with kinks is only a guess of its dual point.
FIRST_SWEEPS, SWEEPS_AFTER_GUESS = 200, 20
#: Most iterations of each solver in the search for a better dual point.
SEARCH_STEPS = 5000


def certify(
    problem: Problem | cp.Problem,
    coef: Any = None,
    intercept: Any = None,
    dual: Mapping[int, Array] | None = None,
    tol: float = 1e-6,
    search: bool = True,
) -> Certificate:
    """Bound how far given weights, from any source, are from the optimum of a problem.

    Parameters
    ----------
    problem : Problem or cp.Problem
        The problem that the weights should solve. A plain CVXPY problem is recognised by
        :func:`~cvxstructreg.from_cvxpy`. Its weights are the values of its variables: the current ones if ``coef`` is
        left out, a dict from variables to values, or the value of the only variable. Values outside of bounds by no
        more than round-off are moved to the bounds.
    coef, intercept
        The weights, of shape (d,), (d, k), or (1, d) or (k, d) as in scikit-learn, and the intercept(s), 0 by default.
        Instead of the weights: a fitted estimator, a :class:`~cvxstructreg.Solution`, or a pair ``(coef, intercept)``.
        An array of shape (d, d) is read as (d, k).
    dual : dict, optional
        A dual point for each term, by the index of the term, as in ``Solution.dual``.
    tol : float
        The relative gap below which a bound is tight enough.
    search : bool
        Whether to look for a better dual point with the library's solvers if the point itself gives no tight bound
        (because it is not optimal, or because a term such as the hinge loss does not determine its dual point). The
        bound is valid whatever they return, because it is recomputed from the dual point.

    Returns
    -------
    Certificate
        Its ``gap`` is an upper bound on ``objective - optimum``, proved by the dual point ``dual``.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear(np.eye(2), intercept=False), csr.Squared([1.0, 2.0]) + 0.5 * csr.Ridge())
    >>> round(csr.certify(problem, [0.5, 1.0]).gap, 6), round(csr.certify(problem, [0.5, 1.1]).gap, 6)
    (0.0, 0.01)

    A fitted estimator of scikit-learn minimises the same function if its strength is translated
    (:mod:`cvxstructreg.conventions`):

    >>> from sklearn.linear_model import Ridge
    >>> peer = Ridge(alpha=1.0, fit_intercept=False).fit(np.eye(2), [1.0, 2.0])
    >>> bool(csr.certify(problem, peer).relative_gap < 1e-9)
    True

    The values of CVXPY variables, from any solver:

    >>> import cvxpy as cp
    >>> w = cp.Variable(2)
    >>> prob = cp.Problem(cp.Minimize(cp.sum_squares(w - [1.0, 2.0]) + cp.norm1(w)))
    >>> round(csr.certify(prob, [0.5, 1.6]).gap, 6)
    0.01
    """
    stated = checked_problem(problem, "certify")
    given = given_weights(stated, coef, intercept)
    return certified(stated, given, given.dual if dual is None else dual, tol, search)


def certified(
    problem: Problem,
    given: GivenWeights,
    dual: Mapping[int, Array],
    tol: float,
    search: bool = True,
    time_limit: float | None = None,
) -> Certificate:
    """Return the certificate of weights in the shapes of the library; ``time_limit`` is that of each solver."""
    theta, b = given.theta, given.b
    if not search:
        return certify_point(problem, theta, b, dual, sweeps=SWEEPS)
    parts = problem.normal_form
    guessed = not parts.scores_are_smooth and any(piece.number not in dual for piece in parts.score_pieces)
    sweeps = SWEEPS_AFTER_GUESS if guessed else FIRST_SWEEPS
    certificate = certify_point(problem, theta, b, dual, sweeps=sweeps, tol=tol / 10)
    if certificate.error <= tol or not np.isfinite(certificate.objective):
        return certificate
    start = (theta, b) if problem.n_outputs > 1 else (theta[:, 0], float(b[0]))
    proved: Certificate | None = None
    for solver in registry.accepting(problem):
        with muted(InaccurateWarning):
            limits: dict[str, Any] = {"max_iter": SEARCH_STEPS, "time_limit": time_limit}
            other = solve(problem, solver.name, tol=tol / 10, warm_start=start, **limits).certificate
        if other.kind == "kkt":
            continue
        if proved is None or other.lower_bound > proved.lower_bound:
            proved = other
        if other.relative_gap <= tol:  # no dual point can raise the bound by more than tol
            best = certificate if certificate.lower_bound > other.lower_bound else other  # nothing is searched again
            return certify_point(problem, theta, b, dual, best.lower_bound, sweeps=1, known_dual=best.dual)
    if proved is None:
        return certify_point(problem, theta, b, dual, sweeps=SWEEPS)
    return certify_point(problem, theta, b, dual, proved.lower_bound, SWEEPS, known_dual=proved.dual)
