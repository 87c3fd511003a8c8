"""Upper bounds on the conjugate of a quadratic part, without an exact solution of a linear system or beside bounds.

The conjugate of w'Mw is 1/4 u'M^-1 u. With M >= diag(ridge) it is at most 1/4 sum u_j^2 / ridge_j, which is far too
large if a graph adds to the ridge. But any x proves

    u'M^-1 u = 2 u'x - x'Mx + r'M^-1 r <= u'x + r'x + sum r_j^2 / ridge_j,   r = u - Mx,

and a few steps of conjugate gradients for Mx = u make this bound nearly tight. Where all weights have finite bounds, a
dual point of quadratic terms that couple weights is the gradient at any point. The best one is the minimum, within the
bounds, of these terms and the pull of the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.box_quadratic import lowest_within
from cvxstructreg.runtime import deadline

if TYPE_CHECKING:
    from cvxstructreg.forms.normal_form import NormalForm

#: The number of conjugate gradient steps, and the largest diagonal, relative to the ridge, for which so few are useful.
STEPS, MOST_GRAPH = 6, 50.0
#: The steps end when the bound is proved to be tight up to this factor; u'x is a lower bound on u'M^-1 u.
ENOUGH = 0.5


def excess_cost(parts: NormalForm, excess: Array) -> float:
    """An upper bound on 1/4 e'M^-1 e for the quadratic part M on the weights; e must be zero where M has no ridge."""
    diagonal = refined_by(parts)
    if diagonal is not None and excess.any():
        return conjugate_bound(lambda p: 0.5 * parts.quadratic_grad(p), diagonal, parts.ridge, excess)
    held = parts.ridge > 0
    return float(np.sum(excess[held] ** 2 / (4.0 * parts.ridge[held][:, None])))


def has_bounded_forms(parts: NormalForm) -> bool:
    """Whether the terms on the weights are finite bounds, and quadratic terms with sparse matrices that couple them."""
    box = parts.separable
    if box is None or parts.weight_pieces or parts.is_diagonal or not parts.weight_forms or np.any(box.weights > 0):
        return False
    if any(scaled.form.is_operator or not sp.issparse(scaled.form.matrix) for scaled in parts.weight_forms):
        return False
    return bool(np.isfinite(box.lower).all() and np.isfinite(box.upper).all())


def lowest_in_bounds(parts: NormalForm, theta: Array, pull: Array, enough: float) -> Array:
    """argmin over theta within its bounds of theta'M theta + <pull, theta>, to an error of about ``enough``."""
    matrices = [(2.0 * scaled.scale) * sp.csr_array(scaled.form.matrix) for scaled in parts.weight_forms]
    Q = sp.csr_array(sum(matrices[1:], start=matrices[0]))
    assert parts.separable is not None
    lower, upper = (np.broadcast_to(end, theta.shape) for end in (parts.separable.lower, parts.separable.upper))
    columns = [
        lowest_within(Q, pull[:, a], lower[:, a], upper[:, a], theta[:, a], enough / theta.shape[1])
        for a in range(theta.shape[1])
    ]
    return np.column_stack(columns)


def refined_by(parts: NormalForm) -> Array | None:
    """The diagonal of M if a few conjugate gradient steps improve on the ridge bound; None if they do not."""
    known = parts.__dict__
    if "_refined_by" not in known:
        known["_refined_by"] = _refining_diagonal(parts)
    return cast("Array | None", known["_refined_by"])


def _refining_diagonal(parts: NormalForm) -> Array | None:
    if parts.separable is not None or parts.weight_pieces or not np.all(parts.ridge > 0):
        return None
    if parts.is_diagonal:
        return None
    diagonal = sum((x.scale * x.form.main_diagonal for x in parts.weight_forms), np.zeros_like(parts.ridge))
    most = np.count_nonzero(diagonal <= MOST_GRAPH * parts.ridge)
    return diagonal if 2 * most >= diagonal.size else None


def conjugate_bound(times: Callable[[Array], Array], diagonal: Array, ridge: Array, u: Array) -> float:
    """An upper bound on 1/4 u'M^-1 u, summed over columns, for M >= diag(ridge) > 0 given by products and diagonal.

    Examples
    --------
    >>> M = np.array([[2.0, -1.0], [-1.0, 2.0]])
    >>> bound = conjugate_bound(lambda w: M @ w, np.array([2.0, 2.0]), np.array([1.0, 1.0]), np.array([[1.0], [1.0]]))
    >>> round(bound, 6)
    0.5
    """
    ridge, inverse = ridge[:, None], 1.0 / diagonal[:, None]
    best = float(np.sum(u * u / ridge))
    x, r = np.zeros_like(u), u.copy()
    z = inverse * r
    p, energy = z.copy(), float(np.vdot(r, z))
    for _ in range(STEPS):
        product = times(p)
        curved = float(np.vdot(p, product))
        if not (energy > 0.0 and curved > 0.0):
            break
        length = energy / curved
        x += length * p
        r -= length * product
        lower = float(np.vdot(x, u))
        best = min(best, lower + float(np.vdot(x, r) + np.sum(r * r / ridge)))
        if lower >= ENOUGH * best or deadline.passed():
            break
        z = inverse * r
        energy, before = float(np.vdot(r, z)), energy
        p *= energy / before
        p += z
    return 0.25 * best
