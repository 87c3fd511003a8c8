"""Data in blocks of rows: larger than memory, on a cluster, and the price of giving a matrix as blocks.

- ``blocks_large``: a folder of CSR blocks, ten times the memory that a process gets beyond Python and its libraries
  (enforced by ``RLIMIT_DATA``). Logistic loss, L1 and 10,000 overlapping groups of 30,000 features, 400 entries in a
  row.
- ``blocks_pass``: X'u and the Newton passes of ``gram_columns`` (for many rows, and for few), against loops that map
  the same files and multiply: once, and with all products of a Newton pass.
- ``blocks_memory``: a matrix in memory, given as it is and as blocks.
- ``blocks_dask``: 2,000,000 rows of 50 entries with one process and with two workers of a LocalCluster, with scores in
  the driver or on the workers.
- ``blocks_growth``: passes, seconds and traffic for a part of the rows and for all of them.
- ``blocks_dask_glm``: dask-glm (proximal gradient and ADMM) on a dense logistic lasso, with more and more steps until
  the error is 1e-5, a run takes 100 times our time, or it is stopped after 300 seconds on the clock.

All times are CPU seconds of all processes that do the work; the machine may be busy with other work. ``run.py
--blocks-gb 10.4`` makes the folder larger; the default is half a gigabyte. The folders are kept in the folder for
temporary files.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import resource
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask_glm_peer import cpu, dask_glm
from measure import Result

import cvxstructreg as csr
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.engine import Engine
from cvxstructreg.row_blocks.sampling import loss_of_rows
from cvxstructreg.solvers.row_blocks.sampled_newton import MANY_ROWS, MOST_STEP

#: The size of the folder in gigabytes; set by ``run.py --blocks-gb``.
SIZE = 0.5
#: Features, entries in a row, and rows of a block.
D, ENTRIES, ROWS = 30_000, 400, 5_000
#: Rows, entries in a row and memory limit for the comparison with a cluster.
CLUSTER_ROWS, CLUSTER_ENTRIES, CLUSTER_MEMORY = 2_000_000, 50, 0.6e9
#: Rows of a block for the cluster: 24 MB.
CLUSTER_BLOCK = 40_000
#: Runs with a matrix in memory, and with the same matrix as blocks.
MEMORY_RUNS = 9


def rows_of_size(gigabytes: float) -> int:
    """The number of rows of a folder of this size."""
    return max(1, round(gigabytes * 1e9 / (12 * ENTRIES) / ROWS)) * ROWS


def size_of(path: Path) -> float:
    """The bytes of all files."""
    return float(sum(file.stat().st_size for file in path.iterdir()))


def folder(gigabytes: float) -> Path:
    """A folder of blocks with their labels, of this size."""
    n = rows_of_size(gigabytes)
    return written(f"cvxstructreg-blocks-{n}", generated(n))


def written(name: str, blocks: Iterator[tuple[Any, Any]]) -> Path:
    """A folder of blocks for temporary files, written unless it exists."""
    path = Path(tempfile.gettempdir(), name)
    if not (path / "complete.json").exists():
        csr.io.write_blocks(path, blocks)
    return path


def joined(blocks: Iterator[tuple[Any, Any]], count: int) -> Iterator[tuple[Any, Any]]:
    """Always ``count`` blocks as one."""
    while some := list(itertools.islice(blocks, count)):
        yield sp.vstack([X for X, _ in some], format="csr"), np.concatenate([y for _, y in some])


def generated(n: int, entries: int = ENTRIES) -> Iterator[tuple[Any, Any]]:
    """Sparse rows in which features are about as frequent as words; 60 of them matter."""
    rng = np.random.default_rng(0)
    weights = np.zeros(D)
    weights[:60] = rng.normal(size=60)
    frequency = 1.0 / np.arange(1, D + 1) ** 0.6
    sums = np.cumsum(frequency / frequency.sum())
    pool = np.searchsorted(sums, rng.random((ROWS, entries))).clip(0, D - 1).astype(np.int32)
    pool.sort(axis=1)
    starts = np.arange(0, ROWS * entries + 1, entries, dtype=np.int32)
    for _ in range(0, n, ROWS):
        indices = pool[rng.permutation(ROWS)]
        X = sp.csr_array((rng.random(ROWS * entries), indices.ravel(), starts.copy()), shape=(ROWS, D))
        X.sum_duplicates()
        scores = X @ weights - X.sum(axis=1) * weights.mean()
        yield X, np.where(scores + rng.logistic(size=ROWS) > 0, 1, -1)


def objective(y: Any, loss: Any = csr.Logistic) -> Any:
    """A loss, L1 and overlapping groups, with strengths that keep about a hundred features."""
    groups = csr.Groups([np.arange(i, min(i + 6, D)) for i in range(0, D, 3)], n_features=D)
    return loss(y) + 0.0015 * len(y) * csr.L1() + 0.0005 * len(y) * csr.GroupLasso(groups)


def _limited(path: Path, room: float, answer: Connection) -> None:
    """Solve in a process that may allocate ``room`` bytes beyond what it has after its imports."""
    with tempfile.TemporaryDirectory() as small:  # compile all loops
        csr.io.write_blocks(small, generated_small(), y=np.tile([1, -1], ROWS // 2), rows_per_block=ROWS // 5)
        few = csr.RowBlocks(small, engine="serial", memory_limit="1 MB")
        csr.Problem(csr.Linear(few), objective(few.y)).solve("working_columns", tol=1e-2)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    before = 1024 * int(status["VmData"].split()[0])
    resource.setrlimit(resource.RLIMIT_DATA, (int(before + room), int(before + room)))
    engine = Timed()
    blocks = csr.RowBlocks(path, engine=engine, memory_limit=0.5 * room)
    solution, seconds = cpu(lambda: csr.Problem(csr.Linear(blocks), objective(blocks.y)).solve())
    peak = 1e3 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    passes = [spent for spent, count in engine.passes if count == blocks.n_blocks]
    assert len(passes) == solution.n_passes
    answer.send((seconds, solution.certificate.relative_gap, solution.n_passes, solution.solver, peak, passes))


def generated_small() -> Any:
    """One block."""
    return next(generated(ROWS))[0]


def large() -> Iterator[Result]:
    """A folder ten times the memory."""
    path = folder(SIZE)
    size = size_of(path)
    forgotten(path)
    from_disk = cpu(lambda: plain_pull(path))[1]
    forgotten(path)
    context = multiprocessing.get_context("spawn")
    parent, child = context.Pipe()
    worker = context.Process(target=_limited, args=(path, 0.1 * size, child))
    worker.start()
    child.close()
    seconds, gap, passes, solver, peak, spent = parent.recv()
    first, *later = spent
    worker.join()
    work = f"{size / 1e9:.3g} GB with {size / 1e10:.2g} GB beyond the libraries (peak with them {peak / 1e9:.2g} GB)"
    yield Result("blocks_large", work, f"{solver}, {passes} passes", seconds, np.nan, gap, "15 passes")
    loop = float(np.median([cpu(lambda: plain_pull(path))[1] for _ in range(3)]))
    work = "one of these passes"
    yield Result("blocks_large", work, "plain loop over the files, X'u", loop, np.nan, np.nan)
    yield Result("blocks_large", work, "mean of all passes", float(np.mean(spent)), np.nan, np.nan, "1.3 x")
    what = "slowest of the passes after the first"
    yield Result("blocks_large", work, what, float(np.max(later)), np.nan, np.nan, "1.3 x")
    work = "the first pass, from the disk"
    yield Result("blocks_large", work, "plain loop over the files, X'u", from_disk, np.nan, np.nan)
    yield Result("blocks_large", work, "pass that verifies checksums and collects columns", first, np.nan, np.nan)


def forgotten(path: Path) -> None:
    """Ask the system to drop the files of a folder from its cache, so that they are read from the disk."""
    for file in path.iterdir():
        number = os.open(file, os.O_RDONLY)
        try:
            os.fsync(number)
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(number)


def mapped(path: Path) -> Iterator[tuple[slice, Any]]:
    """The blocks of a folder, mapped into memory without any check."""
    for number in range(len(list(path.glob("*.indptr.npy")))):
        parts = [np.load(path / f"{number:05d}.{key}.npy", mmap_mode="r") for key in ("data", "indices", "indptr")]
        yield slice(number * ROWS, (number + 1) * ROWS), sp.csr_array(tuple(parts), shape=(ROWS, D))


def plain_pull(path: Path) -> Any:
    """X'u by a loop over the files."""
    u, total = np.random.default_rng(0).normal(size=ROWS), np.zeros(D)
    for _, X in mapped(path):
        total += X.T @ u
    return total


