"""Data and helpers of tests whose answer is known."""

import cvxpy as cp
import numpy as np
from numpy.testing import assert_allclose

import cvxstructreg as csr

RNG = np.random.default_rng(7)
N, D = 24, 5
X = RNG.normal(size=(N, D))
SIGNAL = X @ np.array([1.0, -2.0, 0.0, 0.5, 0.0])
Y = SIGNAL + 0.5 * RNG.normal(size=N)
LABELS = (SIGNAL + RNG.normal(size=N) > 0).astype(int)
KINDS = np.argmax(np.column_stack([SIGNAL, X[:, 1], X[:, 2]]) + RNG.normal(size=(N, 3)), axis=1)
KERNEL = np.exp(-0.2 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
POINT = RNG.normal(size=D)
PAIRS = [(0, 1), (2, 5), (3, 9), (4, 20)]
LOSSES = {
    "Squared": (csr.Squared, Y),
    "Logistic": (csr.Logistic, LABELS),
    "Hinge": (csr.Hinge, LABELS),
    "SquaredHinge": (csr.SquaredHinge, LABELS),
    "Multinomial": (csr.Multinomial, KINDS),
    "MulticlassHinge": (csr.MulticlassHinge, KINDS),
}


def solved(model, objective, tol=1e-9, **options):
    solution = csr.Problem(model, objective).solve(tol=tol, **options)
    assert solution.status == "optimal"
    return solution


def assert_same(one, other):
    """The same optimum, with the same scores up to a common shift of all classes.

    A gap of 1e-9 in the objective is about its square root in the scores.
    """
    assert_allclose(one.objective, other.objective, rtol=1e-8)
    assert_allclose(centred(one.scores), centred(other.scores), atol=1e-4)


def centred(scores):
    return scores if scores.ndim == 1 else scores - scores.mean(axis=1, keepdims=True)


def minimum(expression, constraints=()):
    problem = cp.Problem(cp.Minimize(expression), list(constraints))
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
