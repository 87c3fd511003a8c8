"""Total variation and trends: certified, from ``problem.solve``.

The signals are constant on blocks, with normal noise of half the height of a jump. Each line is one run, after a run
on other data that loads compiled code. Gaps are certified. The image of 256 x 256 and the trend of order 2 had a part
in choosing constants; the chain and the volume had none.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from denoising_peers import compared
from measure import Result

import cvxstructreg as csr

#: The strength of total variation.
STRENGTH = 0.5
#: Wall-clock seconds for one solve.
LIMIT = 120.0


def blocks(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A signal of -1, 0 and 1 on blocks, four or more along each axis, with noise."""
    rng = np.random.default_rng(seed)
    parts = [max(4, round(size ** (1 / len(shape)) / 4)) if len(shape) == 1 else 4 for size in shape]
    heights = rng.integers(-1, 2, size=parts).astype(float)
    at = [np.arange(size) * part // size for size, part in zip(shape, parts, strict=True)]
    return heights[np.ix_(*at)] + 0.5 * rng.normal(size=shape)


def grid(shape: tuple[int, ...]) -> csr.Graph:
    """The edges between neighbours along each axis."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    first = [np.take(numbers, range(size - 1), axis).ravel() for axis, size in enumerate(shape)]
    second = [np.take(numbers, range(1, size), axis).ravel() for axis, size in enumerate(shape)]
    i, j = np.concatenate(first), np.concatenate(second)
    W = sp.csr_array((np.ones(i.size), (i, j)), shape=(numbers.size, numbers.size))
    return csr.Graph(W + W.T)


def line(section: str, work: str, problem: csr.Problem, tol: float, target: str) -> tuple[Result, float]:
    """One solve by ``auto``, and its lower bound."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution = problem.solve(tol=tol, time_limit=LIMIT)
    seconds = time.process_time() - began
    proved = "" if solution.status == "optimal" else f" ({solution.status})"
    proof = solution.certificate
    return Result(
        section, work, solution.solver + proved, seconds, seconds, proof.relative_gap, target
    ), proof.lower_bound


def total_variation() -> Iterator[Result]:
    """Chains, images and a volume, X = I."""
    targets = {(1_000_000,): "0.1 s", (256, 256): "0.5 s", (64, 64, 64): "10 s", (1024, 1024): "12 s"}
    _denoise((32, 32)).solve(tol=1e-6)  # loads compiled code
    _denoise((60_000,)).solve(tol=1e-6)  # long chains have loops of their own
    for shape, target in targets.items():
        work = f"total variation, {' x '.join(f'{size:,}' for size in shape)}"
        problem = _denoise(shape)
        ours, bound = line("denoising", work, problem, 1e-6, target)
        yield ours
        yield from compared("denoising", work, blocks(shape, len(shape)), STRENGTH, problem, bound, 1e-6)


def _denoise(shape: tuple[int, ...]) -> csr.Problem:
    y = blocks(shape, len(shape)).ravel()
    model = csr.Linear(sp.eye_array(y.size, format="csr"), intercept=False)
    return csr.Problem(model, csr.Squared(y) + STRENGTH * csr.FusedLasso(grid(shape)))


def trends(n: int = 10_000) -> Iterator[Result]:
    """Trend filtering of order 1 and 2 against CVXPY with Clarabel."""
    rng = np.random.default_rng(3)
    y = np.interp(np.arange(n), np.linspace(0, n, 12), rng.normal(size=12)) + 0.2 * rng.normal(size=n)
    model = csr.Linear(sp.eye_array(n, format="csr"), intercept=False)
    _denoise((100,)).solve(tol=1e-6)  # loads compiled code
    short = csr.Linear(sp.eye_array(4_000, format="csr"), intercept=False)  # trends are compiled from 3,000 rows on
    csr.Problem(short, csr.Squared(rng.normal(size=4_000)) + csr.TrendFilter(order=2)).solve(tol=1e-6)
    for order in (1, 2):
        problem = csr.Problem(model, csr.Squared(y) + 10.0**order * csr.TrendFilter(order=order))
        work = f"trend filtering of order {order}, n = {n:,}"
        yield line("trends", work, problem, 1e-6, "20 x CVXPY")[0]
        began = time.process_time()
        problem.to_cvxpy().solve(cp.CLARABEL, max_threads=1, time_limit=LIMIT)
        seconds = time.process_time() - began
        yield Result("trends", work, "cvxpy CLARABEL", seconds, seconds, np.nan)


SECTIONS: dict[str, Callable[[], Iterator[Result]]] = {
    "denoising": total_variation,
    "trends": trends,
}
