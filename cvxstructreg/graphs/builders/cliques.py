"""Sets of features in which every pair is linked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def clique_counts(sets: Sequence[NDArray[np.int64]], n_nodes: int) -> sparse.csr_array:
    """C_ij = the number of sets that contain both i and j, for i != j; computed by a sparse product."""
    members = [np.unique(nodes) for nodes in sets]
    sizes = [len(nodes) for nodes in members]
    indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    indices = np.concatenate([*members, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    M = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(members), n_nodes))
    C = sparse.csr_array(M.T @ M)
    C.setdiag(0)
    C.eliminate_zeros()
    return C


def binary(counts: sparse.csr_array) -> sparse.csr_array:
    """Return 1 where the count is nonzero."""
    ones = counts.copy()
    ones.data[:] = 1.0
    return ones
