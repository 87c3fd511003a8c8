"""The loaders on the real data, where they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from dataset_files import hide_folders

from cvxstructreg import datasets

BESIDE = Path(__file__).parent.parent.parent / "shared" / "data"
DATA = next((path for path in (Path(os.environ.get("CVXSTRUCTREG_DATA", BESIDE)), BESIDE) if path.is_dir()), None)


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_folders(monkeypatch, tmp_path)


def check_newsgroups(home):
    train = datasets.fetch_20newsgroups(data_home=home)
    # the beginning of scikit-learn's own training set, as its user guide prints it
    assert train.target[:10].tolist() == [7, 4, 4, 1, 14, 16, 13, 3, 2, 4]
    assert len(train.data) == 11314 and len(train.target_names) == 20
    sizes = {"computer": 1168, "science": 1187, "sports": 1197, "religion": 1079}
    test_sizes = {"computer": 777, "science": 790, "sports": 796, "religion": 717}
    everything = datasets.fetch_20newsgroups("all", data_home=home)
    for pair, names in datasets.NEWSGROUP_PAIRS.items():
        chosen = np.isin(everything.target, [everything.target_names.index(name) for name in names])
        if pair in sizes:
            assert np.sum(everything.split[chosen] == "train") == sizes[pair]
            assert np.sum(everything.split[chosen] == "test") == test_sizes[pair]


def check_movies(home):
    bunch = datasets.load_movie_reviews(data_home=home)
    assert np.bincount(bunch.fold * 2 + bunch.target).tolist() == [100] * 20
    assert bunch.sentences[0][1] == "they get into an accident ."


def check_domains(home):
    bunch = datasets.load_multi_domain_reviews("electronics", data_home=home)
    assert np.bincount(bunch.target).tolist() == [1000, 1000]
    assert bunch.n_repeated == len(bunch.data) - len(np.unique(bunch.groups)) > 0
    assert np.all((bunch.rating > 3) == (bunch.target == 1))


def check_matrices(home):
    for load, shape, n_classes in [
        (datasets.load_g50c, (550, 50), 2),
        (datasets.load_mac_windows, (1946, 7511), 2),
        (datasets.load_uspst, (2007, 256), 10),
    ]:
        bunch = load(data_home=home)
        assert bunch.data.shape == shape and len(bunch.target_names) == n_classes
        assert bunch.labeled_idx.shape == (10, 50) and bunch.unlabeled_idx.shape == (10, shape[0] - 50)


def check_expression(home):
    bunch = datasets.load_diabetes_expression(data_home=home)
    report = bunch.pathway_report
    assert bunch.data.shape == (34, 15056) and np.bincount(bunch.target).tolist() == [17, 17]
    assert (report.n_multi_symbol, report.n_probes) == (210, 2153)
    assert (report.n_sets, report.n_symbols_found, report.n_symbols) == (522, 5158, 5602)
    report = datasets.load_diabetes_expression("kegg", data_home=home).pathway_report
    assert (report.n_sets, report.n_symbols_found, report.n_symbols) == (186, 3716, 5245)


def check_lexicons(home):
    words = datasets.load_opinion_words(data_home=home)
    assert (len(words.positive), len(words.negative)) == (2006, 4783)
    assert len(datasets.load_stopwords(data_home=home).words) == 179
    chosen = [*words.positive, *words.negative]
    bunch = datasets.load_wordnet(chosen, data_home=home)
    assert ("bad", "good") in bunch.antonyms and ("awful", "terrible") in bunch.synonyms
    senti = datasets.load_sentiwordnet(data_home=home)
    assert len(senti.synset_ids) == 117659
    score = dict(zip(senti.words, senti.positive - senti.negative, strict=True))
    known = [np.mean([score[word] for word in side if word in score]) for side in (words.positive, words.negative)]
    assert known[0] > 0.1 > -0.1 > known[1]  # the two lexicons agree on the whole


def check_vectors(home):
    bunch = datasets.load_word_vectors({"good": 0, "great": 1, "carburetor": 2}, data_home=home)
    unit = bunch.data / np.linalg.norm(bunch.data, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.6 > unit[0] @ unit[2]
    assert datasets.load_word_vectors(data_home=home).data.shape == (49819, 100)


REAL = [
    pytest.param(check_newsgroups, marks=pytest.mark.slow),
    check_movies,
    check_domains,
    check_matrices,
    check_expression,
    pytest.param(check_lexicons, marks=pytest.mark.slow),
    check_vectors,
]
# one skip, not one for each, where there are no data: skips are counted
ABSENT = [pytest.param(None, marks=pytest.mark.skip(reason="no data: set CVXSTRUCTREG_DATA to their folder"))]


@pytest.mark.parametrize("check", REAL if DATA else ABSENT)
def test_real_data(check):
    check(DATA)
