"""The three approaches that Goldberg, Zhu and Wright reject for several classes (section 3), as a comparison.

One-vs-rest and one-vs-one give every binary task all dissimilarity edges, although an edge may join two points of the
same side. The warped kernel asks every class function for f(x_s) + f(x_t) = 0.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
from cells import computed
from reporting import Report, standard_error
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import Bunch

import cvxstructreg as csr
from cvxstructreg.datasets import load_uspst
from cvxstructreg.graphs import oracle_pairs
from cvxstructreg.metrics import paired_t_test


@cache
def digits(data_home: str | None, quick: bool) -> Any:
    """USPST, or three clouds of points in the same form for a quick run."""
    if not quick:
        return load_uspst(data_home=data_home)
    X, y = make_blobs(90, 4, centers=3, cluster_std=2.5, random_state=0)
    rows = np.array([np.random.default_rng(split).permutation(90) for split in range(3)])
    return Bunch(data=X, target=y, labeled_idx=rows[:, :12], unlabeled_idx=rows[:, 12:])


def binary_scores(K: Any, beyond: Any, signs: Any, lam1: float, graph: Any) -> Any:
    """Scores of the other points by the SVM of eq. (4), whose labelled points come first."""
    rows = np.flatnonzero(signs)
    if len(np.unique(signs[rows])) < 2:  # a class without a labelled point
        return np.full(len(beyond), 1e3 * signs[rows].mean() if len(rows) else 0.0)
    objective = (1.0 / len(rows)) * csr.Hinge(signs[rows], rows=rows) + lam1 * csr.RKHSNorm()
    if graph is not None:
        objective = objective + (1.0 / graph.n_edges) * csr.Laplacian(graph).on_function()
    solution = csr.Problem(csr.Kernel(K), objective).solve()
    return beyond @ solution.coef + solution.intercept


def one_vs_rest(K: Any, beyond: Any, y: Any, classes: int, lam1: float, graph: Any) -> Any:
    """The class with the largest score against all others."""
    scores = []
    for label in range(classes):
        signs = np.zeros(len(K), dtype=int)
        signs[: len(y)] = np.where(y == label, 1, -1)
        scores.append(binary_scores(K, beyond, signs, lam1, graph))
    return np.argmax(scores, axis=0)


def one_vs_one(K: Any, beyond: Any, y: Any, classes: int, lam1: float, graph: Any) -> Any:
    """The class with the most wins; ties go to the larger sum of scores."""
    votes = np.zeros((classes, len(beyond)))
    for one, two in itertools.combinations(range(classes), 2):
        signs = np.zeros(len(K), dtype=int)
        signs[: len(y)] = np.where(y == one, 1, np.where(y == two, -1, 0))
        scores = binary_scores(K, beyond, signs, lam1, graph)
        votes[one] += (scores > 0) + 1e-3 * np.tanh(scores)
        votes[two] += (scores <= 0) - 1e-3 * np.tanh(scores)
    return votes.argmax(axis=0)


def warped_kernel(K: Any, beyond: Any, y: Any, classes: int, lam1: float, graph: Any) -> Any:
    """The multiclass SVM with f_j(x_s) + f_j(x_t) = 0 encouraged for every class j."""
    rows = np.arange(len(y))
    objective = (1.0 / len(rows)) * csr.MulticlassHinge(y, rows=rows, classes=range(classes)) + lam1 * csr.RKHSNorm()
    if graph is not None:
        objective = objective + (1.0 / graph.n_edges) * csr.Laplacian(graph).on_function()
    solution = csr.Problem(csr.Kernel(K), objective).solve()
    return (beyond @ solution.coef + solution.intercept).argmax(axis=1)


APPROACHES = {"one-vs-rest": one_vs_rest, "one-vs-one": one_vs_one, "warped kernel": warped_kernel}


def rejected_split(data_home: str | None, quick: bool, split: int, width: float, lam1: float, seed: int) -> Any:
    """The errors of each approach, without and with the pairs."""
    data = digits(data_home, quick)
    classes, y = np.unique(data.target, return_inverse=True)
    rows, others = data.labeled_idx[split], data.unlabeled_idx[split]
    pairs = oracle_pairs(y, 20 if quick else 320, rows=others, random_state=seed + split)
    used = np.concatenate([rows, np.setdiff1d(pairs, rows)])
    place = {point: number for number, point in enumerate(used)}
    local = [(place[one], place[two]) for one, two in pairs]
    graph = csr.Graph.from_edges(local, [-1.0] * len(local), n_nodes=len(used))
    gamma = 1.0 / (2.0 * width**2)
    K = rbf_kernel(data.data[used], gamma=gamma)
    beyond = rbf_kernel(data.data[others], data.data[used], gamma=gamma)
    found = {}
    for name, predict in APPROACHES.items():
        guesses = [predict(K, beyond, y[rows], len(classes), lam1, edges) for edges in (None, graph)]
        found[name] = [100.0 * float(np.mean(guess != y[others])) for guess in guesses]
    return found


def rejected_approaches(width: float, lam1: float, given: Any, report: Report) -> list[str]:
    """The table of the three approaches, and what it says."""
    home = {"data_home": given.data_home, "quick": given.quick}
    splits = range(len(digits(**home).labeled_idx))
    arguments = [home | {"width": width, "lam1": lam1, "split": split, "seed": given.seed} for split in splits]
    found = computed(rejected_split, arguments, given)
    rows = []
    for name in APPROACHES:
        without, with_pairs = np.array([each[name] for each in found]).T
        change = with_pairs - without
        p = paired_t_test(with_pairs, without).p_value
        rows.append(
            [
                name,
                float(without.mean()),
                float(with_pairs.mean()),
                float(change.mean()),
                standard_error(change),
                f"{p:.3f}",
            ]
        )
    header = ["", "without pairs", "with 320 pairs", "change", "standard error", "p"]
    report.add("The three rejected approaches", header, rows)
    changes = "; ".join(f"{row[0]} {row[3]:+.1f} points, p = {row[5]}" for row in rows)
    return [f"Rejected approaches, change of the error by 320 pairs: {changes} (paper: all three hurt, no numbers)."]
