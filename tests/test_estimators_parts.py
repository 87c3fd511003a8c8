"""Parts of estimators: groups of generic ones, several outputs, class means, weights of pairs."""

import pickle

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.graphs import class_graph

N, D = 80, 6
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, D))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.normal(size=N)
SIDES = (Y > 0).astype(int)
NAMES = ["a", "b", "c", "d", "e", "f"]
GROUPS = csr.Groups([["a", "b"], ["c", "d"], ["b", "e", "f"]], feature_names=NAMES, names=["ab", "cd", "bef"])


# the groups of generic estimators


def test_generic_estimators_have_the_groups_of_their_penalty():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=NAMES)
    penalty = 8.0 * csr.GroupLasso(GROUPS) + 4.0 * csr.L1()
    model = csr.StructuredClassifier(penalty).fit(frame[NAMES[::-1]], SIDES)
    kept, dropped = model.selected_groups(), model.dropped_groups()
    assert [group.name for group in kept] == ["ab", "bef"] and [group.name for group in dropped] == ["cd"]
    assert kept[0].features == ("b", "a") or kept[0].features == ("a", "b")
    assert [group.size for group in kept] == [2, 3]
    weights = {feature.name: feature.weight for feature in model.selected_features()}
    assert kept[0].norm == pytest.approx(np.hypot(weights["a"], weights["b"]))
    table = {row.name: row.related for row in model.coef_table()}
    assert {"a", "b"} <= set(table) and table["b"] == ("ab", "bef")
    special = csr.GroupLassoClassifier(GROUPS, lam_group=8.0, lam_l1=4.0).fit(frame, SIDES)
    assert [g.name for g in special.selected_groups()] == [g.name for g in kept]


def test_latent_groups_are_kept_as_a_whole():
    penalty = 25.0 * csr.LatentGroupLasso(csr.Groups([[0, 1], [1, 2, 3], [4, 5]]))
    model = csr.StructuredRegressor(penalty).fit(X, Y)
    assert [group.features for group in model.selected_groups()] == [("x0", "x1")]


def test_a_penalty_without_groups_says_so():
    model = csr.StructuredRegressor(csr.L1()).fit(X, Y)
    assert model.groups_ is None
    with pytest.raises(ValueError, match=r"no groups.*csr.GroupLasso\(groups\)"):
        model.selected_groups()


def test_the_graph_of_a_generic_estimator_is_in_its_table():
    chain = csr.Graph.from_edges([(0, 1), (1, 2)], n_nodes=D)
    model = csr.StructuredRegressor(csr.Laplacian(chain) + 5.0 * csr.L1()).fit(X, Y)
    assert {row.name: row.related for row in model.coef_table()}["x1"] == ("x0", "x2")


# several outputs


def test_several_outputs_are_one_problem_with_rows_as_groups():
    targets = np.column_stack([Y, 2.0 * X[:, 0] + 0.2 * RNG.normal(size=N), -X[:, 1]])
    rows = csr.GroupLasso(csr.Groups.singletons(D))
    model = csr.StructuredRegressor(20.0 * rows, loss="multi_task").fit(X, targets)
    assert model.coef_.shape == (3, D) and model.intercept_.shape == (3,)
    assert sorted(feature.name for feature in model.selected_features()) == ["x0", "x1"]
    assert model.predict(X).shape == (N, 3) and model.score(X, targets) > 0.7
    problem = csr.Problem(csr.Linear(X), csr.MultiTask(targets) + 20.0 * rows)
    assert model.objective_ == pytest.approx(problem.solve().objective, rel=2e-6)
    first = model.coef_table()[0]
    assert first.name == "x0" and first.favours[:2] == ("higher", "higher")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.attach_data(X, targets).solution_.status == "optimal"


