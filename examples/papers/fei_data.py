"""The two data sets of Fei, Quanz and Huan (2010): a pair of newsgroups, and diabetes expression with pathways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

import cvxstructreg as csr
from cvxstructreg.datasets import fetch_20newsgroups, load_diabetes_expression, make_graph_smooth
from cvxstructreg.graphs import CooccurrenceGraph, pathway_graph

#: The largest p of the global test, and the largest number of pathways.
LEVEL, MOST, PERMUTATIONS = 0.1, 13, 2000


@dataclass(frozen=True, eq=False)
class Task:
    """Data with a network of features and, optionally, groups to count."""

    X: Any
    y: Any
    graph: csr.Graph
    names: Any
    groups: Any = None

    def scaled(self, training: Any) -> Any:
        """X, standardised by its training rows if the features are genes."""
        if self.groups is None:
            return self.X
        mean, deviation = self.X[training].mean(axis=0), self.X[training].std(axis=0)
        return (self.X - mean) / np.where(deviation > 0, deviation, 1.0)


@cache
def task_of(name: str, size: int, draw: int, data_home: str | None, quick: bool) -> Task:
    """A task; for newsgroups with ``size / 2`` documents of each class, drawn at random."""
    if quick:
        made = make_graph_smooth(random_state=0)
        return Task(made.data[:size], made.target[:size], made.graph, [str(j) for j in range(made.data.shape[1])])
    if name == "diabetes":
        return diabetes(data_home)
    X, y, graph, words = newsgroups(data_home)
    rng = np.random.default_rng(draw)
    rows = np.concatenate([rng.choice(np.flatnonzero(y == label), size // 2, replace=False) for label in (0, 1)])
    return Task(X[rows], y[rows], graph, words)


@cache
def newsgroups(data_home: str | None) -> tuple[Any, Any, csr.Graph, Any]:
    """All documents of the pair, and the network of their words."""
    posts = fetch_20newsgroups("all", "windows", remove=("headers", "footers", "quotes"), data_home=data_home)
    vectorizer = CountVectorizer(binary=True, min_df=25, stop_words="english", token_pattern=r"(?u)\b[a-zA-Z]{2,}\b")
    X = sp.csr_array(vectorizer.fit_transform(posts.data), dtype=float)
    graph = CooccurrenceGraph(25, 0.10, vocabulary=vectorizer).fit(X).graph_
    return X, posts.target, graph, vectorizer.get_feature_names_out()


@cache
def diabetes(data_home: str | None) -> Task:
    """Expression of the genes in the pathways that a global test relates to the outcome."""
    data = load_diabetes_expression("kegg", min_size=2, data_home=data_home)
    column = {gene: number for number, gene in enumerate(data.feature_names)}
    sets = {name: [column[gene] for gene in genes] for name, genes in data.pathway_columns.items()}
    kept = apart(sets, {name: global_test(data.data[:, members], data.target) for name, members in sets.items()})
    numbers = sorted({gene for members in kept.values() for gene in members})
    position = {number: j for j, number in enumerate(numbers)}
    names = [data.feature_names[number] for number in numbers]
    graph = pathway_graph({name: [data.feature_names[j] for j in members] for name, members in kept.items()}, names)
    groups = csr.Groups([[position[j] for j in members] for members in kept.values()], n_features=len(names))
    return Task(data.data[:, numbers], data.target, graph, names, groups)


def global_test(X: Any, y: Any) -> float:
    """The p-value of Q = (y - mean)' Z Z' (y - mean) / m, Z the standardised columns, under permutations of y."""
    deviation = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    R = Z @ Z.T / Z.shape[1]
    rng, residual = np.random.default_rng(0), y - y.mean()
    others = np.array([rng.permutation(residual) for _ in range(PERMUTATIONS)])
    at_least = np.einsum("ij,jk,ik->i", others, R, others) >= residual @ R @ residual * (1.0 - 1e-12)
    return float((1 + at_least.sum()) / (1 + PERMUTATIONS))


def apart(sets: dict[str, list[int]], p_values: dict[str, float]) -> dict[str, list[int]]:
    """The pathways with small p that share no gene with one taken before, smallest p first."""
    kept: dict[str, list[int]] = {}
    taken: set[int] = set()
    for name in sorted(p_values, key=lambda key: (p_values[key], key)):
        if p_values[name] < LEVEL and len(kept) < MOST and not taken & set(sets[name]):
            kept[name] = sets[name]
            taken |= set(sets[name])
    return kept
