"""The pass that tells which columns are missing at a solution over some columns: X'u for its dual point u."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxstructreg.certificates.bounds import score_duals
from cvxstructreg.certificates.directions.free_directions import refit
from cvxstructreg.certificates.row_sums.kept_dual import kept_dual, kept_rows
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.row_blocks.column_search import Search


def judge(
    search: Search, theta: Array, b: Array, dual: Mapping[int, Array], chosen: Any
) -> tuple[Array, dict[int, Array]]:
    """The excess of all weights at a solution over the chosen columns, by one pass, and all its dual points."""
    rows = kept_rows(search.parts)
    if rows is not None and rows.is_smooth:
        start = kept_dual(search.parts, theta, b, rows)
        left = -start.pull(search.parts) - search.parts.quadratic_grad(start.theta)
        return search.excess(left, dual, chosen)
    objective, total, on_scores = balanced(search, theta, b, dual)
    pull = search.problem.model.adjoint(total)
    excess, points = search.excess(-pull - search.parts.quadratic_grad(theta), dual, chosen)
    search.drop(objective, total, pull, points)
    return excess, {**on_scores, **points}


def balanced(
    search: Search, theta: Array, b: Array, dual: Mapping[int, Array]
) -> tuple[float, Array, dict[int, Array]]:
    """The objective, the dual point of the scores, and its parts that are used as they are given.

    The point is prepared as certificates do, so that they find its product with X'.
    """
    parts = search.parts
    scores = search.problem.model.scores(theta, b)
    on_scores = {p.number: dual[p.number] for p in parts.score_pieces if p.number in dual}
    if len(on_scores) < len(parts.score_pieces) and parts.scores_are_smooth:
        _, b, scores = refit(parts, theta, b, scores, np.zeros((len(theta), 0)))
        on_scores = {}
    objective = search.problem.value_at(theta, b, scores)
    found = [start for start in score_duals(parts, theta, b, scores, on_scores, objective) if start is not None]
    return objective, found[0].total if found else np.zeros_like(scores), on_scores
