"""Split documents into sentences: by Punkt, by lines, or by any function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Self

from cvxstructreg.runtime.optional import optional_import
from cvxstructreg.runtime.progress import progress

_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


class PunktSplitter:
    """Sentences by Punkt (Kiss and Strunk 2006), which learns abbreviations from the documents, without labels.

    A sentence always ends at an empty line. Needs nltk (``pip install "cvxstructreg[text]"``), but no nltk data.

    Parameters
    ----------
    train_characters : int or None
        Learn from about this many characters, in evenly spaced documents; None: from all. Learning takes about
        3 seconds per million characters.
    verbose : bool
        Whether to print progress.

    Examples
    --------
    >>> splitter = PunktSplitter().fit(["We met Dr. Lee. Dr. Lee sang. So did Dr. Ames."])
    >>> splitter("Dr. Lee came. He sang.")
    ['Dr. Lee came.', 'He sang.']
    """

    def __init__(self, train_characters: int | None = 2_000_000, verbose: bool = False):
        if train_characters is not None and train_characters < 1:
            raise ValueError(f"train_characters must be at least 1, or None for all, not {train_characters}")
        self.train_characters = train_characters
        self.verbose = verbose
        self._tokenizer: Any = None

    def fit(self, documents: Sequence[str]) -> Self:
        """Learn abbreviations, collocations and sentence starters."""
        punkt = optional_import("nltk.tokenize.punkt", "text", "splitting sentences with Punkt")
        trainer = punkt.PunktTrainer()
        chosen = self._chosen(documents)
        for text in progress(chosen, "learning abbreviations", len(chosen), self.verbose):
            trainer.train(text, finalize=False)
        trainer.finalize_training()
        self._tokenizer = punkt.PunktSentenceTokenizer(trainer.get_params())
        return self

    def __call__(self, document: str) -> list[str]:
        """Return the sentences of a document."""
        if self._tokenizer is None:
            raise ValueError("the PunktSplitter is not fitted; call fit(documents) first")
        parts = _BLANK_LINES.split(document)
        return [sentence for part in parts for sentence in self._tokenizer.tokenize(part)]

    def _chosen(self, documents: Sequence[str]) -> list[str]:
        total = sum(map(len, documents))
        limit = total if self.train_characters is None else min(total, self.train_characters)
        chosen, passed, taken = [], 0, 0
        for text in documents:
            passed += len(text)
            if taken * total < passed * limit:  # fewer characters taken than due so far
                chosen.append(text)
                taken += len(text)
        return chosen


def one_per_line(document: str) -> list[str]:
    """Return the nonempty lines of a document.

    Examples
    --------
    >>> one_per_line("the moon rose" + chr(10) * 2 + "we ate bread")
    ['the moon rose', 'we ate bread']
    """
    return [line for line in document.splitlines() if line.strip()]


def fitted_splitter(splitter: Any, documents: Sequence[str], verbose: bool) -> Callable[[str], Sequence[str]]:
    """Return the function that splits a document; Punkt first learns from the documents."""
    if splitter == "lines":
        return one_per_line
    if splitter == "punkt":
        return PunktSplitter(verbose=verbose).fit(documents)
    if isinstance(splitter, PunktSplitter):
        return PunktSplitter(splitter.train_characters, splitter.verbose or verbose).fit(documents)
    if callable(splitter):
        function: Callable[[str], Sequence[str]] = splitter
        return function
    if hasattr(splitter, "tokenize"):  # nltk's tokenizers
        tokenize: Callable[[str], Sequence[str]] = splitter.tokenize
        return tokenize
    raise ValueError(
        f'splitter must be "punkt", "lines", a PunktSplitter, or a function from a text to its sentences, '
        f"not {splitter!r}"
    )
