"""Small problems with one penalty and the three kinds of losses: squares, smooth margins, and hinges."""

import warnings

import cvxpy as cp
import numpy as np

import cvxstructreg as csr

LOSSES = {
    "squared": {1: lambda F, c: csr.Squared(F[:, 0]), 3: lambda F, c: csr.MultiTask(F)},
    "logistic": {1: lambda F, c: csr.Logistic(F[:, 0] > 0), 3: lambda F, c: csr.Multinomial(c)},
    "hinge": {1: lambda F, c: csr.Hinge(F[:, 0] > 0), 3: lambda F, c: csr.MulticlassHinge(c)},
}


def small_problem(loss, penalty, k=1, n=40, d=12, seed=0):
    """A problem with d weights that are constant on three pieces, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    weights = np.repeat([[1.0, -1.0, 0.5], [-1.0, 0.0, 0.5], [0.0, 1.0, -1.0]], d // 3, axis=1)[:k].T
    F = X @ weights + 0.5 * rng.normal(size=(n, k))
    return csr.Problem(csr.Linear(X), LOSSES[loss][k](F, F.argmax(axis=1)) + penalty)


def require_proof_and_reference(problem, tol=1e-6):
    """``auto`` proves the tolerance, and the optimum of CVXPY lies between bound and objective."""
    solution = problem.solve(tol=tol)
    assert solution.status == "optimal"
    assert solution.certificate.kind == "duality_gap" and solution.certificate.relative_gap <= tol
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # as accurate as required below
        reference = problem.to_cvxpy().solve(solver=cp.CLARABEL, max_threads=1)
    room = 1e-6 * max(1.0, abs(reference))
    assert solution.certificate.lower_bound - room <= reference <= solution.objective + room
    return solution
