"""Clusters of word vectors as groups (Skianis, Rousseau and Vazirgiannis, EMNLP 2016)."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.building.vocabulary import vocabulary_names
from cvxstructreg.core.checks import checked_names, plural
from cvxstructreg.groups.builder import GroupBuilder, checked_integer
from cvxstructreg.groups.groups import Weights


class EmbeddingGroups(GroupBuilder):
    """g_c = the words of cluster c and the n_nearest words of each of them: overlapping groups of similar words.

    Clusters are computed by mini-batch k-means (scikit-learn) on the vectors of the words of the vocabulary. The
    nearest words are those with the largest cosine, among the words of the vocabulary.

    Parameters
    ----------
    n_clusters : int
    n_nearest : int
        Number of words added for each word of a cluster: 0 for disjoint groups; the paper uses 5 or 10.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the columns of X; by default the rows of the vectors are the features.
    words : sequence of str, optional
        The words of the rows of the vectors, if the rows are not in the order of the columns of X.
    weights : float or function of the sizes, optional
        Weights of the groups; 1 by default.
    min_size : int
        Drop smaller groups.
    random_state : int or RandomState, optional
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    groups_ : Groups
        Groups of features; features without a vector are in no group.
    labels_ : int64 array
        Cluster of each feature, -1 if it has no vector.
    n_missing_ : int
        Number of features without a vector.
    n_merged_ : int

    Examples
    --------
    >>> vectors = {"moon": [1, 0.1], "star": [1, 0.0], "salt": [0, 1.0], "bread": [0.1, 1.0]}
    >>> builder = EmbeddingGroups(n_clusters=2, vocabulary=["bread", "moon", "oak", "salt", "star"], random_state=0)
    >>> sorted(group.tolist() for group in builder.fit(vectors).groups_)
    [[0, 3], [1, 4]]
    """

    def __init__(
        self,
        n_clusters: int = 100,
        n_nearest: int = 0,
        vocabulary: Any = None,
        words: Iterable[str] | None = None,
        weights: Weights = None,
        min_size: int = 1,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.n_clusters = n_clusters
        self.n_nearest = n_nearest
        self.vocabulary = vocabulary
        self.words = words
        self.weights = weights
        self.min_size = min_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, vectors: Any, y: Any = None) -> Self:
        """Cluster the vectors: one row for each word, or a mapping from word to vector; y is not used."""
        n_clusters = checked_integer(self.n_clusters, 1, "n_clusters")
        n_nearest = checked_integer(self.n_nearest, 0, "n_nearest")
        min_size = checked_integer(self.min_size, 1, "min_size")
        points, features, names, n_features = self._aligned(vectors)
        self.n_features_in_ = points.shape[1]
        self.n_missing_ = n_features - len(features)
        if n_clusters > len(features):
            raise ValueError(
                f"n_clusters={n_clusters}, but only {plural(len(features), 'word')} with vectors; use fewer"
            )
        clusters = self._clusters(points, n_clusters)
        self.labels_ = np.full(n_features, -1, dtype=np.int64)
        self.labels_[features] = clusters
        members = [np.flatnonzero(clusters == cluster) for cluster in range(n_clusters)]
        members = [group for group in members if len(group)]
        if n_nearest:
            nearest = _most_similar(points, min(n_nearest, len(points) - 1))
            members = [np.union1d(group, nearest[group]) for group in members]
        members = [features[group] for group in members if len(group) >= min_size]
        self._set_groups(members, n_features, self.weights, feature_names=names)
        return self

    def _clusters(self, points: NDArray[np.float64], n_clusters: int) -> NDArray[np.int64]:
        from sklearn.cluster import MiniBatchKMeans

        means = MiniBatchKMeans(
            n_clusters=n_clusters, random_state=self.random_state, n_init=3, verbose=int(self.verbose)
        )
        return np.asarray(means.fit(points).labels_, dtype=np.int64)

    def _aligned(self, vectors: Any) -> tuple[NDArray[Any], NDArray[np.int64], tuple[str, ...] | None, int]:
        """Return the known vectors, the indices of their features, the names of all features, and their number."""
        names = None if self.vocabulary is None else vocabulary_names(self.vocabulary)
        matrix, words = _table(vectors, names, self.words)
        if words is None:
            if names is not None and len(names) != len(matrix):
                raise ValueError(
                    f"{plural(len(matrix), 'vector')} for {plural(len(names), 'feature')} of the vocabulary; "
                    "pass the words of the vectors with words=..."
                )
            return matrix, np.arange(len(matrix)), names, len(matrix)
        if names is None:
            return matrix, np.arange(len(matrix)), words, len(matrix)
        row = {word: number for number, word in enumerate(words)}
        features = np.array([column for column, name in enumerate(names) if name in row], dtype=np.int64)
        if len(features) == 0:
            raise ValueError(f"no word of the vocabulary has a vector; the words are {reprlib.repr(words)}")
        return matrix[[row[names[column]] for column in features]], features, names, len(names)


def _table(
    vectors: Any, names: tuple[str, ...] | None, words: Iterable[str] | None
) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Return the vectors as rows of a checked float array, and the words of the rows if known."""
    from sklearn.utils.validation import check_array

    if sparse.issparse(vectors):
        raise TypeError("sparse vectors are not supported; word vectors are dense: use vectors.toarray()")
    if isinstance(vectors, Mapping) or hasattr(vectors, "key_to_index"):  # a dict, or gensim's KeyedVectors
        if words is not None:
            raise ValueError("the vectors already contain their words; leave out words=...")
        keys = vectors if isinstance(vectors, Mapping) else vectors.key_to_index
        words = [word for word in (keys if names is None else names) if word in keys]
        if not words:
            raise ValueError("no word of the vocabulary has a vector" if names else "there are no vectors")
        vectors = np.stack([np.asarray(vectors[word], dtype=np.float64) for word in words])
    matrix = check_array(vectors, dtype=[np.float64, np.float32])
    return matrix, checked_names(words, len(matrix), "word")


def _most_similar(points: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return the k other rows with the largest cosine, for each row."""
    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import normalize

    if k == 0:
        return np.zeros((len(points), 0), dtype=np.int64)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(normalize(points))
    return np.asarray(search.kneighbors(return_distance=False), dtype=np.int64)
