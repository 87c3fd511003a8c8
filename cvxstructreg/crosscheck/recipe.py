"""A random problem as plain data, made from a seed.

A recipe is a dictionary of numbers, strings and lists, so a problem can be stored as JSON, replayed, shrunk and
printed. It contains only raw data: matrices, labels, edge lists, group lists. Two implementations read a recipe: one
uses the public interface of the package (:mod:`cvxstructreg.crosscheck.build`), the other textbook formulas
(:mod:`cvxstructreg.crosscheck.textbook`). ::

    {"model": {"kind": "linear", "matrix": [[...]], "dtype": "float64", "format": "dense", "intercept": true},
     "terms": [{"kind": "Squared", "on": "rows", "scale": 1.0, "y": [...], "rows": null, "sample_weight": null},
               {"kind": "L1", "on": "weights", "scale": 0.3, "weights": null}],
     "name": "0-17"}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.crosscheck.terms.composed import composed_terms
from cvxstructreg.crosscheck.terms.structured import structured_terms
from cvxstructreg.crosscheck.terms.usual import LOSSES, REAL, RESIDUAL, loss_term, penalty_terms

Recipe = dict[str, Any]

#: The largest numbers of rows, columns and classes.
LARGEST, CLASSES = 60, 9
#: Formats of the data matrix; dense formats occur more often.
FORMATS = ("dense", "dense", "dense", "fortran", "csr", "csc", "coo", "unsorted", "duplicates", "explicit zeros")


def random_recipe(seed: int, number: int, largest: int = LARGEST) -> Recipe:
    """Return the recipe of problem ``number`` in the sequence of ``seed``.

    Examples
    --------
    >>> recipe = random_recipe(0, 17, largest=5)
    >>> recipe["name"], recipe == random_recipe(0, 17, largest=5)
    ('0-17', True)
    """
    rng = np.random.default_rng([seed, number])
    loss = str(rng.choice(LOSSES))
    n, d = _size(rng, largest), _size(rng, largest)
    k = _outputs(rng, loss)
    if loss not in REAL:
        n = max(n, 2 if k == 1 else k + 1)
    wild = rng.random() < 0.4  # scales from 1e-9 to 1e9
    model = _kernel(rng, n, wild) if rng.random() < 0.25 else _linear(rng, n, d, wild)
    model["intercept"] = model["intercept"] and loss != "Cox"  # which has none
    matrix = np.asarray(model["matrix"], dtype=float)
    terms = [loss_term(rng, loss, len(matrix), k, wild)]
    if rng.random() < 0.08:
        terms.append(loss_term(rng, loss, len(matrix), k, wild))
    terms += penalty_terms(rng, model, k, wild, terms)
    order = [0, *(1 + rng.permutation(len(terms) - 1)).tolist()]
    terms = [terms[place] for place in order]
    losses, penalties = ([term for term in terms if (term["on"] == "rows") == is_loss] for is_loss in (True, False))
    # streams of their own: the draws before them stay as they were
    streams = [np.random.default_rng([seed, number, stream]) for stream in (1, 2)]
    for rng, add in zip(streams, (structured_terms, composed_terms), strict=True):
        penalties = add(rng, model, wild, losses, penalties)
    return {"name": f"{seed}-{number}", "model": model, "terms": [*losses, *penalties]}


def class_of(recipe: Recipe) -> tuple[str, str, tuple[str, ...]]:
    """Return loss, model and penalties, by which the table of the report is sorted."""
    loss = recipe["terms"][0]["kind"]
    penalties = {title(term) for term in recipe["terms"] if term["on"] != "rows"}
    return loss, recipe["model"]["kind"], tuple(sorted(penalties))


def title(term: dict[str, Any]) -> str:
    """Return the name of a penalty, with its target."""
    moved = {"scores": " on scores", "function": " on function"}
    if term["kind"] in ("Dissimilarity", "RKHSNorm"):
        return str(term["kind"])
    return term["kind"] + moved.get(term["on"], "")


def outputs_of(recipe: Recipe) -> int:
    """Return the number of score columns k."""
    term = recipe["terms"][0]
    if term["kind"] in RESIDUAL:
        y = np.asarray(term["y"])
        return int(y.shape[1]) if y.ndim == 2 else 1
    return int(term["k"])


def _size(rng: np.random.Generator, largest: int) -> int:
    """Draw a number from 1 to ``largest``; small numbers are more likely."""
    return int(np.clip(np.floor(largest ** rng.random() + rng.random()), 1, largest))


def _outputs(rng: np.random.Generator, loss: str) -> int:
    if loss in ("Multinomial", "MulticlassHinge"):
        return int(rng.choice([2, 3, 3, 4, 5, CLASSES]))
    return int(rng.choice([1, 1, 1, 2, 3])) if loss in RESIDUAL else 1


def _linear(rng: np.random.Generator, n: int, d: int, wild: bool) -> dict[str, Any]:
    X = rng.normal(size=(n, d))
    dtype = str(rng.choice(["float64", "float64", "float64", "float32", "int64", "int8", "bool"]))
    layout = str(rng.choice(FORMATS))
    if layout not in ("dense", "fortran") or rng.random() < 0.2:
        X *= rng.random((n, d)) < 0.5
    if rng.random() < 0.2:  # zero columns
        X[:, rng.random(d) < 0.3] = 0.0
    if rng.random() < 0.2 and d > 1:  # columns that are equal, opposite or nearly equal
        j, other = rng.choice(d, size=2, replace=False)
        X[:, j] = X[:, other] * rng.choice([1.0, -1.0, 2.0]) + rng.choice([0.0, 0.0, 1e-9]) * rng.normal(size=n)
    if rng.random() < 0.1:  # a column that repeats the intercept
        X[:, rng.integers(d)] = 1.0
    if rng.random() < 0.1 and n > 1:  # equal rows
        X[rng.integers(n)] = X[rng.integers(n)]
    if wild and dtype in ("float64", "float32"):
        X = _stretched(rng, X)
    if dtype in ("int64", "int8"):
        X = np.rint(2.0 * X)
    if dtype == "bool":
        X = (X > 0).astype(float)
    if dtype == "float32":
        X = X.astype(np.float32).astype(float)
    intercept = bool(rng.random() < 0.6)
    return {"kind": "linear", "matrix": X.tolist(), "dtype": dtype, "format": layout, "intercept": intercept}


def _stretched(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Scale the matrix, or scale each column, or shift the columns far from zero."""
    how = rng.integers(4)
    if how == 0:
        return X * 10.0 ** rng.uniform(-9, 9)
    if how == 1:
        return np.asarray(X * 10.0 ** rng.uniform(-5, 5, size=X.shape[1]))
    if how == 2:
        return X + 10.0 ** rng.uniform(0, 6)
    return X


def _kernel(rng: np.random.Generator, n: int, wild: bool) -> dict[str, Any]:
    Z = rng.normal(size=(n, int(rng.integers(1, 5))))
    how = rng.integers(3)
    if how == 0:  # full rank
        squares = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
        gram = np.exp(-squares * 10.0 ** rng.uniform(-2, 1))
    elif how == 1:  # rank-deficient
        gram = Z @ Z.T
    else:
        gram = Z @ Z.T + 10.0 ** rng.uniform(-6, 0) * np.eye(n)
    if rng.random() < 0.1:  # an example with a zero row and column
        gram[:, 0] = gram[0, :] = 0.0
    if wild:
        gram = gram * 10.0 ** rng.uniform(-9, 9)
    gram = (gram + gram.T) / 2
    dtype = str(rng.choice(["float64", "float64", "float64", "float32"]))
    if dtype == "float32":
        gram = gram.astype(np.float32).astype(float)
    layout = str(rng.choice(["dense", "dense", "fortran", "csr"]))
    intercept = bool(rng.random() < 0.6)
    return {"kind": "kernel", "matrix": gram.tolist(), "dtype": dtype, "format": layout, "intercept": intercept}
