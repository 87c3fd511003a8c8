"""The multiclass SVM with dissimilar pairs: our solvers against the best form and the textbook form in CVXPY.

Times are CPU seconds on one thread: for our solvers the median of three runs after one warm-up run, for CVXPY one run
including compilation, because users wait for it too. CVXPY's solvers get the loosest of a few tolerances for which the
objective of our problem, at their weights, is within 1e-6 of the certified optimum. "gap" is this distance, or the
certified gap for our solvers. Kernels are Gaussian, so they are positive semidefinite by construction; this is not
proved (we pass psd=True).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy as cp
import data
import numpy as np
import scipy.sparse as sp
from measure import Result

import cvxstructreg as csr

Instance = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X, y, labelled rows, pairs
Form = Callable[[Instance, int], tuple[cp.Problem, Callable[[], tuple[np.ndarray, np.ndarray]]]]

LAM1, LAM2, TOL = 1e-3, 1.0, 1e-6
#: Tolerances from loose to tight, as options of each solver.
LADDERS: dict[str, tuple[dict[str, Any], ...]] = {
    "CLARABEL": tuple({"tol_gap_rel": t, "tol_gap_abs": t, "tol_feas": t, "max_threads": 1} for t in (1e-6, 1e-8)),
    "SCS": tuple({"eps_abs": t, "eps_rel": t, "max_iters": 50_000} for t in (1e-4, 1e-5, 1e-6, 1e-7)),
    "OSQP": tuple({"eps_abs": t, "eps_rel": t, "max_iter": 50_000} for t in (1e-4, 1e-5, 1e-6)),
    "ECOS": tuple({"abstol": t, "reltol": t, "feastol": t} for t in (1e-6, 1e-8)),
    "PIQP": ({}, {"eps_abs": 1e-10, "eps_rel": 1e-10}),
    "HIGHS": ({"time_limit": 300.0},),
}


def digits(labelled: int = 50, pairs: int = 320, seed: int = 0) -> tuple[str, Instance]:
    """The first split of USPST with disjoint oracle pairs, or a mixture of the same size if there are no data."""
    path = data.folder() / "ssl_matrices" / "uspst.npz"
    if not path.exists():
        return "mixture", mixture(labelled, pairs, 10, 256, 0.35, seed)
    stored = np.load(path)
    X, y, first = stored["X"], stored["y"].astype(int), stored["labeled_idx"][0].astype(int)
    left = np.random.default_rng(seed).permutation(stored["unlabeled_idx"][0].astype(int)).tolist()
    chosen: list[int] = []
    while len(chosen) < 2 * pairs:
        s = left.pop()
        t = next(t for t in left if y[t] != y[s])
        left.remove(t)
        chosen += [s, t]
    rows, count = np.concatenate([first, chosen]), len(first)
    return "USPST", (X[rows], y[rows], np.arange(count), count + np.arange(2 * pairs).reshape(-1, 2))


def mixture(labelled: int, pairs: int, k: int, d: int, spread: float, seed: int = 0) -> Instance:
    """k Gaussian classes in d dimensions: labelled points, and disjoint pairs of different classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, size=labelled + 2 * pairs)
    y[: min(k, labelled)] = np.arange(min(k, labelled))
    first = labelled + 2 * np.arange(pairs)
    y[first + 1] = (y[first] + rng.integers(1, k, size=pairs)) % k
    X = spread * rng.normal(size=(k, d))[y] + rng.normal(size=(len(y), d))
    return X, y, np.arange(labelled), np.stack([first, first + 1], axis=1)


def rbf(X: np.ndarray, width: float | None = None) -> np.ndarray:
    """The Gaussian kernel; the default width is the median distance divided by the square root of 2."""
    squares = (X**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares[None] - 2.0 * X @ X.T, 0.0)
    return np.exp(-distances / (np.median(distances[:500, :500]) if width is None else 2.0 * width**2))


def problem(model: csr.Kernel | csr.Linear, instance: Instance, k: int) -> csr.Problem:
    """The mean hinge loss + lam1 ||f||^2 + lam2 times the mean over the pairs."""
    _, y, rows, pairs = instance
    objective = (1 / len(rows)) * csr.MulticlassHinge(y[rows], rows=rows, classes=range(k)) + LAM1 * csr.RKHSNorm()
    return csr.Problem(model, objective + (LAM2 / len(pairs)) * csr.Dissimilarity(pairs))


