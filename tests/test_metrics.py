"""Metrics: against scikit-learn, SciPy, counting by hand and known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, make_scorer, recall_score

from cvxstructreg import Graph, Groups, metrics
from cvxstructreg.metrics import (
    accuracy,
    average_feature_separation,
    binary_report,
    corrected_resampled_t_test,
    feature_separation,
    mcnemar_test,
    model_size,
    n_selected_features,
    n_selected_groups,
    paired_t_test,
    selected_features,
    sensitivity,
    sign_test,
    specificity,
)

# --- classification ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), ("no", "yes"), (7, 3)])
def test_rates_agree_with_scikit_learn(labels):
    rng = np.random.default_rng(0)
    truth, guess = (np.array(labels)[rng.integers(2, size=50)] for _ in range(2))
    positive = labels[1]
    chosen = {} if set(labels) in ({0, 1}, {-1, 1}) else {"pos_label": positive}
    report = binary_report(truth, guess, **chosen)
    recall = recall_score(truth, guess, pos_label=positive)
    assert sensitivity(truth, guess, **chosen) == report.sensitivity == pytest.approx(recall)
    recall = recall_score(truth, guess, pos_label=labels[0])
    assert specificity(truth, guess, **chosen) == report.specificity == pytest.approx(recall)
    assert accuracy(truth, guess) == report.accuracy == pytest.approx(accuracy_score(truth, guess))


def test_rates_are_the_other_way_round_for_the_other_label():
    truth, guess = ["a", "a", "a", "b"], ["a", "b", "a", "b"]
    assert sensitivity(truth, guess, "a") == specificity(truth, guess, "b") == pytest.approx(2 / 3)
    assert sensitivity(truth, guess, "b") == specificity(truth, guess, "a") == 1.0


def test_one_class_against_the_rest():
    report = binary_report(["a", "b", "c", "c"], ["a", "c", "b", "a"], pos_label="a")
    assert (report.sensitivity, report.specificity, report.accuracy) == (1.0, pytest.approx(2 / 3), 0.75)
    assert accuracy(["a", "b", "c", "c"], ["a", "c", "b", "a"]) == 0.25


def test_rates_that_are_not_defined():
    assert np.isnan(sensitivity([0, 0], [0, 1])) and specificity([0, 0], [0, 1]) == 0.5
    assert np.isnan(specificity([1, 1], [1, -1]))
    assert np.isnan(sensitivity([0, 0], [0, 0], pos_label=1))


def test_report_in_words():
    words = str(binary_report([1, 1, -1], [1, -1, -1]))
    assert words == "sensitivity 0.5000 (1 of 2), specificity 1.0000 (1 of 1), accuracy 0.6667"


def test_rates_are_scorers():
    class Model(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def predict(self, X):
            return X[:, 0]

    scorer = make_scorer(specificity)
    assert scorer(Model(), np.array([[1], [0], [1]]), np.array([1, 0, 0])) == 0.5


@pytest.mark.parametrize(
    ("truth", "guess", "options", "error", "message"),
    [
        ([0, 1], [0], {}, ValueError, "y_true has 2 labels and y_pred 1"),
        ([], [], {}, ValueError, "are empty"),
        ([[0, 1]], [[0, 1]], {}, ValueError, r"one-dimensional list of labels, not of shape \(1, 2\)"),
        ([0, np.nan], [0, 1], {}, ValueError, "y_true has NaN at position 1"),
        (["a", "b"], ["a", None], {}, ValueError, "y_pred has None"),
        (["a", "b"], ["a", "b"], {}, ValueError, "pass pos_label=, one of 'a', 'b'; only"),
        ([0, 1, 2], [0, 1, 2], {}, ValueError, "pass pos_label=, one of 0, 1, 2; only"),
        (["a", "b"], ["a", "b"], {"pos_label": "c"}, ValueError, "'c' is not among the labels 'a', 'b'"),
        (["1", "0"], [1, 0], {}, TypeError, "use the same kind in both"),
    ],
)
def test_bad_labels(truth, guess, options, error, message):
    with pytest.raises(error, match=message):
        binary_report(truth, guess, **options)


# --- selection --------------------------------------------------------------------------------------------------------


def test_selected_features():
    coef = np.array([0.0, 1e-9, -2.0, 0.5])
    assert selected_features(coef).tolist() == [1, 2, 3] and n_selected_features(coef) == 3
    assert selected_features(coef, tol=1e-6).tolist() == [2, 3] and model_size(coef, tol=1e-6) == 50.0
    assert selected_features(coef, tol=0.5).tolist() == [2]
    matrix = np.array([[0.0, 0.0], [0.0, 3.0], [1.0, -1.0]])
    assert selected_features(matrix).tolist() == [1, 2] and model_size(matrix) == pytest.approx(200 / 3)
    assert model_size(np.zeros(4)) == 0.0 and n_selected_features(np.zeros((4, 1))) == 0


def test_selected_groups_against_counting():
    rng = np.random.default_rng(1)
    lists = [rng.choice(12, size=rng.integers(1, 5), replace=False) for _ in range(20)]
    groups = Groups(lists, n_features=12)
    for _ in range(20):
        coef = rng.normal(size=12) * (rng.random(12) < 0.5)
        chosen = [np.count_nonzero(coef[group]) for group in lists]
        assert n_selected_groups(coef, groups) == sum(count >= 1 for count in chosen)
        assert n_selected_groups(coef, groups, min_members=2) == sum(count >= 2 for count in chosen)
        whole = sum(count == len(group) for count, group in zip(chosen, lists, strict=True))
        assert n_selected_groups(coef, groups, min_members="all") == whole


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: n_selected_features(np.ones((2, 2, 2))), ValueError, r"shape \(d,\) or \(d, k\)"),
        (lambda: n_selected_features([]), ValueError, "not"),
        (lambda: n_selected_features([np.nan]), ValueError, "NaN or infinite"),
        (lambda: n_selected_features(["a"]), TypeError, "coef must be real numbers"),
        (lambda: model_size([1.0], tol=-1), ValueError, "tol must be at least 0"),
        (lambda: model_size([1.0], tol=np.nan), ValueError, "tol must be at least 0"),
        (lambda: n_selected_groups([1.0], [[0]]), TypeError, "must be a Groups object, not list"),
        (lambda: n_selected_groups([[1.0, 2.0]], Groups([[0, 1]])), ValueError, r"coef has 1 rows.*coef_\.T"),
        (lambda: n_selected_groups([1.0], Groups([[0]]), min_members=0), ValueError, "min_members must be at least"),
        (lambda: n_selected_groups([1.0], Groups([[0]]), min_members="any"), ValueError, 'a number or "all"'),
    ],
)
def test_bad_coefficients(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- separation -------------------------------------------------------------------------------------------------------

PATH = Graph.from_edges([(0, 1), (1, 2), (2, 3)], [2.0, -4.0, 1.0], names=list("abcdef"))


def all_distances(lengths: np.ndarray) -> np.ndarray:
    """Floyd and Warshall's algorithm, on a matrix with inf for no edge."""
    distances = np.where(np.eye(len(lengths), dtype=bool), 0.0, lengths)
    for middle in range(len(lengths)):
        distances = np.minimum(distances, distances[:, [middle]] + distances[[middle]])
    return distances


