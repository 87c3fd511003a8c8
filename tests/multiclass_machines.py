"""Multiclass support vector machines with dissimilar pairs, for tests."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import cvxstructreg as csr
from random_problems import random_graph

RNG = np.random.default_rng(0)
N, K = 24, 3
X = RNG.normal(size=(N, 2))
Y = np.arange(N) % K
X[:, 0] += Y
RBF = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
ROWS = np.array([0, 1, 2, 5, 7, 9, 12, 13])
PAIRS = np.array([(3, 4), (6, 8), (0, 10), (1, 2), (14, 15), (16, 20), (3, 8)])


def random_problem(seed, models=("rbf", "low rank", "linear", "sparse"), graphs=(None, "similar", "signed")):
    """A multiclass problem of any kind: pairs of either power, weights, edges, with and without intercept."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(12, 30)), int(rng.integers(2, 5))
    labelled = int(rng.integers(k, n - 4))
    points = rng.normal(size=(n, 3))
    y = rng.permutation(np.arange(labelled) % k)
    rows, weights = rng.permutation(n)[:labelled], rng.uniform(0.2, 2.0, size=labelled)
    objective = float(rng.uniform(0.2, 2.0)) * csr.MulticlassHinge(y, rows=rows, sample_weight=weights)
    i, j = np.triu_indices(n, 1)
    for power in (1, 2):
        picked = rng.permutation(len(i))[: rng.integers(0, 6)]
        pairs = np.stack([i[picked], j[picked]], axis=1)
        costs = rng.uniform(0.2, 2.0, size=len(pairs))
        objective = objective + float(rng.uniform(0.1, 2.0)) * csr.Dissimilarity(pairs, power=power, weights=costs)
    graph = graphs[rng.integers(len(graphs))]
    if graph is not None:
        edges = random_graph(rng, n, graph == "signed")
        objective = objective + float(rng.uniform(0.05, 1.0)) * csr.Laplacian(edges).on_scores()
    intercept, lam = bool(rng.integers(2)), 10 ** float(rng.uniform(-2.0, 0.5))
    model = models[rng.integers(len(models))]
    if model in ("rbf", "low rank"):
        squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
        gram = np.exp(-0.5 * squares) if model == "rbf" else points @ points.T
        return csr.Problem(csr.Kernel(gram, intercept=intercept), objective + lam * csr.RKHSNorm())
    if model == "linear":
        return csr.Problem(csr.Linear(points, intercept=intercept), objective + lam * csr.Ridge())
    design = sp.csr_array(points * (rng.random(points.shape) < 0.7))
    ridge = csr.Ridge(weights=rng.uniform(0.5, 2.0, size=3))
    return csr.Problem(csr.Linear(design, intercept=intercept), objective + lam * ridge)


def standard(power=1, model=None, pairs=PAIRS, **more):
    """Eight labelled points, seven pairs."""
    objective = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm()
    objective = objective + 0.4 * csr.Dissimilarity(pairs, power=power, **more)
    return csr.Problem(model or csr.Kernel(RBF), objective)


def textbook(gram, y, rows, pairs, lam1, lam2, power, intercept):
    """Eq. (12): all n x k coefficients, scores of zero sum at all points, a quadratic form for each class."""
    n, k = len(gram), int(y.max()) + 1
    C, b = cp.Variable((n, k)), cp.Variable((1, k))
    F = gram @ C + (np.ones((n, 1)) @ b if intercept else 0.0)
    wrong = (np.arange(k)[None, :] != y[:, None]).astype(float)
    loss = cp.sum(cp.multiply(wrong, cp.pos(F[rows] + 1.0 / (k - 1))))
    alike = cp.sum(cp.pos(F[pairs[:, 0]] + F[pairs[:, 1]] - (k - 2) / (k - 1)) ** power)
    norm = cp.sum([cp.quad_form(C[:, j], cp.psd_wrap(gram)) for j in range(k)])
    problem = cp.Problem(cp.Minimize(loss + lam1 * norm + lam2 * alike), [F @ np.ones(k) == 0])
    accuracy = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    return problem.solve(solver=cp.CLARABEL, **accuracy), F.value
