"""The hinge loss with L1 on text-like data, against codes for linear programs, cone solvers and stochastic gradients.

Documents whose words follow Zipf's law, at a tenth of the largest useful strength; the instance had no part in choosing
constants. Peers solve the same problem: SciPy's HiGHS as a linear program (interior points with crossover, dual
simplex), CVXPY's solvers, and scikit-learn's stochastic gradients. Each runs in a process of its own that is stopped
after ``LIMIT`` CPU seconds. skglm and liblinear have no hinge with L1. liblinear has the *squared* hinge with L1,
which is another problem with a task of its own, without intercept as liblinear would penalise it. Its tolerance is the
first of 1, 0.1, ... that reaches ours. The gap of a peer is the error of its objective relative to a lower bound
that we proved.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from measure import Result
from scipy.optimize import linprog
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

import cvxstructreg as csr

#: CPU seconds for one peer.
LIMIT = 30
SECTION, TOL = "hinge_text", 1e-4
Weights = tuple[np.ndarray, float]
#: Results of peers in a run that was cut off, by work and name: they are not run again.
KNOWN: dict[tuple[str, str], Result] = {}


def text(n: int, d: int, words: int = 80) -> tuple[Any, np.ndarray]:
    """Documents of words by Zipf's law, rows of unit length, and labels of -1 and 1."""
    rng = np.random.default_rng(4)
    columns = np.minimum((d ** rng.uniform(size=(n, words))).astype(int), d - 1)
    X = sp.csr_array((np.ones(n * words), (np.repeat(np.arange(n), words), columns.ravel())), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt((X * X).sum(axis=1))) @ X)
    w = np.where(rng.uniform(size=d) < 0.02, rng.normal(size=d), 0.0)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as scikit-learn wants them
    scores = X @ w
    return X, np.where(scores + 0.3 * scores.std() * rng.normal(size=n) > np.median(scores), 1, -1)


def by_linear_program(X: Any, y: np.ndarray, lam: float, method: str) -> Weights | None:
    """min 1'xi + lam 1'(u + v) with y (X (u - v) + b) + xi >= 1, by HiGHS."""
    n, d = X.shape
    signed = sp.diags_array(y.astype(float)) @ X
    A = sp.hstack([-signed, signed, -y[:, None].astype(float), -sp.eye_array(n)], format="csc")
    cost = np.concatenate([np.full(2 * d, lam), [0.0], np.ones(n)])
    bounds = [(0.0, None)] * (2 * d) + [(None, None)] + [(0.0, None)] * n
    found = linprog(cost, A, -np.ones(n), bounds=bounds, method=method)
    return None if found.x is None else (found.x[:d] - found.x[d : 2 * d], float(found.x[2 * d]))


def by_cvxpy(problem: csr.Problem, name: str) -> Weights | None:
    """CVXPY's weights from the problem's own program."""
    program = problem.to_cvxpy()
    program.solve(name)
    coef, intercept = problem.weights_of(program)
    return np.asarray(coef), float(intercept)


def by_gradients(X: Any, y: np.ndarray, lam: float, epochs: int) -> Weights:
    """scikit-learn's stochastic gradients: (1/n) sum hinge + alpha ||w||_1."""
    model = SGDClassifier(loss="hinge", penalty="l1", alpha=lam / len(y), max_iter=epochs, tol=None, random_state=0)
    model.fit(X, y)
    return model.coef_[0], float(model.intercept_[0])


def by_liblinear(X: Any, y: np.ndarray, lam: float, tol: float) -> Weights:
    """liblinear: ||w||_1 + C sum (1 - y f)_+^2, without intercept."""
    options = {"penalty": "l1", "loss": "squared_hinge", "dual": False, "fit_intercept": False}
    model = LinearSVC(C=1.0 / lam, tol=tol, max_iter=100_000, random_state=0, **options)
    model.fit(X, y)
    return model.coef_[0], 0.0


def resume(results: Iterable[Result]) -> None:
    """Take these results of peers as already run."""
    KNOWN.update({(r.work, r.solver.removesuffix(" (stopped)")): r for r in results if r.section == SECTION})


def peer(work: str, name: str, run: Callable[[], Weights | None], problem: csr.Problem, bound: float) -> Result:
    """One run in a process that may use ``LIMIT`` CPU seconds."""
    if (work, name) in KNOWN:
        return KNOWN[work, name]
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    worker = fork.Process(target=_send, args=(run, theirs))
    worker.start()
    theirs.close()
    try:
        found, seconds = ours.recv()
    except EOFError:
        found, seconds, name = None, float(LIMIT), f"{name} (stopped)"
    else:
        name = name if found is not None else f"{name} (failed)"
    worker.join()
    gap = np.nan if found is None else problem.value(*found) / bound - 1.0
    return Result(SECTION, work, name, seconds, seconds, gap)


def _send(run: Callable[[], Weights | None], answer: Connection) -> None:
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + LIMIT, used + LIMIT))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = run()
        except (cp.SolverError, ValueError, TypeError):
            found = None
    answer.send((found, time.process_time() - began))


def line(work: str, make: Callable[[], csr.Problem]) -> Result:
    """Our line: one solve by ``auto``, after one that loads compiled code."""
    times = []
    for _ in range(2):
        problem = make()
        began = time.process_time()
        solution = problem.solve(tol=TOL)
        times.append(time.process_time() - began)
    gap = solution.certificate.relative_gap
    return Result(SECTION, work, solution.solver, times[1], times[0], gap, "faster than any peer")


def _problem(X: Any, loss: csr.Loss, lam: float, intercept: bool) -> csr.Problem:
    return csr.Problem(csr.Linear(X, intercept=intercept), loss + lam * csr.L1())


def hinge_on_text(n: int = 10_000, d: int = 50_000) -> Iterator[Result]:
    """Hinge and L1, and squared hinge and L1 beside liblinear."""
    X, y = text(n, d)
    lam = 0.1 * float(np.abs(X.T @ y).max())
    work = f"hinge + L1, {n:,} x {d:,} text-like"
    make = partial(_problem, X, csr.Hinge(y), lam, True)
    yield line(work, make)
    problem = make()
    bound = problem.solve(tol=0.1 * TOL).certificate.lower_bound
    for method in ("highs-ipm", "highs-ds"):
        yield peer(work, f"scipy {method}", partial(by_linear_program, X, y, lam, method), problem, bound)
    for name in ("CLARABEL", "ECOS", "SCS"):
        yield peer(work, f"cvxpy {name}", partial(by_cvxpy, problem, name), problem, bound)
    for epochs in (20, 200):
        run = partial(by_gradients, X, y, lam, epochs)
        yield peer(work, f"scikit-learn SGD, {epochs} epochs", run, problem, bound)
    work = f"squared hinge + L1, {n:,} x {d:,} text-like, no intercept"
    make = partial(_problem, X, csr.SquaredHinge(y), 2.0 * lam, False)
    yield line(work, make)
    problem = make()
    bound = problem.solve(tol=0.1 * TOL).certificate.lower_bound
    for tol in 10.0 ** -np.arange(0, 8):
        found = peer(work, f"liblinear, tol {tol:.0e}", partial(by_liblinear, X, y, 2.0 * lam, tol), problem, bound)
        if found.gap <= TOL or "(" in found.solver:
            break
    yield found


SECTIONS: dict[str, Callable[[], Iterator[Result]]] = {"hinge_text": hinge_on_text}
