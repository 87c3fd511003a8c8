"""Every estimator with the tools of scikit-learn: clone, pickle, Pipeline, GridSearchCV, cross_validate, joblib."""

import doctest
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from estimator_cases import CASES, NAMES, data, make
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cvxstructreg import estimators

every = pytest.mark.parametrize("name", sorted(CASES))
classifiers = pytest.mark.parametrize("name", sorted(name for name in CASES if not name.endswith("Regressor")))


def output(model, X):
    """Scores of rows."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def test_every_estimator_has_a_case():
    assert sorted(CASES) == sorted(name for name in estimators.__all__ if not name.endswith("CV"))


@pytest.mark.parametrize("name", estimators.__all__)
def test_the_example_of_the_docstring_runs_in_an_empty_file(name):
    """Without the names of the module in which it stands: a newcomer has only what the example imports."""
    example = doctest.DocTestParser().get_doctest(getattr(estimators, name).__doc__, {}, name, None, 0)
    assert len(example.examples) >= 4
    out = []
    assert doctest.DocTestRunner().run(example, out=out.append).failed == 0, "".join(out)


@every
def test_parameters_survive_clone_and_pickle_and_are_not_changed_by_fit(name):
    X, y = data(name)
    model = make(name)
    before = {key: pickle.dumps(value) for key, value in model.get_params().items()}
    model.fit(X, y)
    assert {key: pickle.dumps(value) for key, value in model.get_params().items()} == before
    assert not hasattr(clone(model), "intercept_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(output(again, X), output(model, X), rtol=1e-12)
    assert again.attach_data(X, y).solution_.objective == model.objective_
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(alhpa=1.0)


@every
def test_results_a_person_reads(name):
    X, y = data(name)
    model = make(name).fit(X, y)
    assert model.certificate_.relative_gap <= (1.0 if name == "EarlyStopped" else model.tol)  # stops before the optimum
    assert model.objective_ == model.solution_.objective == model.certificate_.objective
    assert model.n_iter_ >= 1
    np.testing.assert_allclose(model.solution_.problem.value(model.solution_.coef, model.solution_.intercept),
                               model.objective_)  # fmt: skip


@every
def test_grid_search_with_two_workers(name):
    X, y = data(name)
    structure = {"pairs": None} if name == "DissimilaritySVC" else {}  # row numbers mean nothing in a part of the rows
    tried = [None, "balanced"] if CASES[name][1] == "class_weight" else [0.01, 1.0]
    search = GridSearchCV(make(name, **structure), {CASES[name][1]: tried}, cv=2, n_jobs=2, error_score="raise")
    search.fit(X, y)
    assert search.best_params_[CASES[name][1]] in tried
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    alone = clone(search.best_estimator_).fit(X, y)
    np.testing.assert_allclose(output(search, X) if hasattr(search, "decision_function") else search.predict(X),
                               output(alone, X), atol=1e-2)  # fmt: skip


@every
def test_pipeline_and_cross_validate(name):
    X, y = data(name)
    structure = {"pairs": None} if name == "DissimilaritySVC" else {}
    pipeline = make_pipeline(StandardScaler(), make(name, **structure))
    scores = cross_validate(pipeline, X, y, cv=3, error_score="raise")["test_score"]
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    assert clone(pipeline).fit(X, y).score(X, y) > 0.7


@every
def test_fits_in_two_processes_agree(name):
    X, y = data(name)
    fits = joblib.Parallel(n_jobs=2)(joblib.delayed(make(name, tol=tol).fit)(X, y) for tol in (1e-6, 1e-7))
    assert abs(fits[0].objective_ - fits[1].objective_) <= fits[0].certificate_.gap + fits[1].certificate_.gap


@every
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_have_named_columns(name, frame):
    X, y = data(name)
    table = frame(dict(zip(NAMES, X.T, strict=True)))
    model = make(name).fit(table, y)
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(output(model, table), output(make(name).fit(X, y), X), atol=1e-2)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[NAMES[::-1]])
    if hasattr(model, "selected_features"):
        assert {feature.name for feature in model.selected_features()} <= set(NAMES)


@every
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows(name, kind):
    X, y = data(name)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    model = make(name, tol=1e-8).fit(kind(X), y)
    dense = make(name, tol=1e-8).fit(X, y)
    assert abs(model.objective_ - dense.objective_) <= model.certificate_.gap + dense.certificate_.gap + 1e-12
    np.testing.assert_allclose(output(model, kind(X)), output(model, X), atol=1e-12)


@every
def test_float32_is_as_accurate(name):
    X, y = data(name)
    X32 = X.astype(np.float32)
    single, double = make(name).fit(X32, y), make(name).fit(X32.astype(float), y)
    assert abs(single.objective_ - double.objective_) <= single.certificate_.gap + double.certificate_.gap + 1e-12
    assert output(single, X32).dtype == np.float64


@classifiers
def test_string_labels_and_three_classes(name):
    X, y = data(name)
    words = np.array(["no", "yes"])[y]
    two = make(name).fit(X, words)
    assert two.classes_.tolist() == ["no", "yes"]
    assert output(two, X).shape == (len(X),)
    np.testing.assert_array_equal(two.predict(X), np.where(output(two, X) > 0, "yes", "no"))
    words[:6] = "dog"
    three = make(name, **({"pairs": [(0, 7)]} if name == "DissimilaritySVC" else {})).fit(X, words)
    assert three.classes_.tolist() == ["dog", "no", "yes"]
    assert output(three, X).shape == (len(X), 3)
    assert three.intercept_.shape == (3,)


@classifiers
def test_class_weights_are_sample_weights(name):
    X, y = data(name)
    X, y = X[:-5], y[:-5]
    weights = {0: 1.0, 1: 3.0}
    by_class = make(name, class_weight=weights).fit(X, y)
    by_row = make(name).fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert abs(by_class.objective_ - by_row.objective_) <= by_class.certificate_.gap + by_row.certificate_.gap
    totals = len(y) / (2 * np.bincount(y))
    balanced = make(name, class_weight="balanced").fit(X, y)
    by_hand = make(name).fit(X, y, sample_weight=totals[y])
    assert abs(balanced.objective_ - by_hand.objective_) <= balanced.certificate_.gap + by_hand.certificate_.gap


@pytest.mark.parametrize("name", ["FeatureNetworkClassifier", "LaplacianElasticNetClassifier", "GroupLassoClassifier"])
@pytest.mark.parametrize("k", [2, 3])
def test_probabilities(name, k):
    X, y = data(name)
    y = np.where(np.arange(len(y)) < 8, k - 1, y) if k == 3 else y
    model = make(name).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), k)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities))
