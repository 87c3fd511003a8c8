"""How an excess on the weights is spread over the dual points of their terms: q + K S^+ excess with S = sum K'K.

The changed points take the whole excess, up to what no term sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy  # SciPy loads scipy.linalg when it is first used

from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.semidefinite_solve import SemidefiniteSolve, solve_diagonal

#: A sparse S of at most so many rows, and of so many entries in each, has a factor that costs less than the solve.
MOST_ROWS, MOST_IN_ROW = 100_000, 10
#: The key of the result, which is kept with the normal form.
_KEPT = "_spreading"


def spreading(parts: NormalForm) -> Callable[[Array], Array] | None:
    """The map from an excess to a solution x of S x = excess, found once; None if that is expensive."""
    known = parts.__dict__
    if _KEPT not in known:
        known[_KEPT] = _find(parts)
    found: Callable[[Array], Array] | None = known[_KEPT]
    return found


def _find(parts: NormalForm) -> Callable[[Array], Array] | None:
    d = parts.model.n_weights
    if not parts.weight_pieces:
        return None
    if parts.piece_diagonal is not None:
        return partial(solve_diagonal, parts.piece_diagonal)
    if d <= DENSE_LIMIT:
        return partial(np.matmul, scipy.linalg.pinvh(parts.piece_gram.toarray()))
    sparse = d <= MOST_ROWS and parts.piece_gram.nnz <= MOST_IN_ROW * d
    return SemidefiniteSolve(parts.piece_gram) if sparse else None
