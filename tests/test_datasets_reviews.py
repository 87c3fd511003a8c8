"""Reviews of films and of products."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset_files import folder_with_every_set, hide_folders, write

from cvxstructreg import datasets
from cvxstructreg.datasets import DataFormatError


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_folders(monkeypatch, tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return folder_with_every_set(tmp_path)


def test_movie_reviews(home):
    bunch = datasets.load_movie_reviews(data_home=home)
    assert bunch.target.tolist() == [0, 1, 1] and bunch.fold.tolist() == [0, 0, 1]
    assert bunch.sentences == [["dull .", "long ."], ["fine ."], ["fun ."]]
    assert datasets.load_movie_reviews(1, data_home=home).data == ["fun ."]
    assert len(datasets.load_movie_reviews([0, 1], data_home=home).data) == 3
    for folds in (7, [0, 7], [], [0.5]):
        with pytest.raises(ValueError, match=r"folds must be among \[0, 1\]"):
            datasets.load_movie_reviews(folds, data_home=home)


def test_movie_reviews_as_published(tmp_path):
    folder = tmp_path / "movie_reviews" / "txt_sentoken"
    write(folder / "neg" / "cv123_1.txt", "caf\xe9 .\nno .\n".encode("latin-1"))
    write(folder / "pos" / "cv999_2.txt", "yes .\r\nmore .\r\n")
    bunch = datasets.load_movie_reviews(data_home=tmp_path)
    assert bunch.ids.tolist() == ["neg/cv123_1", "pos/cv999_2"]
    assert bunch.data[1] == "yes .\nmore .\n"
    assert bunch.fold.tolist() == [1, 9] and bunch.sentences[0] == ["café .", "no ."]
    write(folder / "pos" / "cvx.txt", "x")
    with pytest.raises(DataFormatError, match=r"cvx\.txt is not a review"):
        datasets.load_movie_reviews(data_home=tmp_path)


def test_an_empty_published_folder(tmp_path):
    (tmp_path / "movie_reviews" / "txt_sentoken").mkdir(parents=True)
    with pytest.raises(DataFormatError, match="has no reviews"):
        datasets.load_movie_reviews(data_home=tmp_path)


def test_multi_domain_reviews(home):
    bunch = datasets.load_multi_domain_reviews(data_home=home)
    assert bunch.groups.tolist() == [0, 1, 0] and bunch.n_repeated == 1
    assert bunch.target.tolist() == [1, 0, 1] and bunch.rating.tolist() == [4.0, 5.0, 4.0]
    kitchen = datasets.load_multi_domain_reviews("kitchen", data_home=home)
    assert kitchen.titles == ["title 0", "title 1"] and set(kitchen.domain) == {"kitchen"}
    for domain in ("cars", ["kitchen", "cars"], []):
        with pytest.raises(ValueError, match="domain must be among books, kitchen"):
            datasets.load_multi_domain_reviews(domain, data_home=home)


def test_groups_keep_repeated_texts_together(home):
    from sklearn.model_selection import GroupKFold

    bunch = datasets.load_multi_domain_reviews(data_home=home)
    for train, test in GroupKFold(2).split(bunch.data, bunch.target, bunch.groups):
        assert not {" ".join(bunch.data[i].lower().split()) for i in train} & {bunch.data[i].lower() for i in test}
