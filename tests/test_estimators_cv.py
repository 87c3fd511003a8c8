"""Strengths chosen by cross-validation: paths in folds, ties, the rule of one standard error, the tools around it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimator_cases import GRAPH, GROUPS, NAMES
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cvxstructreg import Graph, GridEdgeWarning, estimators
from cvxstructreg.estimators.cross_validation import chosen_index
from cvxstructreg.paths import Path
from cvxstructreg.runtime import processes

pytestmark = pytest.mark.filterwarnings("ignore::cvxstructreg.GridEdgeWarning")  # the grids are short

#: structure of each plain estimator, and what the path multiplies
CASES = {
    "FeatureNetworkClassifier": ({"graph": GRAPH, "alpha": 2.0, "beta": 0.5}, ("alpha", "beta")),
    "FeatureNetworkRegressor": ({"graph": GRAPH, "alpha": 2.0, "beta": 0.5}, ("alpha", "beta")),
    "GroupLassoClassifier": ({"groups": GROUPS, "lam_group": 2.0, "lam_l1": 0.5}, ("lam_group", "lam_l1")),
    "GroupLassoRegressor": ({"groups": GROUPS, "lam_l1": 0.2}, ("lam_group", "lam_l1")),
    "LaplacianElasticNetClassifier": ({"graph": GRAPH, "lam1": 3.0}, ("lam1",)),
    "LaplacianElasticNetRegressor": ({"graph": GRAPH}, ("lam1",)),
}
every = pytest.mark.parametrize("name", sorted(CASES))


def data(name, n=36, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    z = X[:, 0] + X[:, 1] + rng.normal(size=n)
    return X, z if name.endswith("Regressor") else (z > 0).astype(int)


def plain(name, **params):
    return getattr(estimators, name)(**{**CASES[name][0], **params})


def tuned(name, **params):
    return getattr(estimators, f"{name}CV")(**{**CASES[name][0], "n_strengths": 5, "cv": 3, **params})


def test_every_one_has_a_case():
    known = sorted([f"{name}CV" for name in CASES] + ["StructuredClassifierCV", "StructuredRegressorCV"])
    assert known == sorted(name for name in estimators.__all__ if name.endswith("CV"))


@pytest.mark.filterwarnings("ignore::cvxstructreg.runtime.notices.AllZeroWarning")  # of the strongest penalties
@every
def test_equal_to_a_loop_by_hand(name):
    X, y = data(name)
    model = tuned(name, tol=1e-9).fit(X, y)
    splits = (KFold(3) if name.endswith("Regressor") else StratifiedKFold(3)).split(X, y)
    units = {key: plain(name).get_params()[key] for key in CASES[name][1]}
    assert model.strengths_.shape == (5,)
    for fold, (train, test) in enumerate(splits):
        for number, strength in enumerate(model.strengths_):
            one = plain(name, tol=1e-9, **{key: strength * unit for key, unit in units.items()})
            one.fit(X[train], y[train])
            assert model.scores_[fold, number] == pytest.approx(one.score(X[test], y[test]), abs=1e-3)
    assert model.mean_score_ == pytest.approx(model.scores_.mean(axis=0))
    assert model.std_error_ == pytest.approx(model.scores_.std(axis=0, ddof=1) / np.sqrt(3))
    assert model.best_strength_ == model.strengths_[model.best_index_]
    again = plain(name, tol=1e-9, **model.best_params_).fit(X, y)
    assert abs(again.objective_ - model.objective_) <= again.certificate_.gap + model.certificate_.gap + 1e-12
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-3)
    assert len(model.path_) == model.best_index_ + 1
    assert model.path_[-1] is model.solution_
    assert model.path_.gaps.max() <= 1e-9


def test_two_workers_agree_with_one(monkeypatch):
    monkeypatch.setattr(processes, "worth_processes", lambda *work: True)
    for name in CASES:  # in one test, which starts the two processes once
        X, y = data(name)
        one, two = tuned(name).fit(X, y), tuned(name, n_jobs=2).fit(X, y)
        np.testing.assert_allclose(one.scores_, two.scores_, rtol=1e-9)
        np.testing.assert_array_equal(one.n_selected_, two.n_selected_)
        np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9)


@every
def test_weights_of_rows_count_in_fits_and_scores(name):
    X, y = data(name)
    weights = np.arange(len(y)) % 3.0
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    splits = [(np.arange(12, 36), np.arange(12)), (np.arange(24), np.arange(24, 36))]
    repeated = [(np.flatnonzero(np.isin(rows, a)), np.flatnonzero(np.isin(rows, b))) for a, b in splits]
    weighted = tuned(name, cv=splits, tol=1e-10).fit(X, y, sample_weight=weights)
    by_hand = tuned(name, cv=repeated, tol=1e-10).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.strengths_, by_hand.strengths_, rtol=1e-6)
    np.testing.assert_allclose(weighted.scores_, by_hand.scores_, atol=1e-4)
    unweighted = tuned(name, cv=splits, tol=1e-10).fit(X, y)
    assert np.abs(unweighted.scores_ - weighted.scores_).max() > 1e-3


def test_ties_go_to_the_sparsest_and_then_to_the_strongest():
    mean, error = np.array([0.5, 0.9, 0.9, 0.9 + 1e-16, 0.8]), np.zeros(5)
    assert chosen_index(mean, error, np.array([0.0, 4.0, 2.0, 2.0, 1.0]), "best") == 2
    assert chosen_index(mean, error, np.array([0.0, 4.0, 4.0, 4.0, 1.0]), "best") == 1
    assert chosen_index(np.array([-3.0, -1.0, -2.0]), np.zeros(3), np.arange(3.0), "best") == 1


def test_one_standard_error_takes_the_strongest_within_it():
    mean, error = np.array([0.5, 0.79, 0.81, 0.9, 0.85]), np.array([0.5, 0.5, 0.0, 0.1, 0.9])
    assert chosen_index(mean, error, np.arange(5.0), "one_standard_error") == 2
    assert chosen_index(mean, np.zeros(5), np.arange(5.0), "one_standard_error") == 3
    X, y = data("LaplacianElasticNetClassifier")
    best, strong = (tuned("LaplacianElasticNetClassifier", n_strengths=15, rule=rule).fit(X, y)
                    for rule in ("best", "one_standard_error"))  # fmt: skip
    assert strong.best_strength_ >= best.best_strength_
    least = best.mean_score_[best.best_index_] - best.std_error_[best.best_index_]
    assert strong.best_index_ == np.flatnonzero(best.mean_score_ >= least - 1e-12)[0]


@every
def test_scorers(name):
    X, y = data(name)
    if name.endswith("Regressor"):
        model = tuned(name, scoring="neg_mean_absolute_error").fit(X, y)
        assert (model.scores_ < 0).all()
        return
    words = np.array(["no", "yes"])[y]
    model = tuned(name, scoring="neg_log_loss").fit(X, words)
    assert (model.scores_ < 0).all()
    assert set(model.predict(X)) <= {"no", "yes"}
    model = tuned(name, scoring=make_scorer(f1_score, pos_label="yes")).fit(X, words)
    assert (model.scores_ >= 0).all()


def test_three_classes_one_against_the_rest_share_their_strength():
    X, y = data("LaplacianElasticNetClassifier")
    y = y + (X[:, 2] > 0.3)
    model = tuned("LaplacianElasticNetClassifier").fit(X, y)
    assert len(model.path_) == len(model.solution_) == 3
    assert all(isinstance(path, Path) for path in model.path_)
    assert model.coef_.shape == (3, 5)
    assert max(path.n_selected[0] for path in model.path_) == 0
    assert tuned("GroupLassoClassifier").fit(X, y).path_.coefs.shape[1:] == (5, 3)


def test_structure_by_name_and_data_frames():
    X, y = data("GroupLassoClassifier")
    table = pd.DataFrame(X, columns=NAMES)
    groups = {"body": ["height", "age", "weight"], "heart": ["weight", "pulse"], "rest": ["noise"]}
    by_name = tuned("GroupLassoClassifier", groups=groups).fit(table, y)
    by_number = tuned("GroupLassoClassifier").fit(X, y)
    np.testing.assert_allclose(by_name.scores_, by_number.scores_)
    assert by_name.feature_names_in_.tolist() == NAMES
    assert {row.name for row in by_name.selected_groups()} <= {"body", "heart", "rest"}
    names = Graph.from_edges([("weight", "height"), ("age", "height")], names=NAMES)
    for model in (tuned("LaplacianElasticNetClassifier", graph=names), tuned("FeatureNetworkClassifier", graph=names)):
        fitted = model.fit(X, y, feature_names=NAMES)
        np.testing.assert_allclose(clone(model).fit(table, y).coef_, fitted.coef_)
        assert {feature.name for feature in fitted.selected_features()} <= set(NAMES)
    given = tuned("FeatureNetworkClassifier", graph=None).fit(X, y, graph=GRAPH)
    np.testing.assert_allclose(given.scores_, tuned("FeatureNetworkClassifier").fit(X, y).scores_)


@every
def test_clone_pickle_pipeline_and_grid_search(name):
    X, y = data(name)
    model = tuned(name)
    before = {key: pickle.dumps(value) for key, value in model.get_params().items()}
    model.fit(sp.csr_array(X), y)
    assert {key: pickle.dumps(value) for key, value in model.get_params().items()} == before
    assert not hasattr(clone(model), "scores_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict(X), model.predict(X))
    other = "lam2" if "Laplacian" in name else CASES[name][1][1]
    search = GridSearchCV(make_pipeline(StandardScaler(), tuned(name, n_strengths=3)),
                          {f"{name.lower()}cv__{other}": [0.5, 2.0]}, cv=2, error_score="raise")  # fmt: skip
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_progress_lines(capsys):
    X, y = data("LaplacianElasticNetRegressor")
    tuned("LaplacianElasticNetRegressor", verbose=True).fit(X, y)
    shown = capsys.readouterr()
    assert "3/3 folds" in shown.err
    assert "nonzero" in shown.err
    assert shown.out == ""


def test_one_warning_with_the_worst_gap_in_one_or_two_processes():
    X, y = data("LaplacianElasticNetClassifier")
    for jobs in (1, 2):
        with pytest.warns(ConvergenceWarning, match="points of the paths did not reach the tolerance 1e-06") as caught:
            tuned("LaplacianElasticNetClassifier", solver="fista", max_iter=1, n_jobs=jobs).fit(X, y)
        assert len(caught) == 1
        assert caught[0].message.certificate.relative_gap > 1e-6
        assert caught[0].filename == __file__


def test_the_truncated_algorithm_of_the_paper_starts_from_zero_without_a_warning():
    X, y = data("GroupLassoClassifier")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GridEdgeWarning)
        model = tuned("GroupLassoClassifier", solver="sentence_admm", max_iter=3).fit(X, y)
    alone = plain("GroupLassoClassifier", solver="sentence_admm", max_iter=3, **model.best_params_).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-9)
    assert [row.name for row in model.selected_groups()] == [row.name for row in alone.selected_groups()]


def test_targets_that_do_not_depend_on_x():
    model = tuned("LaplacianElasticNetRegressor", scoring="neg_mean_squared_error").fit(
        np.zeros((9, 5)), np.arange(9.0)
    )
    assert model.best_index_ == 0
    assert not model.coef_.any()


@pytest.mark.parametrize("name", ["GroupLassoClassifier", "LaplacianElasticNetRegressor"])
def test_the_path_of_a_plain_estimator(name):
    X, y = data(name)
    model = plain(name)
    points = model.path(X, y, n_points=4)
    assert not hasattr(model, "n_features_in_")
    assert points.n_selected[0] <= points.n_selected[-1]
    strength = float(points.strengths[2])
    alone = plain(name, **{key: strength * getattr(model, key) for key in CASES[name][1]}).fit(X, y)
    assert abs(points[2].objective - alone.objective_) <= points[2].certificate.gap + alone.certificate_.gap
    assert model.path(X, y, strengths=[0.1, 0.5]).strengths.tolist() == [0.5, 0.1]
    several = plain("LaplacianElasticNetClassifier").path(X, np.arange(len(y)) % 3, n_points=2)
    assert len(several) == 3


BAD = [
    ({"rule": "worst"}, "rule must be 'best' or 'one_standard_error', got 'worst'"),
    ({"lam1": 0.0}, "got lam1=0, which the strengths multiply"),
    ({"lam1": -1.0}, "lam1 must be finite and at least 0"),
    ({"n_strengths": 0}, "n_strengths must be an integer"),
    ({"n_strengths": 2.5}, "n_strengths must be an integer"),
    ({"smallest": 2.0}, "smallest must lie between 0 and 1"),
    ({"strengths": [1.0, -1.0]}, "finite nonnegative"),
    ({"strengths": []}, "strengths must be"),
    ({"scoring": "beauty"}, "scoring"),
    ({"cv": 1}, "n_splits"),
    ({"cv": []}, "no folds"),
    ({"cv": [(np.arange(0, 36, 2), np.arange(1, 36, 2))]}, "fold 0 has no training row of class 1"),
    ({"solver": "magic"}, "there is no solver 'magic'"),
]


@pytest.mark.parametrize(("params", "message"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_bad_parameters(params, message):
    X, _ = data("LaplacianElasticNetClassifier")
    with pytest.raises(ValueError, match=message):
        tuned("LaplacianElasticNetClassifier", **params).fit(X, np.arange(36) % 2)


def test_bad_folds():
    X, y = data("LaplacianElasticNetRegressor")
    weights = np.where(np.arange(36) < 12, 0.0, 1.0)
    with pytest.raises(ValueError, match="fold 0: sample_weight is zero on all training rows"):
        tuned("LaplacianElasticNetRegressor").fit(X, y, sample_weight=weights)
    with (
        pytest.warns(UserWarning, match="R\\^2 score is not well-defined"),
        pytest.raises(ValueError, match="score of fold 0 is not finite"),
    ):
        tuned("LaplacianElasticNetRegressor", cv=36).fit(X, y)
