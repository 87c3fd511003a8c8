"""Convert user input (a matrix or a list of pairs) to the weight matrix of a graph: checked, canonical CSR."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.core.checks import Names, index_type, indices_of, real_array, show

# W_ij and W_ji are the same undirected edge if they differ by at most this fraction of the larger one.
ROUND_OFF = 1e-12


def square_coo(weights: Any) -> sparse.coo_array:
    """Return a copy of the square matrix of real weights in COO format; repeated entries are not yet added."""
    matrix = weights if sparse.issparse(weights) else real_array(weights, "graph weights")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(
            f"graph weights must be a square matrix with at least one node, not of shape {matrix.shape}; "
            "for a list of edges use Graph.from_edges(pairs, weights)"
        )
    coo = sparse.coo_array(matrix)
    index = index_type(max(coo.nnz, coo.shape[0]))
    ends = (coo.row.astype(index), coo.col.astype(index))
    return sparse.coo_array((real_array(coo.data, "graph weights"), ends), shape=coo.shape)


def canonical_csr(coo: sparse.coo_array, names: Names) -> sparse.csr_array:
    """Return the matrix in CSR format: finite, sorted, without self-loops, explicit zeros or repeated entries."""
    finite = np.isfinite(coo.data)
    if not finite.all():
        bad = np.argmin(finite)
        edge = show(names, coo.row[bad], coo.col[bad])
        raise ValueError(f"edge ({edge}) has weight {coo.data[bad]}; weights must be finite, and 0 for no edge")
    W = coo.tocsr()
    if W.nnz < coo.nnz:
        check_duplicates(coo, names, allow_sum=True)
    W.eliminate_zeros()
    W.sort_indices()
    loops = np.flatnonzero(W.diagonal())
    if len(loops):
        raise ValueError(
            f"node {show(names, loops[0])} has an edge to itself; remove the diagonal of the matrix, "
            "e.g. with W.setdiag(0), or the pair from the list of edges"
        )
    return W


def with_direction(W: sparse.csr_array) -> tuple[sparse.csr_array, bool]:
    """Return W, made exactly symmetric if it is symmetric up to round-off, and whether it is directed."""
    transposed = W.T.tocsr()
    difference = abs(W - transposed)
    if difference.nnz == 0:
        return W, False
    tolerance = ROUND_OFF * abs(W).maximum(abs(transposed))
    if (difference - tolerance).max() > 0:
        return W, True
    return (0.5 * W + 0.5 * transposed).tocsr(), False


def inferred_names(pairs: Any) -> tuple[list[str] | None, Any]:
    """Return the names in the pairs, in the order in which they occur, and the pairs; None if some node is no name."""
    given = pairs if hasattr(pairs, "__array__") else [*pairs]
    rows = np.asarray(given, dtype=object).tolist() if hasattr(given, "__array__") else given
    if not all(isinstance(row, tuple | list) and len(row) == 2 for row in rows):
        return None, given
    ends = [end for row in rows for end in row]
    names = list(dict.fromkeys(ends)) if ends and all(isinstance(end, str) for end in ends) else None
    return names, given


def pair_indices(pairs: Any, names: Names) -> NDArray[np.int64]:
    """Return the node indices of the pairs, one row per pair."""
    given = pairs if hasattr(pairs, "__array__") else list(pairs)
    try:
        array = np.asarray(given) if len(given) else np.zeros((0, 2), dtype=np.int64)
    except ValueError:  # rows of unequal lengths
        array = np.zeros(0)
    if array.ndim != 2 or array.shape[1] != 2:
        sample = reprlib.repr(given)
        raise ValueError(f"pairs must have two nodes each, not {sample}; pass weights as a separate argument")
    return indices_of(array, names, "node")


def check_duplicates(edges: sparse.coo_array, names: Names, allow_sum: bool) -> None:
    """Raise if an edge is given with both signs, or more than once (unless ``allow_sum``)."""
    i, j, w = edges.row.astype(np.int64), edges.col, edges.data
    _, pair, counts = np.unique(i * edges.shape[0] + j, return_inverse=True, return_counts=True)
    if len(counts) == len(pair):
        return
    both_signs = (np.bincount(pair, w > 0) > 0) & (np.bincount(pair, w < 0) > 0)
    if both_signs.any():
        first = np.argmax(both_signs[pair])
        raise ValueError(
            f"edge ({show(names, i[first], j[first])}) is given both as similar and as dissimilar; "
            "use two graphs in two separate penalty terms"
        )
    if not allow_sum:
        first = np.argmax(counts[pair] > 1)
        raise ValueError(
            f"edge ({show(names, i[first], j[first])}) is given {counts[pair[first]]} times; "
            'remove the repetitions, or pass duplicates="sum" to add their weights'
        )
