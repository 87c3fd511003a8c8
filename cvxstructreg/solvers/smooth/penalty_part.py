"""Smooth terms on the weights that are not quadratic: values, gradients and Hessian products."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array

#: The step of differences of gradients, relative to the point.
STEP = 1e-6


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
        """h''(theta) p; for atoms without second derivatives by differences of the gradient."""
        total = np.zeros_like(theta)
        for piece in self.pieces:
            z, q = piece.forward(theta), piece.forward(p)
            bent = piece.atom.hessp(z, q) if piece.atom.can("hessp") else _difference(piece.atom, z, q)
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


def _difference(atom: Atom, z: Array, p: Array) -> Array:
    """The change of the gradient along p, for a step that is small beside z."""
    size = float(np.abs(p).max(initial=0.0))
    if size == 0.0:
        return np.zeros_like(z)
    step = STEP * (1.0 + float(np.abs(z).max(initial=0.0))) / size
    return np.asarray((atom.grad(z + step * p) - atom.grad(z - step * p)) / (2.0 * step))