@pytest.mark.parametrize("chunk", [1, 5, 256])
@pytest.mark.parametrize("length", ["hops", "inverse"])
def test_separation_against_a_plain_algorithm(monkeypatch, chunk, length):
    monkeypatch.setattr("cvxstructreg.metrics.separation.CHUNK", chunk)
    rng = np.random.default_rng(0)
    W = np.triu(rng.uniform(0.1, 3.0, size=(40, 40)) * (rng.random((40, 40)) < 0.04), 1)
    W = W + W.T
    lengths = np.full(W.shape, np.inf)
    lengths[W > 0] = 1.0 if length == "hops" else 1.0 / W[W > 0]
    chosen = rng.choice(40, 12, replace=False)
    distances = all_distances(lengths)[np.ix_(chosen, chosen)][np.triu_indices(12, 1)]
    known = distances[np.isfinite(distances)]
    result = feature_separation(chosen, Graph(W), length=length)
    assert 0 < len(known) < 66  # the example has pairs of both kinds
    assert result.mean == pytest.approx(known.mean())
    assert (result.n_selected, result.n_pairs, result.n_unreachable) == (12, 66, 66 - len(known))
    penalised = feature_separation(chosen, Graph(W), unreachable=40, length=length).mean
    assert penalised == pytest.approx((known.sum() + 40 * (66 - len(known))) / 66)


def test_pairs_without_a_path():
    assert feature_separation([0, 2, 5], PATH).mean == 2.0
    assert feature_separation([0, 2, 5], PATH, unreachable="infinite").mean == np.inf
    assert feature_separation([0, 2, 5], PATH, unreachable=8).mean == 6.0
    assert feature_separation([0, 2], PATH, unreachable="infinite").mean == 2.0
    assert feature_separation([0, 2], PATH, unreachable="error").mean == 2.0
    with pytest.raises(ValueError, match="2 of the 3 pairs of selected features have no path"):
        feature_separation([0, 2, 5], PATH, unreachable="error")
    assert "2 of 3 pairs have no path" in str(feature_separation([0, 2, 5], PATH))


