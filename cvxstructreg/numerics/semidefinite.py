"""Prove that a Gram matrix is symmetric positive semidefinite; the certificate of a kernel problem needs this proof.

If v'gram v < 0 for some v, the norm theta'gram theta of a kernel problem is unbounded below, and a dual point proves
nothing. So every certificate needs a proof that there is no such v. The proof is a Cholesky factorisation of

    gram + shift I

which exists (up to a much smaller round-off) if and only if no eigenvalue is below -shift. The factorisation takes
n^3 / 3 multiplications and a second matrix of the size of gram. Smooth kernels of many examples are nearly of low rank,
which takes fewer multiplications to prove (:mod:`low_rank`). The first shift is the round-off of double precision.
If that shift is too small, larger shifts are tried, up to the round-off of the precision in which gram was given; then
all solvers use gram + shift I (:meth:`cvxstructreg.Kernel.convex`). All shifts are relative to the size of gram.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # SciPy loads scipy.linalg when it is first used

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.low_rank import low_rank_shift
from cvxstructreg.runtime.memory import require_memory

#: Negative eigenvalues that count as round-off, relative to the largest eigenvalue: for double precision; for other
#: precisions, in units of their machine epsilon (their entries are often differences of larger numbers); at most.
PSD_ROUND_OFF, UNITS, MOST_ROUND_OFF = 1e-8, 100.0, 1e-3
#: The round-off of a zero eigenvalue in double precision, relative to the trace: the first shift. Measured on linear,
#: polynomial, cosine and Gaussian kernels with n from 20 to 1000; sufficient except for large constant matrices.
NOISE = 0.5 * float(np.finfo(float).eps)
#: Shifts up to this fraction of the trace only lower the bound of a certificate; larger shifts are added to gram.
NEGLIGIBLE = 1e-12
#: The largest shift of a proof of low rank, as a fraction of the trace.
SMOOTH = 0.1 * NEGLIGIBLE
#: The smallest factor between two shifts; and the smallest non-negligible shift, as a fraction of the largest one.
GROWTH, LEAST = 4.0, 1e-4
#: After a failed shift, the next shift is at least this times the most negative v'gram v / v'v found.
OVERSHOOT = 1.5
#: Up to this many rows a negative smallest eigenvalue is computed exactly; beyond, it is estimated by v'gram v / v'v.
EXACT_ROWS = 1000
#: Lanczos steps for the largest eigenvalue, and the relative residual at which the Krylov space is complete.
LANCZOS_STEPS, KRYLOV_COMPLETE = 12, 1e-10
#: Rows that are compared at a time in the check of symmetry.
ROWS_AT_ONCE = 512
ZERO_GRAM = "gram is zero everywhere: the only function it can represent is zero; check the kernel and its parameters"


class RepairedGramWarning(UserWarning):
    """A Gram matrix had negative eigenvalues within round-off; a multiple of the identity was added to it."""


@dataclass(frozen=True)
class Proof:
    """Proof that ``gram + shift I`` is positive semidefinite.

    ``smallest`` is the smallest eigenvalue of gram if ``exact``, and otherwise an upper bound on it; 0 if no negative
    value was found. ``by_rank`` says that gram was proved to be nearly of low rank. The shift is then up to a few
    hundred times that of a Cholesky factorisation, because it includes the largest possible round-off.
    """

    shift: float
    smallest: float
    exact: bool
    by_rank: bool = False

    def explanation(self, round_off: float) -> tuple[str, str]:
        """Return in words why a matrix with this round-off needs the shift, and how to avoid it."""
        double, single = round_off <= PSD_ROUND_OFF, round_off <= round_off_of(np.dtype(np.float32))
        precision = "double" if double else "single" if single else "half"
        smallest = f"{'' if self.exact else 'at most '}{self.smallest:.3g}"
        remedy = "Compute the kernel with less round-off" if double else "Compute the kernel in float64"
        return f"its smallest eigenvalue is {smallest}, round-off of {precision} precision", remedy


def round_off_of(dtype: np.dtype) -> float:
    """Return how negative round-off can make eigenvalues of a matrix of this type, relative to the largest eigenvalue.

    Examples
    --------
    >>> round_off_of(np.dtype(float)), round_off_of(np.dtype(np.float32)) < 2e-5
    (1e-08, True)
    """
    if not np.issubdtype(dtype, np.floating):
        return PSD_ROUND_OFF
    return max(PSD_ROUND_OFF, min(UNITS * float(np.finfo(dtype).eps), MOST_ROUND_OFF))


def prove(gram: Array, round_off: float = PSD_ROUND_OFF, by_rank: bool = True) -> Proof:
    """Find a shift of at most ``round_off`` times the largest eigenvalue that makes a symmetric matrix semidefinite.

    The shift is the round-off of double precision if that suffices, and otherwise at most a few times the smallest
    possible shift. If ``by_rank``, a proof of low rank is tried first. Raises ``ValueError`` if there is no such shift.

    Examples
    --------
    >>> prove(np.array([[1.0, 1.0], [1.0, 1.0]])).shift < 1e-14
    True
    >>> f"{prove(np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]])).shift:.3g}"
    '1e-09'
    >>> prove(np.array([[1.0, 2.0], [2.0, 1.0]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: gram must be positive semidefinite, but its smallest eigenvalue is -1 (largest 3); ...
    """
    n, diagonal = len(gram), gram.diagonal()
    if not diagonal.any() and not gram.any():
        raise ValueError(ZERO_GRAM)
    remedy = "if gram is positive semidefinite by construction pass it as float64 with psd=True, or use fewer examples"
    require_memory(8.0 * n * n, f"the proof that gram ({n:,} x {n:,}) is positive semidefinite", remedy)
    trace = float(diagonal.sum())
    size = trace if trace > 0 else float(np.abs(gram).max())
    noise = max(NOISE * size, float(np.finfo(float).tiny))
    shift, smallest, double = noise, 0.0, round_off <= PSD_ROUND_OFF
    smooth = low_rank_shift(gram) if double and by_rank else None
    if smooth is not None and smooth <= SMOOTH * size:
        return Proof(max(smooth, noise), smallest, False, by_rank=True)
    while shift == noise or (double and shift <= NEGLIGIBLE * size):
        v = _negative_direction(gram, shift)
        if v is None:
            return Proof(shift, smallest, False)
        smallest = min(smallest, _quotient(gram, v))
        shift = max(GROWTH * shift, -OVERSHOOT * smallest)
    return _large_shift(gram, round_off, shift, smallest, noise)


def _large_shift(gram: Array, round_off: float, shift: float, smallest: float, noise: float) -> Proof:
    """Continue with shifts larger than the round-off of double precision."""
    exact = len(gram) <= EXACT_ROWS
    if exact:
        values = scipy.linalg.eigvalsh(gram)
        smallest, largest = float(values[0]), float(values[-1])
    else:  # values of v'gram v / v'v: lower bounds on the largest eigenvalue
        largest = max(float(gram.diagonal().max()), float(gram.sum()) / len(gram), ritz_values(gram, LANCZOS_STEPS)[1])
    limit = round_off * largest
    if smallest < -limit:
        raise not_psd(smallest, largest, exact)
    shift = noise - smallest if exact else min(limit, max(shift, LEAST * limit))
    while (v := _negative_direction(gram, shift)) is not None:
        if not exact:
            smallest = min(smallest, _quotient(gram, v))
            if shift >= limit:
                raise not_psd(min(smallest, -limit), largest, exact=False)
        shift = GROWTH * shift if exact else min(limit, max(GROWTH * shift, -OVERSHOOT * smallest))
    return Proof(shift, smallest, exact)


def _quotient(gram: Array, v: Array) -> float:
    return float(v @ (gram @ v)) / float(v @ v)


def _negative_direction(gram: Array, shift: float) -> Array | None:
    """Return None if gram + shift I has a Cholesky factor, else some v with v'gram v <= -shift v'v."""
    n = len(gram)
    size = float(np.abs(gram.diagonal()).max()) or float(np.abs(gram).max())
    shifted = np.divide(gram, size)
    np.einsum("ii->i", shifted)[:] += shift / size
    # the matrix is symmetric; its transpose has the memory order that LAPACK accepts without a copy
    shifted = shifted.T if shifted.flags.c_contiguous else shifted
    factor, failed = scipy.linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=True, clean=0)
    if failed == 0:
        return None
    v = np.zeros(n)
    k = failed - 1  # the rows before k have a factor; eliminating them leaves a pivot of at most 0 in row k
    v[k] = 1.0
    if k:
        half = scipy.linalg.solve_triangular(factor[:k, :k], gram[:k, k] / size, lower=True, check_finite=False)
        v[:k] = -scipy.linalg.solve_triangular(factor[:k, :k], half, lower=True, trans=1, check_finite=False)
    return v


def exceeds(matrix: Array, least: float) -> bool:
    """Whether a Cholesky factorisation shows that all eigenvalues of a symmetric matrix exceed ``least`` < 0.

    Examples
    --------
    >>> exceeds(np.ones((2, 2)), -1e-9), exceeds(np.array([[1.0, 2.0], [2.0, 1.0]]), -1e-9)
    (True, False)
    """
    shifted = matrix.T.copy(order="F")
    np.einsum("ii->i", shifted)[:] -= least
    return int(scipy.linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=True, clean=0)[1]) == 0


def ritz_values(gram: Array, steps: int) -> tuple[float, float]:
    """Return the smallest and largest v'gram v / v'v over the Krylov space of a random vector."""
    v = np.random.default_rng(0).normal(size=len(gram))
    v /= np.linalg.norm(v)
    basis = np.empty((steps, len(gram)))
    main: list[float] = []
    side: list[float] = []
    for k in range(steps):
        basis[k] = v
        w = gram @ v
        main.append(float(v @ w))
        for _ in range(2):  # orthogonalising twice is enough
            w = w - (basis[: k + 1] @ w) @ basis[: k + 1]
        size = float(np.linalg.norm(w))
        if k == steps - 1 or size <= KRYLOV_COMPLETE * max(map(abs, (*main, *side))):
            break
        side.append(size)
        v = w / size
    values = scipy.linalg.eigvalsh_tridiagonal(main, side) if side else np.array(main)
    return float(values[0]), float(values[-1])


def not_psd(smallest: float, largest: float, exact: bool = True) -> ValueError:
    """Return the error for a gram matrix with this smallest eigenvalue (an upper bound on it if not ``exact``)."""
    remedy = "use a valid kernel"
    if -smallest <= round_off_of(np.dtype(np.float32)) * largest:
        remedy += ", or pass gram as float32 if it was computed in single precision"
    found, added = ("", "at least") if exact else ("at most ", "more than")
    return ValueError(
        f"gram must be positive semidefinite, but its smallest eigenvalue is {found}{smallest:.3g} (largest "
        f"{largest:.3g}); add {added} {-smallest:.3g} to its diagonal, {remedy}"
    )


def symmetric_part(gram: Array, round_off: float) -> Array:
    """The matrix itself if it is symmetric, its symmetric part if it is symmetric up to round-off, else an error."""
    scale, worst = float(np.finfo(float).tiny), 0.0
    gram = gram if gram.flags.forc else np.ascontiguousarray(gram)
    for first in range(0, gram.shape[0], ROWS_AT_ONCE):  # in blocks, to avoid another matrix of this size
        rows, columns = gram[first : first + ROWS_AT_ONCE], gram[:, first : first + ROWS_AT_ONCE].T
        scale = max(scale, float(rows.max()), -float(rows.min()))
        worst = max(worst, float(np.abs(rows - columns).max()))
    if worst > round_off * scale:
        raise ValueError("gram must be symmetric; symmetrise it with (gram + gram.T) / 2 if that is intended")
    return gram if worst == 0.0 else (gram + gram.T) / 2
