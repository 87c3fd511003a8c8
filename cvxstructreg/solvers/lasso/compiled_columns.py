"""Compiled operations on single columns of a dense or sparse design matrix, for one or several outputs.

A design matrix is a tuple: ``(A,)`` for a dense matrix (A is the transpose in C order), or ``(data, indices, indptr)``
for compressed columns with uint32 indices. Arrays of scores (r, u, direct, root) have the shape (n,) for one output and
(n, k) for several. Arrays of weights are flat, with k numbers for each feature. Row i has the Hessian H_i =
diag(direct_i) - root_i root_i'; for one output only ``direct`` is used, and for several if ``root`` has no rows. The
types determine which of the four cases is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.compiled_clock import njit, overload

# sums may be reordered, which allows vector instructions
FAST = {"reassoc", "contract", "nsz"}


def dots(X: Any, j: int, r: Array, out: Array, at: int) -> None:
    """out[at + c] = sum_i x_ij r_ic."""
    raise NotImplementedError("compiled code only")


def scatter(X: Any, j: int, step: Array, at: int, u: Array) -> None:
    """u_ic += x_ij step[at + c]."""
    raise NotImplementedError("compiled code only")


def moments(X: Any, j: int, direct: Array, root: Array, square: Array, centre: Array) -> None:
    """square_c = sum_i x_ij^2 (H_i)_cc and centre_ce = sum_i x_ij (H_i)_ce."""
    raise NotImplementedError("compiled code only")


def absorb(X: Any, columns: Any, direct: Array, root: Array, u: Array, r: Array) -> float:
    """r_i += H_i u_i, then u_i = 0, for the rows of some columns; returns sum_i u_i'H_i u_i."""
    raise NotImplementedError("compiled code only")


def _case(X: Any, scores: Any, dense: Any, dense_several: Any, sparse: Any, sparse_several: Any) -> Callable[..., Any]:
    """The implementation for these types."""
    if len(X) == 1:
        return dense if scores.ndim == 1 else dense_several
    return sparse if scores.ndim == 1 else sparse_several


@overload(dots, jit_options={"fastmath": FAST})
def _dots(X: Any, j: Any, r: Any, out: Any, at: Any) -> Any:
    def dense(X: Any, j: Any, r: Any, out: Any, at: Any) -> None:
        row, total = X[0][j], 0.0
        for i in range(row.size):
            total += row[i] * r[i]
        out[at] = total

    def dense_several(X: Any, j: Any, r: Any, out: Any, at: Any) -> None:
        row, a, b, e = X[0][j], 0.0, 0.0, 0.0
        flat = r.reshape(r.size)
        if r.shape[1] == 2:  # sums in registers allow vector instructions
            for i in range(row.size):
                a += row[i] * flat[2 * i]
                b += row[i] * flat[2 * i + 1]
            out[at], out[at + 1] = a, b
            return
        if r.shape[1] == 3:
            for i in range(row.size):
                a += row[i] * flat[3 * i]
                b += row[i] * flat[3 * i + 1]
                e += row[i] * flat[3 * i + 2]
            out[at], out[at + 1], out[at + 2] = a, b, e
            return
        for c in range(r.shape[1]):
            out[at + c] = 0.0
        for i in range(row.size):
            for c in range(r.shape[1]):
                out[at + c] += row[i] * r[i, c]

    def sparse(X: Any, j: Any, r: Any, out: Any, at: Any) -> None:
        data, indices, indptr = X
        total = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            total += data[p] * r[indices[p]]
        out[at] = total

    def sparse_several(X: Any, j: Any, r: Any, out: Any, at: Any) -> None:
        data, indices, indptr = X
        for c in range(r.shape[1]):
            out[at + c] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            for c in range(r.shape[1]):
                out[at + c] += data[p] * r[indices[p], c]

    return _case(X, r, dense, dense_several, sparse, sparse_several)


@overload(scatter, jit_options={"fastmath": FAST})
def _scatter(X: Any, j: Any, step: Any, at: Any, u: Any) -> Any:
    def dense(X: Any, j: Any, step: Any, at: Any, u: Any) -> None:
        row, length = X[0][j], step[at]
        for i in range(row.size):
            u[i] += length * row[i]

    def dense_several(X: Any, j: Any, step: Any, at: Any, u: Any) -> None:
        row, flat = X[0][j], u.reshape(u.size)
        if u.shape[1] == 2:
            a, b = step[at], step[at + 1]
            for i in range(row.size):
                flat[2 * i] += row[i] * a
                flat[2 * i + 1] += row[i] * b
            return
        if u.shape[1] == 3:
            a, b, e = step[at], step[at + 1], step[at + 2]
            for i in range(row.size):
                flat[3 * i] += row[i] * a
                flat[3 * i + 1] += row[i] * b
                flat[3 * i + 2] += row[i] * e
            return
        for i in range(row.size):
            for c in range(u.shape[1]):
                u[i, c] += row[i] * step[at + c]

    def sparse(X: Any, j: Any, step: Any, at: Any, u: Any) -> None:
        data, indices, indptr = X
        length = step[at]
        for p in range(indptr[j], indptr[j + 1]):
            u[indices[p]] += length * data[p]

    def sparse_several(X: Any, j: Any, step: Any, at: Any, u: Any) -> None:
        data, indices, indptr = X
        for p in range(indptr[j], indptr[j + 1]):
            for c in range(u.shape[1]):
                u[indices[p], c] += data[p] * step[at + c]

    return _case(X, u, dense, dense_several, sparse, sparse_several)