def test_separation_of_few_features_is_not_defined():
    for chosen in ([], [3]):
        result = feature_separation(chosen, PATH)
        assert np.isnan(result.mean) and result.n_pairs == 0
    assert np.isnan(average_feature_separation([4, 5], PATH))


def test_names_masks_signs_and_directions():
    mask = np.array([True, False, True, False, False, False])
    for chosen in (["a", "c"], [0, 2], mask, selected_features(mask.astype(float))):
        assert float(feature_separation(chosen, PATH)) == average_feature_separation(chosen, PATH) == 2.0
    assert feature_separation(["a", "c"], PATH.similarity()).n_unreachable == 1
    assert feature_separation(["a", "d"], PATH, length="inverse").mean == pytest.approx(0.5 + 0.25 + 1.0)
    directed = Graph.from_edges([(0, 1), (2, 1), (1, 2)], [1.0, 4.0, 2.0], directed=True)
    assert average_feature_separation([0, 2], directed) == average_feature_separation([2, 0], directed) == 2.0
    assert average_feature_separation([0, 2], directed, length="inverse") == 1.25  # the shorter of two directions


def test_paths_go_through_virtual_nodes():
    graph = Graph.from_edges([(0, 1), (0, 2), (0, 3)], virtual=[0])  # a class mean, then three words
    result = feature_separation([0, 1, 2], graph)
    assert result.mean == 2.0 and result.n_pairs == 3


@pytest.mark.parametrize(
    ("chosen", "options", "error", "message"),
    [
        ([0, 9], {}, ValueError, "feature index 9 in selected is out of range"),
        ([0, 0], {}, ValueError, "selected contains a feature twice"),
        (["a", "z"], {}, ValueError, "unknown feature name 'z'"),
        ([True, False], {}, ValueError, "mask of 2 entries, expected 6"),
        ([[0, 1]], {}, ValueError, "one-dimensional list"),
        ([0.5], {}, TypeError, "must be integer indices"),
        ([0], {"length": "euclidean"}, ValueError, '"hops" or "inverse"'),
        ([0], {"unreachable": "skip"}, ValueError, '"ignore", "infinite", "error" or a length'),
        ([0], {"unreachable": -1}, ValueError, "at least 0"),
        ([0], {"unreachable": None}, ValueError, "at least 0"),
    ],
)
def test_bad_requests_for_separation(chosen, options, error, message):
    with pytest.raises(error, match=message):
        feature_separation(chosen, PATH, **options)


def test_separation_needs_a_graph():
    with pytest.raises(TypeError, match="must be a Graph object, not ndarray"):
        feature_separation([0], np.zeros((2, 2)))


# --- paired tests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("seed", range(4))
def test_t_test_agrees_with_scipy(alternative, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=10), rng.normal(0.3, size=10)
    result, expected = paired_t_test(a, b, alternative), stats.ttest_rel(a, b, alternative=alternative)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.p_value == pytest.approx(expected.pvalue)
    assert result.difference == pytest.approx(np.mean(a - b))
    assert (result.n, result.wins) == (10, np.sum(a > b))


def test_corrected_t_test_by_its_formula():
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.8, 0.05, size=30), rng.normal(0.78, 0.05, size=30)
    result = corrected_resampled_t_test(a, b, n_train=90, n_test=10)
    d = a - b
    t = d.mean() / np.sqrt((1 / 30 + 10 / 90) * d.var(ddof=1))
    assert result.statistic == pytest.approx(t)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(t), 29))
    assert result.p_value > paired_t_test(a, b).p_value
    greater = corrected_resampled_t_test(a, b, 90, 10, "greater")
    less = corrected_resampled_t_test(a, b, 90, 10, "less")
    assert greater.p_value + less.p_value == pytest.approx(1.0)


def test_correction_keeps_the_level_on_overlapping_splits():
    # scores of two equal models on random splits of the same 40 examples: the plain test rejects far too often
    rng = np.random.default_rng(0)
    plain = corrected = 0
    for _ in range(300):
        right = rng.random((2, 40)) < 0.7
        splits = [rng.permutation(40)[:8] for _ in range(30)]
        a, b = ([model[split].mean() for split in splits] for model in right)
        plain += paired_t_test(a, b).significant()
        corrected += corrected_resampled_t_test(a, b, 32, 8).significant()
    assert corrected < plain / 2 and plain > 100


