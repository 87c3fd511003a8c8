"""Word lists and lexicons: stop words, opinion words, SentiWordNet, and WordNet's synonyms and antonyms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from cvxstructreg.datasets.locating import PathLike, Source, locate
from cvxstructreg.datasets.reading import DataFormatError, read_table, text_lines
from cvxstructreg.graphs.builders import wordnet

_WORDS = "a text file with one word per line, gzipped or not"
_LIU = "https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html (opinion lexicon)"
_PRINCETON = "https://wordnet.princeton.edu (WordNet 3.0), as a table"
STOPWORDS = Source(
    "English stop words", "lexicons/stopwords_english_nltk.txt", _WORDS, "https://www.nltk.org/nltk_data/ (stopwords)"
)
POSITIVE, NEGATIVE = (
    Source(
        title=f"{sign} opinion words (Hu & Liu 2004)",
        path=f"lexicons/opinion_lexicon_{sign}.txt.gz",
        content=_WORDS,
        origin=_LIU,
        others=(f"lexicons/{sign}-words.txt",),
    )
    for sign in ("positive", "negative")
)
SENTIWORDNET = Source(
    title="SentiWordNet 3.0",
    path="lexicons/sentiwordnet30.tsv.gz",
    content="a table with tabs: part of speech, synset, positive score, negative score, lemma#sense ...",
    origin="https://github.com/aesuli/SentiWordNet",
    others=("lexicons/SentiWordNet_3.0.0.txt",),
)
SYNSETS = Source(
    title="WordNet synsets",
    path="lexicons/wordnet30_synsets.tsv.gz",
    content="a table with tabs: part of speech, synset, lemma#sense ...",
    origin=_PRINCETON,
)
ANTONYMS = Source(
    title="WordNet antonyms",
    path="lexicons/wordnet30_antonyms.tsv.gz",
    content="a table with tabs: part of speech, lemma, antonym, synset, antonym's synset",
    origin=_PRINCETON,
)
RELATIONS = Source(
    title="WordNet relations",
    path="lexicons/wordnet30_relations.tsv.gz",
    content="a table with tabs: part of speech, synset, relation, part of speech, synset",
    origin=_PRINCETON,
)
PARTS_OF_SPEECH = ("a", "n", "r", "v")
Pairs = list[tuple[str, str]]


def load_stopwords(*, data_home: PathLike | None = None) -> Bunch:
    """Load English stop words: ``words``, a list for the vectorizers of scikit-learn, and DESCR.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as home:
    ...     _ = (pathlib.Path(home) / "stopwords_english_nltk.txt").write_text("the\\nof\\n")
    ...     load_stopwords(data_home=home).words
    ['the', 'of']
    """
    return Bunch(words=_word_list(locate(STOPWORDS, data_home)), DESCR="English stop words of NLTK.\n")


def load_opinion_words(*, data_home: PathLike | None = None) -> Bunch:
    """Load the opinion words of Hu & Liu: the lists ``positive`` and ``negative``, and DESCR.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as home:
    ...     for sign, word in [("positive", "great"), ("negative", "awful")]:
    ...         _ = (pathlib.Path(home) / f"opinion_lexicon_{sign}.txt").write_text(f"; comment\\n{word}\\n")
    ...     words = load_opinion_words(data_home=home)
    >>> words.positive, words.negative
    (['great'], ['awful'])
    """
    positive, negative = (_word_list(locate(source, data_home)) for source in (POSITIVE, NEGATIVE))
    return Bunch(positive=positive, negative=negative, DESCR="Opinion words (Hu and Liu 2004).\n")


def load_sentiwordnet(
    parts_of_speech: Iterable[str] | None = None, *, data_home: PathLike | None = None, verbose: bool = False
) -> Bunch:
    """Load SentiWordNet: positive and negative scores of synsets, and of words as means over their senses.

    The score of a word is sum_s score_s / s divided by sum_s 1 / s over its senses s = 1, 2, ..., where the most common
    senses come first. Words are lower-cased, and multi-word terms have spaces, as in a vectorizer.

    Parameters
    ----------
    parts_of_speech : some of "a", "n", "r", "v"; optional
        Adjectives, nouns, adverbs, verbs; all by default.
    data_home : path, optional
        The only folder to look in; by default ``$CVXSTRUCTREG_DATA``, then the cache folder.
    verbose : bool
        Whether to print progress while reading.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        words (list), positive and negative (their scores, from 0 to 1); for the synsets: synset_ids (such as
        "a00001740"), synset_positive, synset_negative, synset_words (list of tuples); DESCR.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> rows = "a\\t00000001\\t0.75\\t0\\tgood#1\\na\\t00000002\\t0\\t0.25\\tgood#2 bad#1\\n"
    >>> with tempfile.TemporaryDirectory() as home:
    ...     _ = (pathlib.Path(home) / "sentiwordnet30.tsv").write_text(rows)
    ...     bunch = load_sentiwordnet(data_home=home)
    >>> bunch.words, bunch.positive
    (['bad', 'good'], array([0. , 0.5]))
    """
    wanted = _parts_of_speech(parts_of_speech)
    path = locate(SENTIWORDNET, data_home)
    with _format_errors():
        rows = read_table(path, wordnet.SENTIMENT, verbose)
        synsets = [synset for synset in wordnet.sentiment(rows, path) if synset.key[0] in wanted]
    if not synsets:
        raise DataFormatError(f"{path} has no synsets of {', '.join(wanted)}; get the file again")
    means = sorted(wordnet.mean_scores(synsets).items())
    return Bunch(
        words=[word for word, _ in means],
        positive=np.array([positive for _, (positive, _) in means]),
        negative=np.array([negative for _, (_, negative) in means]),
        synset_ids=[synset.key for synset in synsets],
        synset_positive=np.array([synset.positive for synset in synsets]),
        synset_negative=np.array([synset.negative for synset in synsets]),
        synset_words=[synset.words for synset in synsets],
        DESCR="SentiWordNet 3.0 (Baccianella, Esuli and Sebastiani 2010).\n",
    )


def load_wordnet(
    vocabulary: Iterable[str] | None = None,
    relations: Iterable[str] = (),
    *,
    data_home: PathLike | None = None,
    verbose: bool = False,
) -> Bunch:
    """Load WordNet's pairs of synonyms and antonyms, all of them or only those within a vocabulary.

    Two words are synonyms if they share a synset. Each pair occurs once, in alphabetical order; words are written as in
    `load_sentiwordnet`.

    Parameters
    ----------
    vocabulary : words, optional
        Keep only pairs of these words, such as ``vectorizer.get_feature_names_out()``.
    relations : names of relations
        Also return pairs of words in related synsets: relations such as "similar_to", "hypernym", "also_see" or
        "verb_group".
    data_home, verbose
        As in `load_sentiwordnet`.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        synonyms, antonyms (sorted lists of pairs), related (relation -> sorted list of pairs), synsets (id -> words),
        DESCR.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as home:
    ...     folder = pathlib.Path(home)
    ...     _ = (folder / "wordnet30_synsets.tsv").write_text("a\\t01\\tgood#1 fine#2 nice#1\\na\\t02\\tbad#1\\n")
    ...     _ = (folder / "wordnet30_antonyms.tsv").write_text("a\\tgood\\tbad\\t01\\t02\\na\\tbad\\tgood\\t02\\t01\\n")
    ...     bunch = load_wordnet(["good", "bad", "fine"], data_home=home)
    >>> bunch.synonyms, bunch.antonyms
    ([('fine', 'good')], [('bad', 'good')])
    """
    known = None if vocabulary is None else _word_set(vocabulary)
    path, opposites = locate(SYNSETS, data_home), locate(ANTONYMS, data_home)
    with _format_errors():
        synsets = {
            synset.key: tuple(word for word in synset.words if known is None or word in known)
            for synset in wordnet.synsets(read_table(path, wordnet.SYNSETS, verbose), path)
        }
        antonyms = list(wordnet.antonyms(read_table(opposites, wordnet.ANTONYMS, verbose), opposites))
    return Bunch(
        synonyms=_sorted_pairs(pair for words in synsets.values() for pair in combinations(words, 2)),
        antonyms=_sorted_pairs(pair for pair in antonyms if known is None or known.issuperset(pair)),
        related=_related(synsets, relations, data_home, verbose),
        synsets=synsets,
        DESCR="WordNet 3.0 (Princeton University): synonyms, antonyms, relations.\n",
    )


def _related(
    synsets: dict[str, tuple[str, ...]], relations: Iterable[str], data_home: PathLike | None, verbose: bool
) -> dict[str, Pairs]:
    wanted = [relations] if isinstance(relations, str) else list(relations)
    if not wanted:
        return {}
    pairs: dict[str, Pairs] = {}
    path = locate(RELATIONS, data_home)
    with _format_errors():
        rows = list(wordnet.relations(read_table(path, wordnet.RELATIONS, verbose), path))
    for number, one, relation, other in rows:
        unknown = [end for end in (one, other) if end not in synsets]
        if unknown:
            raise DataFormatError(f"{path}, line {number}: there is no synset {unknown[0]}; the files do not match")
        pairs.setdefault(relation, []).extend((a, b) for a in synsets[one] for b in synsets[other])
    for relation in wanted:
        if relation not in pairs:
            raise ValueError(f"unknown relation {relation!r}; the file has {', '.join(sorted(pairs))}")
    return {relation: _sorted_pairs(pairs[relation]) for relation in wanted}


def _word_list(path: Path) -> list[str]:
    encoding = "latin-1" if path.name.endswith("-words.txt") else "utf-8"  # as published, or converted
    lines = (line.strip() for _, line in text_lines(path, encoding))
    words = list(dict.fromkeys(line for line in lines if line and not line.startswith(";")))
    if not words:
        raise DataFormatError(f"{path} has no words; get the file again")
    return words


def _word_set(vocabulary: Iterable[str]) -> set[str]:
    if isinstance(vocabulary, str):
        raise TypeError(f"vocabulary must be a collection of words, not the single string {vocabulary!r}")
    return {str(word) for word in vocabulary}


def _parts_of_speech(chosen: Iterable[str] | None) -> Collection[str]:
    parts = PARTS_OF_SPEECH if chosen is None else tuple(chosen)
    for part in parts:
        if part not in PARTS_OF_SPEECH:
            raise ValueError(f"parts_of_speech contains {part!r}; choose from {', '.join(PARTS_OF_SPEECH)}")
    return parts


@contextmanager
def _format_errors() -> Iterator[None]:
    """Raise errors in a row as DataFormatError, because the file is at fault."""
    try:
        yield
    except DataFormatError:
        raise
    except ValueError as error:
        raise DataFormatError(str(error)) from error


def _sorted_pairs(pairs: Iterable[tuple[str, str]]) -> Pairs:
    return sorted({(min(a, b), max(a, b)) for a, b in pairs if a != b})
