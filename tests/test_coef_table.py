"""The table of a fitted model: weights, the class they favour, and the groups or neighbours of each feature."""

import numpy as np
import pandas as pd
from estimator_cases import NAMES

import cvxstructreg as csr

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(80, 5)), columns=NAMES)
Z = 2.0 * X["age"] - 2.0 * X["pulse"] + rng.normal(size=80)
LABELS = np.where(Z > 0, "ill", "healthy")


def test_classes_and_groups():
    groups = {"body": ["age", "height"], "all": ["height", "weight", "pulse", "noise"], "heart": ["pulse"]}
    model = csr.GroupLassoClassifier(groups, lam_group=1.0, lam_l1=1.0).fit(X, LABELS)
    rows = {row.name: row for row in model.coef_table()}
    assert rows["age"].favours == "ill" and rows["pulse"].favours == "healthy"
    assert rows["age"].related == ("body",) and rows["pulse"].related == ("all", "heart")
    assert [row.name for row in model.coef_table()] == [row.name for row in model.selected_features()]
    assert list(pd.DataFrame(model.coef_table()).columns) == ["name", "weight", "favours", "related"]
    sizes = {row.name: row.size for row in model.selected_groups()}
    assert sizes["body"] == 2


def test_neighbours_targets_and_several_classes():
    model = csr.LaplacianElasticNetRegressor([("age", "height"), ("weight", "age")], lam1=1.0).fit(X, Z)
    rows = {row.name: row for row in model.coef_table()}
    assert rows["age"].favours == "higher" and rows["pulse"].favours == "lower"
    assert set(rows["age"].related) == {"height", "weight"} and rows["pulse"].related == ()
    labels = np.digitize(Z, [-1.0, 1.0])
    several = csr.StructuredClassifier(csr.L1()).fit(X, labels)
    first = several.coef_table()[0]
    assert first.weight.shape == (3,) and first.favours == np.argmax(first.weight) and first.related == ()


def test_virtual_nodes_are_neighbours():
    graph = csr.graphs.class_graph({"vital": ["age", "pulse"], "size": ["height", "weight"]}, NAMES)
    model = csr.FeatureNetworkRegressor(graph).fit(X, Z)
    rows = {row.name: row for row in model.coef_table()}
    assert len(rows["age"].related) >= 1
