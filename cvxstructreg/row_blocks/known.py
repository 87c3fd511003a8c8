"""What is known about a design in blocks without another pass: the last products, and columns in memory.

Threads may share a design. So each cache is read once and replaced as a whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.smoothed_kinks import SmoothedKinks, SmoothedRows
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.block import Block, LostBlockError, MemoryBlock
from cvxstructreg.row_blocks.engine import RETRIES
from cvxstructreg.runtime.memory import in_small_pages

#: Products of each kind that are kept.
LATEST = 3
#: Two dual points are the same up to this relative difference: the round-off of one function of the scores.
SAME = 4.0 * float(np.finfo(float).eps)

#: Products with what was multiplied, the latest last.
Products = tuple[tuple[Array, Array], ...]
#: The numbers of columns, and the columns.
Kept = tuple[Any, Any]

NOTHING: Kept = (np.zeros(0, dtype=np.int64), None)


class State(list[Any]):
    """Handles of X theta, one for each block; if one is lost with its worker, all are made again."""

    theta: Array | None = None


class KeptRows:
    """The rows of a loss, which stay where the blocks are processed: only sums over rows come back.

    A *state* has a handle of X theta for each block. The loss is a sum over rows; its labels and weights go out once.
    """

    sigma = np.inf  # the curvature of smoothed rows inside their intervals

    @property
    def is_smooth(self) -> bool:
        """Whether the rows have gradients."""
        return bool(self.loss.can("grad"))

    def __init__(self, design: Any, loss: Any) -> None:
        from cvxstructreg.row_blocks.sampling import loss_of_rows  # imports the design

        self.design, self.loss = design, loss
        sizes = [slice(int(a), int(b)) for a, b in zip(design.starts[:-1], design.starts[1:], strict=True)]
        self.losses = design.engine.keep([loss_of_rows(loss, rows) for rows in sizes])
        self.nothing = State([None] * len(self.losses))
        self.facts: dict[Any, Any] = {}  # what certificates keep with the rows
        self._smoothings: dict[int, SmoothRows | None] = {}
        self._states: tuple[tuple[Array, State], ...] = ()
        self._pulls: tuple[tuple[tuple[State, ...], list[bytes], Array], ...] = ()

    def state(self, theta: Array) -> State:
        """X theta by a pass, unless it is known."""
        for given, found in self._states:
            if np.array_equal(given, theta):
                return found
        if not theta.any():
            kept: list[Any] = []
            list(self.design.engine.map_kept(_applied, (_no_scores, (theta.shape[1],)), self._jobs(), kept))
            return self._remember(theta, kept)
        return self.run(_images, (theta,), theta)[0]

    def run(self, kernel: Any, shared: tuple[Any, ...], theta: Array) -> tuple[State, list[Any]]:
        """A pass at theta with a kernel that returns (summary, X theta): the state, and all summaries."""
        kept: list[Any] = []
        losses = iter(self.losses)
        found = [part for _, part in self.design.run(kernel, shared, lambda rows: (next(losses),), kept)]
        return self._remember(theta, kept), found

    def _remember(self, theta: Array, kept: list[Any]) -> State:
        """Keep the latest states."""
        state = State(kept)
        state.theta = theta.copy()
        self._states = (*self._states[1 - LATEST :], (state.theta, state))
        return state

    def sums(self, kernel: Any, *shared: Any, states: tuple[State, ...] = ()) -> list[Any]:
        """The results of ``kernel(loss, *states, *shared)`` for all blocks, without reading them."""

        def results() -> list[Any]:
            found = self.design.engine.map(_applied, (kernel, shared), self._jobs(*states))
            return [seen.result for seen in found]

        return self._despite_losses(results, states)

    def pull(self, slopes: Any, shared: tuple[Any, ...], states: tuple[State, ...]) -> Array:
        """X'u for u = slopes(loss, *states, *shared), by a pass unless it is known."""
        key = [b"" if item is None else np.asarray(item).tobytes() for item in shared]
        for its_states, its_key, found in self._pulls:
            if its_key == key and all(one is other for one, other in zip(its_states, states, strict=True)):
                return found.copy()
        total = np.asarray(sum(self.pass_with(_pull, (slopes, shared), states)))
        self._pulls = (*self._pulls[1 - LATEST :], (states, key, total))
        return total.copy()

    def pass_with(self, kernel: Any, shared: tuple[Any, ...], states: tuple[State, ...]) -> list[Any]:
        """The results of ``kernel(X, *shared, loss, *states)`` for all blocks, by a pass."""

        def results() -> list[Any]:
            each = iter(zip(self.losses, *states, strict=True))
            return [part for _, part in self.design.run(kernel, shared, lambda rows: next(each))]

        return self._despite_losses(results, states)

    def _despite_losses(self, results: Callable[[], list[Any]], states: tuple[State, ...]) -> list[Any]:
        """Results that need states: if some are lost with a worker, they are made again from the weights."""
        for _ in range(RETRIES):
            try:
                return results()
            except LostBlockError:
                for state in states:
                    if state.theta is not None:
                        kept: list[Any] = []
                        losses = iter(self.losses)
                        list(self.design.run(_images, (state.theta,), lambda rows, left=losses: (next(left),), kept))
                        state[:] = kept
        return results()

    def _jobs(self, *states: State) -> Iterator[tuple[Block, tuple[Any, ...]]]:
        names = (f"the scores of block {number}" for number in range(len(self.losses)))
        return ((MemoryBlock(name), tuple(own)) for name, *own in zip(names, self.losses, *states, strict=True))

    @property
    def smoothing(self) -> SmoothRows | None:
        """Of a loss with kinks: the latest smoothed rows of this thread."""
        return self._smoothings.get(threading.get_ident())

    @smoothing.setter
    def smoothing(self, rows: SmoothRows | None) -> None:
        self._smoothings[threading.get_ident()] = rows
        for gone in set(self._smoothings) - {thread.ident for thread in threading.enumerate()}:
            self._smoothings.pop(gone, None)

    def smoothed(self, sigma: float) -> SmoothRows:
        """The rows of a loss with kinks, smoothed around the multipliers next to zero."""
        return SmoothRows(self, _made(self, _first_rows, (sigma,), ()), sigma)


