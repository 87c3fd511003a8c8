"""Models map weights to scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy  # SciPy loads scipy.linalg when it is first used
import scipy.sparse as sp

from cvxstructreg.core.checks import Names, column_names
from cvxstructreg.core.data_record import DataRecord
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.last_product import LastProduct
from cvxstructreg.numerics.semidefinite import (
    NEGLIGIBLE,
    NOISE,
    PSD_ROUND_OFF,
    ZERO_GRAM,
    Proof,
    RepairedGramWarning,
    not_psd,
    prove,
    round_off_of,
    symmetric_part,
)
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.memory import require_memory

#: If at most one row in FEW_ROWS of the weights is nonzero, only these rows of gram are used in a product.
FEW_ROWS = 4
#: From this many stored entries on, products use the columns that a solver has made; for few nonzero weights, theirs.
BY_COLUMNS = 100_000
#: The largest part of nonzero weights for such a product, for a sparse and for a dense design.
FEW_SPARSE, FEW_DENSE = 0.1, 0.4


class Model:
    """Scores ``F = A theta + 1 b'`` for a design matrix A (n x d): see :class:`Linear` and :class:`Kernel`."""

    name = "A"
    weights_name = "w"

    def __init__(self, design: Any, intercept: bool, feature_names: Names = None) -> None:
        if not isinstance(intercept, bool | np.bool_):
            raise TypeError(f"intercept must be True or False, got {intercept!r}")
        self.design, self.intercept, self.feature_names = design, bool(intercept), feature_names

    def slack(self, most: float = np.inf) -> float:
        """A number such that design + slack I is positive semidefinite, if the design is a kernel matrix."""
        return 0.0

    @property
    def kernel(self) -> Kernel | None:
        """This model if its design is a kernel matrix, else None."""
        return None

    def for_terms(self, terms: Iterable[Any]) -> Model:
        """The model that a problem with these terms uses: this one, or its repaired copy (:meth:`Kernel.convex`)."""
        return self

    def notes(self) -> tuple[str, ...]:
        """Remarks about the design for ``describe()``."""
        return ()

    @property
    def n_rows(self) -> int:
        """Number of examples."""
        return int(self.design.shape[0])

    @property
    def n_weights(self) -> int:
        """Number of rows of theta."""
        return int(self.design.shape[1])

    @property
    def row_blocks(self) -> Any:
        """The design if it is given as blocks of rows (:class:`cvxstructreg.RowBlocks`), else None."""
        return self.design if getattr(self.design, "is_row_blocks", False) else None

    @property
    def data_record(self) -> DataRecord | None:
        """The rows and the checksum of data in blocks, else None."""
        return None if self.row_blocks is None else self.row_blocks.record

    @cached_property
    def columns(self) -> Any:
        """The design matrix stored by columns: CSC if sparse, else in Fortran order."""
        if self.row_blocks is not None:
            return self.design
        return sp.csc_array(self.design) if sp.issparse(self.design) else np.asfortranarray(self.design)

    def scores(self, theta: Array, b: Array) -> Array:
        """F = A theta + 1 b'; if few weights are nonzero and A is stored by columns, only their columns are used."""
        used = (theta[:, 0] if theta.shape[1] == 1 else np.any(theta, axis=1)).nonzero()[0]
        if used.size == 0:
            return np.zeros((self.n_rows, theta.shape[1])) + b
        few = FEW_SPARSE if sp.issparse(self.design) else FEW_DENSE
        if self.uses_columns and used.size <= few * self.n_weights:
            return np.asarray(self.columns[:, used] @ theta[used]) + b
        return np.asarray(self.design @ theta) + b

    @property
    def uses_columns(self) -> bool:
        """Whether products use the columns: two copies of large data would not fit into the cache together.

        On small data they do not: there they are as fast, and must not depend on earlier solves.
        """
        entries = self.design.nnz if sp.issparse(self.design) else self.design.size
        return "columns" in self.__dict__ and entries >= BY_COLUMNS

    def adjoint(self, u: Array) -> Array:
        """A'u: the derivative of <u, F> with respect to theta."""
        return self.last_product.at(self.columns if self.uses_columns else self.design, u)

    @cached_property
    def last_product(self) -> LastProduct:
        """The product A'u that a solver left for the certificate."""
        return LastProduct()

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.design) else "in blocks" if self.row_blocks is not None else "dense"
        intercept = "" if self.intercept else ", intercept=False"
        return f"{type(self).__name__}({self.n_rows} x {self.n_weights} {kind}{intercept})"


