"""Topics of the documents as groups: latent semantic indexing and latent Dirichlet allocation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.checks import plural
from cvxstructreg.groups.builder import GroupBuilder, checked_integer
from cvxstructreg.groups.groups import Weights
from cvxstructreg.groups.words import documents_or_matrix, nonzero_columns

# Singular values, loadings and probabilities that differ by less than EQUAL, relative to the largest, count as equal;
# those below ZERO, relative to the largest, count as zero.
EQUAL = 1e-8
ZERO = 1e-10


class TopicGroups(GroupBuilder):
    """g_t = the n_words highest-scoring words of topic t; subclasses define the topics."""

    n_topics: int
    n_words: int
    vocabulary: Any
    weights: Weights
    random_state: Any
    verbose: bool

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the topics of documents (a list of str) or of their matrix X (dense or sparse); y is not used."""
        n_topics, n_words = (checked_integer(getattr(self, name), 1, name) for name in ("n_topics", "n_words"))
        matrix, names, words = documents_or_matrix(X, self.vocabulary)
        self.n_features_in_ = matrix.shape[1]
        if words is not None:
            self.vectorizer_ = words.vectorizer
        self.components_ = self._topics(matrix, n_topics)
        occurring = np.flatnonzero(nonzero_columns(matrix))
        scores = self._scores(self.components_)[:, occurring]
        members = [occurring[best] for best in _highest(scores, min(n_words, len(occurring)))]
        titles = [f"topic {number}" for number in range(len(members))]
        pairs = [(group, title) for group, title in zip(members, titles, strict=True) if len(group)]
        self._set_groups([group for group, _ in pairs], matrix.shape[1], self.weights, [t for _, t in pairs], names)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _topics(self, matrix: Any, n_topics: int) -> NDArray[np.float64]:
        """Return the matrix of topics by features."""
        raise NotImplementedError

    def _scores(self, components: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of each feature in each topic; features with score 0 are not in the topic."""
        return components


class LSIGroups(TopicGroups):
    """g_t = the n_words features with the largest |V_jt|, for the t-th right singular vector of X = U S V'.

    Latent semantic indexing by scikit-learn's TruncatedSVD. The strongest topic comes first; loadings and topics that
    are zero up to round-off are left out. If singular values are equal up to round-off, their singular vectors are only
    determined up to a rotation. This class chooses a rotation that does not depend on the machine: its t-th vector is
    the projection of one unit vector e_j onto the part of the span orthogonal to vectors 1, ..., t-1, scaled to length
    one, with the j whose projection is longest (the first j in a tie).

    Parameters
    ----------
    n_topics : int
        Number of dimensions; 1000 with 10 words each is usual for large collections.
    n_words : int
        Words of a topic.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the columns of X. If documents are given instead of X, the default is a CountVectorizer fitted on them.
    weights : float or function of the sizes, optional
        Weights of the groups; 1 by default.
    random_state : int or RandomState, optional
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    groups_ : Groups
        Named "topic 0", "topic 1", ...
    components_ : array of shape (n_topics, n_features)
        The largest loading of each topic is positive; rows beyond the rank of X are zero.
    n_merged_ : int

    Examples
    --------
    >>> documents = ["moon star moon", "star moon", "bread salt", "salt bread bread"]
    >>> builder = LSIGroups(n_topics=2, n_words=2, random_state=0).fit(documents)
    >>> [[builder.groups_.feature_names[j] for j in group] for group in builder.groups_]
    [['bread', 'salt'], ['moon', 'star']]
    """

    def __init__(
        self,
        n_topics: int = 100,
        n_words: int = 10,
        vocabulary: Any = None,
        weights: Weights = None,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.n_topics = n_topics
        self.n_words = n_words
        self.vocabulary = vocabulary
        self.weights = weights
        self.random_state = random_state
        self.verbose = verbose

    def _topics(self, matrix: Any, n_topics: int) -> NDArray[np.float64]:
        from sklearn.decomposition import TruncatedSVD

        largest = min(matrix.shape)
        if n_topics > largest:
            given = f"{plural(matrix.shape[0], 'document')} of {plural(matrix.shape[1], 'feature')}"
            raise ValueError(f"{given} have at most {plural(largest, 'dimension')}, not n_topics={n_topics}")
        if self.verbose:
            print(f"singular vectors: {n_topics} of {largest} ...", flush=True)
        wanted = min(n_topics + 1, largest)  # one more, to detect a tie with the last value
        while True:
            svd = TruncatedSVD(n_components=wanted, random_state=self.random_state).fit(matrix)
            vectors, complete = _canonical(np.asarray(svd.components_), np.asarray(svd.singular_values_), n_topics)
            if complete or wanted == largest:
                return vectors
            wanted = min(2 * wanted, largest)

    def _scores(self, components: NDArray[np.float64]) -> NDArray[np.float64]:
        loadings = np.abs(components)
        return np.where(loadings > ZERO * loadings.max(axis=1, keepdims=True), loadings, 0.0)


class LDAGroups(TopicGroups):
    """g_t = the n_words features with the largest p(word j | topic t).

    Latent Dirichlet allocation by scikit-learn, on word counts.

    Parameters
    ----------
    n_topics : int
        Number of topics; 1000 with 10 words each is usual for large collections.
    n_words : int
        Words of a topic.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the columns of X. If documents are given instead of X, the default is a CountVectorizer fitted on them.
    weights : float or function of the sizes, optional
        Weights of the groups; 1 by default.
    max_iter : int
        Number of passes over the documents.
    learning_method : {"online", "batch"}
        scikit-learn's variational methods; "online" is faster for large collections.
    random_state : int or RandomState, optional
    n_jobs : int, optional
        Number of processes, as in scikit-learn.
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    groups_ : Groups
        Named "topic 0", "topic 1", ...
    components_ : array of shape (n_topics, n_features)
        p(word | topic).
    n_merged_ : int

    Examples
    --------
    >>> documents = ["moon star moon", "star moon", "bread salt", "salt bread bread"] * 5
    >>> builder = LDAGroups(n_topics=2, n_words=2, max_iter=20, learning_method="batch", random_state=0).fit(documents)
    >>> sorted([builder.groups_.feature_names[j] for j in group] for group in builder.groups_)
    [['bread', 'salt'], ['moon', 'star']]
    """

    def __init__(
        self,
        n_topics: int = 100,
        n_words: int = 10,
        vocabulary: Any = None,
        weights: Weights = None,
        max_iter: int = 10,
        learning_method: str = "online",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.n_topics = n_topics
        self.n_words = n_words
        self.vocabulary = vocabulary
        self.weights = weights
        self.max_iter = max_iter
        self.learning_method = learning_method
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _topics(self, matrix: Any, n_topics: int) -> NDArray[np.float64]:
        from sklearn.decomposition import LatentDirichletAllocation

        if matrix.min() < 0:
            raise ValueError("Negative values in data: LDA needs counts; use the X of a CountVectorizer")
        lda = LatentDirichletAllocation(
            n_components=n_topics,
            max_iter=checked_integer(self.max_iter, 1, "max_iter"),
            learning_method=self.learning_method,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=int(self.verbose),
        )
        lda.fit(matrix)
        self.n_iter_ = lda.n_iter_
        return np.asarray(lda.components_ / lda.components_.sum(axis=1, keepdims=True))


def _highest(scores: NDArray[np.float64], k: int) -> list[NDArray[np.int64]]:
    """Return the columns of the k highest positive scores of each row; ties up to round-off go to the first column."""
    best = []
    for row in scores:
        order = np.argsort(-row, kind="stable")
        order = order[np.lexsort((order, _levels(row[order])))][:k]
        best.append(np.sort(order[row[order] > 0]))
    return best


def _levels(falling: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rank decreasing values from 0; values equal up to round-off have the same rank."""
    steps = -np.diff(falling, prepend=falling[:1])
    return np.cumsum(steps > EQUAL * np.max(falling, initial=0.0))


def _canonical(
    vectors: NDArray[np.float64], values: NDArray[np.float64], n_topics: int
) -> tuple[NDArray[np.float64], bool]:
    """Return n_topics singular vectors that do not depend on the machine, and whether all ties with the last are known.

    The vectors of equal singular values are replaced by those of the pivoted Cholesky factorisation of the projection
    onto their span, which does not depend on the computed basis.
    """
    levels = _levels(values)
    nonzero = values > ZERO * values[0]
    result = np.zeros_like(vectors)
    for level in np.unique(levels[nonzero]):
        block = np.flatnonzero((levels == level) & nonzero)
        result[block] = _rotated(vectors[block])
    last = levels[n_topics - 1]
    return result[:n_topics], bool(not nonzero[n_topics - 1] or levels[-1] > last)


def _rotated(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the orthonormal basis of the span of the rows that a pivoted Cholesky factorisation gives.

    Let P be the projection onto the part of the span orthogonal to the previous rows. Then row t is
    P e_j / sqrt(P_jj) for the largest P_jj.
    """
    left = vectors.copy()
    rows = np.empty_like(vectors)
    for number in range(len(vectors)):
        lengths = np.sqrt((left**2).sum(axis=0))
        column = int(np.argmax(lengths >= (1.0 - EQUAL) * lengths.max()))  # the first in a tie
        direction = left[:, column] / lengths[column]
        rows[number] = direction @ left
        left = left - np.outer(direction, rows[number])
    return rows
