"""Estimators with any loss and any penalty: agreement with problems, names, offsets, survival targets, refusals."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cvxstructreg as csr
from cvxstructreg.estimators.structured.loss_table import CLASSIFICATION, REGRESSION
from cvxstructreg.estimators.structured.survival import time_and_event
from cvxstructreg.metrics import concordance_index

GROUPS = csr.Groups([[0, 1], [1, 2], [3, 4]], n_features=5)
PENALTY = 2.0 * csr.GroupLasso(GROUPS) + 0.5 * csr.L1()


@pytest.fixture(scope="module", name="X")
def rows():
    return np.random.default_rng(0).normal(size=(60, 5))


def target(name, X):
    """A target that fits the loss."""
    rng = np.random.default_rng(1)
    score = 0.8 * X[:, 0] - 0.6 * X[:, 1]
    if name in ("poisson", "tweedie"):
        return rng.poisson(np.exp(score)).astype(float)
    if name == "gamma":
        return rng.gamma(2.0, np.exp(score) / 2.0) + 1e-3
    if name == "cox":
        time = rng.exponential(np.exp(-score))
        return np.column_stack([np.minimum(time, 1.5), time < 1.5])
    numbers = score + 0.3 * rng.normal(size=len(X))
    return np.column_stack([numbers, score - X[:, 2]]) if name == "multi_task" else numbers


def loss_of(name, y, **options):
    """The loss of a problem, written by hand."""
    if name == "cox":
        return csr.Cox(y[:, 0], event=y[:, 1] > 0, **options)
    return REGRESSION[name].make(y, **options)


@pytest.mark.parametrize("name", sorted(REGRESSION))
def test_every_loss_is_the_problem_written_by_hand(name, X):
    y = target(name, X)
    model = csr.StructuredRegressor(PENALTY, loss=name).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-6
    problem = csr.Problem(csr.Linear(X, intercept=name != "cox"), loss_of(name, y) + PENALTY)
    reference = problem.solve(solver="cvxpy")
    slack = model.certificate_.gap + reference.certificate.gap + 1e-9
    assert abs(model.objective_ - reference.objective) <= slack
    assert model.score(X, y) > 0.2
    assert model.predict(X).shape == ((60, 2) if name == "multi_task" else (60,))
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict(X), np.exp(scores) if name in ("poisson", "gamma", "tweedie") else scores)


@pytest.mark.parametrize("name", sorted(CLASSIFICATION))
@pytest.mark.parametrize("k", [2, 3])
def test_every_loss_of_labels(name, k, X):
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [0.0] if k == 2 else [-0.5, 0.5])]
    model = csr.StructuredClassifier(PENALTY, loss=name).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.score(X, y) > (0.8 if k == 2 else 0.65)
    assert set(model.predict(X)) <= set(y)
    assert hasattr(model, "predict_proba") == (name in ("logistic", "multinomial"))
    if name in ("logistic", "multinomial"):
        chosen = model.classes_[model.predict_proba(X).argmax(axis=1)]
        np.testing.assert_array_equal(chosen, model.predict(X))


def test_joint_and_separate_classes(X):
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    joint = csr.StructuredClassifier(PENALTY, loss="hinge", multi_class="joint").fit(X, y)
    assert joint.coef_.shape == (3, 5) and not isinstance(joint.solution_, tuple)
    separate = csr.StructuredClassifier(PENALTY, multi_class="one_vs_rest").fit(X, y)
    assert len(separate.solution_) == 3
    np.testing.assert_allclose(separate.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="no joint form"):
        csr.StructuredClassifier(loss="squared_hinge", multi_class="joint").fit(X, y)
    with pytest.raises(ValueError, match="is joint"):
        csr.StructuredClassifier(loss="multinomial", multi_class="one_vs_rest").fit(X, y)


def test_the_default_penalty_is_the_ridge(X):
    y = target("squared", X)
    model = csr.StructuredRegressor(tol=1e-12).fit(X, y)
    again = csr.StructuredRegressor(csr.Ridge(), tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-6)


def test_functions_of_the_weights_and_of_the_columns(X):
    y = target("squared", X)
    of_weights = csr.StructuredRegressor(lambda w: 3.0 * cp.norm1(w)).fit(X, y)
    of_columns = csr.StructuredRegressor(lambda names: 3.0 * csr.L1(np.ones(len(names)))).fit(X, y)
    written = csr.StructuredRegressor(3.0 * csr.L1()).fit(X, y)
    for model in (of_weights, of_columns):
        assert abs(model.objective_ - written.objective_) <= model.certificate_.gap + written.certificate_.gap + 1e-9
    seen = []
    csr.StructuredRegressor(lambda names: seen.append(names) or csr.L1()).fit(X, y, feature_names=list("abcde"))
    assert seen[-1] == tuple("abcde")


def test_graphs_and_groups_are_matched_by_name(X):
    names = ["age", "height", "weight", "pulse", "noise"]
    y = target("squared", X)
    graph = csr.Graph.from_edges([("weight", "age")], names=["weight", "age"])
    groups = csr.Groups([["pulse", "noise"], ["age"]], feature_names=["noise", "pulse", "age"])
    penalty = csr.Laplacian(graph) + 2.0 * csr.GroupLasso(groups) + 0.1 * csr.L1()
    table = pd.DataFrame(X, columns=names)
    model = csr.StructuredRegressor(penalty).fit(table, y)
    by_index = csr.StructuredRegressor(
        csr.Laplacian(csr.Graph.from_edges([(0, 2)], n_nodes=5))
        + 2.0 * csr.GroupLasso(csr.Groups([[3, 4], [0]], 5))
        + 0.1 * csr.L1()
    ).fit(X, y)
    assert abs(model.objective_ - by_index.objective_) <= model.certificate_.gap + by_index.certificate_.gap
    shuffled = csr.StructuredRegressor(penalty).fit(table[names[::-1]], y)
    assert abs(model.objective_ - shuffled.objective_) <= model.certificate_.gap + shuffled.certificate_.gap
    assert {row.name for row in model.selected_features()} <= set(names)
    with pytest.raises(ValueError, match="missing='ignore'"):
        csr.StructuredRegressor(penalty).fit(table.drop(columns="age"), y)
    csr.StructuredRegressor(penalty, missing="ignore").fit(table.drop(columns="age"), y)


def test_exposures_are_offsets_of_their_logarithm(X):
    rng = np.random.default_rng(2)
    times = rng.uniform(0.5, 3.0, size=60)
    y = rng.poisson(times * np.exp(0.5 * X[:, 0]))
    one = csr.StructuredRegressor(PENALTY, loss="poisson", tol=1e-10).fit(X, y, exposure=times)
    two = csr.StructuredRegressor(PENALTY, loss="poisson", tol=1e-10).fit(X, y, offset=np.log(times))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)
    np.testing.assert_allclose(one.predict(X, exposure=times), one.predict(X) * times)
    np.testing.assert_allclose(one.predict(X, offset=np.log(times)), one.predict(X, exposure=times))
    expected = d2_tweedie_score(y / times, one.predict(X), sample_weight=times, power=1)
    assert one.score(X, y, exposure=times) == pytest.approx(expected)


def test_offsets_of_classes_reach_fit_and_predictions(X):
    y = (X[:, 0] > 0).astype(int)
    offset = 3.0 * X[:, 1]
    model = csr.StructuredClassifier(csr.L1()).fit(X, y, offset=offset)
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y, offset=offset) + csr.L1())
    assert problem.solve().objective == pytest.approx(model.objective_, rel=1e-5)
    np.testing.assert_allclose(model.decision_function(X, offset), model.decision_function(X) + offset)
    joint = csr.StructuredClassifier(csr.L1(), loss="multinomial").fit(
        X, y, offset=np.column_stack([0 * offset, offset])
    )
    assert joint.score(X, y, offset=np.column_stack([0 * offset, offset])) >= 0.8


def test_targets_of_survival_in_every_form(X):
    y = target("cox", X)
    structured = np.array([(bool(e), t) for t, e in y], dtype=[("cens", bool), ("survival_in_days", float)])
    frame = pd.DataFrame({"event": y[:, 1] > 0, "time": y[:, 0]})
    for form in (structured, frame, y):
        np.testing.assert_array_equal(time_and_event(form), y)
    model = csr.StructuredRegressor(PENALTY, loss="cox", ties="efron").fit(X, structured)
    assert model.intercept_ == 0.0
    assert model.score(X, structured) == concordance_index(y[:, 0], y[:, 1], model.predict(X))
    assert cross_val_score(csr.StructuredRegressor(PENALTY, loss="cox"), X, y, cv=3, error_score="raise").mean() > 0.5
    strata = np.array(["a", "b"])[np.arange(60) % 2]
    split = csr.StructuredRegressor(PENALTY, loss="cox").fit(X, y, strata=strata)
    by_hand = csr.Cox(y[:, 0], event=y[:, 1] > 0, strata=np.arange(60) % 2) + PENALTY
    assert csr.Problem(csr.Linear(X, intercept=False), by_hand).solve().objective == pytest.approx(split.objective_)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, 2.0], "two columns"),
        (np.column_stack([[1, 0], [5.0, 6.0]]), "exchange them"),
        (np.column_stack([[3.0, 4.0], [2.0, 1.0]]), "1 is an event"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 0.0]}), "columns time and event"),
        (np.column_stack([[np.nan, 4.0], [1.0, 1.0]]), "NaN"),
    ],
)
def test_bad_survival_targets(y, message):
    with pytest.raises(ValueError, match=message):
        time_and_event(y)


def test_concordance_by_hand():
    rng = np.random.default_rng(3)
    time, event, risk = rng.integers(1, 6, size=30), rng.random(30) < 0.6, rng.integers(0, 4, size=30)
    weights = rng.integers(1, 4, size=30)
    total = good = 0.0
    for i in range(30):
        for j in range(30):
            if event[i] and (time[j] > time[i] or (time[j] == time[i] and not event[j])):
                total += weights[i] * weights[j]
                good += weights[i] * weights[j] * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
    assert concordance_index(time, event, risk, weights) == pytest.approx(good / total)
    with pytest.raises(ValueError, match="comparable"):
        concordance_index([1.0, 2.0], [False, False], [1.0, 2.0])
    with pytest.raises(ValueError, match="equal lengths"):
        concordance_index([1.0, 2.0], [True], [1.0, 2.0])
    with pytest.raises(ValueError, match="sample_weight"):
        concordance_index([1.0, 2.0], [True, True], [1.0, 2.0], [1.0])


def test_pipelines_and_paths(X):
    y = target("poisson", X)
    pipe = make_pipeline(StandardScaler(), csr.StructuredRegressor(5.0 * csr.L1(), loss="poisson"))
    assert np.isfinite(cross_val_score(pipe, X, y, cv=3, error_score="raise")).all()
    path = csr.StructuredRegressor(csr.L1() + csr.Ridge(), loss="poisson").path(X, y, n_points=4)
    assert path.n_selected[0] == 0 < path.n_selected[-1]
    assert path.gaps.max() <= 1e-6
    smooth = csr.StructuredRegressor(loss="poisson").path(X, y, n_points=3, exposure=np.full(60, 2.0))
    assert len(smooth) == 3
    with pytest.raises(TypeError, match="no argument 'exposures'"):
        csr.StructuredRegressor(loss="poisson").path(X, y, exposures=np.ones(60))


def test_scores_of_squared_and_quantile(X):
    y = target("squared", X)
    model = csr.StructuredRegressor(csr.L1()).fit(X, y)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))
    high = csr.StructuredRegressor(0.01 * csr.L1(), loss="quantile", quantile=0.9).fit(X, y)
    assert 0.8 <= np.mean(y <= high.predict(X) + 1e-9) <= 1.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda X, y: csr.StructuredRegressor(loss="poison").fit(X, y), ValueError, "did you mean 'poisson'"),
        (lambda X, y: csr.StructuredRegressor(loss="hinge").fit(X, y), ValueError, "StructuredClassifier"),
        (lambda X, y: csr.StructuredClassifier(loss="cox").fit(X, y > 0), ValueError, "StructuredRegressor"),
        (lambda X, y: csr.StructuredRegressor(3.0).fit(X, y), TypeError, "sum of atoms"),
        (lambda X, y: csr.StructuredRegressor(csr.L1).fit(X, y), TypeError, r"write L1\("),
        (lambda X, y: csr.StructuredRegressor(csr.Squared(y)).fit(X, y), ValueError, "act on the weights"),
        (lambda X, y: csr.StructuredRegressor(lambda z: z.nothing).fit(X, y), ValueError, "neither use"),
        (lambda X, y: csr.StructuredRegressor(lambda z: 1).fit(X, y), TypeError, "got int"),
        (lambda X, y: csr.StructuredRegressor().fit(X, y, exposure=np.ones(60)), ValueError, "loss='poisson'"),
        (lambda X, y: csr.StructuredRegressor(loss="poisson").fit(X, y), ValueError, "counts of at least 0"),
        (lambda X, y: csr.StructuredRegressor().fit(X, y, offset=1.0), ValueError, "single number"),
        (lambda X, y: csr.StructuredRegressor().fit(X, y, offset=np.ones(3)), ValueError, "inconsistent numbers"),
        (lambda X, y: csr.StructuredRegressor(loss="quantile", quantile=90).fit(X, y), ValueError, "use 0.9"),
        (lambda X, y: csr.StructuredClassifier(multi_class="all").fit(X, y > 0), ValueError, "multi_class must be"),
    ],
)
def test_wrong_requests_name_the_remedy(call, error, message, X):
    with pytest.raises(error, match=message):
        call(X, target("squared", X))


def test_penalties_are_parameters_of_a_grid_search(X):
    y = (X[:, 0] > 0).astype(int)
    tried = [0.1 * csr.L1(), 0.2 * csr.L1() + csr.Ridge(), csr.Ridge()]
    search = GridSearchCV(csr.StructuredClassifier(), {"penalty": tried}, cv=2, error_score="raise").fit(X, y)
    assert list(search.cv_results_["param_penalty"]) == tried
    assert search.best_params_["penalty"] in tried
    with pytest.raises(TypeError, match="is not a number or an array"):
        np.array(0.1 * csr.L1())
