"""The weights that differences of higher order do not see: polynomials of the position."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import largest_row_sum
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT

#: Differences of at most this order are looked at.
MOST = 8


def unseen_polynomials(parts: NormalForm) -> Array | None:
    """An orthonormal basis of all weights w with Kw = 0, if these are the polynomials below some degree; else None.

    K is the map of the only term on the weights. Its last columns increase from row to row, so that its rank is the
    number of its rows, and as many polynomials as columns are left over satisfy Kw = 0 up to round-off.
    """
    alone = len(parts.weight_pieces) == 1 and not parts.weight_forms and parts.separable is None
    K: Any = parts.weight_pieces[0].K if alone else None
    if not sp.issparse(K) or not 1 < K.shape[1] - K.shape[0] <= MOST or parts.weight_pieces[0].atom.flat() is not None:
        return None
    K = sp.csr_array(K)
    if not K.has_canonical_format or not np.all(K.data) or not K.shape[0] or np.any(np.diff(K.indptr) == 0):
        return None
    if np.any(np.diff(K.indices[K.indptr[1:] - 1]) <= 0):
        return None
    rows, d = K.shape
    basis = np.linalg.qr(np.polynomial.legendre.legvander(np.linspace(-1.0, 1.0, d), d - rows - 1))[0]
    sizes = np.abs(basis).max(axis=0) * largest_row_sum(K)
    unseen = np.all(np.abs(K @ basis) <= UNIT * sizes)
    return np.asarray(basis) if unseen else None
