"""Graphs and pairs of examples, given by row numbers or by row ids."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.checks import plural
from cvxstructreg.estimators.alignment import Columns, aligned_graph
from cvxstructreg.estimators.building import fit_row_builder
from cvxstructreg.graphs import Graph


class Rows:
    """The n rows given to ``fit``, with their ids if there are any.

    With ids, graphs and pairs refer to the same examples in every fold of a cross-validation, in any order.
    """

    def __init__(self, count: int, sample_ids: Any, missing: str) -> None:
        self.count, self.missing = count, missing
        self.ids: list[Hashable] | None = None if sample_ids is None else np.asarray(sample_ids).tolist()
        if self.ids is not None:
            if len(self.ids) != count:
                raise ValueError(
                    f"sample_ids has {plural(len(self.ids), 'id')}, but X has {plural(count, 'row')}; give one per row"
                )
            if len(set(self.ids)) < count:
                raise ValueError("sample_ids has the same id twice; give each row a distinct id")
        names = None if self.ids is None else tuple(map(str, self.ids))
        self.columns = Columns(count, names, missing, what="row")

    def graph(self, graph: Any, X: Any, options: Mapping[str, Any] | None) -> Graph | None:
        """Return the graph on the rows: "knn" and builders are fitted on X; a Graph or matrix is aligned."""
        if isinstance(graph, str):
            if graph != "knn":
                raise ValueError(f"graph must be 'knn', a Graph or a matrix of weights, got {graph!r}")
            from cvxstructreg.graphs import NeighborGraph

            built: Graph = NeighborGraph(**(options or {})).fit(X).graph_
            return built
        if options:
            raise ValueError("graph_options is only used with graph='knn'; leave it out, or pass graph='knn'")
        return aligned_graph(fit_row_builder(graph, X), self.columns)

    def pairs(self, pairs: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the row numbers of the pairs, shape (m, 2), and their weights; unknown rows are an error or left out.

        Pairs may be triples with a weight, a mapping from pairs to weights, or a data frame.
        """
        given = _as_tuples(pairs)
        place: Mapping[Any, int] = dict(zip(self.ids or range(self.count), range(self.count), strict=True))
        unknown = [end for pair in given for end in pair[:2] if end not in place]
        if unknown and (self.missing == "error" or self.ids is None):
            kind = "row numbers from 0" if self.ids is None else "sample_ids"
            remedy = "" if self.ids is None else "; missing='ignore' leaves such pairs out"
            raise ValueError(
                f"pairs contain {plural(len(unknown), 'row')} not among the {plural(self.count, 'row')} of X: "
                f"{reprlib.repr(unknown)}; pairs must use {kind}{remedy}"
            )
        known = [pair for pair in given if pair[0] in place and pair[1] in place]
        numbers = [(place[pair[0]], place[pair[1]]) for pair in known]
        return np.array(numbers, dtype=np.int64).reshape(-1, 2), np.array([_weight(pair) for pair in known])


def _as_tuples(pairs: Any) -> list[tuple[Any, ...]]:
    """Return pairs or triples, from a sequence, an array, a mapping of pairs to weights, or a data frame."""
    if pairs is None or len(pairs) == 0:
        return []
    if isinstance(pairs, Mapping):
        pairs = [(*pair, weight) for pair, weight in pairs.items()]
    elif hasattr(pairs, "columns") and hasattr(pairs, "to_numpy"):
        pairs = list(zip(*(pairs[name].to_list() for name in pairs.columns), strict=True))
    given = [tuple(pair) for pair in (pairs.tolist() if hasattr(pairs, "tolist") else pairs)]
    wrong = [pair for pair in given if len(pair) not in (2, 3)]
    if wrong:
        raise ValueError(f"pairs must have two rows each, and perhaps a weight, got {wrong[0]!r}")
    return given


def _weight(pair: tuple[Any, ...]) -> float:
    """Return the weight of a pair, 1 by default."""
    weight = pair[2] if len(pair) == 3 else 1.0
    if isinstance(weight, bool) or not isinstance(weight, Real) or not 0.0 < float(weight) < np.inf:
        raise ValueError(f"the weight of pair {pair[:2]!r} must be a positive number, got {weight!r}; drop pairs of 0")
    return float(weight)
