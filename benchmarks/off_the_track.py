"""Every loss with every penalty, against CVXPY: pairs that have no special solver among them.

Six losses and twelve penalties on one instance: normal data, weights in pieces, strengths that grow with the rows. Our
time is that of ``problem.solve(tol=...)``, which chooses a solver itself, with its certificate. CVXPY gets the
problem's own program and Clarabel at its default accuracy; its time includes the compilation and excludes any
certificate. Times are those of the solving thread, because the clock of a process is coarse where CPU time is limited.
Both may take a minute of CPU time, so that a busy machine stops neither of them early. At 1,000 x 400
CVXPY is stopped after 20 seconds, or four times our time if that is longer: such ratios are lower bounds, marked by
">". The constants of the general solver were chosen on seed 0 at 300 x 150; "held out" rows use other seeds and sizes.
A row that is not proved has a gap above the tolerance and says so.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from measure import Result

import cvxstructreg as csr
from cvxstructreg.crosscheck.patience import patience

#: CPU seconds for one solve, of ours or of CVXPY.
LIMIT = 60.0
#: CVXPY is not stopped before it has taken this many times our time.
PATIENCE = 4.0
BEGAN = time.perf_counter() - time.process_time()
#: Results of a run that was cut off, by section, work and whether they are ours: they are not run again.
KNOWN: dict[tuple[str, str, bool], Result] = {}
Make = Callable[[], csr.Problem]


def targets(X: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, two classes and three classes from weights in pieces: a tenth +1, a tenth -1, the rest 0."""
    rng, d = np.random.default_rng(seed + 1000), X.shape[1]
    w = np.zeros(d)
    w[: d // 10], w[d // 10 : d // 5] = 1.0, -1.0
    z = X @ w
    z = z + np.std(z) / 5 * rng.normal(size=len(z))
    return z, (z > 0).astype(int), np.digitize(z, np.quantile(z, [1 / 3, 2 / 3]))


def losses(X: Any, seed: int) -> dict[str, csr.Loss]:
    """The six losses."""
    z, two, three = targets(X, seed)
    return {
        "squared": csr.Squared(z),
        "logistic": csr.Logistic(two),
        "squared hinge": csr.SquaredHinge(two),
        "hinge": csr.Hinge(two),
        "multinomial": csr.Multinomial(three),
        "multiclass hinge": csr.MulticlassHinge(three),
    }


def penalties(d: int, strength: float) -> dict[str, Any]:
    """The twelve penalties; those that are norms get ``strength`` times a number."""
    chain = csr.Graph.from_edges([(i, i + 1) for i in range(d - 1)], n_nodes=d)
    side = int(np.sqrt(d))
    across = [(i, i + 1) for i in range(side * (d // side)) if (i + 1) % side]
    down = [(i, i + side) for i in range(side * (d // side - 1))]
    grid = csr.Graph.from_edges(across + down, n_nodes=d)
    overlapping = csr.Groups([list(range(i, min(i + 8, d))) for i in range(0, d, 5)], n_features=d)
    disjoint = csr.Groups([list(range(i, min(i + 5, d))) for i in range(0, d, 5)], n_features=d)
    s = strength
    return {
        "ridge": 1.0 * csr.Ridge(),
        "L1": 5 * s * csr.L1(),
        "network + ridge": 2.0 * csr.FeatureNetwork(chain) + 0.1 * csr.Ridge(),
        "L1 + Laplacian": 3 * s * csr.L1() + 1.0 * csr.Laplacian(chain),
        "fused chain + ridge": 5 * s * csr.FusedLasso(chain) + 0.1 * csr.Ridge(),
        "fused grid + L1": 3 * s * csr.FusedLasso(grid) + s * csr.L1(),
        "overlapping groups + L1": 3 * s * csr.GroupLasso(overlapping) + s * csr.L1(),
        "disjoint groups": 5 * s * csr.GroupLasso(disjoint),
        "latent groups + ridge": 5 * s * csr.LatentGroupLasso(overlapping) + 0.1 * csr.Ridge(),
        "nonnegative + ridge": csr.NonNegative() + 0.1 * csr.Ridge(),
        "box + Laplacian": csr.Box(-0.5, 0.5) + 1.0 * csr.Laplacian(chain),
        "overlapping groups + Laplacian": 3 * s * csr.GroupLasso(overlapping) + 1.0 * csr.Laplacian(chain),
    }


def wall_clock_limit(limit: float) -> float:
    """CPU seconds in seconds of the clock, by this process's share of a processor so far."""
    return limit * max(1.0, (time.perf_counter() - BEGAN) / max(time.process_time(), 1e-3))


def resume(results: Iterable[Result]) -> None:
    """Take these results as already run."""
    KNOWN.update({(r.section, r.work, not r.solver.startswith("cvxpy")): r for r in results})


def ours(section: str, work: str, make: Make, tol: float, target: str, repeats: int = 3) -> Result:
    """A line for ``problem.solve(tol=tol)``: the solver that proves the gap, and the median CPU seconds."""
    if (section, work, True) in KNOWN:
        return KNOWN[section, work, True]
    times = []
    for count in range(repeats + 1):
        problem = make()
        began = time.thread_time()
        with warnings.catch_warnings(), patience(LIMIT, KeyboardInterrupt):  # our solvers return their best point
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            solution = problem.solve(tol=tol)
        times.append(time.thread_time() - began)
        if count and times[-1] > 10.0:
            break
    proved = "" if solution.status == "optimal" else f" ({solution.status})"
    seconds, gap = float(np.median(times[1:] or times)), solution.certificate.relative_gap
    return Result(section, work, f"{solution.solver}{proved}", seconds, times[0], gap, target)


def clarabel(section: str, work: str, make: Make, limit: float = LIMIT) -> Result:
    """A line for CVXPY with Clarabel."""
    if (section, work, False) in KNOWN:
        return KNOWN[section, work, False]
    problem = make()
    began = time.thread_time()
    program = problem.to_cvxpy()
    try:
        program.solve(cp.CLARABEL, max_threads=1, time_limit=wall_clock_limit(limit))
        name = "cvxpy CLARABEL" if program.status == cp.OPTIMAL else f"cvxpy CLARABEL ({program.status})"
    except cp.SolverError:
        name = "cvxpy CLARABEL (failed)"
    seconds = time.thread_time() - began
    return Result(section, work, name, seconds, seconds, np.nan)


def instance(n: int, d: int, seed: int, density: float = 1.0) -> Any:
    """A normal matrix, dense or sparse."""
    rng = np.random.default_rng(seed)
    if density == 1.0:
        return rng.normal(size=(n, d))
    return sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)


def pairs(
    section: str,
    X: Any,
    seed: int,
    tol: float,
    target: str,
    peer: bool = True,
    repeats: int = 3,
    only: str = "",
    limit: float = LIMIT,
) -> Iterator[Result]:
    """All 72 pairs on one matrix, or those whose penalty has ``only`` in its name; CVXPY is stopped at ``limit``."""
    model, strength = csr.Linear(X), X.shape[0] / 300
    if sp.issparse(X):
        strength *= float(np.sqrt(X.nnz / np.prod(X.shape)))
    for loss_name, loss in losses(X, seed).items():
        for name, penalty in penalties(X.shape[1], strength).items():
            if only not in name:
                continue
            work = f"{loss_name}, {name}"

            def make(loss: csr.Loss = loss, penalty: Any = penalty) -> csr.Problem:
                return csr.Problem(model, loss + penalty)

            result = ours(section, work, make, tol, target, repeats)
            yield result
            if peer:
                yield clarabel(section, work, make, max(limit, PATIENCE * result.seconds))


def kernel_pairs(n: int = 300, seed: int = 0) -> Iterator[Result]:
    """The losses with a Gaussian kernel and the penalties that make sense there, n = 300."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 5))
    gram = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1) / 5.0)
    model = csr.Kernel(gram, psd=True)
    ring = csr.Graph.from_edges([(i, (i + 1) % n) for i in range(n)], n_nodes=n)
    overlapping = csr.Groups([list(range(i, min(i + 8, n))) for i in range(0, n, 5)], n_features=n)
    smooth = {
        "function norm": 1.0 * csr.RKHSNorm(),
        "function norm + Laplacian of scores": 1.0 * csr.RKHSNorm() + 0.1 * csr.Laplacian(ring).on_function(),
        "function norm + L1": 0.1 * csr.RKHSNorm() + 0.5 * csr.L1(),
        "ridge": 1.0 * csr.Ridge(),
        "L1": 1.0 * csr.L1(),
        "overlapping groups + ridge": 1.0 * csr.GroupLasso(overlapping) + 0.1 * csr.Ridge(),
        "nonnegative + ridge": csr.NonNegative() + 0.1 * csr.Ridge(),
    }
    for loss_name, loss in losses(points, seed).items():
        for name, penalty in smooth.items():

            def make(loss: csr.Loss = loss, penalty: Any = penalty) -> csr.Problem:
                return csr.Problem(model, loss + penalty)

            work = f"{loss_name}, {name}"
            yield ours(KERNEL, work, make, 1e-6, "none slower than CVXPY")
            yield clarabel(KERNEL, work, make)


SMALL, LARGE = "pairs 300 x 150", "pairs 1,000 x 400"
HELD_OUT, KERNEL, SPARSE = "pairs 250 x 180, held out", "pairs, Gaussian kernel n = 300", "pairs 5,000 x 20,000 sparse"

SECTIONS: dict[str, Callable[[], Iterator[Result]]] = {
    "off_the_track": lambda: pairs(SMALL, instance(300, 150, 0), 0, 1e-6, "none slower; median 10 x"),
    "off_the_track_held_out": lambda: pairs(HELD_OUT, instance(250, 180, 7), 7, 1e-6, "none slower; median 10 x"),
    "off_the_track_large": lambda: pairs(
        LARGE, instance(1000, 400, 1), 1, 1e-6, "3 x; median 20 x", repeats=1, limit=20.0
    ),
    "off_the_track_kernel": kernel_pairs,
    "off_the_track_sparse": lambda: pairs(
        SPARSE, instance(5000, 20_000, 2, 0.002), 2, 1e-4, "proved within 60 s", peer=False, repeats=1
    ),
    "off_the_track_fused": lambda: pairs(
        SPARSE, instance(5000, 20_000, 2, 0.002), 2, 1e-4, "proved within 60 s", peer=False, repeats=0, only="fused"
    ),
}
