"""One group of words for each sentence of the documents (Yogatama and Smith, ICML 2014)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cvxstructreg.core.checks import plural
from cvxstructreg.groups.builder import GroupBuilder, checked_integer
from cvxstructreg.groups.groups import Weights
from cvxstructreg.groups.splitting import fitted_splitter
from cvxstructreg.groups.words import Words, checked_documents
from cvxstructreg.runtime.progress import progress


class SentenceGroups(GroupBuilder):
    """g_s = the words of sentence s, for the penalty sum_s c_s ||w_(g_s)||_2, which selects whole sentences.

    The words are columns of X: each sentence is analysed as the vectorizer analyses a document, including n-grams.
    Sentences without any word of the vocabulary are dropped. Sentences with the same words are merged and their
    weights are added (unless ``merge`` is False): exactly the same penalty with fewer groups.

    Parameters
    ----------
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the columns of X. By default a CountVectorizer is fitted on the documents and kept in `vectorizer_`.
    splitter : "punkt", "lines", PunktSplitter, or function from a text to a list of sentences
        Punkt learns abbreviations from the documents and needs nltk; "lines" is for one sentence per line.
    weights : float or function of the sizes, optional
        1 for each sentence by default; np.sqrt for the square root of its number of distinct words, or any other
        function of the array of these numbers.
    min_size : int
        Drop sentences with fewer words.
    merge : bool
        Whether sentences with the same words become one group. Use False for the published algorithm
        (``GroupLassoClassifier(solver="sentence_admm")``): it keeps a copy of the weights for every sentence, so its
        iterates depend on the number of sentences, although the optimum does not.
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    groups_ : Groups
        Named by the sentences.
    sentences_ : list of str
        The sentence of each group; the first one if several were merged.
    documents_ : int64 array
        The index of the document that contains this sentence.
    n_sentences_, n_empty_, n_merged_ : int
        Number of sentences, of dropped sentences, and of sentences merged into another group.
    vectorizer_ : the vectorizer whose columns are grouped

    Examples
    --------
    >>> documents = ["The moon rose. We saw the moon.", "The moon rose! Well, we ate."]
    >>> builder = SentenceGroups(["moon", "rose", "saw"], splitter=lambda text: text.split(" We ")).fit(documents)
    >>> builder.groups_.weights, builder.n_merged_
    (array([2., 1.]), 1)
    >>> builder.sentences_
    ['The moon rose.', 'saw the moon.']
    """

    def __init__(
        self,
        vocabulary: Any = None,
        splitter: Any = "punkt",
        weights: Weights = None,
        min_size: int = 1,
        merge: bool = True,
        verbose: bool = False,
    ):
        self.vocabulary = vocabulary
        self.splitter = splitter
        self.weights = weights
        self.min_size = min_size
        self.merge = merge
        self.verbose = verbose

    def fit(self, documents: Sequence[str], y: Any = None) -> Self:
        """Split the documents into sentences and build the groups; y is not used."""
        min_size = checked_integer(self.min_size, 1, "min_size")
        texts = checked_documents(documents)
        words = Words(self.vocabulary, texts)
        self._splitter = fitted_splitter(self.splitter, texts, self.verbose)
        self.vectorizer_ = words.vectorizer
        members, sentences, origins = self._collect(texts, words, min_size)
        if not members:
            wanted = f"{min_size} words" if min_size > 1 else "a word"
            given = plural(self.n_sentences_, "sentence")
            raise ValueError(
                f"none of {given} has {wanted} of the vocabulary ({', '.join(map(repr, words.names[:3]))}, ...); "
                "is it the vocabulary of these documents?"
            )
        if not isinstance(self.merge, bool | np.bool_):
            raise TypeError(f"merge must be True or False, got {self.merge!r}")
        kept = self._set_groups(members, len(words.names), self.weights, sentences, words.names, bool(self.merge))
        self.sentences_ = [sentences[number] for number in kept]
        self.documents_ = np.array(origins, dtype=np.int64)[kept]
        return self

    def split(self, document: str) -> list[str]:
        """Return the sentences of a document, split by the rules learned in the fit."""
        check_is_fitted(self, "groups_")
        return _sentences_of(self._splitter, document)

    def _collect(
        self, texts: list[str], words: Words, min_size: int
    ) -> tuple[list[NDArray[np.int64]], list[str], list[int]]:
        """Return the columns, the text and the document of each sentence that is large enough."""
        members, sentences, origins = [], [], []
        self.n_sentences_ = 0
        for number, text in enumerate(progress(texts, "sentences of documents", len(texts), self.verbose)):
            for sentence in _sentences_of(self._splitter, text):
                self.n_sentences_ += 1
                columns = words.columns(sentence)
                if len(columns) >= min_size:
                    members.append(np.fromiter(sorted(columns), dtype=np.int64, count=len(columns)))
                    sentences.append(sentence)
                    origins.append(number)
        self.n_empty_ = self.n_sentences_ - len(members)
        return members, sentences, origins

    def _summary(self) -> str:
        if not hasattr(self, "groups_"):
            return ""
        counts = f"{self.n_sentences_} sentences, {self.n_empty_} dropped, {self.n_merged_} merged"
        return f"{self.groups_!r} from {counts}"


def _sentences_of(splitter: Callable[[str], Sequence[str]], text: str) -> list[str]:
    sentences = splitter(text)
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        raise TypeError(f"the splitter must return a list of sentences, not {sentences!r:.60}")
    return [sentence for sentence in sentences if sentence.strip()]
