"""Plain CVXPY problems: ``prob.solve(method="structreg")`` against CVXPY's own ``prob.solve()``.

Our time is that of the whole call on a new ``cp.Problem``: recognition, solve, certificate, and the values written
back. CVXPY's time is that of ``prob.solve()`` with its default solver and accuracy. "gap" is our certificate of the
values. The tiny problems are those of ``tests/plain_problems.py``; a line is the largest difference between the two
times over all problems of a kind.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from measure import Result, timed

import cvxstructreg as csr

Make = Callable[[], cp.Problem]
#: Runs of each tiny problem; the quickest counts.
TINY_RUNS = 3
#: Seconds that a tiny problem may take more than with CVXPY.
ALLOWED = 0.02


def logistic(density: float, strength: float) -> Make:
    """Logistic regression with L1 and an intercept, 5,000 x 500."""
    rng = np.random.default_rng(0)
    n, d = 5000, 500
    if density == 1.0:
        X: Any = rng.normal(size=(n, d))
    else:
        X = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    truth = np.zeros(d)
    truth[: d // 10] = 1.0
    y = np.where(X @ truth + rng.normal(size=n) > 0, 1.0, -1.0)

    def make() -> cp.Problem:
        w, b = cp.Variable(d), cp.Variable()
        loss = cp.sum(cp.logistic(cp.multiply(-y, X @ w + b)))
        return cp.Problem(cp.Minimize(loss + strength * cp.norm1(w)))

    return make


def looped_norms(groups: int = 2000, width: int = 2, n: int = 500) -> Make:
    """A group lasso whose norms are written in a loop."""
    rng = np.random.default_rng(0)
    d = groups * width
    X = rng.normal(size=(n, d))
    y = X[:, :20].sum(axis=1) + rng.normal(size=n)

    def make() -> cp.Problem:
        w = cp.Variable(d)
        norms = [cp.norm(w[np.arange(i, i + width)]) for i in range(0, d, width)]
        return cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + 100.0 * cp.sum(cp.hstack(norms))))

    return make


def compared(work: str, make: Make, target: str) -> Iterator[Result]:
    """A line for each side."""
    problems = [make() for _ in range(4)]

    def ours() -> Any:
        prob = problems.pop()
        prob.solve(method="structreg")
        return prob.solver_stats

    stats, seconds, cold = timed(ours)
    yield Result(SECTION, work, stats.solver_name, seconds, cold, stats.extra_stats.relative_gap, target)
    prob = make()
    began = time.process_time()
    prob.solve()
    seconds = time.process_time() - began
    gap = csr.certify(prob).relative_gap
    yield Result(SECTION, work, f"cvxpy {prob.solver_stats.solver_name}", seconds, seconds, gap)


def large() -> Iterator[Result]:
    """Three problems of the size that people wait for."""
    yield from compared("logistic + L1, dense 5,000 x 500", logistic(1.0, 50.0), "500 x")
    yield from compared("logistic + L1, 5 % sparse 5,000 x 500", logistic(0.05, 10.0), "75 x")
    yield from compared("2,000 norms in a loop, 500 x 4,000", looped_norms(), "50 x")


def tiny() -> Iterator[Result]:
    """The plain problems of the tests, 40 x 8: the one that is slower than CVXPY by most."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from plain_problems import CASES, data

    found: dict[bool, list[tuple[float, float, float, str, float]]] = {True: [], False: []}
    for name, case in CASES.items():
        known = csr.from_cvxpy(case(data())).is_fully_known
        case(data()).solve(method="structreg")  # compile
        ours, theirs, gap = np.inf, np.inf, np.nan
        for _ in range(TINY_RUNS):
            prob = case(data())
            ours = min(ours, _seconds(prob, method="structreg"))
            gap = prob.solver_stats.extra_stats.relative_gap
            theirs = min(theirs, _seconds(case(data())))
        found[known].append((ours - theirs, ours, theirs, name, gap))
    for known, rows in found.items():
        _, ours, theirs, name, gap = max(rows)
        held = sum(row[0] <= ALLOWED for row in rows)
        kind = "all terms known" if known else "a term of no known form"
        work = f"{kind} ({held} of {len(rows)} hold): {name}"
        yield Result(TINY, work, "structreg", ours, ours, gap, "at most 20 ms more")
        yield Result(TINY, work, "cvxpy", theirs, theirs, np.nan)


def _seconds(prob: cp.Problem, **how: Any) -> float:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prob.solve(**how)
    return time.process_time() - began


SECTION, TINY = "plain CVXPY problems", "tiny plain problems, the worst of all"
SECTIONS: dict[str, Callable[[], Iterator[Result]]] = {"plain_cvxpy": large, "plain_cvxpy_tiny": tiny}
