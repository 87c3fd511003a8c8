"""Random small problems of all kinds, for property tests."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import cvxstructreg as csr


def random_graph(rng: np.random.Generator, n: int, signed: bool) -> csr.Graph:
    """About 1.5 n edges, some of them dissimilar."""
    i, j = np.triu_indices(n, 1)
    kept = rng.random(len(i)) < min(1.0, 3.0 / n)
    weights = rng.uniform(0.5, 2.0, size=kept.sum())
    if signed:
        weights *= rng.choice([1.0, 1.0, -1.0], size=len(weights))
    return csr.Graph.from_edges(np.stack([i[kept], j[kept]], axis=1), weights, n_nodes=n)


def random_groups(rng: np.random.Generator, d: int) -> csr.Groups:
    """A few overlapping groups that leave no feature out."""
    members = [sorted(rng.choice(d, size=rng.integers(1, d + 1), replace=False).tolist()) for _ in range(3)]
    left = sorted(set(range(d)) - {j for group in members for j in group})
    return csr.Groups(members + ([left] if left else []), n_features=d, weights=np.sqrt)


def random_loss(rng: np.random.Generator, name: str, n: int) -> csr.Term:
    """A loss on a part of n rows, with sample weights."""
    m = max(4, n - 3)
    rows = rng.permutation(n)[:m]
    sample_weight = rng.uniform(0.2, 2.0, size=m)
    if name == "Squared":
        y: np.ndarray = rng.normal(size=m)
    elif name in ("Multinomial", "MulticlassHinge"):
        y = rng.permutation(np.arange(m) % 3)
    else:
        y = rng.permutation(np.arange(m) % 2)
    return getattr(csr, name)(y, rows=rows, sample_weight=sample_weight)


LOSSES = ("Squared", "Logistic", "Multinomial", "Hinge", "SquaredHinge", "MulticlassHinge")
PENALTIES = ("ridge", "l1", "network", "laplacian", "fused", "groups", "latent", "box", "nonnegative", "weighted l1")


def penalty(rng: np.random.Generator, name: str, d: int) -> csr.Objective:
    """One or two penalty terms that together hold every weight."""
    s = float(rng.uniform(0.1, 2.0))
    small = 0.05 * csr.L1()
    return {
        "ridge": lambda: s * csr.Ridge(),
        "l1": lambda: s * csr.L1(),
        "network": lambda: s * csr.FeatureNetwork(random_graph(rng, d, True)) + 0.1 * csr.Ridge(),
        "laplacian": lambda: s * csr.Laplacian(random_graph(rng, d, True), normalized=True) + small,
        "fused": lambda: s * csr.FusedLasso(random_graph(rng, d, True)) + small,
        "groups": lambda: s * csr.GroupLasso(random_groups(rng, d)) + small,
        "latent": lambda: s * csr.LatentGroupLasso(random_groups(rng, d)),
        "box": lambda: csr.Box(-0.5, 0.25) + 0.1 * csr.L1(),
        "nonnegative": lambda: csr.NonNegative() + s * csr.Ridge(),
        "weighted l1": lambda: s * csr.L1(weights=rng.uniform(0.5, 2.0, size=d)) + 0.1 * csr.Ridge(),
    }[name]()


def linear_problem(seed: int, loss: str, name: str, intercept: bool, sparse: bool) -> csr.Problem:
    """A linear problem."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 16)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d))
    model = csr.Linear(sp.csr_array(X * (rng.random((n, d)) < 0.7)) if sparse else X, intercept=intercept)
    return csr.Problem(model, random_loss(rng, loss, n) + penalty(rng, name, d))


def kernel_problem(seed: int, loss: str, intercept: bool, pairs: int, power: int) -> csr.Problem:
    """A kernel problem with a mixed graph and dissimilar pairs on the scores."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 14))
    X = rng.normal(size=(n, 2))
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    objective = random_loss(rng, loss, n) + float(rng.uniform(0.05, 1.0)) * csr.RKHSNorm()
    objective = objective + 0.1 * csr.Laplacian(random_graph(rng, n, True)).on_scores()
    if pairs:
        chosen = rng.permutation(n)[: 2 * pairs].reshape(-1, 2)
        objective = objective + 0.3 * csr.Dissimilarity(chosen, power=power)
    return csr.Problem(csr.Kernel(gram, intercept=intercept), objective)


linear_problems = st.builds(
    linear_problem,
    st.integers(0, 10_000),
    st.sampled_from(LOSSES),
    st.sampled_from(PENALTIES),
    st.booleans(),
    st.booleans(),
)
kernel_problems = st.builds(
    kernel_problem,
    st.integers(0, 10_000),
    st.sampled_from(LOSSES),
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from([1, 2]),
)
problems = st.one_of(linear_problems, kernel_problems)
