"""Models: how weights become scores."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cvxstructreg.core.atom import Array


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
        """F = A theta + 1 b'."""
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
        if sp.issparse(gram):
            gram = gram.toarray()
        gram = as_design(gram, "gram")
        if gram.shape[0] != gram.shape[1]:
            raise ValueError(f"gram must be square (a kernel between all examples), got shape {gram.shape}")
        scale = max(float(np.abs(gram).max(initial=0.0)), np.finfo(float).tiny)
        if np.abs(gram - gram.T).max(initial=0.0) > 1e-8 * scale:
            raise ValueError("gram must be symmetric; symmetrise it with (gram + gram.T) / 2 if that is what you mean")
        super().__init__((gram + gram.T) / 2, intercept)
        self._spectrum: tuple[Array, Array] | None = None

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
            values, vectors = scipy.linalg.eigh(self.design)
            top = max(float(values[-1]), 0.0) if values.size else 0.0
            if values.size and values[0] < -1e-8 * max(top, np.finfo(float).tiny):
                raise ValueError(
                    f"gram must be positive semidefinite, its smallest eigenvalue is {values[0]:.3g} "
                    f"(largest {top:.3g}); add at least {-values[0]:.3g} to its diagonal or use a valid kernel"
                )
            if top == 0.0:
                raise ValueError("gram is zero everywhere: its only function is zero, and there is nothing to fit")
            kept = values > values.size * np.finfo(float).eps * top
            self._spectrum = values[kept], vectors[:, kept]
        return self._spectrum


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
