"""Data whose true weights are smooth on a graph: features form modules, some of which are relevant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from cvxstructreg.core.checks import checked_count
from cvxstructreg.datasets.seeding import checked_at_most, checked_number, generator
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups

_DESCR = """Planted graph-smooth weights.

Features form modules, each connected in the graph. The true weights are nearly equal within each of a few relevant
modules, and zero in all others.
"""


def make_graph_smooth(
    n_samples: int = 100,
    n_features: int = 100,
    *,
    n_modules: int = 10,
    n_relevant: int = 2,
    signal: float = 1.0,
    noise: float = 1.0,
    roughness: float = 0.1,
    correlation: float = 0.5,
    degree: int = 4,
    n_random_edges: int = 0,
    task: str = "classification",
    random_state: Any = None,
) -> Bunch:
    """Make y = X w + noise (or its sign) with w_j = +-signal (1 + roughness z_j) on relevant modules and 0 elsewhere.

    Columns are x_j = sqrt(c) f_m + sqrt(1 - c) e_j for features j of module m, with c the correlation; f, e, z and the
    noise are standard normal.

    Parameters
    ----------
    n_samples, n_features : int
    n_modules : int
        Number of modules; they are blocks of consecutive features whose sizes differ by at most one.
    n_relevant : int
        Number of modules with nonzero weights; their signs alternate.
    signal, noise : float
        Size of the weights, and standard deviation of the noise on the scores.
    roughness : float
        Relative standard deviation of the weights within a module.
    correlation : float from 0 to 1
        Correlation of two features in the same module.
    degree : int
        Approximate number of edges of each feature within its module; fewer in small modules. Modules are always
        connected.
    n_random_edges : int
        Number of wrong edges, which are between features of different modules.
    task : {"classification", "regression"}
    random_state : int, Generator or None

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data, target (0/1, or real), coef (the truth), scores (X w, without noise), graph (`Graph`), modules (one per
        feature), groups (`Groups`, one per module), relevant (mask of the features), DESCR.

    Examples
    --------
    >>> bunch = make_graph_smooth(50, 30, n_modules=6, n_relevant=2, random_state=0)
    >>> bunch.data.shape, int(bunch.relevant.sum()), bunch.graph.n_nodes
    ((50, 30), 10, 30)
    >>> float(bunch.coef @ bunch.graph.laplacian() @ bunch.coef) < 0.1 * float(bunch.coef @ bunch.coef)
    True
    """
    if task not in ("classification", "regression"):
        raise ValueError(f'task must be "classification" or "regression", not {task!r}')
    n, d = checked_count(n_samples, "n_samples"), checked_count(n_features, "n_features")
    if checked_count(n_modules, "n_modules") > d:
        raise ValueError(f"n_modules is {n_modules}, but there are only {d} features; a module needs at least one")
    n_chosen = checked_at_most(n_relevant, n_modules, "n_relevant", "the number of modules")
    size, spread = checked_number(signal, "signal"), checked_number(noise, "noise")
    c = checked_number(correlation, "correlation", 1.0)
    rough = checked_number(roughness, "roughness")
    rng = generator(random_state)

    modules = np.arange(d) * n_modules // d
    signs = np.zeros(n_modules)
    signs[rng.choice(n_modules, n_chosen, replace=False)] = 1.0 - 2.0 * (np.arange(n_chosen) % 2)
    coef = size * signs[modules] * (1.0 + rough * rng.standard_normal(d))
    factors = rng.standard_normal((n, n_modules))
    X = np.sqrt(c) * factors[:, modules] + np.sqrt(1.0 - c) * rng.standard_normal((n, d))
    scores = X @ coef
    y = scores + spread * rng.standard_normal(n)
    pairs = _edges(rng, modules, checked_count(degree, "degree"), n_random_edges)
    return Bunch(
        data=X,
        target=(y > 0).astype(np.int64) if task == "classification" else y,
        coef=coef,
        scores=scores,
        graph=Graph.from_edges(pairs, n_nodes=d),
        modules=modules,
        groups=Groups.from_labels(modules),
        relevant=signs[modules] != 0,
        DESCR=_DESCR,
    )


def _edges(rng: np.random.Generator, modules: NDArray[np.int64], degree: int, n_random: int) -> NDArray[np.int64]:
    """Return a path through each module in random order, chords within modules, and edges between modules."""
    d, sizes = len(modules), np.bincount(modules)
    order = np.lexsort((rng.random(d), modules))
    follows = modules[order[1:]] == modules[order[:-1]]
    path = np.column_stack([order[:-1], order[1:]])[follows]
    ends = np.repeat(np.arange(d), max(0, (degree - 1) // 2))  # a chord increases the degree of both its ends
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    others = starts[modules[ends]] + (rng.random(len(ends)) * sizes[modules[ends]]).astype(np.int64)
    wrong = _between(rng, modules, n_random)
    pairs = np.sort(np.concatenate([path, np.column_stack([ends, others]), wrong]), axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)


def _between(rng: np.random.Generator, modules: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    sizes = np.bincount(modules)
    possible = (len(modules) ** 2 - int(np.sum(sizes**2))) // 2
    wanted = checked_at_most(count, possible, "n_random_edges", "pairs of features of different modules")
    chosen: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)
    while len(chosen) < wanted:
        drawn = np.sort(rng.integers(len(modules), size=(2 * (wanted - len(chosen)) + 8, 2)), axis=1)
        drawn = drawn[modules[drawn[:, 0]] != modules[drawn[:, 1]]]
        every = np.concatenate([chosen, drawn])
        chosen = every[np.sort(np.unique(every, axis=0, return_index=True)[1])]  # in the order in which they were drawn
    return chosen[:wanted]