class SmoothRows(KeptRows):
    """The rows of a loss with kinks, smoothed around multipliers that stay where the blocks are."""

    is_smooth = True

    def __init__(self, base: KeptRows, losses: list[Any], sigma: float) -> None:
        self.sigma = sigma
        self.design, self.loss, self.base, self.losses = base.design, base.loss, base, losses
        self.nothing, self.facts, self._pulls = base.nothing, base.facts, ()

    @property
    def _states(self) -> Any:
        return self.base._states  # X theta is the same around all multipliers

    @_states.setter
    def _states(self, states: Any) -> None:
        self.base._states = states

    def recentred(self, sigma: float, shared: tuple[Any, ...], states: tuple[State, ...]) -> SmoothRows:
        """The rows around the multipliers at a point: its (a, p) and its states, as for sums."""
        return SmoothRows(self.base, _made(self, _next_rows, (*shared, sigma), states), sigma)


def _made(rows: KeptRows, kernel: Any, shared: tuple[Any, ...], states: tuple[State, ...]) -> list[Any]:
    """Handles of new rows, which are made and stay where the blocks are."""

    def results() -> list[Any]:
        kept: list[Any] = []
        list(rows.design.engine.map_kept(_applied, (kernel, shared), rows._jobs(*states), kept))
        return kept

    return rows._despite_losses(results, states)


def _first_rows(loss: Any, sigma: float) -> tuple[None, SmoothedRows]:
    return None, SmoothedRows(loss, sigma)


def _next_rows(rows: Any, images: Array, columns: Any, a: Array, step: Any, sigma: float) -> tuple[None, SmoothedRows]:
    z = images + a[-1] if columns is None else images + a[-1] + columns @ a[:-1]
    return None, rows.recentred(rows.multipliers(z), sigma)


def _applied(kernel: Any, shared: tuple[Any, ...], block: Block, own: Any) -> Any:
    """Apply a kernel to what is kept for a block."""
    return Result(kernel(*own, *shared))


class Result:
    """A result of a block that was not read."""

    def __init__(self, result: Any) -> None:
        self.result = result


def _no_scores(loss: Any, n_outputs: int) -> tuple[None, Array]:
    return None, np.zeros((len(loss.y), n_outputs))


def _images(X: Any, theta: Array, loss: Any) -> tuple[None, Array]:
    return None, np.asarray(X @ theta)


def _pull(X: Any, slopes: Any, shared: tuple[Any, ...], *own: Any) -> Array:
    return np.asarray(X.T @ slopes(*own, *shared))


