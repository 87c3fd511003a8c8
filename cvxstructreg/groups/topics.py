"""Topics of the documents as groups: latent semantic indexing and latent Dirichlet allocation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.checks import plural
from cvxstructreg.groups.builder import GroupBuilder, checked_integer
from cvxstructreg.groups.groups import Weights
from cvxstructreg.groups.words import documents_or_matrix, present


class TopicGroups(GroupBuilder):
    """g_t = the n_words highest words of topic t; what a topic is, the subclasses say."""

    n_topics: int
    n_words: int
    vocabulary: Any
    weights: Weights
    random_state: Any
    verbose: bool

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the topics of documents (list of str), or of their matrix X (dense or sparse); y is not used."""
        n_topics, n_words = (checked_integer(getattr(self, name), 1, name) for name in ("n_topics", "n_words"))
        matrix, names, words = documents_or_matrix(X, self.vocabulary)
        self.n_features_in_ = matrix.shape[1]
        if words is not None:
            self.vectorizer_ = words.vectorizer
        self.components_ = self._topics(matrix, n_topics)
        occurring = np.flatnonzero(present(matrix))
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
        """Return the topics by features."""
        raise NotImplementedError

    def _scores(self, components: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much each feature belongs to each topic; 0 for not at all."""
        return components


class LSIGroups(TopicGroups):
    """g_t = the n_words features with the largest |V_jt|, for the t-th right singular vector of X = U S V'.

    Latent semantic indexing by scikit-learn's TruncatedSVD; loadings that are zero up to round-off are left out.

    Parameters
    ----------
    n_topics : int
        Number of dimensions; 1000 with 10 words each is usual for large collections.
    n_words : int
        Words of a topic.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        What the columns of X are; needed if documents are given and not X (default: a CountVectorizer fitted on them).
    weights : float or function of the sizes, optional
        Weights of the groups; 1 by default.
    random_state : int or RandomState, optional
    verbose : bool
        Whether to print what is done.

    Attributes
    ----------
    groups_ : Groups
        Named "topic 0", "topic 1", ...
    components_ : array of shape (n_topics, n_features)
    n_merged_ : int

    Examples
    --------
    >>> documents = ["moon star moon", "star moon", "bread salt", "salt bread bread"]
    >>> builder = LSIGroups(n_topics=2, n_words=2, random_state=0).fit(documents)
    >>> [[builder.groups_.feature_names[j] for j in group] for group in builder.groups_]
    [['moon', 'star'], ['bread', 'salt']]
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
        svd = TruncatedSVD(n_components=n_topics, random_state=self.random_state)
        svd.fit(matrix)
        return np.asarray(svd.components_)

    def _scores(self, components: NDArray[np.float64]) -> NDArray[np.float64]:
        loadings = np.abs(components)
        return np.where(loadings > 1e-10 * loadings.max(axis=1, keepdims=True), loadings, 0.0)


class LDAGroups(TopicGroups):
    """g_t = the n_words features with the largest p(word j | topic t).

    Latent Dirichlet allocation by scikit-learn, on the counts of the words.

    Parameters
    ----------
    n_topics : int
        Number of topics; 1000 with 10 words each is usual for large collections.
    n_words : int
        Words of a topic.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        What the columns of X are; needed if documents are given and not X (default: a CountVectorizer fitted on them).
    weights : float or function of the sizes, optional
        Weights of the groups; 1 by default.
    max_iter : int
        Passes over the documents.
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
    """Return where the k highest positive scores of each row are; of equal ones the first."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return [np.sort(row[scores[number, row] > 0]) for number, row in enumerate(order)]
