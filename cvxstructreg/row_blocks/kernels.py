"""What is computed from one block in a pass. All functions can be sent to other processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.row_selection import compiled_pays
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.block import Block, arrays_of, checksum_of

#: A kernel takes the matrix of a block, then the arguments of the pass, then the rows of arrays that belong to it.
Kernel = Callable[..., Any]
#: Rows of a sparse block that are made dense at a time.
ROWS_AT_ONCE = 2048
#: Entries of a sparse block that are counted at a time, so that copies of them stay in the cache of the processor.
ENTRIES_AT_ONCE = 100_000
#: From this part of nonzero entries on, a Gram matrix is computed from dense rows, so many at a time.
DENSE_FROM, GRAM_ROWS = 0.5, 512
_KEPT = threading.local()  # arrays that each thread uses again


class Seen:
    """The number of rows of a block, its stamp and (in a first pass) its checksum and labels, next to a result."""

    def __init__(self, n_rows: int, stamp: tuple[int, ...], checksum: int | None, labels: Any, result: Any) -> None:
        self.n_rows, self.stamp, self.checksum, self.labels, self.result = n_rows, stamp, checksum, labels, result


class SomeRows(NamedTuple):
    """The number of some rows, the sum of their curvatures h, and C'h and C'diag(h)C for some columns C of them."""

    size: int
    total: float
    centre: Array
    gram: Array

    def plus(self, other: SomeRows) -> SomeRows:
        """Both together."""
        sums = self.centre + other.centre, self.gram + other.gram
        return SomeRows(self.size + other.size, self.total + other.total, *sums)


def perform(kernel: Kernel, shared: tuple[Any, ...], first: bool, block: Block, own: tuple[Any, ...]) -> Seen:
    """Read a block and apply the kernel to it."""
    if first and kernel in VERIFYING and (found := block.unverified()) is not None:
        X, check = found
        X.check = check
        result = kernel(X, *shared, *own)
        check.finish()
        return Seen(X.shape[0], block.stamp(), block.stored_checksum, (None, None), result)
    X, *labels = block.load_all(first)
    checksum = None
    if first:
        stored = block.stored_checksum  # verified by ``load``
        checksum = checksum_of(arrays_of(X)) if stored is None else stored
    return Seen(X.shape[0], block.stamp(), checksum, labels if first else None, kernel(X, *shared, *own))


def whole(X: Any) -> Any:
    """The block itself."""
    return X


def times(X: Any, theta: Array) -> Array:
    """X theta."""
    return np.asarray(X @ theta)


def pull(X: Any, u: Array) -> Array:
    """X'u."""
    if (check := getattr(X, "check", None)) is None:
        return np.asarray(X.T @ u)
    if u.shape[1] == 1 and compiled_pays(X.nnz):
        from cvxstructreg.row_blocks import compiled_rows

        total, factors = np.zeros(X.shape[1]), np.ascontiguousarray(u[:, 0])
        if compiled_rows.verified_pull((X.data, unsigned(X.indices), X.indptr), factors, total, check.running):
            return total[:, None]
    check.finish()
    return np.asarray(X.T @ u)


def absolute_times(X: Any, theta: Array) -> Array:
    """|X| theta."""
    return np.asarray(abs(X) @ theta)


def absolute_pull(X: Any, u: Array) -> Array:
    """|X|'u."""
    return np.asarray(abs(X).T @ u)


def squared_pull(X: Any, u: Array) -> Array:
    """The squares of X, transposed, times u."""
    return np.asarray((X.multiply(X) if sp.issparse(X) else X**2).T @ u)


def bent_pull(X: Any, p: Array, shift: float, weights: Array) -> Array:
    """X'(weights * (X p + shift))."""
    images = np.asarray(X @ p)
    images += shift
    images *= weights
    return np.asarray(X.T @ images)


def columns(X: Any, chosen: Any) -> Any:
    """Some columns, as CSC or dense."""
    if not sp.issparse(X):
        return np.asfortranarray(X[:, chosen])
    if compiled_pays(X.nnz) and len(np.unique(chosen)) == len(chosen):
        return sp.csc_array(chosen_columns(X, chosen))
    if (check := getattr(X, "check", None)) is not None:
        check.finish()
    return sp.csc_array(X[:, chosen])


