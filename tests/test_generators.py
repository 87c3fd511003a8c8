"""Generators: the same data for the same seed, the truth that they promise, and models that find it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import Bunch

import cvxstructreg as csr
from cvxstructreg.datasets import (
    make_graph_smooth,
    make_moons_with_pairs,
    make_relevant_sentences,
    make_sparse_text,
)

MAKERS = [make_graph_smooth, make_moons_with_pairs, make_relevant_sentences, make_sparse_text]


def flat(bunch: Bunch) -> dict[str, object]:
    """The parts of a bunch in a form that can be compared."""
    parts = {}
    for name, value in bunch.items():
        if sparse.issparse(value):
            value = value.toarray()
        elif isinstance(value, csr.Groups):
            value = [group.tolist() for group in value]
        elif isinstance(value, csr.Graph):
            value = value.weights.toarray()
        parts[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return parts


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides(make):
    first, second, other = (flat(make(50, random_state=seed)) for seed in (3, 3, 4))
    assert first == second
    assert first["data"] != other["data"]
    assert flat(make(50, random_state=np.random.default_rng(3))) == first
    old = [flat(make(50, random_state=np.random.RandomState(seed)))["data"] for seed in (3, 3, 4)]
    assert old[0] == old[1] != old[2]
    assert len(make(50).target) == 50


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        ("0", TypeError, "must be an integer"),
        (-1, ValueError, "must not be negative"),
        (True, TypeError, "must be an integer"),
    ],
)
def test_bad_seeds(make, seed, error, message):
    with pytest.raises(error, match=f"random_state {message}"):
        make(50, random_state=seed)


# --- graph-smooth weights ---------------------------------------------------------------------------------------------


def test_modules_of_the_graph_are_connected_and_apart():
    bunch = make_graph_smooth(10, 47, n_modules=7, random_state=0)
    n_parts, part = csgraph.connected_components(bunch.graph.weights)
    assert n_parts == 7 and len(set(zip(part, bunch.modules, strict=True))) == 7
    assert set(np.bincount(bunch.modules)) == {6, 7}
    assert [group.tolist() for group in bunch.groups] == [np.flatnonzero(bunch.modules == m).tolist() for m in range(7)]
    wrong = make_graph_smooth(10, 47, n_modules=7, n_random_edges=30, random_state=0).graph
    i, j, _ = wrong.edges()
    assert np.sum(bunch.modules[i] != bunch.modules[j]) == 30


def test_degrees_are_about_as_asked():
    for degree in (2, 4, 10):
        graph = make_graph_smooth(2, 1000, n_modules=5, degree=degree, random_state=1).graph
        assert abs(graph.degrees.mean() - degree) < 1.0


def test_weights_are_the_truth():
    bunch = make_graph_smooth(80, 60, n_modules=6, n_relevant=3, signal=2.0, roughness=0.0, random_state=2)
    assert bunch.relevant.sum() == 30 and np.all(bunch.coef[~bunch.relevant] == 0)
    assert set(np.abs(bunch.coef[bunch.relevant])) == {2.0} and set(bunch.coef) == {-2.0, 0.0, 2.0}
    assert bunch.coef @ bunch.graph.laplacian() @ bunch.coef == 0.0  # smooth: equal within each module
    np.testing.assert_allclose(bunch.scores, bunch.data @ bunch.coef)
    exact = make_graph_smooth(80, 60, noise=0.0, random_state=2)
    np.testing.assert_array_equal(exact.target, exact.scores > 0)
    real = make_graph_smooth(80, 60, noise=0.0, task="regression", random_state=2)
    np.testing.assert_array_equal(real.target, real.scores)
    assert not make_graph_smooth(5, 20, n_relevant=0, random_state=0).relevant.any()


def test_noise_and_correlation_are_what_they_say():
    bunch = make_graph_smooth(20_000, 6, n_modules=2, correlation=0.7, noise=3.0, task="regression", random_state=0)
    assert np.std(bunch.target - bunch.scores) == pytest.approx(3.0, rel=0.05)
    inside = bunch.modules[:, None] == bunch.modules
    expected = np.where(inside, 0.7, 0.0) + 0.3 * np.eye(6)
    np.testing.assert_allclose(np.corrcoef(bunch.data.T), expected, atol=0.03)


def test_the_graph_helps_to_find_the_weights():
    options = {"n_modules": 10, "n_relevant": 2, "correlation": 0.0, "task": "regression"}
    better = 0
    for seed in range(5):
        bunch = make_graph_smooth(60, 100, **options, random_state=seed)
        model, loss = csr.Linear(bunch.data, intercept=False), csr.Squared(bunch.target)
        smooth = csr.Problem(model, loss + 3.0 * csr.Laplacian(bunch.graph) + 0.1 * csr.Ridge()).solve().coef
        plain = Ridge(alpha=1.0, fit_intercept=False).fit(bunch.data, bunch.target).coef_
        better += np.linalg.norm(np.ravel(smooth) - bunch.coef) < 0.7 * np.linalg.norm(plain - bunch.coef)
    assert better == 5


# --- texts ------------------------------------------------------------------------------------------------------------


def test_texts_and_matrix_say_the_same():
    bunch = make_relevant_sentences(60, 120, random_state=0)
    vectorizer = CountVectorizer(vocabulary=bunch.feature_names)
    np.testing.assert_array_equal(vectorizer.fit_transform(bunch.data).toarray(), bunch.X.toarray())
    sentences = [sentence for document in bunch.sentences for sentence in document]
    assert len(sentences) == len(bunch.groups) == len(bunch.relevant_groups) == len(bunch.group_document)
    words = vectorizer.transform(sentences)
    assert [row.indices.tolist() for row in words] == [group.tolist() for group in bunch.groups]
    assert [" ".join(document) for document in bunch.sentences] == bunch.data
    counts = np.bincount(bunch.group_document, minlength=60)
    assert counts.tolist() == [len(document) for document in bunch.sentences]


@pytest.mark.parametrize("n_relevant", [0, 1, 3])
def test_so_many_sentences_are_relevant(n_relevant):
    bunch = make_relevant_sentences(100, n_sentences=3, n_relevant=n_relevant, random_state=1)
    relevant = np.bincount(bunch.group_document, bunch.relevant_groups, minlength=100)
    there = [len(document) for document in bunch.sentences]
    np.testing.assert_array_equal(relevant, np.minimum(there, n_relevant))


def test_only_relevant_sentences_carry_the_label():
    bunch = make_relevant_sentences(300, 300, purity=1.0, exponent=0.0, random_state=2)
    sign = 2 * bunch.target[bunch.group_document] - 1
    for group, relevant, side in zip(bunch.groups, bunch.relevant_groups, sign, strict=True):
        if relevant:
            assert np.all(bunch.coef[group] == side)  # topic words of the right label, and nothing else
    votes = bunch.X @ bunch.coef
    assert np.mean((votes > 0) == bunch.target) > 0.97
    rest = np.array([bunch.coef[group].sum() for group in bunch.groups])[~bunch.relevant_groups]
    assert abs(np.mean(rest * sign[~bunch.relevant_groups])) < 0.1
    assert np.sum(bunch.coef == 1) == np.sum(bunch.coef == -1) == 10


def test_word_frequencies_follow_zipf():
    bunch = make_sparse_text(5000, 200, n_topic_words=0, exponent=1.2, random_state=0)
    counts = np.asarray(bunch.data.sum(axis=0)).ravel()
    slope = np.polyfit(np.log(np.arange(1, 101)), np.log(counts[:100]), 1)[0]
    assert slope == pytest.approx(-1.2, abs=0.05)
    assert not bunch.coef.any()


def test_label_noise_flips_so_many_labels():
    clean = make_sparse_text(4000, 300, label_noise=0.0, random_state=5)
    noisy = make_sparse_text(4000, 300, label_noise=0.2, random_state=5)
    assert np.mean(clean.target != noisy.target) == pytest.approx(0.2, abs=0.03)
    assert abs(clean.data - noisy.data).nnz == 0


def test_labels_can_be_learned():
    bunch = make_sparse_text(2000, 1000, random_state=0)
    model = LogisticRegression(C=0.3, max_iter=1000).fit(bunch.data[:1000], bunch.target[:1000])
    assert 0.75 < model.score(bunch.data[1000:], bunch.target[1000:]) < 0.97
    chosen = bunch.coef != 0
    assert np.mean(np.sign(model.coef_[0, chosen]) == bunch.coef[chosen]) > 0.9


def test_groups_of_the_first_documents():
    whole, part = (make_sparse_text(100, 200, n_grouped=k, random_state=0) for k in (None, 30))
    kept = np.sum(whole.group_document < 30)
    assert len(part.groups) == len(part.relevant_groups) == kept < len(whole.groups)
    assert [group.tolist() for group in part.groups] == [whole.groups[g].tolist() for g in range(kept)]
    assert abs(part.data - whole.data).nnz == 0
    assert len(make_sparse_text(100, 200, n_grouped=0, random_state=0).groups) == 0


def test_large_texts_stay_sparse():
    bunch = make_sparse_text(20_000, 5000, random_state=0)
    assert bunch.data.format == "csr" and bunch.data.nnz < 20_000 * 60
    assert bunch.groups.n_features == 5000 and len(bunch.groups) > 80_000


# --- moons ------------------------------------------------------------------------------------------------------------


def test_moons_and_their_pairs():
    bunch = make_moons_with_pairs(120, n_labeled=3, n_pairs=200, wrong=0.25, random_state=0)
    assert bunch.data.shape == (120, 2) and np.bincount(bunch.target).tolist() == [60, 60]
    assert np.bincount(bunch.target[bunch.labeled_idx]).tolist() == [3, 3]
    assert sorted([*bunch.labeled_idx, *bunch.unlabeled_idx]) == list(range(120))
    np.testing.assert_array_equal(bunch.semi_target[bunch.labeled_idx], bunch.target[bunch.labeled_idx])
    assert set(bunch.semi_target[bunch.unlabeled_idx]) == {-1}
    differ = bunch.target[bunch.pairs[:, 0]] != bunch.target[bunch.pairs[:, 1]]
    np.testing.assert_array_equal(differ, ~bunch.wrong_pairs)
    assert bunch.wrong_pairs.sum() == 50
    assert len(np.unique(np.sort(bunch.pairs, axis=1), axis=0)) == 200  # distinct, in either order
    assert np.all(bunch.pairs[:, 0] != bunch.pairs[:, 1]) and np.isin(bunch.pairs, bunch.unlabeled_idx).all()


def test_all_pairs_can_be_had():
    bunch = make_moons_with_pairs(12, n_pairs=25, random_state=0)
    assert len(np.unique(bunch.pairs, axis=0)) == 25
    same = make_moons_with_pairs(12, n_pairs=20, wrong=1.0, random_state=0)
    assert same.wrong_pairs.all() and len(np.unique(np.sort(same.pairs, axis=1), axis=0)) == 20
    assert make_moons_with_pairs(12, n_pairs=0, random_state=0).pairs.shape == (0, 2)


def test_moons_without_noise_are_half_circles():
    bunch = make_moons_with_pairs(50, noise=0.0, random_state=0)
    upper = bunch.data[bunch.target == 0]
    np.testing.assert_allclose(np.linalg.norm(upper, axis=1), 1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: make_graph_smooth(0), ValueError, "n_samples must be at least 1"),
        (lambda: make_graph_smooth(10, 2.5), TypeError, "n_features must be an integer"),
        (lambda: make_graph_smooth(10, 5, n_modules=6), ValueError, "n_modules is 6, but there are only 5 features"),
        (lambda: make_graph_smooth(n_relevant=11), ValueError, r"n_relevant must be from 0 to 10 \(the number of mod"),
        (lambda: make_graph_smooth(n_relevant=1.5), TypeError, "n_relevant must be an integer"),
        (lambda: make_graph_smooth(noise=-1), ValueError, "noise must be at least 0"),
        (lambda: make_graph_smooth(signal=np.inf), ValueError, "signal must be at least 0 and finite"),
        (lambda: make_graph_smooth(roughness="0"), TypeError, "roughness must be a number"),
        (lambda: make_graph_smooth(correlation=1.1), ValueError, "correlation must be from 0 to 1"),
        (lambda: make_graph_smooth(task="ranking"), ValueError, '"classification" or "regression"'),
        (lambda: make_graph_smooth(degree=0), ValueError, "degree must be at least 1"),
        (lambda: make_graph_smooth(5, 4, n_modules=2, n_relevant=1, n_random_edges=5), ValueError, "from 0 to 4"),
        (lambda: make_relevant_sentences(0), ValueError, "n_samples must be at least 1"),
        (lambda: make_relevant_sentences(n_sentences=0.5), ValueError, "must be at least 1"),
        (lambda: make_relevant_sentences(sentence_length=np.nan), ValueError, "sentence_length must be"),
        (lambda: make_relevant_sentences(10, 20, n_topic_words=10), ValueError, "n_topic_words must be from 0 to 9"),
        (lambda: make_relevant_sentences(purity=2), ValueError, "purity must be from 0 to 1"),
        (lambda: make_relevant_sentences(n_relevant=-1), ValueError, "n_relevant must be from 0"),
        (lambda: make_sparse_text(exponent=-1), ValueError, "exponent must be at least 0"),
        (lambda: make_sparse_text(label_noise=1.5), ValueError, "label_noise must be from 0 to 1"),
        (lambda: make_sparse_text(10, n_grouped=11), ValueError, r"n_grouped must be from 0 to 10 \(n_samples\)"),
        (lambda: make_moons_with_pairs(3), ValueError, "n_samples must be at least 4"),
        (lambda: make_moons_with_pairs(10, n_labeled=5), ValueError, "n_labeled must be from 0 to 4"),
        (lambda: make_moons_with_pairs(10, n_labeled=0), ValueError, "n_labeled must be at least 1"),
        (
            lambda: make_moons_with_pairs(12, n_pairs=26),
            ValueError,
            "26 pairs of different moons, but there are only 25",
        ),
        (lambda: make_moons_with_pairs(12, n_pairs=-1), ValueError, "n_pairs must be from 0"),
        (lambda: make_moons_with_pairs(wrong=-0.1), ValueError, "wrong must be from 0 to 1"),
    ],
)
def test_bad_options(call, error, message):
    with pytest.raises(error, match=message):
        call()
