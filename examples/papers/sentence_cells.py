"""The fits of the sentence regularizer and of the models beside it, as cells that two scripts share.

A *variant* is a data set with a split, a vocabulary and a kind of copies. All choices are made on the development
documents by accuracy; ties go to the sparsest model. The chosen model is fitted on all training documents.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from cells import computed
from published_admm import Stops, Trunk
from sentence_optimum import SentenceProblem
from text_data import TextData, text_data
from text_models import (
    CHANGE,
    EARLY,
    MOST,
    PUBLISHED,
    SAME,
    TUNED,
    WEIGHTED,
    best_inside,
    best_point,
    result,
    solved,
)

#: The grid of the paper.
STRENGTHS = (1e3, 1e2, 1e1, 1.0, 1e-1, 1e-2)
RHOS = (1e-1, 1.0, 1e1, 1e2, 1e3)
#: The first grid of the optimum with its own strengths, and of the weighted ridge; both grow until no edge is chosen.
OWN = {"lam": (0.1, 0.01, 0.001), "lam1": (10.0, 1.0, 0.1)}
OWN_RIDGE = {"lam": (1.0, 0.1, 0.01)}
STOPS = (1, 2, 3, 5, 10, 20, 30, 50, MOST)
PLAIN = ("lasso", "ridge", "elastic net")
MAIN = {"split": 0, "vocabulary": "all", "copies": "tokens"}


def data_of(variant: dict[str, Any]) -> TextData:
    """The data of a variant."""
    return text_data(*(variant[key] for key in ("name", "data_home", "split", "vocabulary", "copies")))


def optimum_cell(variant: dict[str, Any], model: str, quick: bool) -> Any:
    """A model at its optimum, with strengths chosen on the development documents."""
    data = data_of(variant)
    values = (1.0, 0.1) if quick else STRENGTHS
    began = time.process_time()
    if model in (TUNED, WEIGHTED):
        development, point, tried = best_inside(data, model, OWN if model == TUNED else OWN_RIDGE, 0 if quick else 6)
    else:
        pairs = model == "elastic net"
        grid = [
            {"lam": a} | ({"lam1": b} if pairs else {}) for a, b in itertools.product(values, values if pairs else [0])
        ]
        development, point = best_point(data, model, grid)
        tried = len(grid)
    chosen = time.process_time()
    final = solved(model, data.whole, point)
    seconds = time.process_time() - chosen
    kept = result(data, final.coef, float(final.intercept), point, final.gap, seconds)
    return kept | {"development": development, "tried": tried, "seconds of the choice": chosen - began}


def published_cell(variant: dict[str, Any], lam1: float, rho: float, quick: bool) -> Any:
    """The published algorithm on the training part for all lam: accuracy on the development documents at each stop."""
    data, found = data_of(variant), []
    part = data.training
    trunk = Trunk(part.X, part.y, part.groups, lam1, rho, True)
    for lam in (1.0, 0.1) if quick else STRENGTHS:
        run = Stops(part.X, part.y, part.groups, lam, lam1, rho, True, change=CHANGE, trunk=trunk)
        for stop in (1, 10) if quick else STOPS:
            (w, b), _ = run.after(stop)
            right = float(100.0 * data.development.right(w, b).mean())
            point = {"lam": lam, "lam1": lam1, "rho": rho, "iterations": run.count, "ended": run.ended}
            found.append(point | {"right": right, "features": int(np.count_nonzero(w))})
            if run.ended:
                break
        found[-1]["ended"] = True  # the stop of the paper: by the change of w, or after the most iterations
    return found


def final_cell(variant: dict[str, Any], lam: float, lam1: float, rho: float, quick: bool) -> Any:
    """The chosen published algorithm on all training documents, its path, and the optimum with the same strengths."""
    data = data_of(variant)
    part, point = data.whole, {"lam": lam, "lam1": lam1}
    problem = SentenceProblem(part.X, part.y, part.groups, lam, lam1)
    optimum = problem.solve()
    run = Stops(part.X, part.y, part.groups, lam, lam1, rho, True, change=CHANGE)
    path: list[dict[str, Any]] = []
    seconds = 0.0
    for stop in (1, 10) if quick else STOPS:
        began = time.process_time()
        (w, b), _ = run.after(stop)
        seconds += time.process_time() - began
        path.append({"iterations": run.count, "test accuracy": 100.0 * float(data.test.right(w, b).mean())})
        above = problem.objective(w, b) / optimum.objective - 1.0
        path[-1] |= {"features": int(np.count_nonzero(w)), "above the optimum": above}
        if run.ended:
            break
    gap = optimum.gap_of(problem.objective(w, b))
    ended = {"iterations": run.count, "stopped by the change of w": run.ended, "rho": rho}
    return {
        PUBLISHED: result(data, w, b, point, gap, seconds) | ended,
        SAME: result(data, optimum.coef, float(optimum.intercept), point, optimum.gap, optimum.seconds),
        "path": path,
    }


def early_cell(variant: dict[str, Any], lam: float, lam1: float, rho: float, iterations: int) -> Any:
    """The published algorithm, stopped after a number of iterations that was chosen on the development documents."""
    data = data_of(variant)
    part, point = data.whole, {"lam": lam, "lam1": lam1}
    began = time.process_time()
    run = Stops(part.X, part.y, part.groups, lam, lam1, rho, True)
    (w, b), _ = run.after(iterations)
    seconds = time.process_time() - began
    problem = SentenceProblem(part.X, part.y, part.groups, lam, lam1)
    gap = problem.solve().gap_of(problem.objective(w, b))
    return result(data, w, b, point, gap, seconds) | {"rho": rho, "iterations": iterations}


def run_variant(variant: dict[str, Any], models: tuple[str, ...], given: Any) -> dict[str, Any]:
    """The models at their optimum, the published algorithm, and the same with a chosen stop.

    With ``--kept``, models without a finished cell are left out; without the published algorithm the result is empty.
    """
    base = {"variant": variant, "quick": given.quick}
    found = dict(zip(models, computed(optimum_cell, [base | {"model": m} for m in models], given), strict=True))
    strengths, rhos = ((1.0,), (1.0,)) if given.quick else (STRENGTHS, RHOS)
    cells = [base | {"lam1": lam1, "rho": rho} for lam1, rho in itertools.product(strengths, rhos)]
    grid = computed(published_cell, cells, given)
    if None in grid:
        return {}
    tried = [point for cell in grid for point in cell]
    best = max((point for point in tried if point["ended"]), key=_merit)
    final = computed(final_cell, [base | {key: best[key] for key in ("lam", "lam1", "rho")}], given)[0]
    if final is None:
        return {}
    best = max(tried, key=_merit)
    keys = ("lam", "lam1", "rho", "iterations")
    found[EARLY] = computed(early_cell, [{"variant": variant} | {key: best[key] for key in keys}], given)[0]
    kept = {model: one for model, one in found.items() if one is not None}
    return kept | final | {"tried": tried, "variant": variant}


def _merit(point: dict[str, Any]) -> tuple[float, int]:
    return point["right"], -point["features"]
