"""Problems of manifold regularization with a mixed graph, and the same in plain CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import cvxstructreg as csr

LAM1, LAM2 = 0.2, 0.4
LOSSES = {"hinge": csr.Hinge, "squared hinge": csr.SquaredHinge, "squared": csr.Squared, "logistic": csr.Logistic}
# the intercept and what the graph acts on
CONVENTIONS = {"no bias": (False, "on_scores"), "graph on f": (True, "on_scores"), "graph on h": (True, "on_function")}


def mixed_graph(n, edges, rng, share=0.3):
    pairs = {tuple(sorted(map(int, rng.choice(n, 2, replace=False)))) for _ in range(edges)}
    signs = np.where(rng.random(len(pairs)) < share, -1.0, 1.0)
    return csr.Graph.from_edges(sorted(pairs), signs * rng.uniform(0.5, 2.0, len(pairs)), n_nodes=n)


class Instance:
    """Points, a mixed graph, and labels for some of them."""

    def __init__(self, seed, n=24, labels=9, edges=50):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 3))
        self.gram = np.exp(-((self.X[:, None] - self.X[None]) ** 2).sum(-1) / 2)
        self.rows = rng.choice(n, labels, replace=False)
        self.y = np.where(self.X[self.rows, 0] + 0.3 * rng.normal(size=labels) > 0, 1.0, -1.0)
        self.y[:2] = 1.0, -1.0
        self.graph = mixed_graph(n, edges, rng)
        self.weights = rng.uniform(0.5, 2.0, labels)

    def problem(self, loss, convention, kernel=True, power=1, normalized=False, weighted=False):
        bias, how = CONVENTIONS[convention]
        model = csr.Kernel(self.gram, intercept=bias) if kernel else csr.Linear(self.X, intercept=bias)
        penalty = csr.Laplacian(self.graph, normalized=normalized, power=power)
        data = LOSSES[loss](self.y, rows=self.rows, sample_weight=self.weights if weighted else None)
        return csr.Problem(model, data + LAM1 * csr.RKHSNorm() + LAM2 * getattr(penalty, how)())


def textbook(instance, loss, convention, power=1, normalized=False, weighted=False):
    """The optimum by a CVXPY problem written by hand, from the matrix of the graph."""
    n, s = len(instance.gram), instance.weights if weighted else np.ones(len(instance.y))
    theta, b = cp.Variable(n), cp.Variable()
    bias, how = CONVENTIONS[convention]
    h = instance.gram @ theta
    f = h + b if bias else h
    z, y = f[instance.rows], instance.y
    losses = {
        "hinge": lambda: s @ cp.pos(1 - cp.multiply(y, z)),
        "squared hinge": lambda: s @ cp.square(cp.pos(1 - cp.multiply(y, z))),
        "squared": lambda: 0.5 * s @ cp.square(z - y),
        "logistic": lambda: s @ cp.logistic(-cp.multiply(y, z)),
    }
    L = instance.graph.laplacian(normalized=normalized).toarray()
    M = np.linalg.matrix_power(L, power)
    graph = cp.quad_form(f if how == "on_scores" else h, cp.psd_wrap((M + M.T) / 2))
    norm = cp.quad_form(theta, cp.psd_wrap(instance.gram))
    return cp.Problem(cp.Minimize(losses[loss]() + LAM1 * norm + LAM2 * graph)).solve(solver=cp.CLARABEL)


#: By the strong convexity of lam1 ||h||^2 such a gap keeps the scores within about 5e-6; the routes come much nearer.
TIGHT = 1e-12
CLARABEL_TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
