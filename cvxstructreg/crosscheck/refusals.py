"""Documented refusals: the messages that errors may have, and the conditions under which they are correct."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from cvxstructreg.crosscheck.recipe import Recipe
from cvxstructreg.crosscheck.terms.usual import MEANS, REAL


def is_documented(recipe: Recipe, error: BaseException) -> bool:
    """Return whether the error is a documented refusal, and its reason applies to the recipe.

    Examples
    --------
    >>> recipe = {"terms": [{"kind": "Hinge", "on": "rows", "y": [1, 1]}]}
    >>> is_documented(recipe, ValueError("y has only one class, [1]"))
    True
    >>> is_documented({"terms": []}, ValueError("y has only one class, [1]"))
    False
    >>> is_documented({"terms": []}, IndexError("y has only one class, [1]"))
    False
    """
    if type(error) not in (ValueError, TypeError):
        return False
    return any(re.search(pattern, str(error)) and holds(recipe) for pattern, holds in REFUSALS)


def _losses(recipe: Recipe) -> list[dict[str, Any]]:
    return [term for term in recipe["terms"] if term["on"] == "rows"]


def _one_class(recipe: Recipe) -> bool:
    return any(term["kind"] not in REAL and len(set(term["y"])) < 2 for term in _losses(recipe))


def _class_without_weight(recipe: Recipe) -> bool:
    for term in _losses(recipe):
        if term["kind"] in REAL:
            continue
        weights = term["sample_weight"] or [1.0] * len(term["y"])
        counted = {label for label, weight in zip(term["y"], weights, strict=True) if weight > 0}
        if len(counted) < max(2, term["k"]):
            return True
    return False


def _only_zeros(recipe: Recipe) -> bool:
    for term in _losses(recipe):
        weights = term["sample_weight"] or [1.0] * len(term["y"])
        if term["kind"] in MEANS and not any(y * weight for y, weight in zip(term["y"], weights, strict=True)):
            return True
    return False


def _no_event(recipe: Recipe) -> bool:
    for term in _losses(recipe):
        weights = term["sample_weight"] or [1.0] * len(term["y"])
        if term["kind"] == "Cox" and not any(e and w for e, w in zip(term["event"], weights, strict=True)):
            return True
    return False


def _no_weight(recipe: Recipe) -> bool:
    return any(term["sample_weight"] is not None and not any(term["sample_weight"]) for term in _losses(recipe))


def _empty_group(recipe: Recipe) -> bool:
    return any(not group for term in recipe["terms"] for group in term.get("groups", ()))


def _zero_gram(recipe: Recipe) -> bool:
    return recipe["model"]["kind"] == "kernel" and not np.any(recipe["model"]["matrix"])


def _indefinite(recipe: Recipe) -> bool:
    if recipe["model"]["kind"] != "kernel":
        return False
    values = np.linalg.eigvalsh(np.array(recipe["model"]["matrix"], dtype=float))
    return bool(values[0] < -1e-9 * max(values[-1], 0.0))


def _several_bounds(recipe: Recipe) -> bool:
    from cvxstructreg.crosscheck.textbook.matrices import bounds

    d = len(recipe["model"]["matrix"][0])
    boxes = [bounds(t, d) for t in recipe["terms"] if t["kind"] in ("Box", "NonNegative") and t["on"] == "weights"]
    if len(boxes) < 2:
        return False
    return bool(np.any(np.max([low for low, _ in boxes], axis=0) > np.min([high for _, high in boxes], axis=0)))


def _all_virtual(recipe: Recipe) -> bool:
    return any("graph" in t and len(t["graph"]["virtual"]) >= t["graph"]["n_nodes"] for t in recipe["terms"])


#: Patterns of documented messages, each with the condition under which the message is correct.
REFUSALS: tuple[tuple[str, Callable[[Recipe], bool]], ...] = (
    (r"y has only one class", _one_class),
    (r"sample_weight is zero for all examples of one class", _class_without_weight),
    (r"have no example of positive weight", _class_without_weight),
    (r"sample_weight is zero everywhere", _no_weight),
    (r"there is no event of positive weight", _no_event),
    (r"all (counts|values) of positive weight are zero", _only_zeros),
    (r"is empty \(\d+ such\); drop the empty groups", _empty_group),
    (r"gram is zero everywhere", _zero_gram),
    (r"gram must be positive semidefinite", _indefinite),
    (r"the bounds of two terms exclude each other", _several_bounds),
    (r"every node is virtual", _all_virtual),
)
