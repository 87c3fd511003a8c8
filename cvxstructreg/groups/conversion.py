"""Groups from what a user has: lists, a mapping, or a matrix of memberships."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from cvxstructreg.groups.groups import Groups


def as_groups(given: Any, owner: str) -> Groups:
    """Return Groups as they are, and make Groups of lists of features, of a mapping, or of a matrix of memberships.

    Parameters
    ----------
    given : Groups, sequence of sequences of indices, mapping from names to them, or matrix (groups x features)
        The nonzero entries of a matrix, sparse or boolean, are the members of the groups. In lists, the last feature is
        the largest index.
    owner : str
        Who needs the groups, for the message.

    Examples
    --------
    >>> as_groups({"first": [0, 1], "rest": [2, 3, 4]}, "GroupLasso").names
    ('first', 'rest')
    """
    if isinstance(given, Groups):
        return given
    if isinstance(given, Mapping):
        return Groups(list(given.values()), names=[str(name) for name in given])
    is_mask = isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype == bool
    if sparse.issparse(given) or is_mask:
        matrix = sparse.csr_array(given)
        matrix.eliminate_zeros()
        return Groups.from_csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.shape[1])
    if isinstance(given, list | tuple) and all(
        isinstance(group, list | tuple | set | range | np.ndarray) for group in given
    ):
        return Groups([sorted(group) if isinstance(group, set) else group for group in given])
    raise TypeError(f"{owner} needs Groups, got {type(given).__name__}; pass Groups(lists, n_features=d), or lists")
