"""What a model selects: features, groups, and the size of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxstructreg.core.checks import checked_count, real_array
from cvxstructreg.groups import Groups


def selected_features(coef: Any, tol: float = 0.0) -> NDArray[np.int64]:
    """Indices j with max_c |w_jc| > tol.

    Parameters
    ----------
    coef : array of shape (d,) or (d, k)
        One row per feature, as in `Solution.coef`; scikit-learn's ``coef_`` is transposed.
    tol : float
        Weights up to this size count as zero.

    Examples
    --------
    >>> selected_features([0.5, 0.0, -2.0])
    array([0, 2])
    """
    return np.flatnonzero(_mask(coef, tol))


def n_selected_features(coef: Any, tol: float = 0.0) -> int:
    """Number of features with a weight larger than tol; parameters as in `selected_features`.

    Examples
    --------
    >>> n_selected_features([[0.5, 0.0], [0.0, 0.0], [0.0, -2.0]])
    2
    """
    return int(_mask(coef, tol).sum())


def n_selected_groups(coef: Any, groups: Groups, tol: float = 0.0, min_members: int | str = 1) -> int:
    """Number of groups, such as pathways, with at least ``min_members`` selected features.

    Parameters
    ----------
    coef : array of shape (d,) or (d, k)
    groups : Groups
        Over the d features.
    tol : float
        Weights up to this size count as zero.
    min_members : int or "all"
        How many features of a group must be selected for it to count.

    Examples
    --------
    >>> groups = Groups([[0, 1], [1, 2], [3]])
    >>> n_selected_groups([1.0, 2.0, 0.0, 0.0], groups)
    2
    >>> n_selected_groups([1.0, 2.0, 0.0, 0.0], groups, min_members="all")
    1
    """
    if not isinstance(groups, Groups):
        raise TypeError(f"groups must be a Groups object, not {type(groups).__name__}; use Groups(list_of_lists)")
    mask = _mask(coef, tol)
    if len(mask) != groups.n_features:
        raise ValueError(
            f"coef has {len(mask)} rows for groups over {groups.n_features} features; "
            "give one row per feature: for a scikit-learn model, coef_.T"
        )
    if isinstance(min_members, str) and min_members != "all":
        raise ValueError(f'min_members must be a number or "all", not {min_members!r}')
    counts = np.bincount(groups.owner[mask[groups.indices]], minlength=groups.n_groups)
    least = groups.sizes if isinstance(min_members, str) else checked_count(min_members, "min_members")
    return int(np.sum(counts >= least))


def model_size(coef: Any, tol: float = 0.0) -> float:
    """100 * selected features / features: the size of the model in percent; parameters as in `selected_features`.

    Examples
    --------
    >>> model_size([0.5, 0.0, -2.0, 0.0])
    50.0
    """
    return float(100.0 * _mask(coef, tol).mean())


def _mask(coef: ArrayLike, tol: float) -> NDArray[np.bool_]:
    values = real_array(coef.toarray() if hasattr(coef, "toarray") else coef, "coef")
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"coef must have shape (d,) or (d, k), one row per feature, not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("coef has NaN or infinite weights; check the status of the solution")
    if not tol >= 0:
        raise ValueError(f"tol must be at least 0, not {tol}")
    return np.asarray((np.abs(values) > tol).reshape(len(values), -1).any(axis=1))
