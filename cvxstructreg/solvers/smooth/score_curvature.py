"""The curvature phi''(F) of the terms on the scores: its diagonal and products, prepared once for each point."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property

#: If a Hessian offers products only, its diagonal is exact up to this many outputs, and estimated beyond.
EXACT_OUTPUTS = 4


class ScoreCurvature:
    """phi''(F) at the scores F of a point."""

    def __init__(self, parts: NormalForm, scores: Array) -> None:
        self._forms = parts.score_forms
        self.pieces = [PieceCurvature(piece, piece.forward(scores)) for piece in parts.score_pieces]
        self.shape = scores.shape

    def diagonal(self) -> Array:
        """The diagonal, n x k. For a map K that mixes rows, only the diagonal of the atom's Hessian is used."""
        total = np.zeros(self.shape)
        for scaled in self._forms:
            total += 2.0 * scaled.scale * scaled.form.main_diagonal[:, None]
        for piece in self.pieces:
            total += piece.diagonal()
        return total

    def between_constants(self) -> Array:
        """The k x k matrix 1'phi''(F) 1: the curvature along scores that are equal in all rows."""
        k = self.shape[1]
        total = np.zeros((k, k))
        for scaled in self._forms:
            ones = np.ones((self.shape[0], 1))
            total += float(np.sum(scaled.grad(ones))) * np.eye(k)
        for piece in self.pieces:
            total += piece.between_constants()
        return total

    def times(self, p: Array) -> Array:
        """phi''(F) p."""
        products = [scaled.grad(p) for scaled in self._forms] + [piece.times(p) for piece in self.pieces]
        return sum(products[1:], start=products[0])

    def times_each(self, several: Array) -> Array:
        """phi''(F) times each of several p."""
        return np.stack([self.times(p) for p in several])


class PieceCurvature:
    """scale * K' atom''(z) K at z = K F."""

    def __init__(self, piece: Piece, z: Array) -> None:
        self.piece, self.z = piece, z
        self.rows: tuple[Array, Array | None] | None = None
        if piece.atom.can("hess_rows"):
            direct, root = piece.atom.hess_rows(z)
            self.rows = piece.scale * direct, np.sqrt(piece.scale) * root
        elif piece.atom.can("hess_diag"):
            self.rows = piece.scale * piece.atom.hess_diag(z), None

    def diagonal(self) -> Array:
        """The diagonal of the atom's Hessian, pulled back by the squares of K."""
        if self.rows is not None:
            direct, root = self.rows
            diagonal = direct if root is None else np.maximum(direct - root**2, 0.0)
        else:
            diagonal = self.piece.scale * _diagonal_by_products(self.piece, self.z)
        K = self.piece.K
        if K is None:
            return diagonal
        return np.asarray((K.multiply(K) if sp.issparse(K) else K**2).T @ diagonal)

    def between_constants(self) -> Array:
        """1'K' atom''(z) K 1, k x k."""
        k = self.z.shape[1]
        if self.rows is None or self.piece.K is not None:
            columns = [np.sum(self.times(np.tile(unit, (self._n_rows, 1))), axis=0) for unit in np.eye(k)]
            return np.column_stack(columns)
        direct, root = self.rows
        total = np.diag(direct.sum(axis=0))
        return total if root is None else total - root.T @ root

    @property
    def _n_rows(self) -> int:
        return len(self.z) if self.piece.K is None else int(self.piece.K.shape[1])

    def times(self, p: Array) -> Array:
        """The Hessian times p."""
        return self.piece.adjoint(self.bent(self.piece.forward(p)))

    def bent(self, x: Array) -> Array:
        """scale * atom''(z) x."""
        if self.rows is None:
            return self.piece.scale * self.piece.atom.hessp(self.z, x)
        direct, root = self.rows if x.dtype == np.float64 else self._single
        bent = direct * x
        if root is not None:
            bent -= root * np.einsum("ij,ij->i", root, x)[:, None]
        return bent

    @cached_property
    def _single(self) -> tuple[Array, Array | None]:
        """The rows in single precision."""
        assert self.rows is not None
        direct, root = self.rows
        return direct.astype(np.float32), None if root is None else root.astype(np.float32)


def _diagonal_by_products(piece: Piece, z: Array) -> Array:
    """The diagonal of the Hessian of an atom that offers only Hessian products; a bound of it if rows are coupled."""
    if piece.atom.can("hess_bound"):
        return piece.atom.hess_bound(z)
    k = z.shape[1]
    if k <= EXACT_OUTPUTS:
        columns = []
        for j in range(k):
            p = np.zeros_like(z)
            p[:, j] = 1.0
            columns.append(piece.atom.hessp(z, p)[:, j])
        return np.maximum(np.column_stack(columns), 0.0)
    # the mean of r * (H r) over random sign vectors r is the diagonal of H
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=z.shape)
    return np.maximum(signs * piece.atom.hessp(z, signs), 0.0)
