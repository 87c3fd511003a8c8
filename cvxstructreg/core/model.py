"""Models: how weights become scores."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cvxstructreg.core.atom import Array
from cvxstructreg.core.memory import require_memory

#: Eigenvalues above -PSD_ROUND_OFF times the largest count as round-off; parts of gram of PSD_ROWS rows are checked.
PSD_ROUND_OFF, PSD_ROWS = 1e-8, 200
#: Up to so many rows a Cholesky factor in single precision proves that no eigenvalue is below the second times the
#: largest diagonal entry, well above its round-off; beyond, negative curvature is searched by so many steps of Lanczos.
PROOF_ROWS, SINGLE_ROUND_OFF, LANCZOS_STEPS = 1000, 1e-4, 12
#: Weights of which at most one row in so many is not zero are multiplied with these rows of gram only.
FEW_ROWS = 4
ZERO_GRAM = "gram is zero everywhere: its only function is zero, and there is nothing to fit"


class Model:
    """Scores ``F = A theta + 1 b'`` for a design matrix A (n x d): see :class:`Linear` and :class:`Kernel`."""

    name = "A"

    def __init__(self, design: Any, intercept: bool) -> None:
        if not isinstance(intercept, bool | np.bool_):
            raise TypeError(f"intercept must be True or False, got {intercept!r}")
        self.design = design
        self.intercept = bool(intercept)

    @property
    def n_rows(self) -> int:
        """Number of examples."""
        return int(self.design.shape[0])

    @property
    def n_weights(self) -> int:
        """Number of rows of theta."""
        return int(self.design.shape[1])

    @cached_property
    def columns(self) -> Any:
        """The design matrix stored by columns: CSC if sparse, else in Fortran order."""
        return sp.csc_array(self.design) if sp.issparse(self.design) else np.asfortranarray(self.design)

    def scores(self, theta: Array, b: Array) -> Array:
        """F = A theta + 1 b'; of sparse weights by the columns they use, if A is at hand by columns."""
        used = np.flatnonzero(theta[:, 0] if theta.shape[1] == 1 else theta.any(axis=1))
        if used.size == 0:
            return np.zeros((self.n_rows, theta.shape[1])) + b
        if "columns" in self.__dict__ and used.size <= 0.1 * self.n_weights:
            return np.asarray(self.columns[:, used] @ theta[used]) + b
        return np.asarray(self.design @ theta) + b

    def adjoint(self, u: Array) -> Array:
        """A'u: the derivative by theta of <u, F>."""
        return np.asarray(self.design.T @ u)

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.design) else "dense"
        intercept = "" if self.intercept else ", intercept=False"
        return f"{type(self).__name__}({self.n_rows} x {self.n_weights} {kind}{intercept})"


class Linear(Model):
    """F = X theta + 1 b', with X dense or scipy.sparse; the intercepts b are never penalised by a weight penalty.

    Parameters
    ----------
    X : array or scipy.sparse of shape (n, d)
        One row for each example. It is used as it is: a sparse X is never made dense.
    intercept : bool
        Whether there are free intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> Linear(np.eye(3), intercept=False)
    Linear(3 x 3 dense, intercept=False)
    """

    name = "X"

    def __init__(self, X: Any, intercept: bool = True) -> None:
        super().__init__(as_design(X, "X"), intercept)


