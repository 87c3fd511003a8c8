"""Where loaders look for files, and what they say of missing and damaged ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from dataset_files import LOADERS, MOVIES, NEWS, folder_with_every_set, hide_folders, post, write

from cvxstructreg import datasets
from cvxstructreg.datasets import DataFormatError, DataNotFoundError, write_json_lines


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_folders(monkeypatch, tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return folder_with_every_set(tmp_path)


# --- where files are looked for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LOADERS)
def test_a_missing_set_says_what_to_put_where(tmp_path, path):
    with pytest.raises(DataNotFoundError) as caught:
        LOADERS[path](tmp_path)
    message = str(caught.value)
    assert str(tmp_path / path) in message
    assert "CVXSTRUCTREG_DATA" in message and "data_home" in message and "http" in message
    assert isinstance(caught.value, FileNotFoundError)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(DataNotFoundError, match="is not a folder"):
        datasets.load_g50c(data_home=tmp_path / "typo")
    with pytest.raises(TypeError, match="data_home must be the path"):
        datasets.load_g50c(data_home=3)


def test_argument_then_variable_then_cache(home, tmp_path, monkeypatch):
    assert datasets.data_folders() == [datasets.cache_folder()]
    cached = datasets.cache_folder()
    assert str(cached).startswith(str(tmp_path))
    write(cached / "lexicons/stopwords_english_nltk.txt", "cached\n")
    assert datasets.load_stopwords().words == ["cached"]
    monkeypatch.setenv("CVXSTRUCTREG_DATA", str(home))
    assert datasets.load_stopwords().words == ["i", "me"]
    (home / "lexicons/stopwords_english_nltk.txt").unlink()
    assert datasets.load_stopwords().words == ["cached"]
    with pytest.raises(DataNotFoundError):
        datasets.load_stopwords(data_home=home)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [("linux", "XDG_CACHE_HOME", "c/cvxstructreg"), ("win32", "LOCALAPPDATA", "c/cvxstructreg")],
)
def test_cache_folders_of_platforms(monkeypatch, platform, variable, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, "c")
    assert datasets.cache_folder() == Path(expected)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert datasets.cache_folder().parts[-3:] == ("Library", "Caches", "cvxstructreg")


def test_files_may_be_uncompressed_and_outside_their_subfolder(tmp_path):
    write(tmp_path / "opinion_lexicon_positive.txt", "good\n")
    write(tmp_path / "lexicons/negative-words.txt", ";;;\n\nna\xefve\n".encode("latin-1"))
    words = datasets.load_opinion_words(data_home=tmp_path)
    assert (words.positive, words.negative) == (["good"], ["naïve"])


# --- damaged text files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in LOADERS if path.endswith(".gz")])
def test_truncated_gzip_files(home, path):
    (home / path).write_bytes((home / path).read_bytes()[:-9])
    with pytest.raises(DataFormatError, match=rf"{Path(path).name} is truncated or damaged"):
        LOADERS[path](home)
    (home / path).write_bytes(b"plain text")
    with pytest.raises(DataFormatError, match="not compressed although its name ends in"):
        LOADERS[path](home)
    (home / path).write_bytes(b"")
    with pytest.raises(DataFormatError, match="is empty"):
        LOADERS[path](home)


GOOD = {"id": "pos/1", "label": "pos", "fold": 3, "text": "fine"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "pos/1", ', r"line 3: not valid JSON \(.*column"),
        ("[1, 2]", "line 3: expected a JSON object, not list"),
        (json.dumps({**GOOD, "fold": "3"}), "line 3: field 'fold' is '3'; expected type int"),
        (json.dumps({**GOOD, "fold": True}), "field 'fold' is True"),
        (json.dumps({"id": "x", "label": "pos", "fold": 1}), "field 'text' is missing; expected type str"),
        (json.dumps({**GOOD, "label": "mixed"}), "document pos/1 has the label 'mixed'; expected neg or pos"),
        (b"\xff\xfe", "line 3: not utf-8 text"),
    ],
)
def test_broken_lines_are_named(tmp_path, line, message):
    bad = line if isinstance(line, bytes) else line.encode()
    write(tmp_path / MOVIES, json.dumps(GOOD).encode() + b"\n\n" + bad + b"\n")
    with pytest.raises(DataFormatError, match=message):
        datasets.load_movie_reviews(data_home=tmp_path)


def test_files_without_documents(tmp_path):
    write(tmp_path / MOVIES, "\n\n")
    with pytest.raises(DataFormatError, match="has no documents"):
        datasets.load_movie_reviews(data_home=tmp_path)
    write_json_lines(tmp_path / NEWS, [post(1, "sci.med", "train")])
    with pytest.raises(DataFormatError, match='no document whose split is "test"'):
        datasets.fetch_20newsgroups("test", data_home=tmp_path)


def test_progress_is_shown_when_asked_for(home, capsys, monkeypatch):
    datasets.load_movie_reviews(data_home=home)
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("cvxstructreg.datasets.reading.PROGRESS_INTERVAL", -1.0)
    datasets.load_movie_reviews(data_home=home, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert "movie_polarity_v2.jsonl.gz: 1 lines, 100 %" in lines
    assert lines[-1] == "movie_polarity_v2.jsonl.gz: 3 lines read"