def plain_newton(path: Path, chosen: Any, loss: Any) -> Any:
    """All products of a Newton pass at zero by a loop over the files: C w, X'g, C'h and C'diag(h)C."""
    pull, centre, gram, w = np.zeros(D), np.zeros(len(chosen)), np.zeros((len(chosen),) * 2), np.zeros(len(chosen))
    for rows, X in mapped(path):
        C, part = X[:, chosen], loss_of_rows(loss, rows)
        z = (C @ w)[:, None]
        g, h = part.grad(z)[:, 0], part.hess_diag(z)[:, 0]
        pull += X.T @ g
        centre += C.T @ h
        gram += (C.T @ (sp.diags_array(h) @ C)).toarray()
    return pull, centre, gram


def one_pass() -> Iterator[Result]:
    """The time of X'u and of a Newton pass, and of plain loops over the same files."""
    path = folder(SIZE)
    blocks = csr.RowBlocks(path, engine="serial")
    u = np.random.default_rng(0).normal(size=(blocks.shape[0], 1))
    work = f"{size_of(path) / 1e9:.3g} GB"
    blocks.pull(2.0 * u)  # compiles, and verifies the checksums
    chosen = np.arange(0, 400, 2)
    start = np.zeros((len(chosen), 1)), np.zeros(1)
    loss = csr.Logistic(blocks.y)

    def own(rows: slice) -> tuple[Any, ...]:
        return ([(1.0, loss_of_rows(loss, rows))],)

    def newton() -> None:
        for _ in blocks.run(kernels.newton_on, (chosen, *start, (1, MOST_STEP)), own):
            pass

    def newton_of_few_rows() -> None:
        for _ in blocks.run(kernels.second_order_on, (chosen, *start), own):
            pass

    newton()
    newton_of_few_rows()
    blocks.read_columns(chosen)
    rounds = range(5 if blocks.shape[0] < 10**6 else 1)
    jobs = (
        *(lambda k: plain_pull(path), lambda k: blocks.pull((k + 3.0) * u), lambda k: newton()),
        *(lambda k: newton_of_few_rows(), lambda k: plain_newton(path, chosen, loss)),
        lambda k: csr.RowBlocks(path, engine="serial").pull(u),
        lambda k: csr.RowBlocks(path, engine="serial").read_columns(chosen),
    )
    times = [[cpu(partial(job, k))[1] for job in jobs] for k in rounds]  # in turn
    loop, pull, step, whole, all_products, first, collected = np.median(times, axis=0)
    what = f"Newton pass: C w, C'g, and C'diag(h)C of one row in {MOST_STEP}, for 200 columns C"
    yield Result("blocks_pass", work, "plain loop over the files, X'u", loop, np.nan, np.nan)
    yield Result("blocks_pass", work, "pass for X'u", pull, np.nan, np.nan, "1.3 x")
    yield Result("blocks_pass", work, what, step, np.nan, np.nan, "1.3 x")
    what = f"Newton pass for fewer than {MANY_ROWS:,} rows: also X'g, and C'diag(h)C of all rows"
    yield Result("blocks_pass", work, what, whole, np.nan, np.nan)
    what_first = "first pass, with checksums: X'u"
    yield Result("blocks_pass", work, what_first, first, np.nan, np.nan)
    what_first = "first pass, with checksums: 200 columns C are brought into memory"
    yield Result("blocks_pass", work, what_first, collected, np.nan, np.nan)
    work = f"{work}, all products of a Newton pass"
    yield Result("blocks_pass", work, "plain loop over the files, with SciPy", all_products, np.nan, np.nan)
    yield Result("blocks_pass", work, what, whole, np.nan, np.nan, "1.3 x")