def test_several_outputs_take_weights_and_offsets_and_are_tuned():
    targets, offset = np.column_stack([Y, 2.0 * Y]), RNG.normal(size=(N, 2))
    weight = [1.0, 0.25]
    model = csr.StructuredRegressor(csr.Ridge(), loss="multi_task", task_weight=weight).fit(X, targets, offset=offset)
    problem = csr.Problem(csr.Linear(X), csr.MultiTask(targets, task_weight=weight, offset=offset) + csr.Ridge())
    assert model.objective_ == pytest.approx(problem.solve().objective, rel=2e-6)
    np.testing.assert_allclose(model.predict(X, offset=offset), model.predict(X) + offset)
    tuned = csr.StructuredRegressorCV(
        csr.GroupLasso(csr.Groups.singletons(D)), loss="multi_task", task_weight=weight, n_strengths=8, cv=3,
        rule="one_standard_error",
    ).fit(X, targets)  # fmt: skip
    assert {"x0", "x1"} <= {feature.name for feature in tuned.selected_features()}
    assert tuned.score(X, targets) > 0.8


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: csr.StructuredRegressor(csr.L1()).fit(X, X[:, :2]), "loss='multi_task' is for several outputs"),
        (lambda: csr.StructuredRegressor(csr.L1(), loss="multi_task").fit(X, Y), "one column for each task"),
        (
            lambda: csr.StructuredRegressor(csr.L1(), loss="multi_task", task_weight=[1.0]).fit(X, X[:, :2]),
            "one number for each of the 2 tasks",
        ),
    ],
)
def test_outputs_of_the_wrong_shape_name_the_remedy(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# class means


@pytest.mark.parametrize("several", [False, True])
def test_class_means_are_the_means_of_the_weights(several):
    graph = class_graph({"left": ["a", "b", "c"], "right": ["d", "e"]}, NAMES)
    y = np.digitize(Y, [-0.5, 0.5]) if several else SIDES
    model = csr.FeatureNetworkClassifier(graph).fit(X, y, feature_names=NAMES)
    means = {row.name: row.mean for row in model.class_means()}
    assert list(means) == ["mean of left", "mean of right"]
    expected = model.coef_[:, :3].mean(axis=1)
    np.testing.assert_allclose(np.atleast_1d(means["mean of left"]), expected, atol=1e-10)
    again = pickle.loads(pickle.dumps(model))
    assert [row.name for row in again.class_means()] == list(means)
    generic = csr.StructuredClassifier(csr.FeatureNetwork(graph) + csr.Ridge()).fit(X, y, feature_names=NAMES)
    assert len(generic.class_means()) == 2
    assert csr.FeatureNetworkClassifier().fit(X, y).class_means() == []


# weights of pairs


def test_weights_of_pairs_are_strengths():
    y = np.where(np.arange(N) % 8 < 2, SIDES, -1)
    y[:3] = [0, 1, 1]
    weighted = [(4, 5, 2.0), (6, 7, 0.5)]
    svc = csr.DissimilaritySVC(weighted).fit(X, y)
    assert svc.pairs_.tolist() == [[4, 5], [6, 7]] and svc.pair_weights_.tolist() == [2.0, 0.5]
    atom = svc.solution_.problem.terms[-1].atom
    assert atom.weights.tolist() == [2.0, 0.5] and svc.solution_.problem.terms[-1].scale == 0.5
    forms = [{(4, 5): 2.0, (6, 7): 0.5}, np.array(weighted)]
    forms += [pytest.importorskip("pandas").DataFrame(weighted, columns=["one", "other", "weight"])]
    for form in forms:
        assert csr.DissimilaritySVC(form).fit(X, y).objective_ == pytest.approx(svc.objective_, rel=1e-9)
    plain = csr.DissimilaritySVC([(4, 5), (6, 7)]).fit(X, y)
    assert plain.pair_weights_.tolist() == [1.0, 1.0] and plain.objective_ != svc.objective_
    mixed = csr.MixedGraphClassifier(pairs=weighted).fit(X, y)
    W = mixed.graph_.weights
    assert W[4, 5] == W[5, 4] == -2.0 and W[6, 7] == -0.5 and mixed.pair_weights_.tolist() == [2.0, 0.5]


def test_weights_of_pairs_follow_the_ids():
    y, ids = np.where(np.arange(N) < 10, SIDES, -1), [f"row {i}" for i in range(N)]
    pairs = [("row 3", "row 20", 3.0), ("row 4", "nobody", 2.0)]
    model = csr.DissimilaritySVC(pairs, missing="ignore").fit(X, y, sample_ids=ids)
    assert model.pairs_.tolist() == [[3, 20]] and model.pair_weights_.tolist() == [3.0]


@pytest.mark.parametrize(
    "pairs, message",
    [
        ([(0, 1, 0.0)], r"weight of pair \(0, 1\) must be a positive number, got 0.0; drop"),
        ([(0, 1, "heavy")], "must be a positive number, got 'heavy'"),
        ([(0, 1, 2.0, 3.0)], "two rows each, and perhaps a weight"),
    ],
)
def test_bad_weights_of_pairs_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        csr.DissimilaritySVC(pairs).fit(X, SIDES)