class Kernel(Model):
    """F = gram theta + 1 b', where gram is a symmetric positive semidefinite kernel matrix.

    Parameters
    ----------
    gram : array of shape (n, n)
        The kernel between all examples, labelled or not.
    intercept : bool
        Whether there are free intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> Kernel(np.eye(3))
    Kernel(3 x 3 dense)
    """

    name = "gram"

    def __init__(self, gram: Any, intercept: bool = True) -> None:
        shape = np.shape(gram)
        if len(shape) == 2 and shape[0] != shape[1]:
            raise ValueError(f"gram must be square (a kernel between all examples), got shape {shape}")
        if sp.issparse(gram):
            _require_gram_memory(shape[0], "gram as a dense matrix")
            gram = gram.toarray()
        super().__init__(_symmetric(as_design(gram, "gram")), intercept)
        self._spectrum: tuple[Array, Array] | None = None
        self._known_psd = self._known_curved = False
        self._last: tuple[Array, Array] | None = None  # the last theta and gram theta

    def scores(self, theta: Array, b: Array) -> Array:
        """F = gram theta + 1 b'; the last product is remembered, as certificates ask for it more than once."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self.times(theta)
        return self._last[1] + b

    def adjoint(self, u: Array) -> Array:
        """gram u."""
        return self.times(u)

    def times(self, v: Array) -> Array:
        """gram v for an (n, k) array; a single column takes half the time of an ordinary product, by symmetry."""
        if not v.any():
            return np.zeros_like(v)
        if v.shape[1] > 1:
            used = np.flatnonzero(v.any(axis=1))
            if FEW_ROWS * used.size <= len(v):  # gram is symmetric: its rows are its columns, and lie together
                return np.asarray((v[used].T @ self.design[used]).T)
            return np.asarray(self.design @ v)
        fortran = self.design if self.design.flags.f_contiguous else self.design.T
        return np.asarray(scipy.linalg.blas.dsymv(1.0, fortran, np.ascontiguousarray(v[:, 0])))[:, None]

    def require_psd(self) -> None:
        """Raise if gram is seen not to be positive semidefinite, by the Cholesky factor of (a part of) it.

        Up to PSD_ROWS rows this is a proof. Beyond, a part of half as many rows is looked at, and solvers by conjugate
        gradients raise the same error as soon as they meet a negative ``v'gram v``. Others call
        :meth:`require_curvature`.
        """
        if self._known_psd or self._spectrum is not None:
            return
        n = self.n_rows
        diagonal = self.design.diagonal()
        if not diagonal.any() and not self.design.any():
            raise ValueError(ZERO_GRAM)
        picked = np.arange(n) if n <= PSD_ROWS else np.linspace(0, n - 1, PSD_ROWS // 2).astype(int)
        part = self.design if n <= PSD_ROWS else self.design[np.ix_(picked, picked)]
        top = max(float(diagonal.max()), float(part.sum()) / len(picked))
        shifted = part + (PSD_ROUND_OFF * max(top, np.finfo(float).tiny)) * np.eye(len(picked))
        if scipy.linalg.lapack.dpotrf(shifted, overwrite_a=True)[1] != 0:
            values = scipy.linalg.eigvalsh(part)
            if values[0] < -PSD_ROUND_OFF * max(float(values[-1]), np.finfo(float).tiny):
                raise not_psd(float(values[0]), float(values[-1]))
        self._known_psd = True

    def require_curvature(self) -> None:
        """Raise if gram is not positive semidefinite, for solvers that would not meet a negative ``v'gram v``.

        Up to PROOF_ROWS rows this is a proof, though not as sharp as that of :meth:`require_psd`. Beyond, which would
        take n^3, the least v'gram v / v'v in a Krylov space is looked at. It is an upper bound of the smallest
        eigenvalue, so that no kernel is refused without need.
        """
        if self.n_rows <= PSD_ROWS or not self.design.diagonal().any():
            self.require_psd()
            return
        if self._known_curved or self._spectrum is not None:
            return
        if self.n_rows <= PROOF_ROWS:
            if not self._is_nearly_psd():
                self._eigen()  # in double precision
        else:
            smallest, largest = self._ritz_values(LANCZOS_STEPS)
            if smallest < -PSD_ROUND_OFF * max(largest, np.finfo(float).tiny):
                raise not_psd(smallest, largest)
        self._known_curved = True

    def _is_nearly_psd(self) -> bool:
        size = max(float(self.design.diagonal().max()), np.finfo(float).tiny)
        scaled = np.empty((self.n_rows, self.n_rows), dtype=np.float32)
        np.multiply(self.design, 1.0 / size, out=scaled, casting="unsafe")
        np.einsum("ii->i", scaled)[:] += np.float32(SINGLE_ROUND_OFF)
        return bool(scipy.linalg.lapack.spotrf(scaled.T, overwrite_a=True, clean=0)[1] == 0)

    def _ritz_values(self, steps: int) -> tuple[float, float]:
        """The extreme values of v'gram v / v'v in the Krylov space of a random vector."""
        v = np.random.default_rng(0).normal(size=self.n_rows)
        v /= np.linalg.norm(v)
        basis = np.empty((steps, self.n_rows))
        main: list[float] = []
        side: list[float] = []
        for k in range(steps):
            basis[k] = v
            w = self.times(v[:, None])[:, 0]
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

    def factor(self) -> Array:
        """G with gram = G G': the same model in linear coordinates, theta = :meth:`lift` of them."""
        values, vectors = self._eigen()
        return np.asarray(vectors * np.sqrt(values))

    def lift(self, v: Array) -> Array:
        """theta with gram theta = G v."""
        values, vectors = self._eigen()
        return np.asarray((vectors / np.sqrt(values)) @ v)

    def lower(self, theta: Array) -> Array:
        """v = G'theta, the coordinates of theta."""
        return np.asarray(self.factor().T @ theta)

    def _eigen(self) -> tuple[Array, Array]:
        if self._spectrum is None:
            _require_gram_memory(2 * self.n_rows, "the eigenvectors of gram")
            values, vectors = scipy.linalg.eigh(self.design)
            top = max(float(values[-1]), 0.0) if values.size else 0.0
            if values.size and values[0] < -PSD_ROUND_OFF * max(top, np.finfo(float).tiny):
                raise not_psd(float(values[0]), top)
            if top == 0.0:
                raise ValueError(ZERO_GRAM)
            kept = values > values.size * np.finfo(float).eps * top
            self._spectrum = values[kept], vectors[:, kept]
        return self._spectrum


