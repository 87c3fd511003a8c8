"""Solve A x = b for a sparse positive semidefinite A and b in its range, by one sparse factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array

#: A pivot below this counts as zero (the matrix has a unit diagonal). Then this amount, or more if round-off requires
#: it, is added to the diagonal, and the solutions are refined.
SHIFT = 1e-12
#: Pivots of a shifted matrix must exceed this fraction of the shift; otherwise the shift grows.
LEAST_PIVOT = 0.1
#: If the smallest pivot is at least this, solutions lose only a few digits.
POOR = 1e-3
#: Refinement stops at this relative residual, or after this many steps.
REFINED, REFINEMENTS = 1e-14, 20


class SemidefiniteSolve:
    """Maps b to a solution x of A x = b; x is zero where A has an empty row.

    A diagonal A needs no factorisation. A singular A has many solutions, which differ by vectors in its null space.
    One of them is found with A + shift I: each refinement multiplies the error along an eigenvalue l by
    shift / (l + shift).

    Examples
    --------
    >>> A = sp.csr_array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    >>> x = SemidefiniteSolve(A)(np.array([[4.0], [4.0], [0.0]]))
    >>> (A @ x).ravel().round(12).tolist(), float(x[2, 0])
    ([4.0, 4.0, 0.0], 0.0)
    """

    def __init__(self, matrix: Any) -> None:
        matrix = sp.csc_array(matrix)
        diagonal = matrix.diagonal()
        self.inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)[:, None]
        self.scale = np.sqrt(self.inverse)
        self.kept = np.flatnonzero(diagonal > 0)
        self.matrix: Any = None
        self.factors: Any = None
        self.shift, self.least_pivot = 0.0, 1.0
        off = matrix - sp.diags_array(diagonal, format="csc")
        if off.count_nonzero():
            root = sp.diags_array(self.scale[:, 0], format="csc")
            scaled = root @ matrix @ root
            self.matrix = sp.csc_array(scaled[self.kept][:, self.kept])
            self._factorise()

    def _factorise(self) -> None:
        identity = sp.eye_array(len(self.kept), format="csc")
        while self.factors is None:
            self.factors = _factors(
                self.matrix + self.shift * identity, LEAST_PIVOT * self.shift if self.shift else SHIFT
            )
            if self.factors is None:
                self.shift = max(SHIFT, 10.0 * self.shift)
        self.least_pivot = float(self.factors.U.diagonal().min())

    @property
    def is_poor(self) -> bool:
        """Whether solutions may have lost more than a few digits."""
        return self.least_pivot < POOR

    def __getstate__(self) -> dict[str, Any]:
        """Return everything except the factors, which cannot be pickled and are recomputed."""
        return {**self.__dict__, "factors": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.matrix is not None:
            self._factorise()

    @property
    def n_entries(self) -> int:
        """Number of entries that a solve reads: of the factors, or of the diagonal."""
        return len(self.kept) if self.factors is None else int(self.factors.nnz)

    def __call__(self, b: Array) -> Array:
        """Return x, for an array b with one column for each right-hand side."""
        if self.factors is None:
            return np.asarray(self.inverse * b)
        right = np.ascontiguousarray((self.scale * b)[self.kept])
        x = self.factors.solve(right)
        if self.shift:
            x = self._refined(x, right)
        out = np.zeros_like(b, dtype=float)
        out[self.kept] = x
        return np.asarray(self.scale * out)

    def _refined(self, x: Array, right: Array) -> Array:
        goal = REFINED * float(np.linalg.norm(right))
        for _ in range(REFINEMENTS):
            left = right - self.matrix @ x
            if float(np.linalg.norm(left)) <= goal:
                break
            x = x + self.factors.solve(left)
        return x


def _factors(matrix: Any, least: float) -> Any:
    """Return the LU factors of a symmetric matrix with unit diagonal; None if a pivot is at most ``least``."""
    from scipy.sparse.linalg import splu  # here, because it takes longer to import than scipy.sparse

    try:
        found = splu(
            sp.csc_array(matrix),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # exactly singular
        return None
    return found if found.U.diagonal().min() > least else None


def solve_diagonal(diagonal: Array | None, x: Array) -> Array:
    """S^+ x for the diagonal of a semidefinite diagonal matrix S."""
    assert diagonal is not None
    return np.divide(x, diagonal[:, None], out=np.zeros_like(x), where=diagonal[:, None] > 0)
