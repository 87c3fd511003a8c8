"""Problems for the tests of truncated Newton and L-BFGS."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import cvxstructreg as csr

SOLVERS = ("newton", "lbfgs")
SMOOTH = ("Squared", "Logistic", "Multinomial", "SquaredHinge")


def agrees_with_reference(problem, solver, tol=1e-7, **options):
    """The certificate holds, and the optima are the same to a few parts in 10^7."""
    solution = problem.solve(solver, tol=tol, **options)
    reference = problem.solve("cvxpy", tol=1e-6)
    assert solution.status == "optimal"
    assert solution.certificate.kind == "duality_gap"
    assert 0 <= solution.certificate.relative_gap <= tol
    assert solution.certificate.lower_bound <= reference.objective * (1 + 1e-12)
    assert solution.objective <= reference.objective + 1e-6 * abs(reference.objective)
    return solution


def big_network(rng, d, k=8):
    """A directed network in which each node points at k others near it on a circle, rather at round numbers."""
    rows = np.repeat(np.arange(d), k)
    columns = (rows + rng.integers(1, 3 * k, size=d * k)) % d
    columns = np.where(rng.random(d * k) < 0.5, columns // 10 * 10 % d, columns)
    weights = sp.csr_array((rng.uniform(0.5, 1.0, size=d * k), (rows, columns)), shape=(d, d))
    weights.setdiag(0)
    weights.eliminate_zeros()
    return csr.Graph(weights)


def text_like_problem(alpha, beta, n=200, d=3000, seed=0):
    """Sparse counts, more words than documents, and a network of words."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.01, random_state=rng, data_sampler=lambda size: rng.poisson(1.0, size) + 1.0)
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1, 0)
    objective = csr.Logistic(y) + alpha * csr.FeatureNetwork(big_network(rng, d)) + beta * csr.Ridge()
    return csr.Problem(csr.Linear(sp.csr_array(X)), objective)
