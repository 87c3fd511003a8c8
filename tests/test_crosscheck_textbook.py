"""Textbook formulas of the cross-check: they share no code with the package and cover every loss and penalty."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.crosscheck import Violation, as_script, random_recipe
from cvxstructreg.crosscheck.build import EXPRESSIONS, build
from cvxstructreg.crosscheck.terms.composed import FORMS
from cvxstructreg.crosscheck.textbook import escape
from cvxstructreg.crosscheck.textbook.program import textbook_optimum
from cvxstructreg.crosscheck.textbook.value import value


def test_the_second_opinion_shares_no_code():
    folder = Path(csr.__file__).parent / "crosscheck"
    paths = list(folder.glob("textbook/*.py"))
    assert len(paths) > 4
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cvxstructreg"):
                assert node.module.startswith(("cvxstructreg.crosscheck.textbook", "cvxstructreg.crosscheck.recipe"))


def test_recipes_are_plain_data():
    for number in range(40):
        recipe = random_recipe(3, number)
        assert json.loads(json.dumps(recipe)) == recipe


def test_the_recipes_hold_what_they_should():
    recipes = [random_recipe(0, number) for number in range(600)]
    terms = [term for recipe in recipes for term in recipe["terms"]]
    assert {term["kind"] for term in terms} >= {"Squared", "MulticlassHinge", "Dissimilarity", "FeatureNetwork", "Box"}
    assert {term["kind"] for term in terms} >= {*csr.penalties.__all__, "FromExpression"} - {"differences"}
    outer = {term["outer"]["kind"] for term in terms if term["kind"] == "compose"}
    assert outer == {"L1", "HuberPenalty", "BlockNorms"}
    assert {term["form"] for term in terms if term["kind"] == "FromExpression"} == set(EXPRESSIONS)
    assert all(any(name in term for term in terms) for name in ("members", "tree", "across_outputs", "margin"))
    assert {term["kind"] for term in terms} >= set(csr.losses.__all__)
    assert {recipe["model"]["dtype"] for recipe in recipes} >= {"float64", "float32", "int64", "int8", "bool"}
    assert {recipe["model"]["format"] for recipe in recipes} >= {"csr", "unsorted", "duplicates", "explicit zeros"}
    graphs = [term["graph"] for term in terms if "graph" in term]
    assert any(graph["virtual"] for graph in graphs) and any(graph["directed"] for graph in graphs)
    assert any(min(graph["weights"], default=0.0) < 0 for graph in graphs)
    assert any([] in term["groups"] for term in terms if "groups" in term)
    sizes = [len(recipe["model"]["matrix"]) for recipe in recipes]
    assert min(sizes) == 1 and max(sizes) > 50


def test_textbook_values_of_a_problem_made_by_hand():
    loss = {"kind": "Logistic", "on": "rows", "scale": 2.0, "y": [0, 1], "k": 1, "rows": [2, 0], "sample_weight": None}
    ridge = {"kind": "Ridge", "on": "weights", "scale": 0.5, "weights": [1.0, 4.0]}
    model = {"kind": "linear", "matrix": [[1.0, 0.0], [9.0, 9.0], [0.0, 1.0]], "intercept": True}
    recipe = {"model": model, "terms": [loss, ridge]}
    found = value(recipe, np.array([[1.0], [2.0]]), np.array([0.5]))
    expected = 2.0 * (np.log1p(np.exp(2.5)) + np.log1p(np.exp(-1.5))) + 0.5 * (1.0 + 16.0)
    assert found.high == pytest.approx(expected, rel=1e-15)


def test_the_textbook_finds_the_optimum_of_scikit_learn():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    loss = {"kind": "Squared", "on": "rows", "scale": 1.0, "y": y.tolist(), "rows": None, "sample_weight": None}
    ridge = {"kind": "Ridge", "on": "weights", "scale": 0.5, "weights": None}
    model = {"kind": "linear", "matrix": X.tolist(), "intercept": True}
    theta, b = textbook_optimum({"model": model, "terms": [loss, ridge]})
    peer = Ridge(alpha=1.0).fit(X, y)
    assert theta[:, 0] == pytest.approx(peer.coef_, abs=1e-6) and b[0] == pytest.approx(peer.intercept_, abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_expressions_have_a_script_and_two_textbook_formulas(form):
    loss = {"kind": "Squared", "on": "rows", "scale": 1.0, "y": [3.0, 1.0], "rows": None, "sample_weight": None}
    penalty = {"kind": "FromExpression", "form": form, "on": "weights", "scale": 0.5}
    model = {"kind": "linear", "matrix": np.eye(2).tolist(), "dtype": "float64", "format": "dense", "intercept": False}
    recipe = {"model": model, "terms": [loss, penalty]}
    theta, b = textbook_optimum(recipe)
    names: dict[str, object] = {}
    exec(as_script(recipe, Violation("status", "build", "none")), names)
    solution = names["problem"].solve(tol=1e-8)
    assert solution.objective == pytest.approx(value(recipe, theta, b).high, rel=1e-7)
    assert names["problem"].value(theta[:, 0]) == pytest.approx(build(recipe).value(theta[:, 0]), rel=1e-12)
    assert names["problem"].value(theta[:, 0]) == pytest.approx(value(recipe, theta, b).high, rel=1e-12)


def test_eigenvalues_that_are_round_off_hold_no_direction():
    term = {"kind": "Quadratic", "matrix": [[10.0, 0.0], [0.0, 1e-15]], "factor": None, "on": "weights"}
    theta = cp.Variable((2, 1))
    (condition,) = escape._unpenalised({"model": {"kind": "linear"}}, term, theta, theta, theta)
    assert condition.shape == (1, 1)
