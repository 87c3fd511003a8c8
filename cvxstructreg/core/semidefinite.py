"""The proof that a Gram matrix is positive semidefinite, without which a kernel problem has no certificate.

If v'gram v < 0 for some v, then the norm theta'gram theta of a kernel problem has no lower bound, and no dual point
says anything. So it is a part of every certificate that there is no such v, proved by a Cholesky factorisation of

    gram + shift I,    shift = round-off of the entries of gram, relative to its largest eigenvalue

which exists (up to a round-off that is far smaller) if and only if no eigenvalue is below -shift. This takes n^3 / 3
multiplications and one further matrix of the size of gram.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from cvxstructreg.core.atom import Array
from cvxstructreg.core.memory import require_memory

#: Negative eigenvalues that count as round-off, relative to the largest: of matrices in double precision; in units of
#: the precision of others, whose entries often come from differences of larger numbers; and never more than the last.
PSD_ROUND_OFF, UNITS, MOST_ROUND_OFF = 1e-8, 100.0, 1e-3
#: From this round-off on a Cholesky factor in single precision shows the same.
SINGLE_FROM = 1e-6
#: Up to so many rows an error names the smallest eigenvalue itself; beyond, some negative v'gram v / v'v.
EXACT_ROWS = 1000
#: Steps of Lanczos for the largest eigenvalue.
LANCZOS_STEPS = 12
ZERO_GRAM = "gram is zero everywhere: its only function is zero, and there is nothing to fit"


def round_off_of(dtype: np.dtype) -> float:
    """The part of the largest eigenvalue by which round-off may make others negative in a matrix of this type.

    Examples
    --------
    >>> round_off_of(np.dtype(float)), round_off_of(np.dtype(np.float32)) < 2e-5
    (1e-08, True)
    """
    if not np.issubdtype(dtype, np.floating):
        return PSD_ROUND_OFF
    return max(PSD_ROUND_OFF, min(UNITS * float(np.finfo(dtype).eps), MOST_ROUND_OFF))


def require_psd(gram: Array, round_off: float = PSD_ROUND_OFF) -> None:
    """Prove that no eigenvalue of a symmetric matrix is below ``-round_off`` times the largest, or raise.

    Examples
    --------
    >>> require_psd(np.array([[1.0, 1.0], [1.0, 1.0]]))
    >>> require_psd(np.array([[1.0, 2.0], [2.0, 1.0]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: gram must be positive semidefinite, its smallest eigenvalue is -1 (largest 3); ...
    """
    n, diagonal = len(gram), gram.diagonal()
    if not diagonal.any() and not gram.any():
        raise ValueError(ZERO_GRAM)
    remedy = "pass psd=True if gram is positive semidefinite by construction, or use fewer examples"
    require_memory(8.0 * n * n, f"the proof that gram ({n:,} x {n:,}) is positive semidefinite", remedy)
    # two values of v'gram v / v'v, which the largest eigenvalue is not below
    top = max(float(diagonal.max()), float(gram.sum()) / n, np.finfo(float).tiny)
    if round_off >= SINGLE_FROM and _negative_direction(gram, round_off * top, np.float32) is None:
        return
    v = _negative_direction(gram, round_off * top, np.float64)
    if v is None:
        return
    if n <= EXACT_ROWS:
        values = scipy.linalg.eigvalsh(gram)
        if values[0] < -round_off * max(float(values[-1]), np.finfo(float).tiny):
            raise not_psd(float(values[0]), float(values[-1]))
        return
    largest = max(top, ritz_values(gram, LANCZOS_STEPS)[1])
    if largest > top:
        v = _negative_direction(gram, round_off * largest, np.float64)
    if v is not None:
        raise not_psd(min(float(v @ (gram @ v)) / float(v @ v), -round_off * largest), largest, exact=False)


def _negative_direction(gram: Array, shift: float, dtype: type) -> Array | None:
    """None if gram + shift I has a Cholesky factor in this precision, else some v with v'gram v <= -shift v'v."""
    n = len(gram)
    size = float(np.abs(gram.diagonal()).max()) or float(np.abs(gram).max())
    shifted: Array = np.empty((n, n), dtype=dtype)
    np.divide(gram, size, out=shifted, casting="unsafe")
    np.einsum("ii->i", shifted)[:] += dtype(shift / size)
    potrf = scipy.linalg.lapack.spotrf if dtype is np.float32 else scipy.linalg.lapack.dpotrf
    # the transposed matrix is the same, and lies in the order that LAPACK takes without a copy
    factor, failed = potrf(shifted.T, lower=1, overwrite_a=True, clean=0)
    if failed == 0:
        return None
    v = np.zeros(n)
    k = failed - 1  # the rows before it have a factor, and with it they have no positive part left
    v[k] = 1.0
    if k:
        half = scipy.linalg.solve_triangular(factor[:k, :k], gram[:k, k] / size, lower=True, check_finite=False)
        v[:k] = -scipy.linalg.solve_triangular(factor[:k, :k], half, lower=True, trans=1, check_finite=False)
    return v


def ritz_values(gram: Array, steps: int) -> tuple[float, float]:
    """The extreme values of v'gram v / v'v in the Krylov space of a random vector."""
    v = np.random.default_rng(0).normal(size=len(gram))
    v /= np.linalg.norm(v)
    basis = np.empty((steps, len(gram)))
    main: list[float] = []
    side: list[float] = []
    for k in range(steps):
        basis[k] = v
        w = gram @ v
        main.append(float(v @ w))
        for _ in range(2):  # twice is enough for orthogonality
            w = w - (basis[: k + 1] @ w) @ basis[: k + 1]
        size = float(np.linalg.norm(w))
        if k == steps - 1 or size <= 1e-10 * max(map(abs, (*main, *side))):
            break
        side.append(size)
        v = w / size
    values = scipy.linalg.eigvalsh_tridiagonal(main, side) if side else np.array(main)
    return float(values[0]), float(values[-1])


def not_psd(smallest: float, largest: float, exact: bool = True) -> ValueError:
    """The error for a gram matrix with that smallest eigenvalue, or, if not ``exact``, with at most that one."""
    return ValueError(
        f"gram must be positive semidefinite, its smallest eigenvalue is {'' if exact else 'at most '}{smallest:.3g} "
        f"(largest {largest:.3g}); add {'at least' if exact else 'more than'} {-smallest:.3g} to its diagonal, use a "
        "valid kernel, or pass psd=True if it is one and no more than round-off was met"
    )
