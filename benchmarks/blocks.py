"""Data in blocks of rows: larger than memory, on a cluster, and the price of giving a matrix as blocks.

- ``blocks_large``: a folder of CSR blocks, ten times the memory that a process gets beyond Python and its libraries
  (enforced by ``RLIMIT_DATA``). Logistic loss, L1 and 10,000 overlapping groups of 30,000 features, 400 entries in a
  row.
- ``blocks_pass``: the time of a pass, against a loop that maps the same files and multiplies.
- ``blocks_memory``: a matrix in memory, given as it is and as blocks.
- ``blocks_dask``: the same folder with one process and with two workers of a LocalCluster.
- ``blocks_dask_glm``: dask-glm (proximal gradient) on a dense logistic lasso, stopped at an error of 1e-5 or a limit.

All times are wall-clock seconds, because other processes do a part of the work. ``run.py --blocks-gb 10`` makes the
folder larger; the default is half a gigabyte. The folders are kept in the folder for temporary files.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import Result

import cvxstructreg as csr

#: The size of the folder in gigabytes; set by ``run.py --blocks-gb``.
SIZE = 0.5
#: Features, entries in a row, and rows of a block.
D, ENTRIES, ROWS = 30_000, 400, 5_000
#: Seconds after which a peer is stopped.
LIMIT = 60.0


def rows_of_size(gigabytes: float) -> int:
    """The number of rows of a folder of this size."""
    return max(1, round(gigabytes * 1e9 / (12 * ENTRIES) / ROWS)) * ROWS


def size_of(path: Path) -> float:
    """The bytes of all files."""
    return float(sum(file.stat().st_size for file in path.iterdir()))


def folder(gigabytes: float) -> Path:
    """A folder of blocks with their labels, written unless it exists."""
    n = rows_of_size(gigabytes)
    path = Path(tempfile.gettempdir(), f"cvxstructreg-blocks-{n}")
    if not (path / "complete.json").exists():
        csr.io.write_blocks(path, generated(n))
    return path


def generated(n: int) -> Iterator[tuple[Any, Any]]:
    """Sparse rows in which features are about as frequent as words; 60 of them matter."""
    rng = np.random.default_rng(0)
    weights = np.zeros(D)
    weights[:60] = rng.normal(size=60)
    frequency = 1.0 / np.arange(1, D + 1) ** 0.6
    sums = np.cumsum(frequency / frequency.sum())
    pool = np.searchsorted(sums, rng.random((ROWS, ENTRIES))).clip(0, D - 1).astype(np.int32)
    pool.sort(axis=1)
    starts = np.arange(0, ROWS * ENTRIES + 1, ENTRIES, dtype=np.int32)
    for _ in range(0, n, ROWS):
        indices = pool[rng.permutation(ROWS)]
        X = sp.csr_array((rng.random(ROWS * ENTRIES), indices.ravel(), starts.copy()), shape=(ROWS, D))
        X.sum_duplicates()
        scores = X @ weights - X.sum(axis=1) * weights.mean()
        yield X, np.where(scores + rng.logistic(size=ROWS) > 0, 1, -1)


def objective(y: Any) -> Any:
    """Logistic loss, L1 and overlapping groups, with strengths that keep about a hundred features."""
    groups = csr.Groups([np.arange(i, min(i + 6, D)) for i in range(0, D, 3)], n_features=D)
    return csr.Logistic(y) + 0.0015 * len(y) * csr.L1() + 0.0005 * len(y) * csr.GroupLasso(groups)


def wall(run: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the wall-clock seconds."""
    began = time.perf_counter()
    return run(), time.perf_counter() - began


