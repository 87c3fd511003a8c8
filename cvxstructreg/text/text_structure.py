"""A transformer from raw documents to X and the structure of its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from cvxstructreg.building.builder import Builder
from cvxstructreg.building.vocabulary import vocabulary_names
from cvxstructreg.graphs.builders.builder import GraphBuilder
from cvxstructreg.groups.embeddings import EmbeddingGroups
from cvxstructreg.groups.topics import TopicGroups
from cvxstructreg.groups.words import checked_documents
from cvxstructreg.text.word_matrix import WordMatrix


class TextStructure(TransformerMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """documents -> X, with the groups or the graph of its words for the estimator that follows in a pipeline.

    All is learned from the documents given to ``fit``: in each fold of a cross-validation, the vocabulary and the
    structure come from the training documents. The estimators of this library use the structure of X if they have none
    of their own, and name the features and groups of their results after it.

    Parameters
    ----------
    vectorizer : CountVectorizer, TfidfVectorizer or similar; optional
        Turns documents into X; a CountVectorizer by default. Its parameters can be tuned, such as
        ``textstructure__vectorizer__min_df``.
    groups : group builder, or Groups; optional
        Such as :class:`cvxstructreg.groups.SentenceGroups`, ``LSIGroups``, ``LDAGroups``, ``EmbeddingGroups`` or
        ``GraphOfWordsGroups``. Leave out its vocabulary: it is that of the vectorizer.
    graph : graph builder, or Graph; optional
        Such as :class:`cvxstructreg.graphs.CooccurrenceGraph`. Give groups or a graph, not both.
    vectors : mapping from word to vector, optional
        Word vectors for ``EmbeddingGroups``.

    Attributes
    ----------
    vectorizer_ : the fitted vectorizer
    builder_ : the fitted builder of groups or graph, or None
    structure_ : Groups, Graph or None

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> import cvxstructreg as csr
    >>> from cvxstructreg.groups import SentenceGroups
    >>> documents = ["the moon rose\\nwe ate", "stars and moon\\nwe slept", "bake bread\\nwe ate", "salt the bread"]
    >>> text = csr.TextStructure(groups=SentenceGroups(splitter="lines"))
    >>> pipe = make_pipeline(text, csr.GroupLassoClassifier(lam_group=0.1, lam_l1=0.1))
    >>> pipe.fit(documents, ["sky", "sky", "kitchen", "kitchen"]).predict(["the moon", "bread"]).tolist()
    ['sky', 'kitchen']
    >>> pipe[-1].selected_features()[0].name in ("moon", "bread")
    True
    """

    def __init__(self, vectorizer: Any = None, *, groups: Any = None, graph: Any = None, vectors: Any = None) -> None:
        self.vectorizer = vectorizer
        self.groups = groups
        self.graph = graph
        self.vectors = vectors

    def fit(self, documents: Sequence[str], y: Any = None) -> Self:
        """Learn the vocabulary and the structure of its words; y is not used."""
        self._learn(documents)
        return self

    def fit_transform(self, documents: Sequence[str], y: Any = None) -> WordMatrix:
        """Learn from the documents and return their matrix, with the names and the structure of its columns."""
        return self._with_names(self._learn(documents))

    def transform(self, documents: Sequence[str]) -> WordMatrix:
        """Return the matrix of documents by words, with the names and the structure of its columns."""
        check_is_fitted(self, "vectorizer_")
        return self._with_names(self.vectorizer_.transform(documents))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the words of the columns."""
        check_is_fitted(self, "vectorizer_")
        return np.asarray(self.vectorizer_.get_feature_names_out())

    def _with_names(self, matrix: Any) -> WordMatrix:
        return WordMatrix.of(matrix, tuple(map(str, self.get_feature_names_out())), self.structure_)

    def _learn(self, documents: Any) -> Any:
        """Fit the vectorizer and the builder; return the matrix of the documents."""
        from sklearn.feature_extraction.text import CountVectorizer

        texts = checked_documents(documents)
        if self.groups is not None and self.graph is not None:
            raise ValueError("got groups and a graph; an estimator uses one of them, so give only one")
        self.vectorizer_ = clone(CountVectorizer() if self.vectorizer is None else self.vectorizer)
        matrix = self.vectorizer_.fit_transform(texts)
        given = self.groups if self.graph is None else self.graph
        self.builder_ = None
        if not isinstance(given, Builder):
            self.structure_ = given
            return matrix
        if getattr(given, "vocabulary", None) is not None:
            raise ValueError(f"leave out the vocabulary of {type(given).__name__}: it is that of the vectorizer")
        self.builder_ = clone(given)
        self._fit_builder(self.builder_, texts, matrix)
        self.structure_ = self.builder_.graph_ if hasattr(self.builder_, "graph_") else self.builder_.groups_
        return matrix

    def _fit_builder(self, builder: Any, texts: list[str], matrix: Any) -> None:
        """Fit a builder on what it learns from: vectors, the matrix, or the documents."""
        if isinstance(builder, EmbeddingGroups):
            if self.vectors is None:
                raise ValueError("EmbeddingGroups needs word vectors: TextStructure(..., vectors={word: vector})")
            builder.set_params(vocabulary=vocabulary_names(self.vectorizer_)).fit(self.vectors)
        elif isinstance(builder, TopicGroups | GraphBuilder):
            if "vocabulary" not in builder.get_params():
                raise TypeError(f"{type(builder).__name__} does not link the words of documents; use CooccurrenceGraph")
            builder.set_params(vocabulary=vocabulary_names(self.vectorizer_)).fit(matrix)
        else:
            builder.set_params(vocabulary=self.vectorizer_).fit(texts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags
