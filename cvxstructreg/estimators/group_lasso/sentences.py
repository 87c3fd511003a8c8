"""Sentences of a document: which of them a model keeps, and how each affects the predicted class."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


class SentenceRow(NamedTuple):
    """One sentence of a document.

    ``log_odds`` is the decrease in the score of ``label`` when the sentence is removed from the document; it is
    positive for a sentence that supports the label. The score is the log-odds against the other class, or with several
    classes, against the most likely other class.
    """

    sentence: str
    kept: bool
    log_odds: float
    label: Any


class SentenceTable(Sequence[SentenceRow]):
    """Rows that print as a table, and as coloured HTML in notebooks.

    ``label`` is the predicted class of the whole document, and ``log_odds`` its score.
    """

    def __init__(self, rows: Sequence[SentenceRow], label: Any, log_odds: float) -> None:
        self.rows, self.label, self.log_odds = list(rows), label, log_odds

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[SentenceRow]:
        return iter(self.rows)

    def kept(self) -> list[str]:
        """The sentences that the model keeps."""
        return [row.sentence for row in self.rows if row.kept]

    def dropped(self) -> list[str]:
        """The sentences whose words all have weight zero."""
        return [row.sentence for row in self.rows if not row.kept]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of the rows; pandas must be installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError("to_frame needs pandas: install it, or use the rows themselves") from error
        return pandas.DataFrame(self.rows, columns=list(SentenceRow._fields))

    def __repr__(self) -> str:
        lines = [f"{self.label}: log-odds {self.log_odds:+.2f}"]
        lines += [f"{row.log_odds:+8.2f}  {'kept   ' if row.kept else 'dropped'}  {row.sentence}" for row in self.rows]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the document as HTML: kept sentences are blue (for the label) or red (against), others struck out."""
        largest = max((abs(row.log_odds) for row in self.rows), default=0.0) or 1.0
        spans = [_span(row, abs(row.log_odds) / largest) for row in self.rows]
        label = html.escape(str(self.label))
        head = f"<b>{label}</b> (log-odds {self.log_odds:+.2f}); {_LEGEND.format(label=label)}"
        return f'<div class="cvxstructreg-sentences"><p>{head}</p><p>{" ".join(spans)}</p></div>'

    _repr_html_ = to_html


_FOR, _AGAINST = "33,102,172", "178,24,43"  # blue and red, as in cvxstructreg.plots
_LEGEND = (
    f'<span style="background:rgba({_FOR},0.40)">for {{label}}</span> '
    f'<span style="background:rgba({_AGAINST},0.40)">against it</span> '
    '<span style="color:#888;text-decoration:line-through">dropped</span>'
)


def _span(row: SentenceRow, share: float) -> str:
    text, title = html.escape(row.sentence), f"log-odds {row.log_odds:+.2f}"
    if not row.kept:
        return f'<span class="dropped" title="{title}" style="color:#888;text-decoration:line-through">{text}</span>'
    colour = _FOR if row.log_odds >= 0 else _AGAINST
    return f'<span class="kept" title="{title}" style="background:rgba({colour},{0.6 * share:.2f})">{text}</span>'


def sentence_table(model: Any, sentences: Sequence[str], vectorizer: Any) -> SentenceTable:
    """Return the table of one document; see ``GroupLassoClassifier.sentence_table``."""
    if isinstance(sentences, str):
        raise TypeError("sentences must be a list of strings, the sentences of one document; split it first")
    sentences = list(sentences)
    if not sentences:
        raise ValueError("sentences is empty; give at least one sentence")
    without = [" ".join(sentences[:i] + sentences[i + 1 :]) for i in range(len(sentences))]
    X = sparse.csr_array(vectorizer.transform([" ".join(sentences), *without, *sentences]))
    if X.shape[1] != model.n_features_in_:
        raise ValueError(f"the vectorizer has {X.shape[1]} columns, but the model was fitted on {model.n_features_in_}")
    n = len(sentences)
    scores = np.asarray(X[: n + 1] @ model.coef_.T) + model.intercept_
    if scores.shape[1] == 1:
        scores = np.concatenate([-0.5 * scores, 0.5 * scores], axis=1)  # the difference of the two columns is the score
    chosen = int(scores[0].argmax())
    odds = scores[:, chosen] - np.delete(scores, chosen, axis=1).max(axis=1)
    label = model.classes_[chosen]
    label = label.item() if hasattr(label, "item") else label
    known = _kept_by_words(model)
    kept = [_is_kept(model, known, X[[n + 1 + i]].indices) for i in range(n)]
    rows = [SentenceRow(sentences[i], kept[i], float(odds[0] - odds[i + 1]), label) for i in range(n)]
    return SentenceTable(rows, label, float(odds[0]))


def _is_kept(model: Any, known: dict[tuple[int, ...], bool], words: Any) -> bool:
    """Return whether the group of the sentence is kept; if it is not a group, whether any word has a nonzero weight."""
    found = known.get(tuple(sorted(int(word) for word in words)))
    return bool(np.any(model.coef_[:, words])) if found is None else found


def _kept_by_words(model: Any) -> dict[tuple[int, ...], bool]:
    groups = model.groups_
    return {tuple(groups[g].tolist()): bool(model._groups_kept[g]) for g in range(groups.n_groups)}