class Known:
    """The latest products X theta and X'u, some columns of X, and the whole X if it was collected."""

    def __init__(self) -> None:
        self._scores: Products = ()
        self._pulls: Products = ()
        self.kept: Kept = NOTHING
        self.whole: Any = None
        self.keep = False  # whether the whole X is kept after its last user
        self._users: set[object] = set()
        self._rows: KeptRows | None = None

    def rows_of(self, design: Any, loss: Any) -> KeptRows:
        """The rows of a loss, where the blocks are; those of the last loss are kept."""
        if isinstance(loss, SmoothedKinks):
            elsewhere: KeptRows = loss.__dict__["rows_elsewhere"]
            return elsewhere
        if self._rows is None or self._rows.loss is not loss:
            self._rows = KeptRows(design, loss)
        return self._rows

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the whole X, if it is collected, until the last user is done with it."""
        user = object()
        self._users.add(user)
        try:
            yield
        finally:
            self._users.discard(user)
            if not self._users and not self.keep:
                self.whole = None

    def scores(self, theta: Array) -> Array | None:
        """X theta if it can be had without a pass."""
        for given, found in self._scores:
            if np.array_equal(given, theta):
                return found
        if (whole := self.whole) is not None:
            return np.asarray(whole @ theta)
        numbers, columns = self.kept
        used = np.flatnonzero(theta.any(axis=1))
        if columns is None or not np.isin(used, numbers).all():
            return None
        return np.asarray(columns @ theta[numbers])

    def keep_scores(self, theta: Array, scores: Array) -> None:
        """Keep a product X theta."""
        self._scores = (*self._scores[1 - LATEST :], (theta.copy(), np.array(scores)))

    def pull(self, u: Array) -> Array | None:
        """X'u if it can be had without a pass."""
        for given, found in self._pulls:
            if given.shape == u.shape and bool(np.all(np.abs(given - u) <= SAME * np.abs(u))):
                return found
        return None if (whole := self.whole) is None else np.asarray(whole.T @ u)

    def keep_pull(self, u: Array, pulled: Array) -> None:
        """Keep a product X'u."""
        self._pulls = (*self._pulls[1 - LATEST :], (u.copy(), np.array(pulled)))

    def keep_columns(self, kept: Kept, numbers: Any, columns: Any) -> Kept:
        """Keep the columns ``kept`` and more columns, in place of those that are in memory now."""
        before, some = kept
        if some is None:
            self.kept = np.asarray(numbers), columns
        elif sp.issparse(columns):
            self.kept = np.concatenate([before, numbers]), sp.hstack([some, columns], format="csc")
        else:
            self.kept = np.concatenate([before, numbers]), np.asfortranarray(np.hstack([some, columns]))
        return self.kept


def picked(kept: Kept, chosen: Any) -> Any:
    """Columns that are in memory, in the given order."""
    numbers, columns = kept
    if np.array_equal(chosen, numbers):
        return columns
    order = np.argsort(numbers, kind="stable")
    return columns[:, order[np.searchsorted(numbers, chosen, sorter=order)]]


def stacked_parts(parts: list[Any], layout: str) -> Any:
    """The parts of all blocks as one matrix: "csr", "csc", or dense in the order of rows or columns."""
    if not any(sp.issparse(part) for part in parts):
        n, d = sum(len(part) for part in parts), parts[0].shape[1]
        whole = in_small_pages((d, n), float).T if layout == "csc" else in_small_pages((n, d), float)
        return np.concatenate(parts, out=whole)
    if layout == "csr" and all(getattr(part, "format", "") == "csr" for part in parts):
        return _stacked_rows(parts)
    return sp.vstack(parts, format=layout)


def _stacked_rows(parts: list[Any]) -> Any:
    """CSR blocks as one CSR matrix."""
    shape, nnz = (sum(part.shape[0] for part in parts), parts[0].shape[1]), sum(part.nnz for part in parts)
    kind = np.int32 if max(nnz, *shape) <= np.iinfo(np.int32).max else np.int64
    starts = [np.zeros(1, dtype=kind)]
    for part in parts:
        starts.append(part.indptr[1:].astype(kind) + starts[-1][-1])
    data, indices = in_small_pages((nnz,), float), in_small_pages((nnz,), kind)
    np.concatenate([part.data[: part.nnz] for part in parts], out=data)
    np.concatenate([part.indices[: part.nnz] for part in parts], out=indices, casting="same_kind")
    whole = sp.csr_array((data, indices, np.concatenate(starts)), shape=shape)
    whole.has_canonical_format = all(part.has_canonical_format for part in parts)
    return whole
