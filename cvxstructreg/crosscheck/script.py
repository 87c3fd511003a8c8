"""Write a recipe and its violation as a stand-alone script of about ten lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxstructreg.crosscheck.findings import Settings, Violation
from cvxstructreg.crosscheck.recipe import Recipe
from cvxstructreg.crosscheck.terms.usual import OPTIONS


def as_script(recipe: Recipe, violation: Violation, settings: Settings | None = None) -> str:
    """Return a script that builds the problem through the public interface and shows the violation.

    Examples
    --------
    >>> loss = {"kind": "Squared", "on": "rows", "scale": 1.0, "y": [3.0], "rows": None, "sample_weight": None}
    >>> model = {"kind": "linear", "matrix": [[2.0]], "dtype": "float64", "format": "dense", "intercept": False}
    >>> print(as_script({"model": model, "terms": [loss]}, Violation("status", "admm", "as an example")))
    # status (admm): as an example
    import cvxstructreg as csr
    import numpy as np
    <BLANKLINE>
    X = np.array([[2.0]])
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared([3.0]))
    solution = problem.solve(solver='admm', tol=1e-06, time_limit=1.0)
    print(solution, solution.certificate)
    """
    tol, limit = (settings or Settings()).tol, (settings or Settings()).time_limit
    lines = [f"# {violation.kind} ({violation.where}): {violation.message}", "import cvxstructreg as csr"]
    forms = any(term["kind"] == "FromExpression" for term in recipe["terms"])
    lines += [*(["import cvxpy as cp"] if forms else []), "import numpy as np"]
    model = recipe["model"]
    if model["format"] not in ("dense", "fortran") or any(term.get("sparse") for term in recipe["terms"]):
        lines.append("import scipy.sparse as sp")
    lines += ["", _matrix(model)]
    kind = "Linear" if model["kind"] == "linear" else "Kernel"
    intercept = "" if model["intercept"] else ", intercept=False"
    objective = " + ".join(_term(term) for term in recipe["terms"])
    lines.append(f"problem = csr.Problem(csr.{kind}(X{intercept}), {objective})")
    where = violation.where.split(" in a thread")[0]
    if not where.startswith(("certify", "build", "accepting", "model")):
        lines.append(f"solution = problem.solve(solver={where!r}, tol={tol:g}, time_limit={limit})")
        lines.append("print(solution, solution.certificate)")
    if violation.point is not None:
        coef, b = (np.array(part) for part in violation.point)
        single = coef.shape[1] == 1
        lines.append(f"coef, intercept = np.array({_short(coef[:, 0] if single else coef)}), {_short(b)}")
        lines.append("print(repr(problem.value(coef, intercept)), csr.certify(problem, coef, intercept, search=False))")
    return "\n".join(lines)


def _matrix(model: dict[str, Any]) -> str:
    dtype = "" if model["dtype"] == "float64" else f", dtype={model['dtype']!r}"
    text = f"X = np.array({_short(model['matrix'])}{dtype})"
    if model["format"] == "dense":
        return text
    wrap = {"fortran": "np.asfortranarray", "csc": "sp.csc_matrix", "coo": "sp.coo_array"}
    return f"{text}\nX = {wrap.get(model['format'], 'sp.csr_array')}(X)  # format: {model['format']}"


def _term(term: dict[str, Any]) -> str:
    kind, text = term["kind"], _atom(term)
    if term["on"] == "scores" and kind != "Dissimilarity":
        text += ".on_scores()"
    if term["on"] == "function" and kind != "RKHSNorm":
        text += ".on_function()"
    return text if term["scale"] == 1 else f"{term['scale']!r} * {text}"


def _atom(term: dict[str, Any]) -> str:
    kind, name = term["kind"], f"csr.{term['kind']}"
    if kind in EXPRESSED:
        return EXPRESSED[kind](term)
    if term["on"] == "rows":
        given = [_short(term["y"])]
        given += [f"{key}={_short(term[key])}" for key in OPTIONS if term.get(key) is not None]
        text = f"{name}({', '.join(given)})"
    elif "groups" in term:
        made = "csr.TreeGroups" if term.get("tree") else "csr.Groups"
        members = f", member_weights={_short(term['members'])}" if "members" in term else ""
        text = f"{made}({term['groups']}, {term['n_features']}, weights={_short(term['weights'])}{members})"
        text = f"{name}({text}{_options(term, 'across_outputs')})"
    elif kind in ("TotalVariation", "NuclearNorm"):
        shape = None if term["shape"] is None else tuple(term["shape"])
        text = f"{name}({shape}{_options(term, 'isotropic')})"
    elif kind == "TrendFilter":
        text = f"{name}({term['order']}{', ' + _graph(term['graph']) if 'graph' in term else ''})"
    elif "graph" in term:
        options = [f", {key}={term[key]!r}" for key in ("normalized", "power", "signed", "M") if key in term]
        text = f"{name}({_graph(term['graph'])}{''.join(options)})"
    elif kind == "Box":
        lower, upper = (_bound(term["lower"], "-np.inf"), _bound(term["upper"], "np.inf"))
        text = f"{name}({lower}, {upper})"
    elif kind == "Quadratic":
        key = "matrix" if term["matrix"] is not None else "factor"
        text = f"{name}({key}={'sp.csr_array(' if term.get('sparse') else '('}np.array({_short(term[key])})))"
    elif kind == "Dissimilarity":
        weights = f", weights={_short(term['weights'])}" if term["weights"] is not None else ""
        text = f"{name}({term['pairs']}, power={term['power']}{weights}{_options(term, 'margin')})"
    else:
        text = f"{name}({'weights=' + _short(term['weights']) if term.get('weights') is not None else ''})"
    return text


def _composed(term: dict[str, Any]) -> str:
    outer = _atom({**term["outer"], "on": "weights"})
    return f"csr.compose({outer}, {'sp.csr_array(' if term['sparse'] else '('}np.array({_short(term['factor'])})))"


def _huber(term: dict[str, Any]) -> str:
    return f"csr.HuberPenalty({term['M']!r}, weights={_short(term['weights'])})"


def _blocks(term: dict[str, Any]) -> str:
    return f"csr.BlockNorms({term['indptr']}, {_short(term['weights'])})"


def _expression(term: dict[str, Any]) -> str:
    return f"csr.FromExpression(lambda w: {EXPRESSION_TEXTS[term['form']]})"


EXPRESSION_TEXTS = {
    "norm_inf": "cp.norm_inf(w)",
    "two largest": "cp.sum_largest(cp.abs(w), 2)",
    "power": "cp.sum(cp.power(cp.abs(w), 1.5))",
    "steps": "cp.tv(w) + cp.norm1(w)",
    "softened": "cp.sum(cp.logistic(w) + cp.logistic(-w))",
}
EXPRESSED: dict[str, Callable[[dict[str, Any]], str]] = {
    "compose": _composed,
    "HuberPenalty": _huber,
    "BlockNorms": _blocks,
    "FromExpression": _expression,
}


def _options(term: dict[str, Any], *keys: str) -> str:
    return "".join(f", {key}={term[key]!r}" for key in keys if key in term)


def _graph(graph: dict[str, Any]) -> str:
    more = ", directed=True" if graph["directed"] else ""
    more += f", virtual={graph['virtual']}" if graph["virtual"] else ""
    edges = graph["edges"] if graph["edges"] else "np.zeros((0, 2), int)"
    return f"csr.Graph.from_edges({edges}, {_short(graph['weights'])}, {graph['n_nodes']}{more})"


def _bound(given: Any, none: str) -> str:
    if isinstance(given, list):
        return "[" + ", ".join(none if bound is None else repr(bound) for bound in given) + "]"
    return none if given is None else repr(given)


def _short(values: Any) -> str:
    """Return the shortest text that represents the numbers of a list exactly."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return repr(listed)