def hinges(F: Any, Z: Any, instance: Instance, k: int) -> Any:
    """The loss of the labelled scores F and of the pairs with summed scores Z."""
    _, y, rows, pairs = instance
    wrong = (np.arange(k)[None, :] != y[rows][:, None]).astype(float)
    loss = cp.sum(cp.multiply(wrong, cp.pos(F + 1.0 / (k - 1)))) / len(rows)
    return loss + LAM2 / len(pairs) * cp.sum(cp.pos(Z - (k - 2) / (k - 1)))


def textbook(gram: np.ndarray) -> Form:
    """Eq. (12): n x k coefficients, scores that sum to zero at all points, one quadratic form for each class."""

    def form(instance: Instance, k: int) -> Any:
        _, _, rows, pairs = instance
        C, b = cp.Variable((len(gram), k)), cp.Variable((1, k))
        F = gram @ C + np.ones((len(gram), 1)) @ b
        norm = cp.sum([cp.quad_form(C[:, j], cp.psd_wrap(gram)) for j in range(k)])
        terms = hinges(F[rows], F[pairs[:, 0]] + F[pairs[:, 1]], instance, k) + LAM1 * norm
        return cp.Problem(cp.Minimize(terms), [F @ np.ones(k) == 0]), lambda: (C.value, b.value.ravel())

    return form


def best_form(gram: np.ndarray) -> Form:
    """Only the rows that the hinges use: Z = G V + q b' for a factor G of their kernel, with V 1 = 0 as sparse rows."""

    def form(instance: Instance, k: int) -> Any:
        _, _, rows, pairs = instance
        count, m = len(rows), len(rows) + len(pairs)
        where = (
            np.concatenate([np.arange(count), np.repeat(np.arange(count, m), 2)]),
            np.concatenate([rows, pairs.ravel()]),
        )
        R = sp.csr_array((np.ones(count + 2 * len(pairs)), where), shape=(m, len(gram)))
        values, vectors = np.linalg.eigh(R @ (R @ gram).T)
        kept = values > 1e-12 * values[-1]
        root, vectors = np.sqrt(values[kept]), vectors[:, kept]
        V, b, Z = cp.Variable((len(root), k)), cp.Variable((1, k)), cp.Variable((m, k))
        q = np.asarray(R.sum(axis=1)).reshape(-1, 1)
        zero_sums = [cp.sum(V, axis=1) == 0, cp.sum(b) == 0]
        links = [(vectors * root) @ V + q @ b == Z, *zero_sums]
        program = cp.Problem(cp.Minimize(hinges(Z[:count], Z[count:], instance, k) + LAM1 * cp.sum_squares(V)), links)
        return program, lambda: (R.T @ ((vectors / root) @ V.value), b.value.ravel())

    return form


def library_form(gram: np.ndarray) -> Form:
    """The form that ``to_cvxpy()`` exports."""

    def form(instance: Instance, k: int) -> Any:
        ours = problem(csr.Kernel(gram, psd=True), instance, k)
        program = ours.to_cvxpy()
        return program, lambda: ours.weights_of(program)

    return form


def ours(work: str, make: Callable[[], csr.Problem], target: str = "", repeats: int = 3) -> tuple[Result, float]:
    """A line for the solver that "auto" chooses, on new problems, and the proved lower bound."""
    times = []
    for _ in range(repeats + 1):
        fresh = make()
        began = time.process_time()
        solution = fresh.solve(tol=TOL)
        times.append(time.process_time() - began)
    gap, seconds = solution.certificate.relative_gap, float(np.median(times[1:]))
    return Result("multiclass", work, solution.solver, seconds, times[0], gap, target), solution.certificate.lower_bound


def theirs(
    work: str, name: str, solver: str, form: Form, instance: Instance, k: int, ours: csr.Problem, optimum: float
) -> Result:
    """A line for CVXPY: the first tolerance that is accurate enough, or the tightest."""
    gap = seconds = float("nan")
    for options in LADDERS[solver]:
        began = time.process_time()
        program, point = form(instance, k)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                program.solve(solver=solver, **options)
            except cp.SolverError:
                continue
        seconds = time.process_time() - began
        if any(variable.value is None for variable in program.variables()):
            continue
        gap = (ours.value(*point()) - optimum) / optimum
        if gap <= TOL:
            break
    return Result("multiclass", work, f"cvxpy {solver}, {name}", seconds, seconds, gap)


