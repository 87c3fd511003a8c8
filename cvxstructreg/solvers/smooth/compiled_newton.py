"""Compiled products of the Newton solver; imported only where they are called, because numba is slow to load."""

from __future__ import annotations

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.compiled_clock import numba

# sums may be reordered, which vectorises them, but infinities and NaN keep their meaning
_FAST = {"reassoc", "contract", "nsz"}


@numba.njit(cache=True, fastmath=_FAST)
def add_gram_product(
    indptr: np.ndarray, indices: np.ndarray, data: Array, weights: Array, p: Array, shift: float, out: Array
) -> float:
    """out += A'u with u = weights * (A p + shift), for a CSR matrix A in one pass; returns the sum of u.

    The indices are unsigned: numba checks signed indices for negative values, which takes up to three times as long.
    """
    total = 0.0
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        u = shift
        for t in range(first, last):
            u += data[t] * p[indices[t]]
        u *= weights[i]
        total += u
        for t in range(first, last):
            out[indices[t]] += u * data[t]
    return total


@numba.njit(cache=True, fastmath=_FAST)
def solve_upper(
    indptr: np.ndarray, indices: np.ndarray, data: Array, order: np.ndarray, inverse: Array, x: Array
) -> None:
    """x <- G^-1 x for G = D + U; row t of U belongs to the unknown order[t], its entries to later unknowns."""
    for back in range(order.size):
        t = order.size - 1 - back
        i = order[t]
        total = x[i]
        for e in range(indptr[t], indptr[t + 1]):
            total -= data[e] * x[indices[e]]
        x[i] = total * inverse[i]


@numba.njit(cache=True, fastmath=_FAST)
def solve_upper_transposed(
    indptr: np.ndarray, indices: np.ndarray, data: Array, order: np.ndarray, inverse: Array, x: Array
) -> None:
    """x <- G^-T x, with G stored by rows as in :func:`solve_upper`."""
    for t in range(order.size):
        i = order[t]
        solved = x[i] * inverse[i]
        x[i] = solved
        for e in range(indptr[t], indptr[t + 1]):
            x[indices[e]] -= data[e] * solved


@numba.njit(cache=True, fastmath=_FAST)
def add_lower_product(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: Array,
    order: np.ndarray,
    shift: Array,
    theta: Array,
    u: Array,
    out: Array,
) -> None:
    """u += (L - S) theta, then out += (L - S)'u, for S = diag(shift), in one pass over L."""
    for t in range(order.size):
        i = order[t]
        first, last = indptr[t], indptr[t + 1]
        total = u[i] - shift[i] * theta[i]
        for e in range(first, last):
            total += data[e] * theta[indices[e]]
        u[i] = total
        out[i] -= shift[i] * total
        for e in range(first, last):
            out[indices[e]] += data[e] * total


@numba.njit(cache=True, fastmath=_FAST)
def triangular_product(
    design: tuple[np.ndarray, np.ndarray, Array],
    weights: Array,
    upper: tuple[np.ndarray, np.ndarray, Array],
    lower: tuple[np.ndarray, np.ndarray, Array],
    order: np.ndarray,
    diagonals: tuple[Array, Array, Array],
    v: Array,
    b: float,
    work: Array,
    out: Array,
) -> float:
    """out = G^-T (F'F + A'diag(weights)A + diag(ridge)) G^-1 v with F = G + L - S, in the notation above.

    ``diagonals`` are the inverse of D, the diagonal of S, and the ridge; ``b`` is added to A theta. ``work`` is scratch
    space for two vectors. Returns the sum of u as :func:`add_gram_product` does.
    """
    inverse, shift, ridge = diagonals
    theta, u = work[0], work[1]
    for i in range(v.size):  # explicit loops: an assignment to a slice takes seconds to compile
        theta[i] = u[i] = v[i]
    solve_upper(upper[0], upper[1], upper[2], order, inverse, theta)
    for i in range(theta.size):
        out[i] = ridge[i] * theta[i]
    total = add_gram_product(design[0], design[1], design[2], weights, theta, b, out)
    add_lower_product(lower[0], lower[1], lower[2], order, shift, theta, u, out)
    solve_upper_transposed(upper[0], upper[1], upper[2], order, inverse, out)
    for i in range(u.size):
        out[i] += u[i]
    return float(total)


