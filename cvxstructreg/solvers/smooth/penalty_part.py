"""Smooth terms on the weights that are not quadratic: values, gradients and Hessian products."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array


class PenaltyPart:
    """h(theta) = sum_t scale_t atom_t(K_t theta) over the pieces of the weights, all of them smooth."""

    def __init__(self, parts: NormalForm) -> None:
        self.pieces = parts.weight_pieces
        self.any = bool(self.pieces)

    def value(self, theta: Array) -> float:
        """h(theta)."""
        return float(sum(piece.value(theta) for piece in self.pieces))

    def grad(self, theta: Array) -> Array:
        """h'(theta)."""
        return sum((piece.adjoint(piece.grad(piece.forward(theta))) for piece in self.pieces), np.zeros_like(theta))

    def hessp(self, theta: Array, p: Array) -> Array:
        """h''(theta) p."""
        total = np.zeros_like(theta)
        for piece in self.pieces:
            bent = piece.atom.hessp(piece.forward(theta), piece.forward(p))
            total += piece.scale * piece.adjoint(bent)
        return total

    def diagonal(self, theta: Array) -> Array:
        """The diagonal of h''(theta) of the atoms that have one, for preconditioning."""
        total = np.zeros_like(theta)
        for piece in self.pieces:
            if piece.atom.can("hess_diag"):
                each = piece.scale * piece.atom.hess_diag(piece.forward(theta))
                squares = None if piece.K is None else piece.K.multiply(piece.K) if sp.issparse(piece.K) else piece.K**2
                total += each if squares is None else np.asarray(squares.T @ each)
        return total