def small(solvers: tuple[str, ...] = ("CLARABEL", "SCS", "OSQP")) -> Iterator[Result]:
    """50 labelled digits and 320 pairs; ECOS and PIQP, and SCS on the textbook form, did not finish within minutes."""
    source, instance = digits()
    gram = rbf(instance[0], 5.0 if source == "USPST" else None)
    work = f"{source}: k = 10, 50 labelled, 320 pairs"
    model = csr.Kernel(gram, psd=True)
    line, bound = ours(work, lambda: problem(model, instance, 10), "1/200 of the best form, 1/800 of the textbook form")
    yield line
    for solver in solvers:
        if solver not in cp.installed_solvers():
            continue
        yield theirs(work, "best form", solver, best_form(gram), instance, 10, problem(model, instance, 10), bound)
    for solver in ("CLARABEL", "SCS"):
        yield theirs(work, "to_cvxpy()", solver, library_form(gram), instance, 10, problem(model, instance, 10), bound)
    yield theirs(work, "textbook", "CLARABEL", textbook(gram), instance, 10, problem(model, instance, 10), bound)


def large() -> Iterator[Result]:
    """500 labelled points and 2,000 pairs, with a Gaussian and a linear kernel."""
    for k, d, target in ((10, 20, "1.5 s"), (26, 30, "3 s"), (100, 50, "12 s")):
        instance = mixture(500, 2000, k, d, 1.0)
        model = csr.Kernel(rbf(instance[0]), psd=True)
        work = f"k = {k}, 500 labelled, 2,000 pairs, RBF"
        yield ours(work, lambda m=model, i=instance, k=k: problem(m, i, k), target, 1)[0]
    for k, d, target in ((10, 20, ""), (100, 50, "12 s")):
        instance = mixture(500, 2000, k, d, 1.0)
        linear = csr.Linear(instance[0] / np.sqrt(d))
        work = f"k = {k}, 500 labelled, 2,000 pairs, linear, d = {d}"
        yield ours(work, lambda m=linear, i=instance, k=k: problem(m, i, k), target, 1)[0]


def table() -> Iterator[Result]:
    """The 70 fits of the published table: seven numbers of pairs for each of ten splits, with one Gram matrix."""
    path = data.folder() / "ssl_matrices" / "uspst.npz"
    if not path.exists():
        return
    stored = np.load(path)
    X, y = stored["X"], stored["y"].astype(int)
    model, times, gaps = csr.Kernel(rbf(X, 5.0), psd=True), [], []
    rows = stored["labeled_idx"][0].astype(int)
    warm = csr.MulticlassHinge(y[rows], rows=rows, classes=range(10)) + csr.RKHSNorm() + csr.Dissimilarity([(0, 1)])
    csr.Problem(model, warm).solve(tol=TOL)  # compiles
    for split in range(10):
        rows, others = (stored[name][split].astype(int) for name in ("labeled_idx", "unlabeled_idx"))
        drawn = np.sort(np.random.default_rng(split).choice(others, size=(2000, 2)), axis=1)
        pairs = np.unique(drawn[y[drawn[:, 0]] != y[drawn[:, 1]]], axis=0)
        pairs = np.random.default_rng(split).permutation(pairs)
        for count in (0, 10, 20, 40, 80, 160, 320):
            objective = (1 / 50) * csr.MulticlassHinge(y[rows], rows=rows, classes=range(10)) + LAM1 * csr.RKHSNorm()
            if count:
                objective = objective + (LAM2 / count) * csr.Dissimilarity(pairs[:count])
            began = time.process_time()
            solution = csr.Problem(model, objective).solve(tol=TOL)
            times.append(time.process_time() - began)
            gaps.append(solution.certificate.relative_gap)
    yield Result("multiclass", "70 fits on USPST, n = 2,007", solution.solver, sum(times), times[0], max(gaps), "2 s")


SECTIONS = {"small": small, "large": large, "table": table}