@overload(moments, jit_options={"fastmath": FAST})
def _moments(X: Any, j: Any, direct: Any, root: Any, square: Any, centre: Any) -> Any:
    @njit(inline="always")
    def add(x: Any, direct: Any, root: Any, square: Any, centre: Any) -> None:
        k = direct.size
        for c in range(k):
            square[c] += x * x * (direct[c] - root[c] * root[c])
            centre[c * k + c] += x * direct[c]
            for e in range(k):
                centre[c * k + e] -= x * root[c] * root[e]

    def dense(X: Any, j: Any, direct: Any, root: Any, square: Any, centre: Any) -> None:
        row, second, first = X[0][j], 0.0, 0.0
        for i in range(row.size):
            first += direct[i] * row[i]
            second += direct[i] * row[i] * row[i]
        square[0], centre[0] = second, first

    def dense_several(X: Any, j: Any, direct: Any, root: Any, square: Any, centre: Any) -> None:
        row, k = X[0][j], direct.shape[1]
        square[:] = 0.0
        centre[:] = 0.0
        if len(root) == 0:
            for c in range(k):
                second = first = 0.0
                for i in range(row.size):
                    first += direct[i, c] * row[i]
                    second += direct[i, c] * row[i] * row[i]
                square[c], centre[c * k + c] = second, first
            return
        for i in range(row.size):
            add(row[i], direct[i], root[i], square, centre)

    def sparse(X: Any, j: Any, direct: Any, root: Any, square: Any, centre: Any) -> None:
        data, indices, indptr = X
        second = first = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            h = direct[indices[p]]
            first += h * data[p]
            second += h * data[p] * data[p]
        square[0], centre[0] = second, first

    def sparse_several(X: Any, j: Any, direct: Any, root: Any, square: Any, centre: Any) -> None:
        data, indices, indptr = X
        k = direct.shape[1]
        square[:] = 0.0
        centre[:] = 0.0
        if len(root) == 0:
            for p in range(indptr[j], indptr[j + 1]):
                for c in range(k):
                    h = direct[indices[p], c] * data[p]
                    centre[c * k + c] += h
                    square[c] += h * data[p]
            return
        for p in range(indptr[j], indptr[j + 1]):
            add(data[p], direct[indices[p]], root[indices[p]], square, centre)

    return _case(X, direct, dense, dense_several, sparse, sparse_several)


@overload(absorb, jit_options={"fastmath": FAST})
def _absorb(X: Any, columns: Any, direct: Any, root: Any, u: Any, r: Any) -> Any:
    @njit(inline="always")
    def take(direct: Any, root: Any, u: Any, r: Any) -> Any:
        along = bent = 0.0
        for c in range(u.size):
            along += root[c] * u[c]
        for c in range(u.size):
            change = direct[c] * u[c] - root[c] * along
            bent += change * u[c]
            r[c] += change
        for c in range(u.size):
            u[c] = 0.0
        return bent

    def dense(X: Any, columns: Any, direct: Any, root: Any, u: Any, r: Any) -> Any:
        bent = 0.0
        for i in range(r.size):
            change = direct[i] * u[i]
            bent += change * u[i]
            r[i] += change
            u[i] = 0.0
        return bent

    def dense_several(X: Any, columns: Any, direct: Any, root: Any, u: Any, r: Any) -> Any:
        bent = 0.0
        if len(root) == 0:
            own, flat, total = direct.reshape(r.size), u.reshape(r.size), r.reshape(r.size)
            for i in range(total.size):
                change = own[i] * flat[i]
                bent += change * flat[i]
                total[i] += change
                flat[i] = 0.0
            return bent
        for i in range(len(r)):
            bent += take(direct[i], root[i], u[i], r[i])
        return bent

    def sparse(X: Any, columns: Any, direct: Any, root: Any, u: Any, r: Any) -> Any:
        _, indices, indptr = X
        bent = 0.0
        for j in columns:
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                change = direct[i] * u[i]  # zero if an earlier column has handled this row
                bent += change * u[i]
                r[i] += change
                u[i] = 0.0
        return bent

    def sparse_several(X: Any, columns: Any, direct: Any, root: Any, u: Any, r: Any) -> Any:
        _, indices, indptr = X
        bent = 0.0
        for j in columns:
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                if len(root) == 0:
                    for c in range(r.shape[1]):
                        change = direct[i, c] * u[i, c]
                        bent += change * u[i, c]
                        r[i, c] += change
                        u[i, c] = 0.0
                else:
                    bent += take(direct[i], root[i], u[i], r[i])
        return bent

    return _case(X, r, dense, dense_several, sparse, sparse_several)
