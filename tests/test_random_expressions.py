"""Random expressions as penalties: all are accepted, and no certified gap is below the true error."""

import contextlib
import warnings

import cvxpy as cp
import numpy as np
import pytest
from random_expressions import expression

import cvxstructreg as csr

#: Seconds for one solve. A solve that takes longer must still have a valid certificate.
LIMIT = 10.0


def _labels(scores):
    """Both classes, with noise."""
    labels = scores > np.median(scores)
    labels[::5] = ~labels[::5]
    labels[:2] = (False, True)
    return labels


def problem_of(seed):
    rng = np.random.default_rng(10_000 + seed)
    d = int(rng.integers(2, 9))
    n = int(rng.integers(d + 2, 30)) if rng.uniform() < 0.8 else d
    function, text = expression(seed, d)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=d) + rng.normal(size=n)
    loss = csr.Squared(scores) if rng.uniform() < 0.5 else csr.Logistic(_labels(scores))
    strength = float(rng.choice([0.1, 1.0, 5.0]))
    model = csr.Linear(X, intercept=bool(rng.uniform() < 0.5))
    return csr.Problem(model, loss + strength * csr.FromExpression(function)), text


def reference_of(problem):
    """The optimum by CVXPY from the expression itself, as accurate as possible; None if CVXPY is unsure."""
    program = problem.to_cvxpy()
    for accuracy in (1e-10, 1e-9, 1e-8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(cp.SolverError):
                program.solve(solver="CLARABEL", tol_gap_abs=accuracy, tol_gap_rel=accuracy, tol_feas=accuracy)
        if program.status == cp.OPTIMAL:
            return float(program.value)
    return None


def check(seed):
    """Solve one random problem; return its status, or None if there is no reference to compare with."""
    problem, text = problem_of(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution = problem.solve(time_limit=LIMIT)
    optimum = reference_of(problem)
    if optimum is None:
        return None
    slack = 1e-7 * (1.0 + abs(optimum))
    certificate = solution.certificate
    assert solution.objective >= optimum - slack, text
    if certificate.kind != "kkt":
        assert certificate.lower_bound <= optimum + slack, text
        assert solution.objective - optimum <= certificate.gap + slack, text
    return solution.status


def require(seeds):
    statuses = [check(seed) for seed in seeds]
    known = [status for status in statuses if status is not None]
    assert len(known) >= 0.8 * len(statuses)
    assert sum(status == "optimal" for status in known) >= 0.9 * len(known), statuses


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_random_expressions(start):
    require(range(start, start + 10))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_a_thousand_random_expressions(start):
    require(range(start, start + 50))