@numba.njit(cache=True, fastmath=_FAST)
def diagonal_product(
    design: tuple[np.ndarray, np.ndarray, Array],
    weights: Array,
    factor: tuple[np.ndarray, np.ndarray, Array],
    diagonals: tuple[Array, Array],
    v: Array,
    b: float,
    theta: Array,
    out: Array,
) -> float:
    """out = D (A'diag(weights)A + 2 N'N + diag(ridge)) D v for sparse A and N.

    ``diagonals`` are D and the ridge, and ``theta`` is scratch space; for the rest see :func:`add_gram_product`.
    """
    inverse, ridge = diagonals
    for i in range(v.size):
        theta[i] = inverse[i] * v[i]
        out[i] = ridge[i] * theta[i]
    total = add_gram_product(design[0], design[1], design[2], weights, theta, b, out)
    indptr, indices, data = factor
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        u = 0.0
        for t in range(first, last):
            u += data[t] * theta[indices[t]]
        u *= 2.0
        for t in range(first, last):
            out[indices[t]] += u * data[t]
    for i in range(v.size):
        out[i] *= inverse[i]
    return float(total)


@numba.njit(cache=True, fastmath=_FAST)
def solve_upper_block(
    indptr: np.ndarray, indices: np.ndarray, data: Array, order: np.ndarray, inverse: Array, x: Array
) -> None:
    """:func:`solve_upper` for each column of x; every column has its own diagonal D."""
    k = x.shape[1]
    for back in range(order.size):
        t = order.size - 1 - back
        i = order[t]
        for e in range(indptr[t], indptr[t + 1]):
            for j in range(k):
                x[i, j] -= data[e] * x[indices[e], j]
        for j in range(k):
            x[i, j] *= inverse[i, j]


@numba.njit(cache=True, fastmath=_FAST)
def solve_upper_transposed_block(
    indptr: np.ndarray, indices: np.ndarray, data: Array, order: np.ndarray, inverse: Array, x: Array
) -> None:
    """:func:`solve_upper_transposed` for each column of x."""
    k = x.shape[1]
    for t in range(order.size):
        i = order[t]
        for j in range(k):
            x[i, j] *= inverse[i, j]
        for e in range(indptr[t], indptr[t + 1]):
            for j in range(k):
                x[indices[e], j] -= data[e] * x[i, j]


@numba.njit(cache=True, fastmath=_FAST)
def add_lower_product_block(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: Array,
    order: np.ndarray,
    shift: Array,
    theta: Array,
    u: Array,
    out: Array,
) -> None:
    """:func:`add_lower_product` for each column."""
    k = theta.shape[1]
    for t in range(order.size):
        i = order[t]
        for j in range(k):
            u[i, j] -= shift[i, j] * theta[i, j]
        for e in range(indptr[t], indptr[t + 1]):
            for j in range(k):
                u[i, j] += data[e] * theta[indices[e], j]
        for j in range(k):
            out[i, j] -= shift[i, j] * u[i, j]
        for e in range(indptr[t], indptr[t + 1]):
            for j in range(k):
                out[indices[e], j] += data[e] * u[i, j]


@numba.njit(cache=True, fastmath=_FAST)
def multiply_upper_transposed(
    indptr: np.ndarray, indices: np.ndarray, data: Array, order: np.ndarray, inverse: Array, x: Array, out: Array
) -> None:
    """out += G'x for the same G = D + U, for each column."""
    k = x.shape[1]
    for t in range(order.size):
        i = order[t]
        for j in range(k):
            out[i, j] += x[i, j] / inverse[i, j]
        for e in range(indptr[t], indptr[t + 1]):
            for j in range(k):
                out[indices[e], j] += data[e] * x[i, j]


@numba.njit(cache=True, fastmath=_FAST)
def add_product_block(indptr: np.ndarray, indices: np.ndarray, data: Array, scale: float, p: Array, out: Array) -> None:
    """out += scale * A p for a CSR matrix A and several columns p."""
    k = p.shape[1]
    for i in range(indptr.size - 1):
        row = out[i]
        for t in range(indptr[i], indptr[i + 1]):
            value, other = scale * data[t], p[indices[t]]
            for j in range(k):
                row[j] += value * other[j]