class Linear(Model):
    """F = X theta + 1 b', with X dense or scipy.sparse; the intercepts b are never penalised by a weight penalty.

    Parameters
    ----------
    X : array or scipy.sparse of shape (n, d), or a source of blocks of rows
        One row for each example; the names of a data frame are kept. A sparse X is never made dense. Data larger than
        memory are :class:`cvxstructreg.RowBlocks`, or one of the sources that it takes, such as a list of blocks.
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
        super().__init__(as_design(_opened(X), "X"), intercept, column_names(X))


def _opened(X: Any) -> Any:
    """Blocks of rows if X is a source of blocks, else X itself."""
    if isinstance(X, np.ndarray) or sp.issparse(X) or getattr(X, "is_row_blocks", False):
        return X
    from cvxstructreg.row_blocks.design import RowBlocks
    from cvxstructreg.row_blocks.sources import is_source

    return RowBlocks(X) if is_source(X) else X


class Kernel(Model):
    """F = gram theta + 1 b', where gram is a symmetric positive semidefinite kernel matrix: v'gram v >= 0 for all v.

    The norm theta'gram theta is convex only if gram is positive semidefinite, so certificates depend on it. This is
    proved once, when a problem with this norm is first used, by a Cholesky factorisation (n^3 / 3 multiplications and
    one more n x n matrix; fewer for smooth kernels of many examples, which are nearly of low rank), unless the user
    asserts it with ``psd=True``. Round-off may make eigenvalues negative, down to -1e-8 times the largest in double
    precision, or -1.2e-5 times the largest if gram is given in single precision. Such a matrix is repaired: problems
    with the norm use ``gram + shift I`` (:meth:`convex`). A
    :class:`cvxstructreg.RepairedGramWarning` and ``problem.describe()`` report the shift.

    Parameters
    ----------
    gram : array of shape (n, n)
        The kernel between all examples, labelled or not.
    intercept : bool
        Whether there are free intercepts.
    psd : bool
        Whether gram is known to be positive semidefinite by construction, such as a Gaussian or linear kernel. Then
        this is not proved, and certificates are valid under this assumption. A matrix in single precision is always
        checked, because its round-off makes such matrices indefinite.

    Attributes
    ----------
    shift : float
        The number that was added to the diagonal of the given matrix; 0 unless :meth:`convex` created this model.

    Examples
    --------
    >>> import numpy as np
    >>> Kernel(np.eye(3))
    Kernel(3 x 3 dense)
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Kernel(np.exp(-((X - X.T) ** 2)), psd=True)  # a Gaussian kernel: nothing to prove
    Kernel(3 x 3 dense, psd=True)
    >>> Kernel(1.0 - np.abs(X - X.T)).require_psd()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: gram must be positive semidefinite, but its smallest eigenvalue is -1.24 (largest 3.24); ...
    """

    name = "gram"
    weights_name = "theta"

    def __init__(self, gram: Any, intercept: bool = True, psd: bool = False) -> None:
        shape = np.shape(gram)
        if len(shape) == 2 and shape[0] != shape[1]:
            raise ValueError(f"gram must be square (a kernel between all examples), got shape {shape}")
        if not isinstance(psd, bool | np.bool_):
            raise TypeError(f"psd must be True or False, got {psd!r}")
        if sp.issparse(gram):
            _require_gram_memory(shape[0], "gram as a dense matrix")
            gram = gram.toarray()
        design = as_design(gram, "gram")
        self.round_off = round_off_of(np.asarray(gram).dtype if hasattr(gram, "__array__") else design.dtype)
        super().__init__(symmetric_part(design, self.round_off), intercept)
        self.psd = bool(psd)
        self.shift, self.repair = 0.0, ""  # the number added to the diagonal, and the reason
        # caches shared by threads: each is read once and replaced as a whole
        self._last: tuple[Array, Array] | None = None  # the last theta and gram theta
        self._spectrum: tuple[Array, Array] | None = None
        trusted = self.psd and self.round_off <= PSD_ROUND_OFF
        self._slack: float | None = self._noise() if trusted else None
        self._by_rank = False  # whether the slack comes from a proof of low rank
        self._repaired: Kernel | None = None

    @property
    def kernel(self) -> Kernel:
        """This model."""
        return self

    def for_terms(self, terms: Iterable[Any]) -> Model:
        """The convex model if one of the terms is the function norm, which is convex only for a semidefinite gram."""
        return self.convex() if any(term.target == "function" and term.scale > 0 for term in terms) else self

    def scores(self, theta: Array, b: Array) -> Array:
        """F = gram theta + 1 b'; the last product is cached, because certificates use it more than once."""
        last = self._last
        if last is None or not np.array_equal(last[0], theta):
            self._last = last = theta.copy(), self.times(theta)
        return last[1] + b

    def adjoint(self, u: Array) -> Array:
        """gram u."""
        return self.times(u)

    def times(self, v: Array) -> Array:
        """gram v for an (n, k) array; symmetry halves the time for a single column."""
        if not v.any():
            return np.zeros_like(v)
        if v.shape[1] > 1:
            used = np.flatnonzero(v.any(axis=1))
            if FEW_ROWS * used.size <= len(v):  # by symmetry, rows replace columns; rows are contiguous in memory
                return np.asarray((v[used].T @ self.design[used]).T)
            return np.asarray(self.design @ v)
        fortran = self.design if self.design.flags.f_contiguous else self.design.T
        return np.asarray(scipy.linalg.blas.dsymv(1.0, fortran, np.ascontiguousarray(v[:, 0])))[:, None]

    def require_psd(self) -> None:
        """Raise unless gram is known or proved to be positive semidefinite up to its round-off."""
        self.convex()

    def convex(self) -> Kernel:
        """This model if its matrix is positive semidefinite, else a repaired model with ``gram + shift I``.

        All problems with the function norm use the result. ``shift`` is about the size of the smallest eigenvalue, and
        is the same for all solvers. Raises ``ValueError`` if gram has negative eigenvalues beyond round-off.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> kernel = Kernel(np.array([[1.0, 1.0 + 1e-6], [1.0 + 1e-6, 1.0]], dtype=np.float32))
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     repaired = kernel.convex()
        >>> repaired
        Kernel(2 x 2 dense, shift=9.54e-07)
        """
        if self._repaired is not None:
            return self._repaired
        if self._slack is None:
            proof = prove(self.design, self.round_off)
            if proof.shift > NEGLIGIBLE * self._trace():
                self._repaired = repaired = self._shifted(proof)
                return repaired
            self._slack, self._by_rank = proof.shift, proof.by_rank
        return self

    def _shifted(self, proof: Proof) -> Kernel:
        """gram + shift I, with a warning."""
        _require_gram_memory(self.n_rows, "a repaired copy of gram")
        design = self.design.copy()
        np.einsum("ii->i", design)[:] += proof.shift
        result = Kernel(design, self.intercept, self.psd)
        result.round_off, result.shift = self.round_off, proof.shift
        result._slack = result._noise()
        result.repair, remedy = proof.explanation(self.round_off)
        warnings.warn(
            f"gram is not positive semidefinite: {result.repair}; gram + {proof.shift:.3g} I is used instead. "
            f"{remedy}, or add such a multiple of the identity to gram",
            RepairedGramWarning,
            stacklevel=3,
        )
        return result

    def _trace(self) -> float:
        return float(self.design.trace())

    def _noise(self) -> float:
        """The possible round-off in eigenvalues that should be zero."""
        return NOISE * max(self._trace(), 0.0)

    def slack(self, most: float = np.inf) -> float:
        """gram + slack I is positive semidefinite: bounds with u'gram u + slack ||u||^2 hold for nearby matrices.

        A proof of low rank with a slack above ``most`` is replaced by a Cholesky factorisation, whose slack is smaller.
        """
        slack = self._noise() if self._slack is None else self._slack
        if self._by_rank and slack > most:
            self._slack = slack = min(slack, prove(self.design, self.round_off, by_rank=False).shift)
            self._by_rank = False
        return slack

    def notes(self) -> tuple[str, ...]:
        """The number added to the diagonal, and the reason."""
        return (f"gram is the given matrix + {self.shift:.3g} I: {self.repair}",) if self.shift else ()

    def __repr__(self) -> str:
        shift = f", shift={self.shift:.3g}" if self.shift else ""
        return super().__repr__()[:-1] + shift + (", psd=True)" if self.psd else ")")

    def factor(self) -> Array:
        """G with gram = G G': the design of the same model in linear coordinates; :meth:`lift` maps these to theta."""
        values, vectors = self._eigen()
        return np.asarray(vectors * np.sqrt(values))

    def lift(self, v: Array) -> Array:
        """theta with gram theta = G v."""
        values, vectors = self._eigen()
        return np.asarray((vectors / np.sqrt(values)) @ v)

    def lower(self, theta: Array) -> Array:
        """v = G'theta, the linear coordinates of theta."""
        return np.asarray(self.factor().T @ theta)

    def _eigen(self) -> tuple[Array, Array]:
        """The eigenvalues above round-off, and their eigenvectors."""
        spectrum = self._spectrum
        if spectrum is None:
            _require_gram_memory(2 * self.n_rows, "the eigenvectors of gram")
            values, vectors = scipy.linalg.eigh(self.design)
            top = max(float(values[-1]), 0.0)
            if values[0] < -self.round_off * top:
                raise not_psd(float(values[0]), top)
            if top == 0.0:
                raise ValueError(ZERO_GRAM)
            if -values[0] > NEGLIGIBLE * self._trace():  # psd=True was not quite right: certificates account for it
                self._slack = max(self._slack or 0.0, -float(values[0]))
            kept = values > values.size * np.finfo(float).eps * top
            self._spectrum = spectrum = values[kept], vectors[:, kept]
        return spectrum


def _require_gram_memory(n: int, what: str) -> None:
    remedy = "use a linear model on (random) features of the kernel, or fewer examples"
    require_memory(8.0 * n * n, f"{what} ({n:,} x {n:,})", remedy)


def as_design(matrix: Any, name: str) -> Any:
    """A finite float64 matrix: CSR if sparse, else a dense array; blocks of rows stay as they are."""
    if getattr(matrix, "is_row_blocks", False):
        return matrix
    if sp.issparse(matrix):
        if matrix.dtype.kind in "cO":
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
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"{name} must be {'real' if raw.dtype.kind == 'c' else 'numeric'}, got dtype {raw.dtype}")
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
