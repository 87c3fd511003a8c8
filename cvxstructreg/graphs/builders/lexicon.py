"""Synonyms, antonyms and sentiment from lexicon files; negated bigrams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from cvxstructreg.building.vocabulary import ColumnFinder, check_choice, vocabulary_names
from cvxstructreg.graphs.builders import wordnet
from cvxstructreg.graphs.builders.cliques import binary, clique_counts
from cvxstructreg.graphs.files import FilePath, rows
from cvxstructreg.graphs.graph import Graph

Relations = Iterable[Iterable[str]] | FilePath


def lexicon_graph(
    vocabulary: Any, synonyms: Relations = (), antonyms: Relations = (), antonym_weight: float = 1.0
) -> Graph:
    """W_ij = 1 for synonyms i, j and -antonym_weight for antonyms; words outside the vocabulary are left out.

    A pair that is listed as both counts as an antonym: lexicons list antonyms word by word, but synonyms by meaning,
    and a word has many meanings.

    Parameters
    ----------
    vocabulary : fitted vectorizer, sequence of str or dict from name to column
        Names of the columns of X: the nodes of the graph.
    synonyms, antonyms : sequences of sets of words, or files
        One set for each group of synonyms (or pair of antonyms); a path is read by `read_lexicon`.
    antonym_weight : float
        Weight of the dissimilarity edges.

    Returns
    -------
    graph : Graph
        Undirected, one node for each word of the vocabulary.

    Examples
    --------
    >>> words = ["good", "great", "bad", "table"]
    >>> lexicon_graph(words, synonyms=[("good", "great", "swell")], antonyms=[("good", "bad")])
    Graph(4 nodes, 2 edges: 1 similar, 1 dissimilar, undirected)
    """
    if not 0 <= antonym_weight < np.inf:
        raise ValueError(f"antonym_weight must be finite and >= 0, not {antonym_weight!r}")
    names = vocabulary_names(vocabulary)
    similar, opposite = _links(synonyms, names), _links(antonyms, names)
    similar = similar - similar.multiply(opposite)
    return Graph(similar - antonym_weight * opposite, names)


def negation_pairs(
    vocabulary: Any, negations: Sequence[str] = ("not", "no", "never"), separator: str = " "
) -> list[tuple[str, str]]:
    """Return the pairs (negated bigram, word) with both in the vocabulary, such as ("not great", "great").

    Examples
    --------
    >>> negation_pairs(["great", "not great", "not", "not so"])
    [('not great', 'great')]
    """
    if isinstance(negations, str):
        raise TypeError(f"negations must be a list of words, not the single string {negations!r}")
    names = vocabulary_names(vocabulary)
    known = set(names)
    pairs = []
    for name in names:
        first, mark, word = name.partition(separator)
        if mark and first in negations and word in known:
            pairs.append((name, word))
    return pairs


def negation_graph(
    vocabulary: Any, negations: Sequence[str] = ("not", "no", "never"), separator: str = " ", weight: float = 1.0
) -> Graph:
    """W_ij = -weight for a negated bigram i and its word j, as in "not great" and "great".

    Examples
    --------
    >>> negation_graph(["great", "not great", "table"])
    Graph(3 nodes, 1 edge: 0 similar, 1 dissimilar, undirected)
    """
    pairs = negation_pairs(vocabulary, negations, separator)
    return Graph.from_edges(pairs, np.full(len(pairs), -weight), names=vocabulary_names(vocabulary))


def read_lexicon(path: FilePath) -> list[tuple[str, ...]]:
    """Return the sets of related words in a file, plain or gzipped, one set for each line.

    The first line determines the format: WordNet or SentiWordNet synsets (a column "lemmas..." with entries
    ``word#sense``), antonyms (columns "lemma" and "antonym"), or no header and two or more words per line, separated
    by tabs, commas or white space. Underscores become spaces and words are lower-cased, as in the names of a
    vectorizer.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "synonyms.txt"
    ...     _ = file.write_text("good great" + chr(10) + "tool utensil implement" + chr(10))
    ...     read_lexicon(file)
    [('good', 'great'), ('tool', 'utensil', 'implement')]
    """
    lines = rows(path)
    number, head = next(lines, (0, []))
    if not head:
        raise ValueError(f"{str(path)!r} is empty; expected related words on each line")
    if any(title.startswith("lemmas") for title in head):
        scored = any(title.startswith("pos_score") for title in head)
        return [synset.words for synset in (wordnet.sentiment if scored else wordnet.synsets)(lines, path)]
    if "antonym" in head and "lemma" in head:
        return list(wordnet.antonyms(lines, path))
    related = [_related(number, head, path)]
    return related + [_related(number, row, path) for number, row in lines]


def read_synset_relations(
    relations: FilePath, synsets: FilePath, relation: str = "similar_to"
) -> list[tuple[str, ...]]:
    """Return the word pairs of related synsets: each word of one synset with each word of the other.

    Parameters
    ----------
    relations : file with columns pos, synset, relation, pos2, synset2 and a header
    synsets : file with columns pos, synset, lemmas and a header
    relation : str
        Name of the relation, such as "similar_to" for adjectives.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> relations, synsets = Path(mkdtemp()) / "relations.tsv", Path(mkdtemp()) / "synsets.tsv"
    >>> lines = "pos\\tsynset\\trelation\\tpos2\\tsynset2\\na\\t01\\tsimilar_to\\ta\\t02\\n"
    >>> n_characters = relations.write_text(lines)
    >>> n_characters = synsets.write_text("pos\\tsynset\\tlemmas\\na\\t01\\tgood#1\\na\\t02\\tfine#1\\n")
    >>> read_synset_relations(relations, synsets)
    [('fine', 'good')]
    """
    words = {synset.key: synset.words for synset in wordnet.synsets(_below_header(synsets, "lemmas"), synsets)}
    pairs, seen = set(), set()
    for _, one, kind, other in wordnet.relations(_below_header(relations, "relation"), relations):
        seen.add(kind)
        if kind == relation:
            ends = words.get(one, ()), words.get(other, ())
            pairs |= {(min(a, b), max(a, b)) for a in ends[0] for b in ends[1] if a != b}
    check_choice(relation, tuple(sorted(seen)), "relation")
    return sorted(pairs)


def sentiment_scores(path: FilePath) -> dict[str, tuple[float, float]]:
    """Return (positive, negative) for each word of a SentiWordNet file: the mean over its senses, weighted 1/sense.

    The file has the columns pos, synset, pos_score, neg_score and lemmas (``word#sense``), and a header.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "scores.tsv"
    >>> n_characters = path.write_text("pos\\tsynset\\tpos_score\\tneg_score\\tlemmas\\na\\t1\\t0.75\\t0\\tgood#1\\n")
    >>> sentiment_scores(path)
    {'good': (0.75, 0.0)}
    """
    return wordnet.mean_scores(wordnet.sentiment(_below_header(path, "pos_score"), path))


def sentiment_seeds(scores: Any, vocabulary: Any, n_seeds: int = 200) -> list[str]:
    """Return the words of the vocabulary with the largest |positive - negative|, half from each side if possible.

    Parameters
    ----------
    scores : dict from word to (positive, negative), or a SentiWordNet file
    vocabulary : fitted vectorizer, sequence of str or dict from name to column
    n_seeds : int
        Number of words; fewer are returned if fewer words have a score. Ties are in the order of the vocabulary.

    Examples
    --------
    >>> scores = {"good": (0.8, 0.0), "fine": (0.5, 0.1), "bad": (0.0, 0.6), "table": (0.0, 0.0)}
    >>> sentiment_seeds(scores, ["bad", "fine", "good", "table"], n_seeds=2)
    ['good', 'bad']
    """
    if not isinstance(n_seeds, int | np.integer) or n_seeds < 1:
        raise ValueError(f"n_seeds must be an integer of at least 1, not {n_seeds!r}")
    table = sentiment_scores(scores) if isinstance(scores, str | PathLike) else scores
    names = vocabulary_names(vocabulary)
    balance = {name: table[name][0] - table[name][1] for name in names if name in table}
    positive = sorted((name for name in balance if balance[name] > 0), key=lambda name: -balance[name])
    negative = sorted((name for name in balance if balance[name] < 0), key=lambda name: balance[name])
    n_negative = min(len(negative), max(n_seeds // 2, n_seeds - len(positive)))
    return positive[: n_seeds - n_negative] + negative[:n_negative]


def _links(relations: Relations, names: tuple[str, ...]) -> Any:
    """Return 1 for pairs of words of the vocabulary that are in the same set."""
    sets = read_lexicon(relations) if isinstance(relations, str | PathLike) else relations
    if not isinstance(sets, Iterable):
        raise TypeError(f"expected a file or a list of sets of related words, not {sets!r}")
    members, finder = [], ColumnFinder(names, len(names))
    for words in sets:
        if isinstance(words, str):
            raise TypeError(f"each entry must be a set of words such as ('good', 'great'), not the string {words!r}")
        members.append(finder.find(words, "word")[0])
    return binary(clique_counts([indices for indices in members if len(indices) > 1], len(names)))


def _related(number: int, row: list[str], path: FilePath) -> tuple[str, ...]:
    words = tuple(wordnet.as_written(field) for field in row if field)
    if len(words) < 2:
        raise ValueError(f"line {number} of {str(path)!r} has a single word, {row}; expected two or more related words")
    return words


def _below_header(path: FilePath, title: str) -> Iterable[tuple[int, list[str]]]:
    lines = rows(path)
    _, head = next(lines, (0, [""]))
    if not any(name.startswith(title) for name in head):
        raise ValueError(f"{str(path)!r} must begin with a header that has the column {title!r}, not {head}")
    return lines
