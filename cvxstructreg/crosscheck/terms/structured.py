"""Random penalties of differences, sorted weights, singular values, hierarchies and weighted groups, for a recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxstructreg.crosscheck.terms.usual import Term, random_graph, strength, typical_pull

#: The share of problems with such a penalty on the weights.
SHARE = 0.35


def structured_terms(
    rng: np.random.Generator, model: dict[str, Any], wild: bool, losses: list[Term], penalties: list[Term]
) -> list[Term]:
    """Return the penalties with one more, or with one in place of another; pairs may get a dead zone."""
    d = len(model["matrix"][0])
    terms = [_with_margin(rng, term) for term in penalties]
    if d < 2 or rng.random() > SHARE:
        return terms
    kind = str(rng.choice(list(KINDS)))
    scale = strength(rng, typical_pull(np.asarray(model["matrix"], dtype=float), losses), wild)
    fresh = {**KINDS[kind](rng, d), "on": "weights", "scale": scale}
    kept = [term for term in terms if term["on"] != "weights" or rng.random() < 0.3]
    return [*kept, fresh]


def _with_margin(rng: np.random.Generator, term: Term) -> Term:
    if term["kind"] != "Dissimilarity" or rng.random() < 0.5:
        return term
    return {**term, "margin": float(10.0 ** rng.uniform(-2, 0.5))}


def _total_variation(rng: np.random.Generator, d: int) -> Term:
    sides = [side for side in range(2, d) if d % side == 0]
    shape = [d]
    if sides and rng.random() < 0.7:
        rows = int(rng.choice(sides))
        shape = [rows, d // rows]
    return {"kind": "TotalVariation", "shape": shape, "isotropic": bool(rng.random() < 0.6)}


def _trend_filter(rng: np.random.Generator, d: int) -> Term:
    term: Term = {"kind": "TrendFilter", "order": int(rng.integers(1, min(3, d - 1) + 1))}
    if rng.random() < 0.4:
        term["graph"] = random_graph(rng, d, False, directed=False, virtual=False)
    return term


def _huber_differences(rng: np.random.Generator, d: int) -> Term:
    graph = random_graph(rng, d, False, directed=False, virtual=False)
    return {"kind": "HuberDifferences", "graph": graph, "M": float(10.0 ** rng.uniform(-2, 1))}


def _slope(rng: np.random.Generator, d: int) -> Term:
    weights = np.sort(rng.uniform(0.0, 2.0, size=d) * (rng.random(d) < 0.8))[::-1]
    weights[0] = weights[0] or 1.0
    return {"kind": "SLOPE", "weights": weights.tolist()}


def _nuclear_norm(rng: np.random.Generator, d: int) -> Term:
    sides = [side for side in range(2, d) if d % side == 0]
    rows = int(rng.choice(sides)) if sides and rng.random() < 0.5 else None
    return {"kind": "NuclearNorm", "shape": None if rows is None else [rows, d // rows]}


def _exclusive_lasso(rng: np.random.Generator, d: int) -> Term:
    owner = rng.integers(0, max(2, d // 2), size=d)
    groups = [np.flatnonzero(owner == g).tolist() for g in np.unique(owner)]
    groups = groups[: max(1, len(groups) - int(rng.random() < 0.2))]
    weights = rng.uniform(0.2, 2.0, size=len(groups))
    return {"kind": "ExclusiveLasso", "groups": groups, "weights": weights.tolist(), "n_features": d}


def _tree(rng: np.random.Generator, d: int) -> Term:
    parents = [int(rng.integers(-1, j)) if j else -1 for j in range(d)]
    below: list[list[int]] = [[j] for j in range(d)]
    for j in range(d - 1, 0, -1):
        if parents[j] >= 0:
            below[parents[j]] += below[j]
    weights = rng.uniform(0.0, 2.0, size=d)
    return {"kind": "GroupLasso", "groups": below, "weights": weights.tolist(), "n_features": d, "tree": True}


def _weighted_groups(rng: np.random.Generator, d: int) -> Term:
    groups = [rng.permutation(d)[: int(rng.integers(1, d + 1))].tolist() for _ in range(int(rng.integers(1, 5)))]
    members = [(10.0 ** rng.uniform(-1, 0.5, size=len(group))).tolist() for group in groups]
    weights = rng.uniform(0.2, 2.0, size=len(groups)).tolist()
    return {"kind": "GroupLasso", "groups": groups, "weights": weights, "n_features": d, "members": members}


def _each_output(rng: np.random.Generator, d: int) -> Term:
    groups = [[j] for j in range(d)] if rng.random() < 0.5 else [rng.permutation(d)[:2].tolist() for _ in range(d)]
    term = {"kind": "GroupLasso", "groups": groups, "weights": [1.0] * d, "n_features": d}
    return {**term, "across_outputs": bool(rng.random() < 0.4)}


KINDS: dict[str, Callable[[np.random.Generator, int], Term]] = {
    "TotalVariation": _total_variation,
    "TrendFilter": _trend_filter,
    "HuberDifferences": _huber_differences,
    "SLOPE": _slope,
    "NuclearNorm": _nuclear_norm,
    "ExclusiveLasso": _exclusive_lasso,
    "TreeGroups": _tree,
    "weighted groups": _weighted_groups,
    "each output": _each_output,
}