def test_equal_differences():
    same = paired_t_test([0.5, 0.7, 0.1 + 0.2], [0.5, 0.7, 0.3])
    assert (same.statistic, same.p_value, same.ties) == (0.0, 1.0, 3)
    shifted = paired_t_test([0.90, 0.70, 0.30], [0.89, 0.69, 0.29])
    assert (shifted.statistic, shifted.p_value, shifted.wins) == (np.inf, 0.0, 3)
    assert paired_t_test([0.1, 0.2], [0.2, 0.3]).statistic == -np.inf
    assert paired_t_test([0.1, 0.2], [0.2, 0.3], "greater").p_value == 1.0
    assert paired_t_test([0.1, 0.2], [0.2, 0.3], "less").p_value == 0.0


def test_sign_test_by_counting():
    result = sign_test([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 9, 6])
    assert (result.wins, result.losses, result.ties, result.statistic) == (4, 1, 1, 4.0)
    assert result.p_value == pytest.approx(2 * (1 + 5) / 2**5)
    assert sign_test([1, 2, 3], [0, 1, 2], "greater").p_value == pytest.approx(1 / 8)
    assert sign_test([1, 2, 3], [0, 1, 2], "less").p_value == 1.0
    assert sign_test([1, 1], [1, 1]).p_value == 1.0


def test_mcnemar_by_counting():
    truth = np.array(["x"] * 20)
    a, b = truth.copy(), truth.copy()
    a[:2], b[2:10], a[18], b[18] = "y", "y", "y", "y"
    result = mcnemar_test(truth, a, b)
    assert (result.wins, result.losses, result.ties) == (8, 2, 10)
    assert result.p_value == pytest.approx(stats.binomtest(8, 10).pvalue)
    assert result.difference == pytest.approx(6 / 20)
    assert mcnemar_test(truth, a, b, "greater").p_value == pytest.approx(stats.binom.sf(7, 10, 0.5))
    chi2 = mcnemar_test(truth, a, b, method="chi2")
    assert chi2.statistic == pytest.approx(2.5) and chi2.p_value == pytest.approx(stats.chi2.sf(2.5, 1))
    assert mcnemar_test(truth, a, a, method="chi2").p_value == mcnemar_test(truth, a, a).p_value == 1.0
    b[:2] = "y"
    a[:8] = "y"
    assert mcnemar_test(truth, a, b, method="chi2").p_value > 0.4


def test_results_in_words():
    words = str(paired_t_test([0.90, 0.92, 0.88], [0.89, 0.89, 0.89], "greater"))
    assert words.startswith("paired t-test (greater): mean difference +0.01, t(2) = ")
    assert words.endswith("2 wins, 1 losses, 0 ties")
    result = sign_test([3, 4, 5, 6, 7, 8], [2, 3, 4, 5, 6, 7])
    assert result.significant() and not result.significant(0.01)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        result.significant(5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: paired_t_test([1.0], [2.0]), ValueError, "at least 2 pairs"),
        (lambda: sign_test([], []), ValueError, "at least 1 pairs"),
        (lambda: paired_t_test([1, 2], [1, 2, 3]), ValueError, r"shapes \(2,\) and \(3,\)"),
        (lambda: paired_t_test([[1, 2]], [[1, 2]]), ValueError, "one-dimensional"),
        (lambda: paired_t_test([1, np.nan], [1, 2]), ValueError, "must be finite"),
        (lambda: paired_t_test(["a", "b"], [1, 2]), TypeError, "a must be real numbers"),
        (lambda: paired_t_test([1, 2], [1, 3], "bigger"), ValueError, "two-sided, greater, less, not 'bigger'"),
        (lambda: sign_test([1, 2], [1, 3], "bigger"), ValueError, "two-sided, greater, less"),
        (lambda: corrected_resampled_t_test([1, 2], [1, 3], 0, 1), ValueError, "n_train must be a positive number"),
        (lambda: corrected_resampled_t_test([1, 2], [1, 3], 9, "1"), ValueError, "n_test must be a positive number"),
        (lambda: mcnemar_test([1], [1, 0], [1]), ValueError, "equally long"),
        (lambda: mcnemar_test([], [], []), ValueError, "nonempty"),
        (lambda: mcnemar_test([1], [1], [0], method="normal"), ValueError, '"exact" or "chi2"'),
        (lambda: mcnemar_test([1], [1], [0], "less", "chi2"), ValueError, "is two-sided"),
    ],
)
def test_bad_requests_for_tests(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_everything_public_is_documented_with_an_example():
    for name in metrics.__all__:
        thing = getattr(metrics, name)
        assert thing.__doc__ and (isinstance(thing, type) or ">>>" in thing.__doc__), name
