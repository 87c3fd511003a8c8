"""Delta debugging: find a small problem that still shows the same kind of violation."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cvxstructreg.crosscheck.checks import NEARBY, check
from cvxstructreg.crosscheck.findings import Settings, Violation
from cvxstructreg.crosscheck.parts import fewer_classes, keep_columns, keep_rows, keep_terms
from cvxstructreg.crosscheck.recipe import Recipe
from cvxstructreg.crosscheck.terms.usual import RESIDUAL


def shrink(
    recipe: Recipe, violation: Violation, settings: Settings | None = None, seconds: float = 20.0
) -> tuple[Recipe, Violation]:
    """Find a smaller recipe with the same kind of violation at the same place, within some seconds of CPU time."""
    wide = replace(settings or Settings(), n_points=len(NEARBY) + 3, certify=1.0)
    for chosen in (_narrowed(wide, violation), wide):  # if the narrow settings do not reproduce it, use all

        def persists(candidate: Recipe, chosen: Settings = chosen) -> Violation | None:
            try:
                found = check(candidate, chosen).violations
            except Exception:  # a recipe that cannot be checked is not a smaller example
                return None
            return next((v for v in found if v.kind == violation.kind and _place(v) == _place(violation)), None)

        smaller, found = smallest(recipe, violation, persists, seconds)
        if smaller is not recipe:
            return smaller, found
    return recipe, violation


def smallest(
    recipe: Recipe, violation: Violation, persists: Callable[[Recipe], Violation | None], seconds: float
) -> tuple[Recipe, Violation]:
    """Try smaller and smaller recipes while the violation persists and time remains."""
    end = time.process_time() + seconds
    if seconds <= 0 or persists(recipe) is None:  # no time, or not reproducible
        return recipe, violation
    progress = True
    while progress:
        progress = False
        for candidate in _candidates(recipe):
            if time.process_time() > end:
                return recipe, violation
            found = persists(candidate)
            if found is not None:
                recipe, violation, progress = candidate, found, True
                break
    return recipe, violation


def _place(violation: Violation) -> str:
    """Return the place of a violation, without the size of the noise; for an error or warning, its source line."""
    if violation.kind in ("exception", "warning"):
        return violation.message.rsplit("[", 1)[-1]
    return violation.where.split(" ")[0]


def _narrowed(settings: Settings, violation: Violation) -> Settings:
    """Restrict the settings to what the violation needs: its solver, its witness, its points."""
    places = (violation.where, violation.witness)
    solvers = tuple(place.split(" in a thread")[0] for place in places if place and not place.startswith("certify"))
    certified = any(place.startswith("certify") for place in places)
    labels = ("zero", *(f"near {label}" for label in NEARBY), "far", "wild")
    by_search = float("by search" in violation.where)
    return replace(
        settings,
        solvers=(*solvers, "auto") if certified else solvers,
        points=labels if certified else (),
        atoms=violation.kind == "atom" or violation.where == "atoms",
        search=by_search,
        repeat=float(violation.kind == "repetition"),
        threads=float(violation.kind == "threads"),
    )


def _candidates(recipe: Recipe) -> Iterator[Recipe]:
    """Yield smaller recipes, the largest reductions first."""
    yield from _without_terms(recipe)
    fewer = fewer_classes(recipe)
    if fewer is not None:
        yield fewer
    matrix = np.array(recipe["model"]["matrix"], dtype=float)
    for kept in _subsets(len(matrix)):
        yield keep_rows(recipe, kept)
    if recipe["model"]["kind"] == "linear":
        for kept in _subsets(matrix.shape[1]):
            yield keep_columns(recipe, kept)
    yield from _plainer_model(recipe)
    yield from _plainer_terms(recipe)
    yield from _rounder(recipe)


def _without_terms(recipe: Recipe) -> Iterator[Recipe]:
    terms = recipe["terms"]
    for number in range(len(terms) - 1, -1, -1):
        kept = [other for other in range(len(terms)) if other != number]
        if any(terms[other]["on"] == "rows" for other in kept):
            yield keep_terms(recipe, kept)


def _subsets(count: int) -> Iterator[list[int]]:
    """Yield what remains when a half, a quarter, ..., or a single index is removed."""
    size = count // 2
    while size >= 1:
        for start in range(0, count, size):
            left = [place for place in range(count) if not start <= place < start + size]
            if left:
                yield left
        size //= 2


def _plainer_model(recipe: Recipe) -> Iterator[Recipe]:
    plain = {"dtype": "float64", "format": "dense", "intercept": False}
    for name, simple in plain.items():
        if recipe["model"][name] != simple:
            yield {**recipe, "model": {**recipe["model"], name: simple}}


def _plainer_terms(recipe: Recipe) -> Iterator[Recipe]:
    simpler: dict[str, Any] = {"sample_weight": None, "scale": 1.0, "power": 1, "normalized": False}
    simpler |= {"offset": None, "exposure": None, "task_weight": None}
    for number, term in enumerate(recipe["terms"]):
        changes = [{name: simple} for name, simple in simpler.items() if name in term and term[name] != simple]
        if term["kind"] in ("L1", "Ridge", "Dissimilarity") and term["weights"] is not None:
            changes.append({"weights": None})
        if "members" in term:
            changes.append({"members": [[1.0] * len(group) for group in term["groups"]]})
        if "margin" in term:
            changes.append({"margin": 0.0})
        if "groups" in term:
            for left in range(len(term["groups"])) if len(term["groups"]) > 1 else ():
                kept = [other for other in range(len(term["groups"])) if other != left]
                names = [name for name in ("groups", "weights", "members") if name in term]
                changes.append({name: [term[name][other] for other in kept] for name in names})
            if any(weight != 1.0 for weight in term["weights"]):
                changes.append({"weights": [1.0] * len(term["weights"])})
        changes += [{"graph": graph} for graph in _plainer_graphs(term.get("graph"))]
        for change in changes:
            yield {**recipe, "terms": [{**t, **change} if i == number else t for i, t in enumerate(recipe["terms"])]}


def _plainer_graphs(graph: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if graph is None:
        return
    for kept in _subsets(len(graph["edges"])):
        yield {**graph, **{name: [graph[name][place] for place in kept] for name in ("edges", "weights")}}
    if any(abs(weight) != 1.0 for weight in graph["weights"]):
        yield {**graph, "weights": [float(np.sign(weight)) for weight in graph["weights"]]}


def _rounder(recipe: Recipe) -> Iterator[Recipe]:
    """Yield the recipe with its data rounded to one or two digits."""
    for digits in (1, 2):
        rounded = copy.deepcopy(recipe)
        matrix = np.array(recipe["model"]["matrix"], dtype=float)
        rounded["model"]["matrix"] = _to_digits(matrix, digits)
        if rounded["model"] != recipe["model"]:
            yield rounded
        rounded = copy.deepcopy(recipe)
        for term in rounded["terms"]:
            term["scale"] = _to_digits(term["scale"], digits)
            for name in ("y", "sample_weight", "offset", "exposure", "weights", "factor"):
                if name == "y" and term["kind"] not in RESIDUAL:
                    continue
                if term.get(name) is not None:
                    term[name] = _to_digits(term[name], digits)
        if rounded["terms"] != recipe["terms"]:
            yield rounded


def _to_digits(values: Any, digits: int) -> Any:
    array = np.array(values, dtype=float)
    rounded = np.array([float(f"{value:.{digits - 1}e}") for value in array.ravel()]).reshape(array.shape)
    return rounded.tolist()
