"""A signed, sparse graph: transition matrix, incidence and Laplacian, with named and virtual nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cvxstructreg.core.checks import (
    Names,
    check_range,
    checked_names,
    chosen_names,
    indices_of,
    inferred_count,
    plural,
    show,
    weight_array,
)
from cvxstructreg.graphs.weight_matrix import (
    canonical_csr,
    check_duplicates,
    inferred_names,
    pair_indices,
    square_coo,
    with_direction,
)
from cvxstructreg.runtime.cards import card, named, table

#: The HTML form shows so many edges.
MOST_SHOWN = 6


class Graph:
    """Signed weights W: W_ij > 0 ties nodes i and j together, W_ij < 0 pushes them to opposite signs.

    The graph is undirected if W is symmetric (up to round-off, which is averaged out) and directed otherwise.
    A graph is immutable, and neither changes nor shares its input.

    Parameters
    ----------
    weights : square matrix, dense or scipy.sparse
        The diagonal must be zero. Repeated entries of a sparse matrix are added, as in scipy; their signs must agree.
    names : sequence of str, optional
        One distinct name per node.
    virtual : node indices, node names or boolean mask, optional
        Nodes that are not features of the data, such as class means.

    Examples
    --------
    >>> words = ["good", "great", "bad"]
    >>> graph = Graph.from_edges([("good", "great"), ("good", "bad")], [2.0, -1.0], names=words)
    >>> graph
    Graph(3 nodes, 2 edges: 1 similar, 1 dissimilar, undirected)
    >>> graph.laplacian().toarray()
    array([[ 3., -2.,  1.],
           [-2.,  2.,  0.],
           [ 1.,  0.,  1.]])
    """

    def __init__(self, weights: Any, names: Iterable[str] | None = None, virtual: ArrayLike | None = None):
        """Check and copy the weights; see the class."""
        matrix = square_coo(weights)
        self._names = checked_names(names, matrix.shape[0], "node")
        self._weights, self._is_directed = with_direction(canonical_csr(matrix, self._names))
        self._virtual = np.unique(self._indices([] if virtual is None else virtual, "virtual"))
        if len(self._virtual) == self.n_nodes:
            raise ValueError("every node is virtual; at least one must be a feature of the data")

    @classmethod
    def from_edges(
        cls,
        pairs: Any,
        weights: ArrayLike | None = None,
        n_nodes: int | None = None,
        names: Iterable[str] | None = None,
        virtual: ArrayLike | None = None,
        directed: bool = False,
        duplicates: str = "error",
    ) -> Graph:
        """W_ij = weight of pair (i, j), and W_ji the same unless directed.

        Parameters
        ----------
        pairs : sequence of (node, node)
            Indices, or names.
        weights : float or one per pair, optional
            1 by default; negative for dissimilar nodes.
        n_nodes : int, optional
            By default the number of names, or the largest index plus one.
        names, virtual
            As in the class; by default the names in the pairs, in the order in which they occur.
        directed : bool
            Whether (i, j) and (j, i) are different edges.
        duplicates : {"error", "sum"}
            What to do with a pair that is given twice. Opposite signs are always an error.

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 2)], n_nodes=4).isolated
        array([3])
        >>> Graph.from_edges([("good", "great"), ("good", "fine")]).names
        ('good', 'great', 'fine')
        """
        if duplicates not in ("error", "sum"):
            raise ValueError(f'duplicates must be "error" or "sum", not {duplicates!r}')
        if names is None and n_nodes is None:
            names, pairs = inferred_names(pairs)
        names = checked_names(names, n_nodes, "node")
        ends = pair_indices(pairs, names)
        n = inferred_count(n_nodes, names, ends, "n_nodes")
        check_range(ends, n, "node", "pairs")
        if not directed:
            ends = np.sort(ends, axis=1)
        values = weight_array(weights, len(ends), "pair")
        edges = sparse.coo_array((values, (ends[:, 0], ends[:, 1])), shape=(n, n))
        check_duplicates(edges, names, allow_sum=duplicates == "sum")
        W = edges.tocsr()
        return cls(W if directed else W + W.T, names, virtual)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, virtual ones included."""
        return int(self._weights.shape[0])

    @property
    def n_features(self) -> int:
        """Number of nodes that are not virtual."""
        return self.n_nodes - self.n_virtual

    @property
    def n_virtual(self) -> int:
        """Number of virtual nodes."""
        return len(self._virtual)

    @property
    def n_edges(self) -> int:
        """Number of edges; each undirected edge is counted once."""
        return int(self._weights.nnz if self.is_directed else self._weights.nnz // 2)

    @property
    def weights(self) -> sparse.csr_array:
        """The matrix W, as a copy that may be changed."""
        return self._weights.copy()

    @property
    def names(self) -> Names:
        """Names of all nodes, or None."""
        return self._names

    @property
    def feature_names(self) -> Names:
        """Names of the nodes that are not virtual, or None."""
        return chosen_names(self._names, self.features)

    @property
    def virtual(self) -> NDArray[np.int64]:
        """Indices of the virtual nodes, increasing."""
        return self._virtual.copy()

    @property
    def features(self) -> NDArray[np.int64]:
        """Indices of the nodes that are not virtual: feature j of the data is node features[j]."""
        return np.delete(np.arange(self.n_nodes), self._virtual)

    @property
    def is_directed(self) -> bool:
        """Whether W is asymmetric beyond round-off."""
        return self._is_directed

    @property
    def is_signed(self) -> bool:
        """Whether there are dissimilarity edges."""
        return bool(np.any(self._weights.data < 0))

    @property
    def is_empty(self) -> bool:
        """Whether there are no edges."""
        return bool(self._weights.nnz == 0)

    @property
    def isolated(self) -> NDArray[np.int64]:
        """Indices of the nodes without incoming or outgoing edges."""
        touched = np.zeros(self.n_nodes, dtype=bool)
        touched[self._rows()] = True
        touched[self._weights.indices] = True
        return np.flatnonzero(~touched)

    @property
    def degrees(self) -> NDArray[np.float64]:
        """Row sums of |W|."""
        return np.asarray(abs(self._weights).sum(axis=1))

    def similarity(self) -> Graph:
        """max(W, 0): the graph of the similarity edges on the same nodes."""
        return Graph(self._weights.maximum(0), self._names, self._virtual)

    def dissimilarity(self) -> Graph:
        """min(W, 0): the graph of the dissimilarity edges (with negative weights) on the same nodes."""
        return Graph(self._weights.minimum(0), self._names, self._virtual)

    def transition(self) -> sparse.csr_array:
        """P_ij = W_ij / sum_k |W_ik|; the row of a node without outgoing edges is zero."""
        P = self._weights.copy()
        P.data /= self.degrees[self._rows()]
        return P

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Arrays i, j, w with one entry per edge; i < j if the graph is undirected."""
        i, j, w = self._rows(), self._weights.indices.astype(np.int64), self._weights.data
        once = np.full(len(w), True) if self.is_directed else i < j
        return i[once], j[once], w[once]

    def incidence(self, normalized: bool = False) -> sparse.csr_array:
        """B with one row sqrt(|W_ij|) (e_i - s_ij e_j) per edge, s = sign(W); B D^-1/2 when normalized.

        Rows come in the order of `edges()`. B'B is the Laplacian.
        """
        self._require_undirected("the incidence matrix")
        (i, j, w), index = self.edges(), self._weights.indices.dtype
        root = np.sqrt(np.abs(w))
        at_i, at_j = root, -np.sign(w) * root
        if normalized:
            scale = np.sqrt(self.degrees)
            at_i, at_j = at_i / scale[i], at_j / scale[j]
        data, columns = np.column_stack([at_i, at_j]).ravel(), np.column_stack([i, j]).ravel()
        parts = (data, columns.astype(index), np.arange(0, len(data) + 1, 2, dtype=index))
        return sparse.csr_array(parts, shape=(len(w), self.n_nodes))

    def laplacian(self, normalized: bool = False) -> sparse.csr_array:
        """L = D - W with D the row sums of |W|; D^-1/2 L D^-1/2 when normalized.

        w'Lw = 1/2 sum_ij |W_ij| (w_i - s_ij w_j)^2, so L = B'B is positive semidefinite even with signs.
        Rows and columns of isolated nodes are zero.
        """
        self._require_undirected("the Laplacian")
        degrees, off_diagonal = self.degrees, self._weights.copy()
        if normalized:
            scale = np.sqrt(degrees)
            off_diagonal.data /= scale[self._rows()] * scale[off_diagonal.indices]
            degrees = np.sign(degrees)
        L = (sparse.diags_array(degrees, format="csr") - off_diagonal).tocsr()
        L.eliminate_zeros()
        return L

    def symmetrized(self, how: str = "max") -> Graph:
        """|W_ij| <- max, mean or min of |W_ij| and |W_ji|, with their common sign.

        Examples
        --------
        >>> Graph([[0, 2], [1, 0]]).symmetrized("mean").weights.toarray()
        array([[0. , 1.5],
               [1.5, 0. ]])
        """
        combine = {
            "max": lambda part: part.maximum(part.T),
            "mean": lambda part: 0.5 * part + 0.5 * part.T,
            "min": lambda part: part.minimum(part.T),
        }.get(how)
        if combine is None:
            raise ValueError(f'how must be "max", "mean" or "min", not {how!r}')
        signs = self._weights.sign()
        conflicts = np.argwhere(signs.multiply(signs.T) < 0)
        if len(conflicts):
            edge = show(self._names, *conflicts[0])
            raise ValueError(
                f"edge ({edge}) is similar in one direction and dissimilar in the other; "
                "symmetrize graph.similarity() and graph.dissimilarity() separately"
            )
        similar, dissimilar = self._weights.maximum(0), -self._weights.minimum(0)
        return Graph(combine(similar) - combine(dissimilar), self._names, self._virtual)

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """W[nodes, nodes]: the given nodes (indices, names or a boolean mask) in the given order."""
        chosen = self._indices(nodes, "nodes")
        values, counts = np.unique(chosen, return_counts=True)
        if np.any(counts > 1):
            repeated = show(self._names, values[np.argmax(counts > 1)])
            raise ValueError(f"node {repeated} is given twice; list each node once")
        names = chosen_names(self._names, chosen)
        return Graph(self._weights[chosen][:, chosen], names, np.isin(chosen, self._virtual))

    def __repr__(self) -> str:
        """One line with the number of nodes and edges."""
        n_dissimilar = int(np.sum(self.edges()[2] < 0))
        size = f"{plural(self.n_nodes, 'node')}, {plural(self.n_edges, 'edge')}"
        signs = f": {self.n_edges - n_dissimilar} similar, {n_dissimilar} dissimilar" if n_dissimilar else ""
        direction = "directed" if self.is_directed else "undirected"
        virtual = f", {self.n_virtual} virtual" if self.n_virtual else ""
        return f"Graph({size}{signs}, {direction}{virtual})"

    def _repr_html_(self) -> str:
        first, second, weights = self.edges()
        rows: list[tuple[str, Any]] = [
            ("nodes", f"{self.n_nodes}" + (f", {self.n_virtual} of them virtual" if self.n_virtual else "")),
            ("edges", f"{self.n_edges}, {'directed' if self.is_directed else 'undirected'}"),
        ]
        if self.is_signed:
            rows.append(("signs", f"{np.sum(weights > 0)} similar, {np.sum(weights < 0)} dissimilar"))
        if len(self.isolated):
            rows.append(("isolated", f"{plural(len(self.isolated), 'node')} without an edge"))
        strongest = np.argsort(-np.abs(weights), kind="stable")[:MOST_SHOWN]
        shown = [(named(self.names, first[e]), named(self.names, second[e]), f"{weights[e]:.4g}") for e in strongest]
        return card("Graph", rows, table(("strongest edges", "", "weight"), shown, left=2) if shown else "")

    def _rows(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.n_nodes), np.diff(self._weights.indptr))

    def _indices(self, nodes: ArrayLike, argument: str) -> NDArray[np.int64]:
        given = np.atleast_1d(np.asarray(nodes))
        if given.ndim != 1:
            raise ValueError(f"{argument} must be a one-dimensional list of nodes, not an array of shape {given.shape}")
        if given.dtype == bool:
            if len(given) != self.n_nodes:
                raise ValueError(
                    f"{argument} is a mask of {len(given)} entries, expected one for each of {self.n_nodes} nodes"
                )
            return np.flatnonzero(given)
        indices = indices_of(given, self._names, "node")
        check_range(indices, self.n_nodes, "node", argument)
        return indices

    def _require_undirected(self, what: str) -> None:
        if self.is_directed:
            raise ValueError(f"{what} needs an undirected graph; this one is directed: use graph.symmetrized()")