@numba.njit(cache=True, fastmath=_FAST)
def measured(
    upper: tuple[np.ndarray, np.ndarray, Array], order: np.ndarray, inverse: Array, r: Array, q: Array
) -> float:
    """q = G'r; returns the norm of q."""
    total = 0.0
    for i in range(r.size):
        q[i] = r[i] / inverse[i]
    indptr, indices, data = upper
    for t in range(order.size):
        i = order[t]
        for e in range(indptr[t], indptr[t + 1]):
            q[indices[e]] += data[e] * r[i]
    for i in range(q.size):
        total += q[i] * q[i]
    return float(np.sqrt(total))


@numba.njit(cache=True, fastmath=_FAST)
def conjugate_gradients(
    design: tuple[np.ndarray, np.ndarray, Array],
    weights: Array,
    upper: tuple[np.ndarray, np.ndarray, Array],
    lower: tuple[np.ndarray, np.ndarray, Array],
    order: np.ndarray | None,
    diagonals: tuple[Array, Array, Array],
    centring: Array,
    vectors: Array,
    numbers: Array,
    limits: tuple[float, float, int, int],
) -> bool:
    """Some steps of conjugate gradients with smoothing, as in :class:`NewtonStep`; returns whether to stop.

    The products are :func:`triangular_product`, or :func:`diagonal_product` if ``order`` is None: then the other is not
    compiled. All arrays are updated in place:

    - ``vectors``: residual r, direction p, step s, smoothed step, smoothed residual, and three rows of scratch space;
    - ``numbers``: steps so far, decrease so far, energy r'r, size of the smoothed residual in the coordinates of the
      weights, its ratio to the size in the coordinates of G, gain of the last step, and the energy below which the
      residual is round-off;
    - ``limits``: accuracy, patience, largest and smallest number of steps.
    """
    r, p, s, average, q, hp = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5]
    work, inverse = vectors[6:], diagonals[0]
    accuracy, patience, count, least = limits
    for _ in range(count):
        b = 0.0
        for i in range(p.size):
            b += centring[i] * p[i]
        if order is not None:
            triangular_product(design, weights, upper, lower, order, diagonals, p, b, work, hp)
        else:
            diagonal_product(design, weights, upper, (inverse, diagonals[2]), p, b, work[0], hp)
        curved, square = 0.0, 0.0
        for i in range(p.size):
            curved += p[i] * hp[i]
            square += p[i] * p[i]
        energy = numbers[2]
        if not curved > 2.0**-52 * square:
            return True
        length = energy / curved
        before, gain = numbers[5], 0.5 * length * energy
        numbers[0] += 1.0
        numbers[1] += gain
        numbers[5] = gain
        fresh, size, along = 0.0, 0.0, 0.0
        for i in range(p.size):
            s[i] += length * p[i]
            r[i] -= length * hp[i]
            fresh += r[i] * r[i]
            own = r[i]
            if order is None:
                own /= inverse[i]
            change = own - q[i]
            size += change * change
            along += change * q[i]
        share = min(max(-along / size, 0.0), 1.0) if size > 0.0 else 0.0
        ratio, total = fresh / energy, 0.0
        for i in range(p.size):
            own = r[i]
            if order is None:
                own /= inverse[i]
            q[i] += share * (own - q[i])
            total += q[i] * q[i]
            average[i] += share * (s[i] - average[i])
            p[i] = r[i] + ratio * p[i]
        numbers[2] = fresh
        numbers[3] = np.sqrt(total)
        if order is not None:
            numbers[3] *= numbers[4]
            if numbers[3] <= accuracy:
                numbers[3] = measured(upper, order, inverse, q, hp)
                numbers[4] = 0.9 * numbers[3] / max(np.sqrt(total), 1e-300)
        recent = max(before, gain) if least > 1 else gain
        impatient = numbers[0] >= least and numbers[0] * recent <= patience * numbers[1]
        if numbers[3] <= accuracy or impatient or not fresh > numbers[6]:
            return True
    return False
