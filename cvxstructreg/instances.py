"""A small instance of each of the five methods, on real data that need no download."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

from cvxstructreg.core.model import Kernel, Linear
from cvxstructreg.core.problem import Problem
from cvxstructreg.datasets import load_corpus
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups
from cvxstructreg.losses import Hinge, Logistic, MulticlassHinge
from cvxstructreg.penalties import L1, Dissimilarity, FeatureNetwork, GroupLasso, Laplacian, Ridge, RKHSNorm


def feature_network() -> Problem:
    """Breast cancer: the mean, error and worst value of each measurement are linked to each other."""
    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    measurement = [" ".join(word for word in name.split() if word not in ("mean", "error", "worst")) for name in names]
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names)) if measurement[i] == measurement[j]]
    graph = Graph.from_edges(pairs, names=names)
    X = StandardScaler().fit_transform(data.data)
    return Problem(Linear(X), Logistic(data.target) + 9.9 * FeatureNetwork(graph) + 0.1 * Ridge())


def laplacian_elastic_net() -> Problem:
    """Digits 3 against 8: sparse pixel weights, smoothed over the 8 x 8 grid by the normalized Laplacian."""
    data = load_digits()
    kept = np.isin(data.target, (3, 8))
    pixel = np.arange(64).reshape(8, 8)
    across = np.stack([pixel[:, :-1].ravel(), pixel[:, 1:].ravel()], axis=1)
    down = np.stack([pixel[:-1].ravel(), pixel[1:].ravel()], axis=1)
    graph = Graph.from_edges(np.concatenate([across, down]), n_nodes=64)
    loss = Logistic(data.target[kept], classes=(3, 8))
    return Problem(Linear(data.data[kept] / 16.0), loss + 1.0 * L1() + 0.5 * Laplacian(graph, normalized=True))


def mixed_graph() -> Problem:
    """Digits 4 against 9, 20 of 240 labelled: nearest neighbours are similar, 30 known pairs dissimilar; hinge loss."""
    data = load_digits()
    rows = np.flatnonzero(np.isin(data.target, (4, 9)))[:240]
    X, y = data.data[rows] / 16.0, data.target[rows]
    rng = np.random.default_rng(0)
    labelled = np.concatenate([rng.choice(np.flatnonzero(y == digit), 10, replace=False) for digit in (4, 9)])
    unlabelled = np.setdiff1d(np.arange(len(y)), labelled)
    W = kneighbors_graph(X, 5)
    W = W.maximum(W.T).tolil()
    fours, nines = (rng.choice(unlabelled[y[unlabelled] == digit], 30, replace=False) for digit in (4, 9))
    for s, t in zip(fours, nines, strict=True):
        W[s, t] = W[t, s] = -1.0
    loss = Hinge(y[labelled], rows=labelled, classes=(4, 9))
    graph = Laplacian(Graph(W.tocsr()))
    return Problem(Kernel(rbf_kernel(X, gamma=0.05)), loss + 0.05 * RKHSNorm() + 0.01 * graph.on_scores())


def multiclass_dissimilarity() -> Problem:
    """Wine, 15 of 178 labelled in three classes, 40 pairs of unlabelled wines known to differ."""
    data = load_wine()
    X, y = StandardScaler().fit_transform(data.data), data.target
    rng = np.random.default_rng(0)
    labelled = np.concatenate([rng.choice(np.flatnonzero(y == kind), 5, replace=False) for kind in range(3)])
    unlabelled = rng.permutation(np.setdiff1d(np.arange(len(y)), labelled))
    pairs = [(s, t) for s, t in zip(unlabelled[::2], unlabelled[1::2], strict=False) if y[s] != y[t]][:40]
    loss = MulticlassHinge(y[labelled], rows=labelled)
    return Problem(Kernel(rbf_kernel(X)), loss + 0.02 * RKHSNorm() + 0.05 * Dissimilarity(pairs))


def sentence_group_lasso() -> Problem:
    """A small corpus about sky and kitchen: one (overlapping) group for the words of each sentence, and L1."""
    corpus = load_corpus()
    vectorizer = CountVectorizer(min_df=5, stop_words="english")  # few enough words for the slowest method
    X = vectorizer.fit_transform(corpus.data).astype(float)
    words = vectorizer.build_analyzer()
    vocabulary = vectorizer.vocabulary_
    sentences = [sentence for document in corpus.sentences for sentence in document]
    members = [sorted({vocabulary[word] for word in words(sentence) if word in vocabulary}) for sentence in sentences]
    groups = Groups([group for group in members if group], n_features=X.shape[1]).merged()
    return Problem(Linear(X), Logistic(corpus.target) + 0.1 * L1() + 0.05 * GroupLasso(groups))


#: The five methods by name.
METHODS: dict[str, Callable[[], Problem]] = {
    "feature-network": feature_network,
    "laplacian-elastic-net": laplacian_elastic_net,
    "mixed-graph": mixed_graph,
    "multiclass-dissimilarity": multiclass_dissimilarity,
    "sentence-group-lasso": sentence_group_lasso,
}