def _limited(path: Path, room: float, answer: Connection) -> None:
    """Solve in a process that may allocate ``room`` bytes beyond what it has after its imports."""
    csr.Problem(csr.Linear(generated_small()), objective(np.tile([1, -1], ROWS // 2))).solve(tol=1e-2)  # compile
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    before = 1024 * int(status["VmData"].split()[0])
    resource.setrlimit(resource.RLIMIT_DATA, (int(before + room), int(before + room)))
    blocks = csr.RowBlocks(path, engine="serial", memory_limit=0.5 * room)
    solution, seconds = wall(lambda: csr.Problem(csr.Linear(blocks), objective(blocks.y)).solve())
    answer.send((seconds, solution.certificate.relative_gap, solution.n_passes, blocks.meter.seconds_per_pass))


def generated_small() -> Any:
    """One block."""
    return next(generated(ROWS))[0]


def large() -> Iterator[Result]:
    """A folder ten times the memory."""
    path = folder(SIZE)
    size = size_of(path)
    context = multiprocessing.get_context("spawn")
    parent, child = context.Pipe()
    worker = context.Process(target=_limited, args=(path, 0.1 * size, child))
    worker.start()
    child.close()
    seconds, gap, passes, each = parent.recv()
    worker.join()
    work = f"{size / 1e9:.2g} GB with {size / 1e10:.2g} GB"
    yield Result(
        "blocks_large", work, f"working_columns, {passes} passes of {each:.2g} s", seconds, np.nan, gap, "15 passes"
    )


def one_pass() -> Iterator[Result]:
    """The time of X'u by a pass, and by a plain loop over the same files."""
    path = folder(SIZE)
    blocks = csr.RowBlocks(path, engine="serial")
    n, d = blocks.shape
    u = np.random.default_rng(0).normal(size=(n, 1))

    def plain() -> Any:
        total = np.zeros((d, 1))
        for number in range(blocks.n_blocks):
            parts = [np.load(path / f"{number:05d}.{key}.npy", mmap_mode="r") for key in ("data", "indices", "indptr")]
            X = sp.csr_array(tuple(parts), shape=(ROWS, d))
            total += X.T @ u[number * ROWS : (number + 1) * ROWS]
        return total

    work = f"X'u over {size_of(path) / 1e9:.2g} GB"
    _, first = wall(lambda: blocks.pull(2.0 * u))  # verifies the checksums
    both = [(wall(plain)[1], wall(lambda k=k: blocks.pull((k + 3.0) * u))[1]) for k in range(5)]  # in turn
    loops, passes = zip(*both, strict=True)
    yield Result("blocks_pass", work, "plain loop over the files", float(np.median(loops)), loops[0], np.nan)
    yield Result("blocks_pass", work, "pass", float(np.median(passes)), first, np.nan, "1.3 x")


def memory() -> Iterator[Result]:
    """A matrix in memory and the same matrix as blocks, with the solver that auto takes."""
    parts = [block for block in generated(4 * ROWS)]
    X, y = sp.vstack([x for x, _ in parts], format="csr"), np.concatenate([labels for _, labels in parts])
    work = f"{X.shape[0]:,} x {D:,} in memory"
    csr.Problem(csr.Linear(X), objective(y)).solve()
    for name, given in (("plain", X), ("blocks", [x for x, _ in parts])):
        runs = [wall(lambda given=given: csr.Problem(csr.Linear(given), objective(y)).solve()) for _ in range(3)]
        gap = runs[0][0].certificate.relative_gap
        seconds = float(np.median([t for _, t in runs]))
        yield Result("blocks_memory", work, name, seconds, runs[0][1], gap, "1.5 x" if name == "blocks" else "")


def dask() -> Iterator[Result]:
    """One process, and two workers of a cluster on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("blocks_dask: skipped, distributed is not installed")
        return
    path = folder(SIZE)
    limit = 0.05e9 + 1.2 * ENTRIES * rows_of_size(SIZE)

    def solve(engine: Any) -> tuple[Any, float]:
        blocks = csr.RowBlocks(path, engine=engine, memory_limit=limit)
        return wall(lambda: csr.Problem(csr.Linear(blocks), objective(blocks.y)).solve("working_columns"))

    work = f"{rows_of_size(SIZE):,} rows"
    solve("serial")
    alone, seconds = solve("serial")
    yield Result("blocks_dask", work, "one process", seconds, np.nan, alone.certificate.relative_gap)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        solve(client)
        found, seconds = solve(client)
    assert abs(found.objective - alone.objective) <= max(found.certificate.gap, alone.certificate.gap)
    yield Result("blocks_dask", work, "two workers", seconds, np.nan, found.certificate.relative_gap, "2 x")


def dask_glm() -> Iterator[Result]:
    """A dense logistic lasso, 100,000 x 50 in ten blocks."""
    try:
        import dask.array as da
        from dask_glm import families
        from dask_glm.algorithms import proximal_grad
    except ImportError:
        print("blocks_dask_glm: skipped, dask-glm is not installed")
        return
    rng = np.random.default_rng(0)
    n, d, strength = 100_000, 50, 100.0
    X = rng.normal(size=(n, d))
    y = (X[:, :10] @ rng.normal(size=10) + rng.logistic(size=n) > 0).astype(float)
    parts = [X[i : i + n // 10] for i in range(0, n, n // 10)]

    def problem() -> csr.Problem:
        return csr.Problem(csr.Linear(csr.RowBlocks(parts), intercept=False), csr.Logistic(y) + strength * csr.L1())

    problem().solve("gram_newton")
    solution, seconds = wall(lambda: problem().solve("gram_newton"))
    work = "100,000 x 50, logistic and L1"
    yield Result("blocks_dask_glm", work, "gram_newton", seconds, np.nan, solution.certificate.relative_gap, "100 x")
    data, labels = da.from_array(X, chunks=(n // 10, d)), da.from_array(y, chunks=n // 10)
    steps, reached, spent = 400, np.inf, 0.0
    while reached > 1e-5 and spent < LIMIT:
        how = {"regularizer": "l1", "lamduh": strength, "family": families.Logistic, "tol": 1e-12, "max_iter": steps}
        weights, spent = wall(lambda how=how: proximal_grad(data, labels, **how))
        reached, steps = problem().value(weights) / solution.objective - 1.0, 4 * steps
    yield Result("blocks_dask_glm", work, "dask-glm proximal_grad", spent, np.nan, reached)


SECTIONS: dict[str, Callable[[], Iterator[Result]]] = {
    "blocks_large": large,
    "blocks_pass": one_pass,
    "blocks_memory": memory,
    "blocks_dask": dask,
    "blocks_dask_glm": dask_glm,
}