def some_rows(X: Any, count: int) -> Any:
    """``count`` rows, spread evenly over the block."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(count, X.shape[0])).astype(np.int64))
    return rows, X[rows]


def statistics(X: Any) -> tuple[Array, Array, Array]:
    """The sums, sums of squares and numbers of nonzero entries of all columns."""
    if not sp.issparse(X):
        return X.sum(axis=0), np.einsum("ij,ij->j", X, X), np.full(X.shape[1], float(X.shape[0]))
    d = X.shape[1]
    sums, squares, counts = np.zeros(d), np.zeros(d), np.zeros(d)
    step = max(ENTRIES_AT_ONCE, 4 * d)
    for first in range(0, X.nnz, step):
        where, values = X.indices[first : first + step].astype(np.intp), X.data[first : first + step]
        sums += np.bincount(where, weights=values, minlength=d)
        squares += np.bincount(where, weights=values**2, minlength=d)
        counts += np.bincount(where, minlength=d)
    return sums, squares, counts


def centred_squares(X: Any, means: Array) -> Array:
    """sum_i (X_ij - mean_j)^2 for all columns."""
    total = np.zeros(X.shape[1])
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        rows = X[first : first + ROWS_AT_ONCE]
        centred = (rows.toarray() if sp.issparse(rows) else rows) - means
        total += np.einsum("ij,ij->j", centred, centred)
    return total


def second_order(X: Any, theta: Array, b: Array, losses: Any) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Scores, slopes and curvatures of the rows at (theta, b), and X'g, X'h and X'diag(h)X.

    ``losses`` are the parts of the losses that belong to these rows, each with its strength.
    """
    z = np.asarray(X @ theta) + b
    g = sum((scale * loss.grad(z) for scale, loss in losses), np.zeros_like(z))
    h = sum((scale * loss.hess_diag(z) for scale, loss in losses), np.zeros_like(z))
    return z, g, h, np.asarray(X.T @ g), np.asarray(X.T @ h), weighted_gram(X, h[:, 0])


def second_order_on(X: Any, chosen: Any, w: Array, b: Array, losses: Any) -> tuple[Array, ...]:
    """The same for a few columns C of X, with weights w on them: C w, slopes, curvatures, X'g, C'h and C'diag(h)C."""
    C = chosen_columns(X, chosen)
    images = np.asarray(C @ w)
    z = images + b
    g = sum((scale * loss.grad(z) for scale, loss in losses), np.zeros_like(z))
    h = sum((scale * loss.hess_diag(z) for scale, loss in losses), np.zeros_like(z))
    return images, g, h, _pull_of_rows(X, g), np.asarray(C.T @ h), weighted_gram(C, h[:, 0])


def newton_on(
    X: Any, chosen: Any, w: Array, b: Array, bent: tuple[int, int], losses: Any
) -> tuple[Array, Array, SomeRows, float, float]:
    """At weights w on a few columns C of X: C w, C'g, the curvature of some rows, the sum of g, and the value.

    ``bent`` are the first one of these rows and the step to the next ones.
    """
    C = chosen_columns(X, chosen)
    images = np.asarray(C @ w)
    z = images + b
    g = sum((scale * loss.grad(z) for scale, loss in losses), np.zeros_like(z))
    h = sum((scale * loss.hess_diag(z) for scale, loss in losses), np.zeros_like(z))[bent[0] :: bent[1]]
    some = C if bent[1] == 1 else C[bent[0] :: bent[1]]
    curved = SomeRows(len(h), float(h.sum()), np.asarray(some.T @ h)[:, 0], weighted_gram(some, h[:, 0]))
    value = sum(scale * loss.value(z) for scale, loss in losses)
    return images, np.asarray(C.T @ g), curved, float(g.sum()), float(value)


def newton_kept(
    X: Any, chosen: Any, w: Array, b: Array, bent: tuple[int, int], scale: float, loss: Any
) -> tuple[Any, Array]:
    """The same for one loss, with C w as the state that is kept."""
    images, *rest = newton_on(X, chosen, w, b, bent, [(scale, loss)])
    return tuple(rest), images


def value_between(loss: Any, images: Array, others: Array, t: float, b: Any) -> float:
    """The value of a loss between two points, from X theta at both."""
    return float(loss.value(images + t * (others - images) + b))


def value_at(loss: Any, images: Array, b: Array) -> float:
    """The value of a loss, from X theta."""
    return float(loss.value(images + b))


def value_and_pull(X: Any, theta: Array, b: Array, loss: Any) -> tuple[Any, Array]:
    """The value of a loss, X'g and the sums of g for its gradient g, with X theta as the state that is kept."""
    images = np.asarray(X @ theta)
    z = images + b
    g = loss.grad(z)
    return (float(loss.value(z)), np.asarray(X.T @ g), g.sum(axis=0)), images


