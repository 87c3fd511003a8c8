"""The tables of WordNet and SentiWordNet: their columns, and how words are written in them.

This module reads no files: callers pass rows as line numbers with cells.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import NamedTuple

FilePath = str | PathLike[str]
Rows = Iterable[tuple[int, list[str]]]

SYNSETS = ("pos", "synset", "lemmas(lemma#sense)")
SENTIMENT = ("pos", "synset", "pos_score", "neg_score", "lemmas(lemma#sense)")
ANTONYMS = ("pos", "lemma", "antonym", "synset", "antonym_synset")
RELATIONS = ("pos", "synset", "relation", "pos2", "synset2")


class Synset(NamedTuple):
    """Words with a common meaning, each with its sense number, and their sentiment scores if known."""

    key: str  # part of speech and number, as in "a00001740"
    lemmas: tuple[tuple[str, int], ...]
    positive: float = 0.0
    negative: float = 0.0

    @property
    def words(self) -> tuple[str, ...]:
        """The distinct words."""
        return tuple(dict.fromkeys(word for word, _ in self.lemmas))


def as_written(lemma: str) -> str:
    """Return a lemma as a vectorizer writes it: lower case, with spaces, without the adjective marks (a), (p), (ip).

    Examples
    --------
    >>> as_written("Galore(ip)"), as_written("tea_time")
    ('galore', 'tea time')
    """
    return re.sub(r"\((a|p|ip)\)$", "", lemma).replace("_", " ").lower()


def synsets(rows: Rows, path: FilePath) -> Iterator[Synset]:
    """Yield the synsets of a table with the columns `SYNSETS`."""
    for number, row in rows:
        _check_width(row, SYNSETS, number, path)
        yield Synset(row[0] + row[1], _lemmas(row[2], number, path))


def sentiment(rows: Rows, path: FilePath) -> Iterator[Synset]:
    """Yield the synsets of a table with the columns `SENTIMENT`, with scores from 0 to 1."""
    for number, row in rows:
        if any(row[:4]):  # the published file ends with a line of tabs
            _check_width(row, SENTIMENT, number, path)
            yield Synset(row[0] + row[1], _lemmas(row[4], number, path), *_scores(row, number, path))


def antonyms(rows: Rows, path: FilePath) -> Iterator[tuple[str, str]]:
    """Yield the pairs of words of a table with the columns `ANTONYMS`."""
    for number, row in rows:
        _check_width(row, ANTONYMS[:3], number, path)
        yield as_written(row[1]), as_written(row[2])


def relations(rows: Rows, path: FilePath) -> Iterator[tuple[int, str, str, str]]:
    """Yield line number, synset, relation and related synset of a table with the columns `RELATIONS`."""
    for number, row in rows:
        _check_width(row, RELATIONS, number, path)
        yield number, row[0] + row[1], row[2], row[3] + row[4]


def mean_scores(found: Iterable[Synset]) -> dict[str, tuple[float, float]]:
    """Return (positive, negative) for each word: sum_s score_s / s divided by sum_s 1 / s over its senses s = 1, 2, ...

    Examples
    --------
    >>> mean_scores([Synset("a1", (("good", 1),), 0.75), Synset("a2", (("good", 2), ("bad", 1)), 0.0, 0.75)])
    {'good': (0.5, 0.25), 'bad': (0.0, 0.75)}
    """
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for synset in found:
        for word, sense in synset.lemmas:
            total = sums[word]
            total[0] += synset.positive / sense
            total[1] += synset.negative / sense
            total[2] += 1.0 / sense
    return {word: (positive / weight, negative / weight) for word, (positive, negative, weight) in sums.items()}


def _check_width(row: list[str], columns: tuple[str, ...], number: int, path: FilePath) -> None:
    if len(row) < len(columns):
        raise ValueError(f"{path}, line {number}: {len(row)} cells; expected {len(columns)}: {', '.join(columns)}")


def _scores(row: list[str], number: int, path: FilePath) -> tuple[float, float]:
    try:
        positive, negative = float(row[2]), float(row[3])
    except ValueError:
        positive = negative = float("nan")
    if not (0 <= positive <= 1 and 0 <= negative <= 1):
        raise ValueError(f"{path}, line {number}: scores {row[2]!r}, {row[3]!r} must be from 0 to 1")
    return positive, negative


def _lemmas(cell: str, number: int, path: FilePath) -> tuple[tuple[str, int], ...]:
    lemmas = []
    for item in cell.split():
        word, _, sense = item.rpartition("#")
        if not word or not sense.isdecimal() or int(sense) < 1:
            raise ValueError(f"{path}, line {number}: {item!r} is not of the form lemma#sense, such as good#1")
        lemmas.append((as_written(word), int(sense)))
    return tuple(lemmas)
