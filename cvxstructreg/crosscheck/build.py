"""Build the problem of a recipe through the public interface of the package only."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.crosscheck.recipe import Recipe
from cvxstructreg.crosscheck.terms.usual import OPTIONS
from cvxstructreg.runtime.lazy_cvxpy import cp

#: The expressions of :data:`cvxstructreg.crosscheck.terms.composed.FORMS`.
EXPRESSIONS = {
    "norm_inf": lambda w: cp.norm_inf(w),
    "two largest": lambda w: cp.sum_largest(cp.abs(w), 2),
    "power": lambda w: cp.sum(cp.power(cp.abs(w), 1.5)),
    "steps": lambda w: cp.tv(w) + cp.norm1(w),
    "softened": lambda w: cp.sum(cp.logistic(w) + cp.logistic(-w)),
}


def build(recipe: Recipe) -> csr.Problem:
    """Return the problem of a recipe, as a user would write it.

    Examples
    --------
    >>> from cvxstructreg.crosscheck.recipe import random_recipe
    >>> isinstance(build(random_recipe(0, 3, largest=5)), csr.Problem)
    True
    """
    model = recipe["model"]
    matrix = laid_out(model)
    kind = csr.Linear if model["kind"] == "linear" else csr.Kernel
    objective = sum(scaled(term) for term in recipe["terms"])
    return csr.Problem(kind(matrix, intercept=model["intercept"]), objective)


def scaled(term: dict[str, Any]) -> csr.Term:
    """Return a term with its strength and target."""
    atom = _atom(term)
    moved = term["on"]
    if moved == "scores" and term["kind"] != "Dissimilarity":
        return term["scale"] * atom.on_scores()
    if moved == "function" and term["kind"] != "RKHSNorm":
        return term["scale"] * atom.on_function()
    return term["scale"] * atom


def _atom(term: dict[str, Any]) -> Any:
    kind = getattr(csr, term["kind"])
    if term["kind"] == "compose":
        K = np.array(term["factor"])
        return kind(_atom({**term["outer"], "on": "weights"}), sp.csr_array(K) if term["sparse"] else K)
    if term["on"] == "rows":
        return kind(term["y"], **{name: term[name] for name in OPTIONS if term.get(name) is not None})
    if term["kind"] in ("Ridge", "L1"):
        return kind(weights=term["weights"])
    if term["kind"] == "Quadratic":
        if term["matrix"] is not None:
            return kind(matrix=term["matrix"])
        return kind(factor=sp.csr_array(np.array(term["factor"])) if term["sparse"] else term["factor"])
    if term["kind"] == "Laplacian":
        return kind(graph(term["graph"]), normalized=term["normalized"], power=term["power"])
    if term["kind"] == "FeatureNetwork":
        return kind(graph(term["graph"]), signed=term["signed"])
    if term["kind"] == "FusedLasso":
        return kind(graph(term["graph"]))
    if "groups" in term:
        return _with_groups(kind, term)
    if term["kind"] == "TotalVariation":
        return kind(tuple(term["shape"]), isotropic=term["isotropic"])
    if term["kind"] == "TrendFilter":
        return kind(term["order"], graph(term["graph"]) if "graph" in term else None)
    if term["kind"] == "HuberDifferences":
        return kind(graph(term["graph"]), M=term["M"])
    if term["kind"] == "HuberPenalty":
        return kind(M=term["M"], weights=term["weights"])
    if term["kind"] == "BlockNorms":
        return kind(term["indptr"], term["weights"])
    if term["kind"] == "FromExpression":
        return kind(EXPRESSIONS[term["form"]])
    if term["kind"] == "SLOPE":
        return kind(term["weights"])
    if term["kind"] == "NuclearNorm":
        return kind(None if term["shape"] is None else tuple(term["shape"]))
    if term["kind"] == "Box":
        return kind(_bound(term["lower"], -np.inf), _bound(term["upper"], np.inf))
    if term["kind"] == "Dissimilarity":
        return kind(term["pairs"], power=term["power"], weights=term["weights"], margin=term.get("margin", 0.0))
    return kind()


def _with_groups(kind: Any, term: dict[str, Any]) -> Any:
    groups = (csr.TreeGroups if term.get("tree") else csr.Groups)(
        term["groups"], n_features=term["n_features"], weights=term["weights"], member_weights=term.get("members")
    )
    return kind(groups, across_outputs=term["across_outputs"]) if "across_outputs" in term else kind(groups)


def graph(given: dict[str, Any]) -> csr.Graph:
    """Return the graph of an edge list."""
    pairs = np.array(given["edges"], dtype=int).reshape(-1, 2)
    return csr.Graph.from_edges(
        pairs, given["weights"], given["n_nodes"], virtual=given["virtual"] or None, directed=given["directed"]
    )


def _bound(given: Any, none: float) -> Any:
    if isinstance(given, list):
        return np.array([none if bound is None else bound for bound in given])
    return none if given is None else given


def laid_out(model: dict[str, Any]) -> Any:
    """Return the matrix of the model in its dtype and format."""
    dense = np.array(model["matrix"], dtype=model["dtype"])
    layout = model["format"]
    if layout == "dense":
        return dense
    if layout == "fortran":
        return np.asfortranarray(dense)
    if layout in ("csr", "csc", "coo"):
        return {"csr": sp.csr_array, "csc": sp.csc_matrix, "coo": sp.coo_array}[layout](dense)
    if layout == "explicit zeros":
        rows, columns = np.indices(dense.shape).reshape(2, -1)
        return sp.csr_array((dense.ravel(), (rows, columns)), shape=dense.shape)
    whole = sp.csr_array(dense)
    if layout == "unsorted":
        return _reversed_rows(whole)
    # duplicates: every entry twice, as two halves if that is exact, and otherwise as the entry and a zero
    data = np.repeat(whole.data, 2)
    if data.dtype.kind == "f":
        data /= 2
    else:
        data[1::2] = 0
    return sp.csr_array((data, np.repeat(whole.indices, 2), 2 * whole.indptr), shape=dense.shape)


def _reversed_rows(matrix: Any) -> Any:
    """Return a CSR matrix whose column indices decrease in every row."""
    order = np.concatenate(
        [np.arange(end - 1, start - 1, -1) for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
        or [np.zeros(0, dtype=int)]
    ).astype(int)
    return sp.csr_array((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)
