"""Graphs and pairs of examples, given by row numbers or by row ids."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping
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

    def pairs(self, pairs: Any) -> NDArray[np.int64]:
        """Return the row numbers of the pairs, shape (m, 2); pairs with unknown rows are left out or an error."""
        if pairs is None or len(pairs) == 0:
            return np.zeros((0, 2), dtype=np.int64)
        given = [tuple(pair) for pair in (pairs.tolist() if hasattr(pairs, "tolist") else pairs)]
        wrong = [pair for pair in given if len(pair) != 2]
        if wrong:
            raise ValueError(f"pairs must have two rows each, got {wrong[0]!r}")
        place: Mapping[Any, int] = dict(zip(self.ids or range(self.count), range(self.count), strict=True))
        unknown = [end for pair in given for end in pair if end not in place]
        if unknown and (self.missing == "error" or self.ids is None):
            kind = "row numbers from 0" if self.ids is None else "sample_ids"
            remedy = "" if self.ids is None else "; missing='ignore' leaves such pairs out"
            raise ValueError(
                f"pairs contain {plural(len(unknown), 'row')} not among the {plural(self.count, 'row')} of X: "
                f"{reprlib.repr(unknown)}; pairs must use {kind}{remedy}"
            )
        known = [(place[s], place[t]) for s, t in given if s in place and t in place]
        return np.array(known, dtype=np.int64).reshape(-1, 2)