def hessian_pull(X: Any, p: Array, shift: Array, b: Array, loss: Any, images: Array) -> tuple[Array, Array]:
    """X'v and the sums of v for v = H (X p + shift), where H is the Hessian of a loss at the scores."""
    v = loss.hessp(images + b, np.asarray(X @ p) + shift)
    return np.asarray(X.T @ v), v.sum(axis=0)


def curvature_totals(loss: Any, images: Array, b: Array) -> Array:
    """The sums of the diagonal of the Hessian of a loss, one for each output."""
    return np.array([loss.hessp(images + b, unit)[:, j].sum() for j, unit in enumerate(_units(images))])


def _units(images: Array) -> list[Array]:
    """Ones in one column, for each column."""
    found = [np.zeros_like(images) for _ in range(images.shape[1])]
    for j, unit in enumerate(found):
        unit[:, j] = 1.0
    return found


def _pull_of_rows(X: Any, g: Array) -> Array:
    """X'g for one output, where compiled loops are loaded anyway."""
    if not sp.issparse(X):
        return np.asarray(X.T @ g)
    from cvxstructreg.row_blocks import compiled_rows

    return np.asarray(compiled_rows.pull(X.data, unsigned(X.indices), X.indptr, g[:, 0], X.shape[1]))[:, None]


def chosen_columns(X: Any, chosen: Any) -> Any:
    """Some columns; of a sparse block as CSR, in which the entries of a row keep their order.

    The arrays of a sparse result are used again by the next call in the same thread.
    """
    if not sp.issparse(X):
        return X[:, chosen]
    from cvxstructreg.row_blocks import compiled_rows

    matrix = X.data, unsigned(X.indices), X.indptr
    position = np.full(X.shape[1], -1, dtype=np.int32)
    position[chosen] = np.arange(len(chosen))
    is_chosen = (position >= 0).view(np.uint8)
    room = compiled_rows.expected_entries(*matrix[1:], is_chosen)
    starts, check = np.zeros(X.shape[0] + 1, dtype=X.indptr.dtype), getattr(X, "check", None)
    while True:
        values, its_columns = _room("values", room, np.float64), _room("columns", room, np.int32)
        chosen_so_far = matrix, position, is_chosen, values, its_columns, starts
        if check is None:
            done = compiled_rows.chosen_columns(*chosen_so_far)
        else:
            done = compiled_rows.verified_columns(*chosen_so_far, check.running)
        if done == X.shape[0]:
            break
        if check is not None and done < 0:
            check.finish()
            raise ValueError(f"a column index exceeds {X.shape[1] - 1}")
        room *= 2
    if check is not None:
        check.finish()
    found = values[: starts[-1]], its_columns[: starts[-1]], starts
    return sp.csr_array(found, shape=(X.shape[0], len(chosen)))


def _room(name: str, size: int, dtype: Any) -> Array:
    """An array of at least this size, the same one for all blocks: the system is slow to provide new memory."""
    kept: Array | None = getattr(_KEPT, name, None)
    if kept is None or len(kept) < size:
        kept = np.empty(size, dtype=dtype)
        setattr(_KEPT, name, kept)
    return kept


def unsigned(indices: Any) -> Any:
    """The same indices, which are not negative, as a view without a sign."""
    return indices.view(np.dtype(f"u{indices.dtype.itemsize}"))


def weighted_gram(X: Any, h: Array) -> Array:
    """X'diag(h)X as a dense matrix."""
    n, d = X.shape
    if sp.issparse(X):
        from cvxstructreg.row_blocks import compiled_rows

        matrix = X.data, unsigned(X.indices), X.indptr
        if X.nnz < DENSE_FROM * n * d:
            return np.asarray(compiled_rows.gram(*matrix, h, d))
    total, roots = np.zeros((d, d)), np.sqrt(np.maximum(h, 0.0))
    for first in range(0, n, GRAM_ROWS):
        stop = min(n, first + GRAM_ROWS)
        scaled = _room("rows", GRAM_ROWS * d, np.float64)[: (stop - first) * d].reshape(-1, d)
        if sp.issparse(X):
            compiled_rows.scaled_rows(*matrix, roots, first, scaled)
        else:
            np.multiply(X[first:stop], roots[first:stop, None], out=scaled)
        total += scaled.T @ scaled
    return total


#: Kernels that verify the checksums of a block while they read it.
VERIFYING = (pull, columns, newton_on, newton_kept, second_order_on)


def survey(X: Any) -> tuple[tuple[int, int], bool, tuple[Array, Array, Array]]:
    """The shape, whether the block is sparse, and the statistics of its columns."""
    return X.shape, bool(sp.issparse(X)), statistics(X)
