"""Smooth terms of an augmented Lagrangian: losses and penalties with a gradient and a Hessian for each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.general.newton_matrix import CoupledHessian, Hessians, add_row_hessians

#: Coupled rows of a loss, up to which the factor of its Hessian is dense.
MOST_COUPLED = 3_000


class SmoothTerm:
    """A smooth loss, or a smooth penalty on the weights: gradient and Hessian, row by row."""

    def __init__(self, piece: Piece, rows: Any, of_scores: bool = True) -> None:
        self.piece, self.rows, self.of_scores = piece, rows, of_scores
        self._last: tuple[Array, Array | None] | None = None  # the last Hessians of the rows, and of x if known

    @cached_property
    def squares(self) -> Any:
        """The entries of sparse rows, squared."""
        return self.rows.multiply(self.rows).tocsr()

    def grad(self, z: Array) -> Array:
        """The gradient by z."""
        return self.piece.grad(z)

    def hessians(self, z: Array) -> Hessians:
        """The Hessian of each row: (m, 1) for one output, else (m, k, k); or that of coupled rows."""
        if _is_coupled(self.piece):
            diagonal, factor = self.piece.atom.hess_factor(z)
            return CoupledHessian(self.piece.scale * diagonal, np.sqrt(self.piece.scale) * factor)
        return self.piece.scale * row_hessians(self.piece, z)

    def added_to(self, H: Array, hessians: Hessians) -> None:
        """Add rows'h rows, which is kept as long as the Hessians of the rows do not change (squared loss)."""
        if isinstance(hessians, CoupledHessian):
            hessians.add_to(H, self.rows)
            return
        same = self._last is not None and np.array_equal(self._last[0], hessians)
        matrix = self._last[1] if self._last is not None and same else None
        if matrix is None and (same or hessians.ndim == 2):  # for several outputs it is seldom the same
            matrix = np.zeros_like(H)
            add_row_hessians(matrix, self.rows, hessians)
        self._last = hessians, matrix
        if matrix is None:
            add_row_hessians(H, self.rows, hessians)
        else:
            H += matrix


def is_smooth(piece: Piece, k: int) -> bool:
    """Whether the piece has a gradient and a Hessian for each row of k scores."""
    atom = piece.atom
    by_row = atom.can("hess_diag") or atom.can("hess_rows") or (atom.can("centred_hinges") and k > 1)
    return atom.can("grad") and (by_row or _is_coupled(piece))


def _is_coupled(piece: Piece) -> bool:
    """Whether the rows of the piece are coupled, and few enough for a dense factor of the Hessian."""
    atom = piece.atom
    return atom.can("hess_factor") and isinstance(atom, Loss) and len(atom.y) <= MOST_COUPLED


def row_hessians(piece: Piece, z: Array) -> Array:
    """The Hessians of a smooth loss by rows: (m, 1) for one output, else (m, k, k)."""
    atom, k = piece.atom, z.shape[1]
    if atom.can("hess_diag"):
        diagonal = atom.hess_diag(z)
        return diagonal if k == 1 else diagonal[:, :, None] * np.eye(k)
    if atom.can("hess_rows"):
        diagonal, root = atom.hess_rows(z)
        return diagonal[:, :, None] * np.eye(k) - root[:, :, None] * root[:, None, :]
    hinges = atom.centred_hinges(k)
    return centred_blocks(2.0 * hinges.costs * np.heaviside(centred(z) - hinges.tau, 0.5))


def centred_blocks(diagonal: Array) -> Array:
    """C diag(d) C for each row d, with C = I - 11'/k."""
    k = diagonal.shape[1]
    C = np.eye(k) - 1.0 / k
    return np.asarray(np.einsum("ab,ib,bc->iac", C, diagonal, C, optimize=True))
