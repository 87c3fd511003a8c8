"""Any penalty after a linear map, and the maps of total variation and trend filtering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import as_design
from cvxstructreg.core.objective import Term
from cvxstructreg.core.penalty import has_parts, parts_of
from cvxstructreg.graphs import Graph
from cvxstructreg.graphs.conversion import as_graph, is_graph_like
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.penalties.quadratic import Quadratic
from cvxstructreg.runtime.lazy_cvxpy import cp


def compose(outer: Any, K: Any) -> Any:
    """f(w) = outer(K w), as a penalty on w.

    Solvers and certificates use the prox and the conjugate of ``outer`` and products with K, so that the composition is
    as fast as a penalty with a formula of its own.

    Parameters
    ----------
    outer : penalty, or strength times a penalty
        Such as ``L1()``, ``BlockNorms.of_sizes(...)``, ``HuberPenalty()``, ``Ridge()`` or any
        :class:`~cvxstructreg.FromExpression`; finite everywhere.
    K : array or scipy.sparse of shape (m, d)
        See :func:`differences` for common maps.

    Returns
    -------
    penalty
        A :class:`Composed` penalty, or a :class:`~cvxstructreg.Quadratic` one if ``outer`` is quadratic. With a
        strength, a term.

    Examples
    --------
    Total variation, trend filtering and isotropic total variation of a 2 x 3 image:

    >>> from cvxstructreg import L1, BlockNorms, compose, differences
    >>> compose(L1(), differences(4))([0.0, 0.0, 1.0, 3.0])
    3.0
    >>> compose(L1(), differences(4, order=2))([0.0, 1.0, 2.0, 0.0])
    3.0
    >>> compose(BlockNorms.of_sizes([2] * 6), differences((2, 3)))([0.0, 0.0, 0.0, 4.0, 1.0, 1.0])
    9.0
    """
    if isinstance(outer, Term):
        return outer.scale * compose(outer.atom, K)
    if not isinstance(outer, Atom) or isinstance(outer, Loss):
        raise TypeError(f"compose takes a penalty such as L1() and a matrix, got {type(outer).__name__}")
    if outer.target != "weights" or (outer.can("separable") and outer.separable().bounded):
        raise ValueError(f"compose takes a penalty on the weights that is finite everywhere, got {outer!r}")
    matrix = as_design(K, "K")
    outer.check_shape((matrix.shape[0], 1))
    return ComposedSum(outer, matrix) if has_parts(outer) else _composed(outer, matrix)


def _composed(outer: Atom, K: Any) -> Atom:
    """outer(K w) as one term."""
    return _quadratic(outer, K) if outer.can("quadratic") else Composed(outer, K)


def _quadratic(outer: Atom, K: Any) -> Atom:
    """||N K w||^2, or w'K'MKw if the form has no factor."""
    form = outer.quadratic(K.shape[0])
    if form.diagonal is not None:
        return Quadratic(factor=sp.diags_array(np.sqrt(form.diagonal), format="csr") @ K)
    if form.factor is not None and not form.is_operator:
        return Quadratic(factor=form.factor @ K)
    matrix = K.T @ (form.matrix @ K)
    return Quadratic(matrix=(matrix + matrix.T) / 2)


@dataclass(frozen=True, eq=False, repr=False)
class Composed(Atom):
    """outer(K w): made by :func:`compose`.

    Examples
    --------
    >>> from cvxstructreg import L1
    >>> Composed(L1(), np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))([1.0, 3.0, 2.0])
    3.0
    """

    outer: Any
    K: Any

    formula: ClassVar[str] = "outer(K w)"
    convention: ClassVar[str] = "K acts on each output"

    def __post_init__(self) -> None:
        inner, first = self.outer.split() if self.outer.can("split") else (self.outer, None)
        if first is None:
            K = self.K
        elif first.shape[1] < self.K.shape[0]:
            K = first @ self.K[: first.shape[1]]
        else:
            K = first @ self.K
        object.__setattr__(self, "_split", (inner, sp.csr_array(K) if sp.issparse(K) else np.asarray(K)))

    @property
    def size(self) -> int | None:
        """Number of columns of K."""
        return int(self.K.shape[1])

    def split(self) -> tuple[Atom, Any]:
        """The outer function and K; an outer function that is itself a composition is opened."""
        parts: tuple[Atom, Any] = self.__dict__["_split"]
        return parts

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self.outer.expr(self.K @ z)

    def value(self, z: Array) -> float:
        """outer(K z)."""
        return float(self.outer.value(np.asarray(self.K @ z)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.outer!r}, K of {self.K.shape[0]} x {self.K.shape[1]})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Any, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        from cvxstructreg.penalties.blocks import BlockNorms

        return [
            (cls(L1(), differences(4)), (4, 1)),
            (cls(BlockNorms.of_sizes([2, 1]), rng.normal(size=(3, 4))), (4, 2)),
            (cls(cls(L1(), differences(3)), rng.normal(size=(3, 3))), (3, 1)),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class ComposedSum(Composed):
    """outer(K w) for an outer function that is a sum of parts."""

    def __post_init__(self) -> None:
        """Nothing is opened: :meth:`parts` does that for each shape."""

    def split(self) -> tuple[Atom, Any]:
        """The outer function and K."""
        return self.outer, self.K

    def parts(self, shape: tuple[int, int]) -> Sequence[Term]:
        """The parts of the outer function, each after K."""
        found = parts_of(self.outer, (self.K.shape[0], shape[1]))
        return [part.scale * _composed(part.atom, self.K) for part in found]

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[ComposedSum, tuple[int, int]]]:
        """None: the outer functions are made elsewhere."""
        return []


def differences(on: Any, order: int = 1) -> sp.csr_array:
    """The matrix of differences between neighbours: on a line, on a grid, or over the edges of a graph.

    Parameters
    ----------
    on : int, tuple of int, or Graph or what makes one
        ``d``: weights in a row. ``(rows, columns)``: an image, row by row; two rows of the matrix for each pixel, the
        difference to the pixel below and to the one on the right, zero at the border. Volumes and grids of more
        dimensions likewise, with one row for each dimension. A graph: one row ``|W_ij| (w_i - s_ij w_j)`` for each
        edge.
    order : int
        Differences of differences for 2 and more; on a graph as in graph trend filtering, ``D' D`` and ``D D' D``.

    Examples
    --------
    >>> differences(4, order=2).toarray()
    array([[ 1., -2.,  1.,  0.],
           [ 0.,  1., -2.,  1.]])
    >>> from cvxstructreg import Graph
    >>> differences(Graph.from_edges([(0, 1), (0, 2)])).toarray()
    array([[ 1., -1.,  0.],
           [ 1.,  0., -1.]])
    """
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise ValueError(f"order must be a positive integer, got {order!r}")
    if is_graph_like(on):
        return _on_graph(as_graph(on, "differences"), int(order))
    if isinstance(on, tuple | list):
        if order > 1:
            raise ValueError("differences on a grid have order 1; for higher orders pass the grid as a Graph")
        if not on:
            raise ValueError("differences needs the shape of a grid such as (rows, columns), got an empty one")
        return _on_grid(*(_length(n, 1) for n in on))
    return _on_line(_length(on, int(order) + 1), int(order))


def _on_line(d: int, order: int) -> sp.csr_array:
    row = np.ones(1)  # binomial coefficients of alternating signs
    for _ in range(order):
        row = np.convolve(row, [1.0, -1.0])
    rows, signed = d - order, row[::-1]
    columns = np.arange(rows)[:, None] + np.arange(order + 1)
    starts = (order + 1) * np.arange(rows + 1)
    return sp.csr_array((np.tile(signed, rows), columns.ravel(), starts), shape=(rows, d))


def _length(n: Any, least: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < least:
        raise ValueError(
            f"differences needs at least {least} weights in a row, got {n!r}; pass d, (rows, columns) or a Graph"
        )
    return int(n)


def _on_graph(graph: Graph, order: int) -> sp.csr_array:
    if graph.n_virtual or graph.is_directed:
        raise ValueError("differences needs an undirected graph without virtual nodes; use graph.symmetrized()")
    i, j, w = graph.edges()
    rows, size = np.arange(len(w)), np.abs(w)
    entries = np.concatenate([size, -np.sign(w) * size]), (np.concatenate([rows, rows]), np.concatenate([i, j]))
    D = sp.csr_array(entries, shape=(len(w), graph.n_nodes))
    K = D
    for step in range(1, order):
        K = (D.T if step % 2 else D) @ K
    return sp.csr_array(K)


def _on_grid(*shape: int) -> sp.csr_array:
    cell, entries = np.arange(np.prod(shape)).reshape(shape), []
    for axis, length in enumerate(shape):
        here, there = (np.take(cell, range(start, length - 1 + start), axis).ravel() for start in (0, 1))
        row = len(shape) * here + axis
        entries += [(row, here, np.full(row.size, -1.0)), (row, there, np.ones(row.size))]
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    return sp.csr_array((value, (row, column)), shape=(len(shape) * cell.size, cell.size))
