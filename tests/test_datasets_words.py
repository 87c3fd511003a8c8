"""Lexicons and word vectors: whole and broken files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from dataset_files import VECTORS, folder_with_every_set, hide_folders, write, write_npz

from cvxstructreg import datasets
from cvxstructreg.datasets import DataFormatError, DataNotFoundError
from cvxstructreg.graphs import sentiment_scores
from cvxstructreg.graphs.builders import wordnet


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_folders(monkeypatch, tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return folder_with_every_set(tmp_path)


# --- lexicons ---------------------------------------------------------------------------------------------------------


def test_word_lists(home):
    words = datasets.load_opinion_words(data_home=home)
    assert (words.positive, words.negative) == (["a+", "good"], ["naïve"])
    (home / "lexicons/stopwords_english_nltk.txt").write_text("\n;\n")
    with pytest.raises(DataFormatError, match="has no words"):
        datasets.load_stopwords(data_home=home)


def test_sentiwordnet(home):
    bunch = datasets.load_sentiwordnet(data_home=home)
    assert bunch.words == ["bad", "good", "nice"]
    # senses 1 and 2 of "good" weigh 1 and 1/2
    np.testing.assert_allclose(bunch.positive, [0, (0.75 + 0.25 / 2) / 1.5, 0.25])
    np.testing.assert_allclose(bunch.negative, [1, (0.5 / 2) / 1.5, 0.5])
    assert bunch.synset_ids == ["a01", "n02", "a03"] and bunch.synset_words[1] == ("good", "nice")
    adjectives = datasets.load_sentiwordnet("a", data_home=home)
    assert adjectives.words == ["bad", "good"] and adjectives.positive.tolist() == [0, 0.75]
    with pytest.raises(ValueError, match="choose from a, n, r, v"):
        datasets.load_sentiwordnet(["x"], data_home=home)
    with pytest.raises(DataFormatError, match="has no synsets of r"):
        datasets.load_sentiwordnet("r", data_home=home)


def test_loader_and_graph_builder_read_the_same_scores(home):
    bunch = datasets.load_sentiwordnet(data_home=home)
    text = gzip.decompress((home / "lexicons/sentiwordnet30.tsv.gz").read_bytes()).decode()
    heading = "\t".join(wordnet.SENTIMENT) + "\n"
    path = write(home / "headed.tsv", text if text.startswith("pos\t") else heading + text)
    scores = sentiment_scores(path)
    assert sorted(scores) == bunch.words
    np.testing.assert_array_equal(
        [scores[word] for word in bunch.words], np.column_stack([bunch.positive, bunch.negative])
    )


def test_words_are_written_as_vectorizers_write_them(tmp_path):
    write(tmp_path / "sentiwordnet30.tsv", "a\t01\t0.5\t0\tGalore(ip)#1 well_done#2\n")
    assert datasets.load_sentiwordnet(data_home=tmp_path).words == ["galore", "well done"]


def test_sentiwordnet_as_published(tmp_path):
    text = "# comment\n# POS\tID\na\t00001740\t0.125\t0\table#1\t(usually followed by `to')\n\t\t\t\t\t\n"
    write(tmp_path / "lexicons/SentiWordNet_3.0.0.txt", text)
    assert datasets.load_sentiwordnet(data_home=tmp_path).words == ["able"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\t01\t0.5\t0", "line 1: 4 cells; expected 5"),
        ("a\t01\thigh\t0\tgood#1", "scores 'high', '0' must be from 0 to 1"),
        ("a\t01\t1.5\t0\tgood#1", "must be from 0 to 1"),
        ("a\t01\t0.5\t0\tgood", "'good' is not of the form lemma#sense"),
        ("a\t01\t0.5\t0\tgood#0", "'good#0' is not of the form lemma#sense"),
    ],
)
def test_broken_sentiwordnet(tmp_path, line, message):
    write(tmp_path / "sentiwordnet30.tsv", line + "\n")
    with pytest.raises(DataFormatError, match=message):
        datasets.load_sentiwordnet(data_home=tmp_path)


def test_wordnet(home):
    bunch = datasets.load_wordnet(relations=["similar_to"], data_home=home)
    assert bunch.synonyms == [("awful", "bad"), ("fine", "good"), ("fine", "nice"), ("good", "nice")]
    assert bunch.antonyms == [("bad", "good")]
    assert bunch.related == {"similar_to": [("awful", "bad")]}  # a word is not related to itself
    assert bunch.synsets["a03"] == ("awful", "bad")
    some = datasets.load_wordnet({"good": 0, "nice": 1, "awful": 2}, "also_see", data_home=home)
    assert (some.synonyms, some.antonyms) == ([("good", "nice")], [])
    assert some.related == {"also_see": [("awful", "good"), ("awful", "nice")]}
    with pytest.raises(ValueError, match="unknown relation 'meronym'; the file has also_see, similar_to"):
        datasets.load_wordnet(relations=["meronym"], data_home=home)
    with pytest.raises(TypeError, match="not the single string"):
        datasets.load_wordnet("good", data_home=home)
    write(home / "lexicons/wordnet30_relations.tsv.gz", "a\t99\tsimilar_to\ta\t01\n")
    with pytest.raises(DataFormatError, match="there is no synset a99"):
        datasets.load_wordnet(relations=["similar_to"], data_home=home)


# --- word vectors -----------------------------------------------------------------------------------------------------


def test_word_vectors_from_npz(home):
    bunch = datasets.load_word_vectors(data_home=home)
    assert bunch.words == ["the", "cat", "dog"] and bunch.data.dtype == np.float64
    assert bunch.missing == [] and bunch.columns.tolist() == [0, 1, 2]
    bunch = datasets.load_word_vectors({"dog": 4, "cow": 2, "the": 1}, data_home=home, dtype=np.float32)
    assert (bunch.words, bunch.columns.tolist(), bunch.missing) == (["the", "dog"], [1, 4], ["cow"])
    np.testing.assert_array_equal(bunch.data, np.array([[1, 2], [5, 6]], dtype=np.float32))
    assert bunch.rank.tolist() == [0, 2] and bunch.data.dtype == np.float32
    listed = write_npz(home / "listed.npz", vectors=np.eye(2), words=np.array(["a", "b"]))
    assert datasets.load_word_vectors(path=listed).words == ["a", "b"]


GLOVE_TEXT = "the 0.5 -1 2e-1\n. . . 1 2 3\ncat 4 5 6\nthe 9 9 9\nübel 7 8 9\n"


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.vec"])
@pytest.mark.parametrize("header", ["", "5 3\n"])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
def test_word_vectors_from_text(tmp_path, name, header, end):
    path = write(tmp_path / name, (header + GLOVE_TEXT).replace("\n", end))
    bunch = datasets.load_word_vectors(path=path)
    assert bunch.words == ["the", ". . .", "cat", "übel"]  # the first of two vectors counts
    np.testing.assert_array_equal(bunch.data, [[0.5, -1, 0.2], [1, 2, 3], [4, 5, 6], [7, 8, 9]])
    some = datasets.load_word_vectors(["übel", "unicorn", "the"], path=path)
    assert (some.words, some.columns.tolist(), some.missing) == (["übel", "the"], [0, 2], ["unicorn"])
    np.testing.assert_array_equal(some.data, [[7, 8, 9], [0.5, -1, 0.2]])


def test_no_word_has_a_vector(tmp_path):
    path = write(tmp_path / "v.txt", GLOVE_TEXT)
    bunch = datasets.load_word_vectors(["x", "y"], path=path)
    assert bunch.data.shape == (0, 3) and bunch.missing == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2 3\ncat 1 2\n", "line 2: expected a word and 3 numbers.*it has 2"),
        ("the 1 2 3\ncat 1 two 3\n", "line 2: expected a word and 3 numbers"),
        ("the 1 2 3\ncat 1 nan 3\n", "line 2.*NaN or infinite"),
        ("3 2\nthe 1 2\ncat 3 4\n", "has 2 vectors, but its first line says 3"),
        ("the\n", "line 1: expected a word and its vector"),
        ("the quick fox\n", "line 1: expected a word and 1 numbers"),
        (b"2 2\nthe \x00\x00\x80\x3f\x00\x00\x80\x3f\n", "binary format, convert it to text"),
        (b"\xff\xfe 1 2\n", "line 1: not UTF-8"),
        ("", "is empty"),
    ],
)
def test_broken_text_vectors(tmp_path, text, message):
    with pytest.raises(DataFormatError, match=message):
        datasets.load_word_vectors(path=write(tmp_path / "v.txt", text))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({**VECTORS, "words": np.array("the\ncat")}, "words has 2 entries, expected one for each of 3 rows of vectors"),
        ({**VECTORS, "rank": np.arange(2)}, "rank has 2 entries, expected one for each of 3 words"),
        ({"vectors": VECTORS["vectors"]}, "has no array words"),
        ({**VECTORS, "vectors": np.ones(3)}, "expected numbers in 2 dimensions"),
    ],
)
def test_broken_npz_vectors(tmp_path, arrays, message):
    with pytest.raises(DataFormatError, match=message):
        datasets.load_word_vectors(path=write_npz(tmp_path / "v.npz", **arrays))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"vocabulary": "cat"}, TypeError, "not the single string"),
        ({"vocabulary": []}, ValueError, "vocabulary is empty"),
        ({"vocabulary": ["a", "a"]}, ValueError, "contains a word twice"),
        ({"vocabulary": {"a": 0, "b": 0}}, ValueError, "distinct columns"),
        ({"dtype": int}, TypeError, "floating-point"),
        ({"path": "nowhere.txt"}, DataNotFoundError, "which is not a file"),
    ],
)
def test_bad_requests_for_vectors(home, options, error, message):
    with pytest.raises(error, match=message):
        datasets.load_word_vectors(**options, data_home=home)
