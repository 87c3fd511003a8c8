"""dask-glm on a dense logistic lasso, with more and more steps, and CPU seconds of several processes."""

from __future__ import annotations

import importlib.util
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from measure import Result
from threadpoolctl import threadpool_limits

import cvxstructreg as csr

#: dask-glm is run with twice as many steps again and again, until it reaches the error or takes so many times our time.
FACTOR, FIRST_STEPS = 100.0, 50
#: The relative error of the objective that dask-glm must reach.
ERROR = 1e-5
#: Seconds after which a run of dask-glm is stopped.
PEER_LIMIT = 300.0


def cpu(run: Callable[[], Any], client: Any = None) -> tuple[Any, float]:
    """The result, and the CPU seconds of this process and of the workers of a Dask client."""

    def spent() -> float:
        return time.process_time() + (sum(client.run(time.process_time).values()) if client is not None else 0.0)

    began = spent()
    return run(), spent() - began


def peer_data() -> tuple[Any, Any, float]:
    """A dense logistic lasso, 100,000 x 50: X, y and the strength."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 50))
    return X, (X[:, :10] @ rng.normal(size=10) + rng.logistic(size=len(X)) > 0).astype(float), 100.0


def _peer(name: str, steps: int, answer: Connection) -> None:
    """Run dask-glm in a process of its own, which can be stopped."""
    import dask.array as da
    from dask_glm import algorithms, families

    X, y, strength = peer_data()
    data, labels = da.from_array(X, chunks=(len(X) // 10, X.shape[1])), da.from_array(y, chunks=len(X) // 10)
    exact = {"abstol": 0.0, "reltol": 0.0} if name == "admm" else {"tol": 0.0}
    common = {"regularizer": "l1", "lamduh": strength, "family": families.Logistic, "max_iter": steps}
    with threadpool_limits(1):  # as in this process
        weights, seconds = cpu(partial(getattr(algorithms, name), data, labels, **common, **exact))
    answer.send((np.asarray(weights), seconds))


def peer(name: str, steps: int) -> tuple[Any, float]:
    """The weights of dask-glm after so many steps (None if it was stopped), and its CPU seconds."""
    context = multiprocessing.get_context("spawn")
    parent, child = context.Pipe(duplex=False)
    worker = context.Process(target=_peer, args=(name, steps, child))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    worker.start()
    child.close()
    found = None
    try:
        found = parent.recv() if parent.poll(PEER_LIMIT) else None
    except EOFError:
        raise RuntimeError(f"dask-glm {name} failed; its error is above") from None
    finally:
        worker.terminate()
        worker.join()
    if found is not None:
        return found
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return None, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def dask_glm() -> Iterator[Result]:
    """A dense logistic lasso, 100,000 x 50 in ten blocks."""
    if importlib.util.find_spec("dask_glm") is None:
        print("blocks_dask_glm: skipped, dask-glm is not installed")
        return
    X, y, strength = peer_data()
    parts = [X[i : i + len(X) // 10] for i in range(0, len(X), len(X) // 10)]

    def problem() -> csr.Problem:
        return csr.Problem(csr.Linear(csr.RowBlocks(parts), intercept=False), csr.Logistic(y) + strength * csr.L1())

    problem().solve("gram_newton", tol=ERROR)
    solution, seconds = cpu(lambda: problem().solve("gram_newton", tol=ERROR))
    best = problem().solve("gram_newton", tol=1e-10).objective
    work = f"100,000 x 50, logistic and L1, error of at most {ERROR:g}"
    solver, error = f"gram_newton, {solution.n_passes} passes", solution.objective / best - 1.0
    yield Result("blocks_dask_glm", work, solver, seconds, np.nan, error, "100 x")
    for name in ("admm", "proximal_grad"):
        steps, error, spent = FIRST_STEPS, np.inf, 0.0
        while error > ERROR and spent < FACTOR * seconds:
            weights, spent = peer(name, steps)
            error = np.nan if weights is None else problem().value(weights) / best - 1.0
            stopped = ", stopped" if weights is None else ""
            yield Result("blocks_dask_glm", work, f"dask-glm {name}, {steps} steps{stopped}", spent, np.nan, error)
            steps *= 2
