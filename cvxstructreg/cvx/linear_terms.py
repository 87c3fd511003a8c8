"""Affine terms of an objective: most belong to a loss.

s log(1 + exp(z)) - s t z        a logistic loss with label t, or with the share t of positive labels
s exp(z) - s t z                 a Poisson loss with count t
max(l z, u z) + t z              another kink, if l + t <= 0 <= u + t: absolute and quantile losses
s z^2 + t z                      a square with another offset
s log(sum_j exp(z_j)) - s t'z    a multinomial loss with label t
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.cvx.reading.affine import Affine, Reader, flat
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.cvx.reading.maps import matrix
from cvxstructreg.cvx.reading.pieces import Piece, Pieces, passed_on
from cvxstructreg.numerics.arrays import Array

#: Round-off in labels and slopes, relative to their size.
ROUND_OFF = 1e-12
#: Pieces that an affine term of the same argument may belong to.
TAKES_SLOPE = {"logistic", "exp", "kink", "square", "log_sum_exp"}


def absorbed(pieces: Pieces, layout: Layout, reader: Reader) -> Array:
    """Move affine terms into the losses they belong to; return the gradient of what is left of them."""
    slopes: dict[int, Array] = {}
    left = np.zeros(layout.size)
    for e, w in pieces.linear:
        _find(e, w, pieces, layout, reader, slopes, left)
    pieces.linear = []
    kept = []
    for number, piece in enumerate(pieces.known):
        t = slopes.get(number)
        taken = piece if t is None else _with_slope(piece, t, pieces)
        if taken is None:
            assert t is not None
            _add_gradient(piece.affine, t, pieces, layout, left)
            taken = piece
        if taken.kind == "exp" and taken.data is None:
            pieces.left.append((taken.source, np.reshape(taken.weights, taken.source.shape, order="F")))
        else:
            kept.append(taken)
    pieces.known = kept
    return left


def _find(
    e: Any, w: Array, pieces: Pieces, layout: Layout, reader: Reader, slopes: dict[int, Array], left: Array
) -> None:
    """Find the losses with the same argument as e, or as the arguments of e."""
    affine = reader.affine(e)
    assert affine is not None
    for number, piece in enumerate(pieces.known):
        if piece.kind in TAKES_SLOPE and affine.parts:
            sign = affine.sign_of(piece.affine)
            if sign:
                slopes[number] = slopes.get(number, 0.0) + sign * flat(w)
                return
    passed = passed_on(reader, e, w) if affine.parts and len(e.args) else None
    if passed is None or not affine.parts:
        _add_gradient(affine, flat(w), pieces, layout, left)
        return
    for argument, weights in passed:
        _find(argument, weights, pieces, layout, reader, slopes, left)


def _add_gradient(affine: Affine, t: Array, pieces: Pieces, layout: Layout, left: Array) -> None:
    pieces.constant += float(t @ affine.offset)
    for variable in layout.variables:
        if variable.id in affine.parts:
            first = layout.first[variable.id]
            product = matrix(affine.parts[variable.id]).T @ t
            left[first : first + variable.size] += np.asarray(product).ravel()


def _with_slope(piece: Piece, t: Array, pieces: Pieces) -> Piece | None:
    """The piece with the term t'z added; None if it has no such form."""
    s = piece.weights
    if piece.kind == "log_sum_exp":
        s = np.tile(s, piece.affine.shape[1])
    if piece.kind == "kink":
        lower, upper = _snapped(piece.data + t, s), _snapped(s + t, s)
        return replace(piece, data=lower, weights=upper) if np.all(lower <= 0) and np.all(upper >= 0) else None
    if np.any(t[s == 0]):
        return None
    if piece.kind == "square":
        move = np.divide(t, 2.0 * s, out=np.zeros_like(t), where=s > 0)
        pieces.constant -= float(s @ move**2)
        moved = Affine(piece.affine.shape, piece.affine.parts, piece.affine.offset + move)
        return replace(piece, affine=moved)
    share = np.divide(-t, s, out=np.zeros_like(t), where=s > 0)
    near = np.round(share)
    share = np.where(np.abs(share - near) <= ROUND_OFF * (1.0 + np.abs(near)), near, share)
    if piece.kind == "logistic":
        return replace(piece, data=share) if np.all((share >= 0) & (share <= 1)) else None
    if piece.kind == "exp":
        if np.any(share < 0) or np.any(share % 1) or not np.any(share):
            return None
        positive = share[share > 0]
        pieces.constant -= float(s[share > 0] @ (positive * np.log(positive) - positive))
        return replace(piece, data=share)
    labels = share.reshape(piece.affine.shape, order="F")
    one = np.all((labels == 0) | (labels == 1)) and np.all(labels.sum(axis=1) == 1)
    return replace(piece, data=labels) if one else None


def _snapped(slopes: Array, size: Array) -> Array:
    return np.where(np.abs(slopes) <= ROUND_OFF * np.abs(size), 0.0, slopes)


def into_squares(pieces: Pieces, gradient: Array, layout: Layout) -> bool:
    """Complete the squares: c'x goes into a piece s ||A x + o||^2 if c is a combination of the rows of A."""
    for number, piece in enumerate(pieces.known):
        if piece.kind != "square" or not np.all(piece.weights > 0):
            continue
        A = layout.matrix(piece.affine)
        if min(A.shape) > MOST_ROWS:
            continue
        t = _combination(A, gradient)
        if t is not None:
            pieces.constant -= float(t @ piece.affine.offset)
            taken = _with_slope(piece, t, pieces)
            assert taken is not None
            pieces.known[number] = taken
            return True
    return False


#: Rows or columns of a matrix up to which a combination of its rows is searched for.
MOST_ROWS = 2000


def _combination(A: Any, c: Array) -> Array | None:
    """t with A't = c, up to round-off; None if there is none."""
    if sp.issparse(A) and A.nnz <= A.shape[0] and np.all(np.diff(A.indptr) == 1):
        factors = np.zeros(A.shape[0])
        seen, first = np.unique(A.indices, return_index=True)
        factors[first] = c[seen] / A.data[first]
        t = factors
    else:
        dense = A.toarray() if sp.issparse(A) else np.asarray(A)
        t = np.linalg.lstsq(dense.T, c, rcond=None)[0]
    miss = np.asarray(A.T @ t).ravel() - c
    return t if np.abs(miss).max(initial=0.0) <= ROUND_OFF * np.abs(c).max(initial=0.0) else None