def not_psd(smallest: float, largest: float) -> ValueError:
    """The error for a gram matrix with that smallest eigenvalue (or at most that one, where v'gram v was met)."""
    return ValueError(
        f"gram must be positive semidefinite, its smallest eigenvalue is {smallest:.3g} "
        f"(largest {largest:.3g}); add at least {-smallest:.3g} to its diagonal or use a valid kernel"
    )


def _symmetric(gram: Array) -> Array:
    """The matrix itself if it is symmetric, its symmetric part if it is so up to round-off, else an error."""
    scale, worst = float(np.finfo(float).tiny), 0.0
    if not (gram.flags.c_contiguous or gram.flags.f_contiguous):
        gram = np.ascontiguousarray(gram)
    for first in range(0, gram.shape[0], 512):  # in blocks: no further matrix of this size
        rows, columns = gram[first : first + 512], gram[:, first : first + 512].T
        scale = max(scale, float(rows.max()), -float(rows.min()))
        worst = max(worst, float(np.abs(rows - columns).max()))
    if worst > 1e-8 * scale:
        raise ValueError("gram must be symmetric; symmetrise it with (gram + gram.T) / 2 if that is what you mean")
    return gram if worst == 0.0 else (gram + gram.T) / 2


def _require_gram_memory(n: int, what: str) -> None:
    remedy = "use a linear model on (random) features of the kernel, or fewer examples"
    require_memory(8.0 * n * n, f"{what} ({n:,} x {n:,})", remedy)


def as_design(matrix: Any, name: str) -> Any:
    """A finite float64 matrix: CSR if sparse, else a dense array."""
    if sp.issparse(matrix):
        if np.issubdtype(matrix.dtype, np.complexfloating) or matrix.dtype == object:
            raise TypeError(f"{name} must be real, got dtype {matrix.dtype}")
        result = sp.csr_array(matrix, dtype=float)
        if not result.has_canonical_format:
            result = result.copy()
            result.sum_duplicates()
        values = result.data
    else:
        try:
            raw = np.asarray(matrix)
        except ValueError as error:
            raise ValueError(f"{name} must be a matrix, but its rows have different lengths") from error
        if np.issubdtype(raw.dtype, np.complexfloating):
            raise TypeError(f"{name} must be real, got dtype {raw.dtype}")
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"{name} must be numeric, got dtype {raw.dtype}")
        try:
            result = values = np.asarray(raw, dtype=float)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must be numeric, got dtype {raw.dtype}") from error
    if result.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got shape {result.shape}; reshape(-1, 1) makes one column")
    if 0 in result.shape:
        raise ValueError(f"{name} must have at least one row and one column, got shape {result.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinite values; impute or drop them first")
    return result