def memory() -> Iterator[Result]:
    """A matrix in memory and the same matrix as blocks, with the solver that auto takes."""
    parts = [block for block in generated(4 * ROWS)]
    X, y = sp.vstack([x for x, _ in parts], format="csr"), np.concatenate([labels for _, labels in parts])
    work = f"{X.shape[0]:,} x {D:,} in memory"
    sources = {"plain": X, "blocks": [x for x, _ in parts]}
    runs: dict[str, list[float]] = {name: [] for name in sources}
    gaps: dict[str, float] = {}
    for _ in range(1 + MEMORY_RUNS):  # in turn, so that other work on the machine meets both
        for name, given in sources.items():
            solution, seconds = cpu(lambda given=given: csr.Problem(csr.Linear(given), objective(y)).solve())
            gaps[name] = solution.certificate.relative_gap
            runs[name].append(seconds)
            del solution  # it keeps the collected blocks, and the next run would have to ask for new memory
    for name, (first, *later) in runs.items():
        target = "1.5 x" if name == "blocks" else ""
        yield Result("blocks_memory", work, name, float(np.median(later)), first, gaps[name], target)


def dask() -> Iterator[Result]:
    """One process, and two workers of a cluster on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("blocks_dask: skipped, distributed is not installed")
        return
    rows = joined(generated(CLUSTER_ROWS, CLUSTER_ENTRIES), CLUSTER_BLOCK // ROWS)
    path = written(f"cvxstructreg-blocks-{CLUSTER_ROWS}-short", rows)

    def solve(engine: Any, some: Any = slice(None), scores: str = "here") -> tuple[Any, float]:
        blocks = csr.RowBlocks(path, engine=engine, memory_limit=CLUSTER_MEMORY, scores=scores).take(some)
        problem = csr.Problem(csr.Linear(blocks), objective(blocks.y))
        return cpu(lambda: problem.solve("working_columns"), engine if isinstance(engine, Client) else None)

    work = f"{CLUSTER_ROWS:,} rows of {CLUSTER_ENTRIES} entries"
    solve("serial", slice(1))  # compiles what is needed
    alone, seconds = solve("serial")
    solver = f"one process, {alone.n_passes} passes"
    yield Result("blocks_dask", work, solver, seconds, np.nan, alone.certificate.relative_gap)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        solve(client, slice(4))
        found, seconds = solve(client)
        solve(client, slice(4), "workers")
        kept, its_seconds = solve(client, slice(None), "workers")
    for other in (found, kept):
        assert abs(other.objective - alone.objective) <= max(other.certificate.gap, alone.certificate.gap)
    solver = f"LocalCluster, two workers, {found.n_passes} passes"
    yield Result("blocks_dask", work, solver, seconds, np.nan, found.certificate.relative_gap, "2 x")
    solver = f"the same with scores on the workers, {kept.n_passes} passes"
    yield Result("blocks_dask", work, solver, its_seconds, np.nan, kept.certificate.relative_gap, "2 x")


class Timed(Engine):
    """Counts the CPU seconds of the blocks of each pass, and these blocks."""

    def __init__(self) -> None:
        self.passes: list[tuple[float, int]] = []

    def map(self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Any) -> Any:
        """One block after the other."""
        total, count = 0.0, 0
        for block, own in jobs:
            found, seconds = cpu(partial(function, *shared, block, own))
            total, count = total + seconds, count + 1
            yield found
        self.passes.append((total, count))


class Held:
    """A state that stays on a worker."""

    def __init__(self, state: Any) -> None:
        self.state = state


class Counted(Engine):
    """Counts the bytes that a cluster would send to the workers and back."""

    def __init__(self) -> None:
        self.out = self.back = 0

    def map(self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Any) -> Any:
        """One block after the other."""
        for found in self._all(function, shared, jobs):
            self.back += len(pickle.dumps(found))
            yield found

    def map_kept(self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Any, kept: list[Any]) -> Any:
        """The same with states that stay."""
        for found in self._all(function, shared, jobs):
            found.result, state = found.result
            kept.append(Held(state))
            self.back += len(pickle.dumps(found))
            yield found

    def keep(self, states: list[Any]) -> list[Any]:
        """States that go out once."""
        self.out += sum(len(pickle.dumps(state)) for state in states)
        return [Held(state) for state in states]

    def _all(self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Any) -> Any:
        for block, own in jobs:
            self.out += len(pickle.dumps((shared, [item for item in own if not isinstance(item, Held)])))
            yield function(*shared, block, tuple(item.state if isinstance(item, Held) else item for item in own))


def growth() -> Iterator[Result]:
    """An eighth of the rows, a quarter, a half, and all of them; with scores in the driver and on the workers.

    The last row is the hinge loss, which has kinks, with scores on the workers.
    """
    path = folder(SIZE)
    cases = [(part, scores, "gram_columns") for part in (8, 4, 2, 1) for scores in ("here", "workers")]
    for part, scores, solver in (*cases, (4, "workers", "row_multipliers")):
        engine = Counted()
        limit = 0.02e9 + 0.12 * ENTRIES * rows_of_size(SIZE) / part
        blocks = csr.RowBlocks(path, engine=engine, memory_limit=limit, scores=scores)
        blocks = blocks.take(slice(max(1, blocks.n_blocks // part)))
        loss = csr.Logistic if solver == "gram_columns" else csr.Hinge
        problem = csr.Problem(csr.Linear(blocks), objective(blocks.y, loss))
        solution, seconds = cpu(lambda problem=problem, solver=solver: problem.solve(solver))
        passes = solution.n_passes
        traffic = f"out {engine.out / passes / 1e6:.3g} MB, back {engine.back / passes / 1e6:.3g} MB for each pass"
        what = "" if solver == "gram_columns" else ", hinge loss"
        work = f"{blocks.shape[0]:,} rows in {blocks.n_blocks} blocks{what}, scores {scores}: {traffic}"
        yield Result(
            "blocks_growth", work, f"{solver}, {passes} passes", seconds, np.nan, solution.certificate.relative_gap
        )


SECTIONS: dict[str, Callable[[], Iterator[Result]]] = {
    "blocks_large": large,
    "blocks_pass": one_pass,
    "blocks_memory": memory,
    "blocks_dask": dask,
    "blocks_growth": growth,
    "blocks_dask_glm": dask_glm,
}
#: Sections with the folder whose size is an option.
SIZED = ("blocks_large", "blocks_pass", "blocks_growth")
