"""Map documents to columns of X, with the analyzer and vocabulary of the vectorizer that made X."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.building.vocabulary import vocabulary_names
from cvxstructreg.core.checks import plural


class Words:
    """Maps a text to columns of X, as the vectorizer does.

    Parameters
    ----------
    vocabulary : fitted vectorizer, sequence of str, dict from name to column, or None
        Names and dicts are used as the vocabulary of a CountVectorizer with n-grams as long as the longest name.
        None: a CountVectorizer is fitted on the documents.
    documents : sequence of str, optional
        Needed if there is no vocabulary.
    """

    def __init__(self, vocabulary: Any, documents: list[str] | None = None):
        self.vectorizer = _vectorizer(vocabulary, documents)
        self.names = vocabulary_names(self.vectorizer)
        self._column = {name: column for column, name in enumerate(self.names)}
        self._analyze: Callable[[str], Iterable[str]] = self.vectorizer.build_analyzer()
        self._single_words = _single_words(self.vectorizer)

    def columns(self, text: str) -> set[int]:
        """Return the columns of the words and n-grams of the text."""
        column = self._column
        return {column[word] for word in self._analyze(text) if word in column}

    def sequence(self, text: str) -> list[int]:
        """Return the columns of the single words of the text, in order; words without a column are skipped."""
        column = self._column
        return [column[word] for word in self._single_words(text) if word in column]

    def matrix(self, documents: list[str]) -> sparse.csr_array:
        """Return the matrix X of the documents."""
        return sparse.csr_array(self.vectorizer.transform(documents))


def checked_documents(documents: Any) -> list[str]:
    """Return the documents as a list of strings; raise if there are none."""
    if isinstance(documents, str):
        raise TypeError("documents must be a list of texts, not a single string; use [text]")
    if not isinstance(documents, Iterable):
        raise TypeError(f"documents must be a list of texts, not {reprlib.repr(documents)}")
    texts = list(documents)
    for number, text in enumerate(texts):
        if isinstance(text, bytes):
            raise TypeError(f"document {number} is bytes; decode it first, e.g. with .decode('utf-8')")
        if not isinstance(text, str):
            raise TypeError(f"document {number} is {reprlib.repr(text)}, not a string")
    if not any(text.strip() for text in texts):
        given = "there are no documents" if not texts else f"all {plural(len(texts), 'document')} are empty"
        raise ValueError(f"{given}; expected texts")
    return texts


def documents_or_matrix(X: Any, vocabulary: Any) -> tuple[Any, tuple[str, ...] | None, Words | None]:
    """Return the matrix of documents by features, the names of its columns, and the Words if X is a list of texts."""
    if hasattr(X, "shape") and len(X.shape) == 2:
        return _checked_matrix(X), _names(X, vocabulary), None
    documents = checked_documents(X)
    words = Words(vocabulary, documents)
    matrix = words.matrix(documents)
    if matrix.nnz == 0:
        raise ValueError("no word of the vocabulary occurs in any document; is it the vocabulary of these documents?")
    return matrix, words.names, words


def nonzero_columns(X: Any) -> NDArray[np.bool_]:
    """Return, for each column, whether it has a nonzero entry."""
    return np.asarray((X != 0).sum(axis=0)).ravel() > 0


def _checked_matrix(X: Any) -> Any:
    from sklearn.utils.validation import check_array

    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    if not nonzero_columns(X).any():
        raise ValueError("X has only zeros; expected at least one nonzero entry")
    return sparse.csr_array(X) if sparse.issparse(X) else X


def _names(X: Any, vocabulary: Any) -> tuple[str, ...] | None:
    if vocabulary is None:
        columns = getattr(X, "columns", None)
        return None if columns is None else tuple(map(str, columns))
    names = vocabulary_names(vocabulary)
    if len(names) != X.shape[1]:
        raise ValueError(
            f"the vocabulary has {plural(len(names), 'name')} but X has {plural(X.shape[1], 'column')}; "
            "use the vectorizer that made X"
        )
    return names


def _single_words(vectorizer: Any) -> Callable[[str], Iterable[str]]:
    """Return the function that splits a text into its words, in order: the vectorizer's steps without n-grams."""
    if callable(vectorizer.analyzer):
        analyze: Callable[[str], Iterable[str]] = vectorizer.build_analyzer()
        return analyze
    preprocess, tokenize = vectorizer.build_preprocessor(), vectorizer.build_tokenizer()
    stop = vectorizer.get_stop_words() or ()
    return lambda text: [word for word in tokenize(preprocess(text)) if word not in stop]


def _vectorizer(vocabulary: Any, documents: list[str] | None) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    if vocabulary is None:
        if documents is None:
            raise ValueError("vocabulary is missing; pass the vectorizer that made X")
        return CountVectorizer().fit(documents)
    names = vocabulary_names(vocabulary)
    if hasattr(vocabulary, "build_analyzer"):
        return vocabulary
    if hasattr(vocabulary, "get_feature_names_out"):
        kind = type(vocabulary).__name__
        raise TypeError(f"a {kind} cannot analyse documents; pass a CountVectorizer or TfidfVectorizer, or the names")
    return CountVectorizer(
        vocabulary=list(names),
        lowercase=not any(name != name.lower() for name in names),
        ngram_range=(1, max(len(name.split(" ")) for name in names)),
        token_pattern=r"(?u)\b\w+\b" if any(len(name) == 1 for name in names) else r"(?u)\b\w\w+\b",
    )
