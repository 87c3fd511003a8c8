"""A design matrix in blocks of rows: products, columns and statistics by passes over the blocks."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.data_record import DataRecord
from cvxstructreg.forms.quadratic_form import squared_columns
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.block import Block, BlockError, MemoryBlock, SelectedBlock, parts_of
from cvxstructreg.row_blocks.engine import Engine, as_engine, keeps_scores
from cvxstructreg.row_blocks.known import NOTHING, KeptRows, Known, picked, stacked_parts
from cvxstructreg.row_blocks.meter import Meter
from cvxstructreg.row_blocks.products import Absolute, Transposed
from cvxstructreg.row_blocks.sources import Opened, joined, opened
from cvxstructreg.runtime.memory import available_memory, parse_bytes

#: The part of the available memory that is used by default.
DEFAULT_PART = 0.5
#: While columns or blocks are put together, they are in memory twice, and solvers make copies of them.
COPIES = 5.0


class RowBlocks:
    """A matrix X in blocks of rows, for data larger than memory: ``csr.Linear(RowBlocks(source))``.

    A pass reads all blocks once. Products, column norms and columns cost one pass each; the last results are kept.

    Parameters
    ----------
    source : path, sequence of blocks, function, dask.array, or list of futures
        A folder made by :func:`cvxstructreg.io.write_blocks`; a list of matrices, memory-mapped or not, of functions
        that each return a matrix, of ``joblib.delayed`` calls, or of futures of Dask or joblib; a function that returns
        a new iterator over all blocks, always in the same order. Blocks are dense or scipy.sparse. Each may come with
        its labels and weights, as ``(X, y)`` or ``(X, y, sample_weight)``.
    engine : "serial", "threads", "joblib", "dask" or a Dask client, optional
        How the blocks of a pass are processed. By default threads, or Dask for data on a Dask cluster.
    memory_limit : int or str, optional
        Bytes that the data kept in memory may take, such as "2 GB"; half of the available memory by default.
    scores : "here" or "workers", optional
        Where vectors with a number for each row are. "workers": with the blocks, if the loss is a smooth sum over rows;
        by default from 10 million rows on a Dask cluster on.

    Attributes
    ----------
    y, sample_weight : array or None
        Labels and weights that are stored or given with the blocks.
    meter : Meter
        The passes so far, with rows and seconds.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> blocks = csr.RowBlocks([np.eye(2), np.ones((1, 2))])
    >>> blocks.shape, (blocks @ np.array([1.0, 2.0])).tolist()
    ((3, 2), [1.0, 2.0, 3.0])
    >>> solution = csr.Problem(csr.Linear(blocks, intercept=False), csr.Squared([1.0, 2.0, 3.0]) + csr.L1()).solve()
    >>> solution.status, solution.certificate.data.n_rows
    ('optimal', 3)
    """

    is_row_blocks = True
    ndim = 2
    dtype = np.dtype(float)
    __array_ufunc__ = None  # NumPy then leaves products to this class

    def __init__(self, source: Any, engine: Any = None, memory_limit: Any = None, scores: str | None = None) -> None:
        found = source if isinstance(source, Opened) else opened(source)
        self.engine: Engine = as_engine(engine, found.remote)
        self.memory_limit = DEFAULT_PART * available_memory() if memory_limit is None else parse_bytes(memory_limit)
        self.y, self.sample_weight, self.sparse = found.y, found.sample_weight, found.sparse
        self.meter, self._known = Meter(), Known()
        self.held = self._known.held  # with blocks.held(): keep what is collected for a solve until the end
        self._factory: Callable[[], Iterator[Any]] | None = found.factory
        self._blocks: list[Block] = list(found.blocks)
        self._statistics = found.statistics
        self._seen: list[tuple[tuple[int, ...], int]] | None = None  # stamp and checksum of each block
        self.selected = False  # whether this is a selection of columns
        self._blocks = self.engine.prepare(self._blocks)
        if self._factory is not None or any(min(b.n_rows, b.n_columns) < 0 for b in self._blocks):
            self._survey()
        sizes = [block.n_rows for block in self._blocks]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.shape = (int(self.starts[-1]), self._blocks[0].n_columns)
        if 0 in self.shape:
            raise ValueError(f"the blocks must have at least one row and one column in all, got shape {self.shape}")
        self.keeps_scores = keeps_scores(scores, self.engine, self.shape[0])
        for block in self._blocks:
            if block.n_columns != self.shape[1]:
                raise BlockError(f"{block.name} has {block.n_columns} columns, but the first has {self.shape[1]}")

    # ------------------------------------------------------------------------------------------------ passes

    n_blocks = property(lambda self: len(self._blocks), doc="Number of blocks.")
    size = property(lambda self: self.shape[0] * self.shape[1], doc="Number of entries, zeros included.")

    def run(
        self, kernel: kernels.Kernel, shared: tuple[Any, ...] = (), own: Any = None, kept: list[Any] | None = None
    ) -> Iterator[tuple[slice, Any]]:
        """One pass: yield the rows of each block and ``kernel(block, *shared, *own(rows))``, in order.

        If the kernel returns (summary, state), ``kept`` gets the states, which stay where the blocks are.
        """
        self.meter.begin()
        first = self._seen is None
        parts = [slice(int(a), int(b)) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]
        jobs = (
            (block, () if own is None else tuple(own(part)))
            for part, block in zip(parts, self._blocks_now(), strict=True)
        )
        todo = kernels.perform, (kernel, shared, first), jobs
        results = self.engine.map(*todo) if kept is None else self.engine.map_kept(*todo, kept)
        notes, sizes = [], (part.stop - part.start for part in parts)
        for number, (part, seen, _) in enumerate(
            zip(parts, results, self.meter.watched(sizes, self.shape[0]), strict=True)
        ):
            self._check(number, part, seen)
            if first:
                notes.append((seen.stamp, seen.checksum))
            yield part, seen.result
        if first:
            self._seen = notes

    def _blocks_now(self) -> Iterator[Block]:
        """The blocks; those of an iterator are made anew in every pass."""
        if self._factory is None:
            yield from self._blocks
            return
        count, expected = 0, len(self._blocks)
        for count, matrix in enumerate(self._factory(), start=1):
            if count > expected:
                break
            known = self._blocks[count - 1]
            yield MemoryBlock(known.name, known.n_rows, known.n_columns, matrix)
        if count != expected:
            some = f"ended after {count}" if count < expected else f"has more than {expected}"
            raise BlockError(f"the iterator {some} blocks; it had {expected} in the first pass")

    def _check(self, number: int, part: slice, seen: kernels.Seen) -> None:
        name = self._blocks[number].name
        if seen.n_rows != part.stop - part.start:
            raise BlockError(f"{name} has {seen.n_rows} rows, expected {part.stop - part.start}; was it changed?")
        if self._seen is not None and seen.stamp != self._seen[number][0]:
            raise BlockError(f"{name} was changed since it was first read; start again")

    def _survey(self) -> None:
        """A first pass over blocks whose sizes are not known."""
        self.meter.begin()
        if self._factory is None:
            blocks: Iterator[Block] = iter(self._blocks)
        else:
            blocks = (MemoryBlock(f"block {i} of the iterator", matrix=X) for i, X in enumerate(self._factory()))
        jobs = ((block, ()) for block in blocks)
        found, labels, total, sparse = [], [], None, False
        for seen in self.engine.map(kernels.perform, (kernels.survey, (), True), jobs):
            shape, is_sparse, numbers = seen.result
            found.append((shape, seen.stamp, seen.checksum))
            labels.append(seen.labels)
            sparse = sparse or is_sparse
            if total is not None and total[0].shape != numbers[0].shape:
                raise BlockError(f"block {len(found) - 1} has {shape[1]} columns, but the first has {len(total[0])}")
            total = numbers if total is None else tuple(a + b for a, b in zip(total, numbers, strict=True))
        if total is None:
            raise ValueError("the source has no blocks")
        names = [block.name for block in self._blocks] or [f"block {i} of the iterator" for i in range(len(found))]
        given: Sequence[Block] = self._blocks or [MemoryBlock(name) for name in names]
        self._blocks = [
            replace(block, n_rows=shape[0], n_columns=shape[1])
            for block, (shape, _, _) in zip(given, found, strict=True)
        ]
        self._seen = [(stamp, checksum) for _, stamp, checksum in found]
        self._statistics, self.sparse = total, sparse
        if self.y is None and self.sample_weight is None:
            self.y, self.sample_weight = (joined(values) for values in zip(*labels, strict=True))

    # ------------------------------------------------------------------------------------------------ products

    def __matmul__(self, theta: Any) -> Array:
        if hasattr(theta, "is_dcp"):
            raise TypeError("CVXPY needs the data in memory; use Linear(blocks.gather()) if they fit")
        theta = np.asarray(theta, dtype=float)
        return self.times(theta[:, None])[:, 0] if theta.ndim == 1 else self.times(theta)

    @property
    def T(self) -> Transposed:  # noqa: N802
        """The transposed matrix, for products X'u."""
        return Transposed(self, self.pull, self.squared_pull)

    def __abs__(self) -> Absolute:
        return Absolute(self, self.stacked, self.summed)

    def times(self, theta: Array) -> Array:
        """X theta: from columns in memory if they suffice, else by a pass."""
        if not theta.any():
            return np.zeros((self.shape[0], theta.shape[1]))
        known = self._known.scores(theta)
        if known is None:
            known = self.stacked(kernels.times, theta)
            self._known.keep_scores(theta, known)
        return known.copy()

    def pull(self, u: Array) -> Array:
        """X'u by a pass, unless it is known."""
        known = self._known.pull(u)
        if known is None:
            known = self.summed(kernels.pull, u)
            self._known.keep_pull(u, known)
        return known.copy()

    def known_pull(self, u: Array) -> Array | None:
        """X'u if it is known without a pass, else None."""
        return self._known.pull(u)

    def remember(self, theta: Array, scores: Array, u: Array | None = None, pulled: Array | None = None) -> None:
        """Keep products that a solver computed in a pass of its own: X theta, and X'u."""
        self._known.keep_scores(theta, scores)
        if u is not None and pulled is not None:
            self._known.keep_pull(u, pulled)

    def kept_rows(self, loss: Any) -> KeptRows:
        """The rows of a loss, for sums over rows that stay where the blocks are."""
        return self._known.rows_of(self, loss)

    def bent_pull(self, weights: Array, p: Array, shift: float) -> Array:
        """X'(weights * (X p + shift)) in one pass."""
        if (whole := self._known.whole) is not None:
            return kernels.bent_pull(whole, p, shift, weights)
        total = np.zeros_like(p, dtype=float)
        for _, part in self.run(kernels.bent_pull, (p, shift), lambda rows: (weights[rows],)):
            total += part
        return total

    def squared_pull(self, u: Array) -> Array:
        """The squares of X, transposed, times u."""
        return self.summed(kernels.squared_pull, u)

    def stacked(self, kernel: kernels.Kernel, theta: Array) -> Array:
        """The results of a kernel with one row for each row of X, in one pass."""
        out = np.empty((self.shape[0], theta.shape[1]))
        for rows, part in self.run(kernel, (theta,)):
            out[rows] = part
        return out

    def summed(self, kernel: kernels.Kernel, u: Array) -> Array:
        """The sum of the results of a kernel of the rows of u, in one pass."""
        if (whole := self._known.whole) is not None:
            return np.asarray(kernel(whole, u))
        total = np.zeros((self.shape[1], u.shape[1]))
        for _, part in self.run(kernel, (), lambda rows: (u[rows],)):
            total += part
        return total

    # ------------------------------------------------------------------------------------------------ columns

    def statistics(self) -> tuple[Array, Array, Array]:
        """The sums, sums of squares and numbers of stored entries of all columns; one pass unless they are stored."""
        if self._statistics is None:
            total = [np.zeros(self.shape[1]) for _ in range(3)]
            for _, numbers in self.run(kernels.statistics):
                for sums, more in zip(total, numbers, strict=True):
                    sums += more
            self._statistics = (total[0], total[1], total[2])
        return self._statistics

    def squared_columns(self) -> Array:
        """The squared norms of the columns."""
        if self._statistics is None and (whole := self._known.whole) is not None:
            return squared_columns(whole)
        return self.statistics()[1]

    def sum(self, axis: int = 0) -> Array:
        """The sums of the columns."""
        if axis != 0:
            raise ValueError(f"blocks of rows have sums over axis 0 only, got axis={axis}")
        if self._statistics is None and (whole := self._known.whole) is not None:
            return np.asarray(whole.sum(axis=0), dtype=float).ravel()
        return self.statistics()[0]

    def centred_squares(self, means: Array) -> Array:
        """sum_i (X_ij - mean_j)^2 for all columns, in one pass."""
        total = np.zeros(self.shape[1])
        for _, part in self.run(kernels.centred_squares, (means,)):
            total += part
        return total

    def bytes_of(self, columns: Any = None) -> float:
        """The bytes that some columns take in memory; all columns by default."""
        known = sum(block.nbytes for block in self._blocks) if columns is None else np.nan
        if known == known:
            return known
        counts = self.statistics()[2] if columns is None else self.statistics()[2][columns]
        if not self.sparse:
            return 8.0 * self.shape[0] * len(counts)
        return 12.0 * float(counts.sum()) + 8.0 * len(counts)

    def fits(self, columns: Any = None) -> bool:
        """Whether some columns, with the copies that solvers make, fit into the memory limit."""
        return COPIES * self.bytes_of(columns) <= self.memory_limit

    def read_columns(self, chosen: Any, reserve: Any = ()) -> Any:
        """Some columns in memory, stored by columns; those that are not in memory are read in one pass.

        If a pass is needed, it also reads the columns in ``reserve``, for later, unless memory is short.
        """
        chosen = np.asarray(chosen, dtype=np.int64)
        if not chosen.size:
            return sp.csc_array((self.shape[0], 0)) if self.sparse else np.zeros((self.shape[0], 0))
        if (whole := self._known.whole) is not None:
            some = whole[:, chosen]
            return sp.csc_array(some) if sp.issparse(some) else some
        kept = self._known.kept  # other threads may replace these columns meanwhile
        missing = chosen[~np.isin(chosen, kept[0])]
        if missing.size:
            more = np.union1d(missing, np.setdiff1d(reserve, kept[0])).astype(np.int64)
            if self.fits(np.concatenate([kept[0], more])):
                missing = more
            elif not self.fits(np.concatenate([kept[0], missing])):
                kept, missing = NOTHING, chosen
            parts = [part for _, part in self.run(kernels.columns, (missing,))]
            kept = self._known.keep_columns(kept, missing, stacked_parts(parts, "csc"))
        return picked(kept, chosen)

    @property
    def kept_columns(self) -> Any:
        """The numbers of the columns in memory."""
        return np.arange(self.shape[1]) if self._known.whole is not None else self._known.kept[0]

    def __getitem__(self, key: Any) -> Any:
        rows, chosen = key if isinstance(key, tuple) and len(key) == 2 else (None, None)
        if rows != slice(None):
            raise TypeError("blocks of rows can be indexed by columns only: X[:, columns]")
        return self.read_columns(np.arange(self.shape[1])[chosen])

    def select(self, chosen: Any) -> RowBlocks:
        """The same rows with some columns only, selected anew in every pass: needs no memory."""
        chosen = np.asarray(chosen, dtype=np.int64)
        if self._factory is not None:
            make = self._factory
            view = RowBlocks(
                lambda: (parts_of(item)[0][:, chosen] for item in make()), self.engine, int(self.memory_limit)
            )
            self.meter.passes += view.meter.passes
            view.meter, view.selected = self.meter, True
            return view
        blocks = [SelectedBlock(b.name, b.n_rows, len(chosen), b, chosen) for b in self._blocks]
        numbers = tuple(values[chosen] for values in self.statistics())
        view = RowBlocks(Opened(blocks, sparse=self.sparse, statistics=numbers), self.engine, int(self.memory_limit))
        view.meter, view._seen, view.selected, view.keeps_scores = self.meter, self._seen, True, False
        return view

    def take(self, numbers: Any) -> RowBlocks:
        """Some of the blocks, such as those of one fold of a cross-validation."""
        if self._factory is not None:
            raise TypeError("blocks of an iterator cannot be taken; write them to a folder first")
        numbers = np.arange(self.n_blocks)[numbers]
        rows = np.concatenate([np.arange(self.starts[i], self.starts[i + 1]) for i in numbers])
        y, weights = (None if values is None else values[rows] for values in (self.y, self.sample_weight))
        found = Opened([self._blocks[i] for i in numbers], y=y, sample_weight=weights, sparse=self.sparse)
        return RowBlocks(found, self.engine, int(self.memory_limit), "workers" if self.keeps_scores else "here")

    def gather(self, keep: bool = True) -> Any:
        """The whole matrix in memory, read in one pass; later products use it (without ``keep``, while it is held)."""
        self._known.keep |= keep
        if (whole := self._known.whole) is None:
            parts = [part for _, part in self.run(kernels.whole)]
            self._known.whole = whole = stacked_parts(parts, "csr")
        return whole

    def look(self, numbers: Any, kernel: kernels.Kernel, shared: tuple[Any, ...]) -> list[tuple[int, Any]]:
        """The results of a kernel for some blocks (of an iterator the first ones), with their numbers; not a pass."""
        if self._factory is None:
            blocks = [self._blocks[i] for i in numbers]
        else:
            blocks, numbers = list(itertools.islice(self._blocks_now(), len(numbers))), range(len(numbers))
        results = self.engine.map(kernels.perform, (kernel, shared, self._seen is None), ((b, ()) for b in blocks))
        return [(int(i), seen.result) for i, seen in zip(numbers, results, strict=True)]

    # ------------------------------------------------------------------------------------------------ record

    @property
    def record(self) -> DataRecord:
        """The number of rows and the checksum of what was read."""
        if self._seen is None:
            self._statistics = None
            self.statistics()
        assert self._seen is not None
        total = zlib.crc32(b"".join(c.to_bytes(4 if c < 2**32 else 16, "big") for _, c in self._seen))
        return DataRecord(self.shape[0], self.n_blocks, f"{total:08x}")

    def __repr__(self) -> str:
        return f"RowBlocks({self.shape[0]:,} x {self.shape[1]:,} in {self.n_blocks} blocks, {self.engine!r})"
