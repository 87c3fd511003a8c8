"""Directions of endless decrease among more weights without penalty than rows: a search in the space of the scores.

Let S be the columns of the free weights in units of their sizes. The scores of all directions are the range of
K = S S', of at most as many dimensions as there are labelled rows. A linear program finds scores F in this range along
which the loss falls, and theta = S' K^+ F are the smallest weights with these scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.certificates.directions.gains import gains_of, most_gain
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT, to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

#: Eigenvalues of K below this, relative to the largest, count as zero.
RANK = 1e-10
#: Columns that are read at once, and corrections of the weights for the round-off of their scores.
AT_ONCE, CORRECTIONS = 1_000, 2


def by_rows(parts: NormalForm, free: NDArray[np.bool_], most_entries: float) -> tuple[Array, Array] | None:
    """A direction (theta, b) of some free weights along which the losses seem to fall, to be checked; None if none.

    If K has full rank, every F is reached, and the linear program is sparse. Otherwise its size is limited by
    ``most_entries``. None also if more than ``DENSE_LIMIT`` rows are labelled, or the time limit passes.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> parts = csr.Problem(csr.Linear(X, intercept=False), csr.Logistic([0, 1])).normal_form
    >>> theta, b = by_rows(parts, np.array([True, True, True]), 100)
    >>> (X @ theta).ravel().round(6).tolist()
    [-1.0, 1.0]
    """
    rows, design = _labelled(parts), parts.model.design
    if len(rows) > DENSE_LIMIT or not (sp.issparse(design) or isinstance(design, np.ndarray)):
        return None
    scale = _scale(parts, free)
    gram = _gram(parts, rows, scale)
    if gram is None or not np.isfinite(gram).all() or not gram.any():
        return None
    values, vectors = np.linalg.eigh(gram)
    seen = values > RANK * values[-1]
    if seen.all():
        basis = np.eye(len(rows))
    elif len(rows) * int(seen.sum()) <= most_entries:
        basis = vectors[:, seen]
    else:
        return None
    found = most_gain(gains_of(parts, basis, rows))
    if found is None:
        return None
    wanted = basis @ found.reshape(basis.shape[1], parts.n_outputs)
    inverse = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
    return _weights_of(parts, rows, scale, inverse, wanted)


def _labelled(parts: NormalForm) -> NDArray[np.int64]:
    """The rows that some loss acts on."""
    if any(piece.K is None for piece in parts.score_pieces):
        return np.arange(parts.model.n_rows)
    return np.unique(np.concatenate([sp.coo_array(piece.K).coords[1] for piece in parts.score_pieces]))


def _scale(parts: NormalForm, free: NDArray[np.bool_]) -> Array:
    """The factor of each column in S: zero for weights with a penalty, and beside an intercept for constants."""
    sizes = parts.column_means[1] * np.sqrt(parts.model.n_rows) if parts.model.intercept else parts.column_norms
    used = free & (sizes > 0)
    return np.where(used, 1.0 / np.where(used, sizes, 1.0), 0.0)


def _gram(parts: NormalForm, rows: NDArray[np.int64], scale: Array) -> Array | None:
    """K; with an intercept of centred columns, plus a constant for the intercept; None if the time limit passes."""
    design, m = parts.model.design, len(rows)
    every = m == parts.model.n_rows
    if sp.issparse(design):
        scaled = sp.csr_array(design if every else design.tocsr()[rows]) @ sp.diags_array(scale)
        gram = to_dense(scaled @ scaled.T)
    else:
        gram, used = np.zeros((m, m)), np.flatnonzero(scale)
        for some in np.array_split(used, len(used) // AT_ONCE + 1):
            if deadline.passed():
                return None
            columns = (design[:, some] if every else design[np.ix_(rows, some)]) * scale[some]
            columns = columns - columns.mean(axis=0) if parts.model.intercept else columns
            gram += columns @ columns.T
    if not parts.model.intercept:
        return gram
    gram = gram - gram.mean(axis=0)
    gram -= gram.mean(axis=1)[:, None]
    return np.asarray(gram + np.trace(gram) / m**2)


def _weights_of(parts: NormalForm, rows: Any, scale: Array, inverse: Array, wanted: Array) -> tuple[Array, Array]:
    """The smallest weights, in units of the columns, with the wanted scores on the rows, and their intercepts."""
    n, k = parts.model.n_rows, parts.n_outputs
    theta, b, missing = np.zeros(parts.shape), np.zeros(k), wanted
    for _ in range(1 + CORRECTIONS):
        u = np.zeros((n, k))
        u[rows] = inverse @ missing
        if parts.model.intercept:
            u[rows] -= u[rows].mean(axis=0)
        theta = theta + scale[:, None] ** 2 * np.asarray(parts.model.design.T @ u)
        missing = wanted - parts.model.scores(theta, np.zeros(k))[rows]
        if parts.model.intercept:
            b = missing.mean(axis=0)
            missing = missing - b
    return theta, b
