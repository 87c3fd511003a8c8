"""Manifold regularization with mixed graphs: our solvers against CVXPY, libsvm, a direct use of eq. (5), and LU.

Times are CPU seconds on one thread. For our solvers and libsvm, they are medians of several runs in turn after one
warm-up run each; for CVXPY and LU, of one run. Our times include the certificate of a relative gap of 1e-6. CVXPY's
solvers and libsvm get the loosest of a few tolerances for which the objective of our problem, at their weights, is
within 1e-6 of the proved bound. "gap" is this distance, or the certified gap for our solvers. A pass is one product
with X, one with the graph and one with X', computed by SciPy.

All Gram matrices are Gaussian kernels, which are positive semidefinite by construction. We pass psd=True, because eq.
(5), libsvm and LU do not check the matrix either. The rows "gram proved" are without psd=True: the time then includes
the proof, a Cholesky factorisation of gram.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from measure import Result
from sklearn.neighbors import kneighbors_graph
from sklearn.svm import SVC

import cvxstructreg as csr

SECTION, TOL = "manifold", 1e-6
LAM1, LAM2 = 0.05, 0.2
#: Tolerances from loose to tight, as options of each solver.
LADDERS: dict[str, tuple[dict[str, Any], ...]] = {
    "CLARABEL": tuple({"tol_gap_rel": t, "tol_gap_abs": t, "tol_feas": t, "max_threads": 1} for t in (1e-6, 1e-8)),
    "SCS": tuple({"eps_abs": t, "eps_rel": t, "max_iters": 50_000} for t in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)),
    "OSQP": tuple({"eps_abs": t, "eps_rel": t, "max_iter": 50_000} for t in (1e-4, 1e-5, 1e-6, 1e-7)),
    "ECOS": tuple({"abstol": t, "reltol": t, "feastol": t} for t in (1e-6, 1e-8)),
    "PIQP": ({}, {"eps_abs": 1e-10, "eps_rel": 1e-10}),
    "HIGHS": ({},),
}
SVM_TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


class Instance:
    """Two Gaussian classes with a Gaussian kernel, ten neighbours per point, n / 10 dissimilar pairs and 50 labels."""

    def __init__(self, n: int, labels: int = 50, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(n) < 0.5, 1, -1)
        X = rng.normal(size=(n, 50))
        X[:, :2] += 1.3 * y[:, None]
        squares = (X**2).sum(axis=1)
        gram = np.exp(-np.maximum(squares[:, None] + squares[None] - 2.0 * X @ X.T, 0.0) / 200.0)
        self.gram, self.y, self.n = (gram + gram.T) / 2, y, n
        near = sp.csr_array(kneighbors_graph(X, 10))
        near = near.maximum(near.T)
        i, j = rng.integers(0, n, size=(2, n // 5))
        apart = _symmetric(i[y[i] != y[j]], j[y[i] != y[j]], n)
        self.graph = csr.Graph(sp.csr_array(near - near.multiply(apart) - apart))
        self.rows = rng.choice(n, labels, replace=False)

    @property
    def labels(self) -> np.ndarray:
        """The labels of the labelled rows."""
        return self.y[self.rows]

    def problem(self, loss: Any, how: str = "on_function", intercept: bool = True, psd: bool = True) -> csr.Problem:
        """Sum of losses + lam1 ||h||^2 + lam2 times the normalized graph."""
        graph = getattr(csr.Laplacian(self.graph, normalized=True), how)()
        return csr.Problem(csr.Kernel(self.gram, intercept, psd), loss + LAM1 * csr.RKHSNorm() + LAM2 * graph)


def _symmetric(i: np.ndarray, j: np.ndarray, n: int) -> Any:
    half = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
    return ((half + half.T) > 0).astype(float)


def cpu(run: Callable[[], Any]) -> tuple[Any, float]:
    """The result and its CPU time."""
    began = time.process_time()
    result = run()
    return result, time.process_time() - began


def in_turn(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[Any, float, float]]:
    """The last result, the median time and the first time of each run, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    results: dict[str, Any] = {}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            results[name], seconds = cpu(run)
            times[name].append(seconds)
    return {name: (results[name], float(np.median(t[1:] or t)), t[0]) for name, t in times.items()}


def direct_form(instance: Instance) -> tuple[cp.Problem, Callable[[], tuple[np.ndarray, float]]]:
    """h is a variable with h = G v for a factor G of gram; the graph term is a sparse quadratic form of h."""
    values, vectors = np.linalg.eigh(instance.gram)
    kept = values > 1e-12 * values[-1]
    root, vectors = np.sqrt(values[kept]), vectors[:, kept]
    v, h, b = cp.Variable(len(root)), cp.Variable(instance.n), cp.Variable()
    L = sp.csc_array(instance.graph.laplacian(normalized=True))
    loss = cp.sum(cp.pos(1 - cp.multiply(instance.labels, h[instance.rows] + b)))
    terms = loss + LAM1 * cp.sum_squares(v) + LAM2 * cp.quad_form(h, cp.psd_wrap(L))
    return cp.Problem(cp.Minimize(terms), [h == (vectors * root) @ v]), lambda: ((vectors / root) @ v.value, b.value)


def textbook_form(instance: Instance) -> tuple[cp.Problem, Callable[[], tuple[np.ndarray, float]]]:
    """As in the paper: a sum over edges of differences of the scores gram theta, and theta' gram theta."""
    theta, b = cp.Variable(instance.n), cp.Variable()
    h = instance.gram @ theta
    graph = cp.sum_squares(instance.graph.incidence(normalized=True) @ h)
    loss = cp.sum(cp.pos(1 - cp.multiply(instance.labels, h[instance.rows] + b)))
    terms = loss + LAM1 * cp.quad_form(theta, cp.psd_wrap(instance.gram)) + LAM2 * graph
    return cp.Problem(cp.Minimize(terms)), lambda: (theta.value, b.value)


def dense_form(instance: Instance) -> tuple[cp.Problem, Callable[[], tuple[np.ndarray, float]]]:
    """One dense quadratic form of theta, lam1 gram + lam2 gram M gram, written by hand."""
    theta, b = cp.Variable(instance.n), cp.Variable()
    bent = instance.gram @ (instance.graph.laplacian(normalized=True) @ instance.gram)
    quadratic = LAM1 * instance.gram + LAM2 * (bent + bent.T) / 2
    loss = cp.sum(cp.pos(1 - cp.multiply(instance.labels, instance.gram[instance.rows] @ theta + b)))
    return cp.Problem(cp.Minimize(loss + cp.quad_form(theta, cp.psd_wrap(quadratic)))), lambda: (theta.value, b.value)


def library_form(instance: Instance) -> tuple[cp.Problem, Callable[[], tuple[np.ndarray, float]]]:
    """The form that ``to_cvxpy()`` exports."""
    ours = instance.problem(csr.Hinge(instance.labels, rows=instance.rows))
    program = ours.to_cvxpy()
    return program, lambda: ours.weights_of(program)


def by_cvxpy(work: str, form: Any, name: str, solver: str, instance: Instance, ours: Any, bound: float) -> Result:
    """A line for the first tolerance that is accurate enough, or for the tightest."""
    gap = seconds = float("nan")
    for options in LADDERS[solver]:

        def run(options: dict[str, Any] = options) -> Any:
            program, point = form(instance)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program.solve(solver=solver, **options)
            return point

        try:
            point, seconds = cpu(run)
            gap = (ours.value(*point()) - bound) / bound
        except (cp.SolverError, TypeError, ValueError):
            continue
        if gap <= TOL:
            break
    return Result(SECTION, work, f"cvxpy {solver}, {name}", seconds, seconds, gap)


def subtracted(instance: Instance) -> np.ndarray:
    """The scores of all points, from a direct use of eq. (5) and libsvm on the labelled rows."""
    M = (LAM2 / LAM1) * instance.graph.laplacian(normalized=True)
    K = instance.gram
    warped = K - K @ np.linalg.solve(np.eye(instance.n) + M @ K, M @ K)
    machine = SVC(C=1 / (2 * LAM1), kernel="precomputed", tol=1e-5)
    machine.fit(warped[np.ix_(instance.rows, instance.rows)], instance.labels)
    return machine.decision_function(warped[:, instance.rows])


def hinge(sizes: tuple[int, ...] = (550, 2000)) -> Iterator[Result]:
    """Hinge loss, graph on h, n = 550 (against CVXPY too) and n = 2,000."""
    for n in sizes:
        instance = Instance(n)
        loss = csr.Hinge(instance.labels, rows=instance.rows)
        known, bare = ([instance.problem(loss, psd=psd) for _ in range(20)] for psd in (True, False))
        runs = {
            "ours": lambda p=known: p.pop().solve(tol=TOL),
            "eq. (5) + SVC": lambda i=instance: subtracted(i),
            "gram proved": lambda p=bare: p.pop().solve(tol=TOL),
        }
        measured = in_turn(runs, 9 if n < 1000 else 4)
        work, (solution, seconds, cold) = f"hinge, n = {n:,}, 50 labelled", measured["ours"]
        target = "1/60 of the best CVXPY form, 1/3.5 of eq. (5)" if n == 550 else "1/6 of eq. (5)"
        yield Result(SECTION, work, solution.solver, seconds, cold, solution.certificate.relative_gap, target)
        scores, seconds, cold = measured["eq. (5) + SVC"]
        error = float(np.abs(scores - solution.scores).max())
        yield Result(SECTION, work, f"eq. (5) + SVC (scores {error:.0e} apart)", seconds, cold, float("nan"))
        yield _proved(work, measured)
        if n > 1000:
            continue
        reference, bound = instance.problem(loss), solution.certificate.lower_bound
        for solver in LADDERS:
            if solver in cp.installed_solvers():
                yield by_cvxpy(work, direct_form, "direct form", solver, instance, reference, bound)
        for solver in LADDERS:
            if solver in cp.installed_solvers() and solver != "ECOS":  # ECOS does not accept quadratic forms directly
                yield by_cvxpy(work, dense_form, "dense form", solver, instance, reference, bound)
        for solver in ("CLARABEL", "SCS"):
            yield by_cvxpy(work, library_form, "to_cvxpy()", solver, instance, reference, bound)
        yield by_cvxpy(work, textbook_form, "textbook", "CLARABEL", instance, reference, bound)


def _proved(work: str, measured: dict[str, tuple[Any, float, float]]) -> Result:
    solution, seconds, cold = measured["gram proved"]
    return Result(SECTION, work, f"{solution.solver}, gram proved", seconds, cold, solution.certificate.relative_gap)


def squared(n: int = 10_000) -> Iterator[Result]:
    """Regularized least squares without intercept, against a dense LU factorisation."""
    instance = Instance(n, 500)
    problem = instance.problem(csr.Squared(instance.labels.astype(float), rows=instance.rows), "on_scores", False)

    def dense() -> np.ndarray:
        system = 2.0 * LAM2 * (instance.graph.laplacian(normalized=True) @ instance.gram)
        system[instance.rows] += instance.gram[instance.rows]
        system[np.diag_indices(n)] += 2.0 * LAM1
        right = np.zeros(n)
        right[instance.rows] = instance.labels
        factors = scipy.linalg.lu_factor(system, overwrite_a=True, check_finite=False)
        return np.asarray(scipy.linalg.lu_solve(factors, right, check_finite=False))

    theta, by_lu = cpu(dense)
    scores = instance.gram @ theta
    for tol in (1e-6, 1e-8, 1e-12, 1e-14):
        solution, seconds = cpu(lambda tol=tol: problem.solve(tol=tol))
        error = np.linalg.norm(solution.scores - scores) / np.linalg.norm(scores)
        work = f"least squares, n = {n:,}, 500 labelled, tol {tol:g} (scores {error:.0e} from LU's)"
        gap = solution.certificate.relative_gap
        yield Result(SECTION, work, solution.solver, seconds, seconds, gap, "1/7 of LU at 1e-8")
        yield Result(SECTION, work, "LU", by_lu, by_lu, problem.value(theta) / solution.certificate.lower_bound - 1)
    _, proof = cpu(csr.Kernel(instance.gram).require_psd)
    work = f"least squares, n = {n:,}: the proof that gram is positive semidefinite, without psd=True"
    yield Result(SECTION, work, "Cholesky", proof, proof, float("nan"))


def documents(n: int = 100_000, d: int = 5_000, labels: int = 500, seed: int = 0) -> tuple[Any, Any, csr.Graph, Any]:
    """Documents of 50 words with Zipf frequencies in two classes; six random neighbours, 90 % of the same class."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    law = 1.0 / np.arange(1, d + 1) ** 0.7
    tilt = np.exp(0.4 * rng.normal(size=d))
    draws = [rng.choice(d, size=(n, 50), p=p / p.sum()) for p in (law * tilt, law / tilt)]
    words = np.where((y > 0)[:, None], *draws)
    X = sp.csr_array((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 50)), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt(X.multiply(X).sum(axis=1))) @ X)
    up, down = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    i = np.repeat(np.arange(n), 6)
    same = rng.random(len(i)) < 0.9
    j = np.where((y[i] > 0) == same, rng.choice(up, len(i)), rng.choice(down, len(i)))
    near = _symmetric(i[i != j], j[i != j], n)
    apart = _symmetric(rng.choice(up, n // 50), rng.choice(down, n // 50), n)
    graph = csr.Graph(sp.csr_array(near - near.multiply(apart) - apart))
    return X, y, graph, rng.choice(n, labels, replace=False)


def linear(n: int = 100_000, d: int = 5_000) -> Iterator[Result]:
    """A linear model of sparse documents, without a Gram matrix, at two strengths."""
    X, y, graph, rows = documents(n, d)
    M, w = graph.laplacian(normalized=True), np.random.default_rng(0).normal(size=d)
    for lam1, lam2 in ((0.1, 1e-3), (1e-3, 1e-2)):
        for name, loss, passes in (
            ("squared", csr.Squared(y[rows].astype(float), rows=rows), 200),
            ("squared hinge", csr.SquaredHinge(y[rows], rows=rows), 400),
            ("hinge", csr.Hinge(y[rows], rows=rows), 600),
        ):
            one = float(np.median([cpu(lambda: X.T @ (M @ (X @ w)))[1] for _ in range(10)]))
            penalty = lam1 * csr.Ridge() + lam2 * csr.Laplacian(graph, normalized=True).on_scores()
            solution, seconds = cpu(lambda loss=loss, p=penalty: csr.Problem(csr.Linear(X), loss + p).solve(tol=TOL))
            work = f"{name}, {n:,} x {d:,} sparse, lam1 = {lam1:g}, lam2 = {lam2:g}: {seconds / one:.0f} passes"
            gap = solution.certificate.relative_gap
            yield Result(SECTION, work, solution.solver, seconds, seconds, gap, f"{passes} passes")


def machine() -> Iterator[Result]:
    """The ordinary support vector machine, without a graph, against libsvm."""
    for n in (500, 2000, 4000):
        instance = Instance(n)
        for lam in (0.5, 0.05, 0.005):
            objective = csr.Hinge(instance.y) + lam * csr.RKHSNorm()
            problems = [csr.Problem(csr.Kernel(instance.gram, psd=True), objective) for _ in range(12)]
            bare = [csr.Problem(csr.Kernel(instance.gram), objective) for _ in range(8)]
            reference = problems.pop()
            bound = problems.pop().solve(tol=1e-9).certificate.lower_bound

            def fit(tol: float, lam: float = lam, instance: Instance = instance) -> tuple[np.ndarray, float]:
                svc = SVC(C=1 / (2 * lam), kernel="precomputed", tol=tol, cache_size=1000)
                svc.fit(instance.gram, instance.y)
                theta = np.zeros(instance.n)
                theta[svc.support_] = svc.dual_coef_[0]
                return theta, float(svc.intercept_[0])

            for tol in SVM_TOLERANCES:
                gap = reference.value(*fit(tol)) / bound - 1
                if gap <= TOL:
                    break
            runs = {
                "ours": lambda p=problems: p.pop().solve(tol=TOL),
                "libsvm": lambda tol=tol, fit=fit: fit(tol),
                "gram proved": lambda p=bare: p.pop().solve(tol=TOL),
            }
            measured = in_turn(runs, 7)
            work, (solution, seconds, cold) = f"no graph, n = {n:,}, lam1 = {lam:g}", measured["ours"]
            proved = solution.certificate.relative_gap
            yield Result(SECTION, work, solution.solver, seconds, cold, proved, "at most 1.2 x libsvm")
            yield Result(SECTION, work, f"libsvm, tol {tol:g}", *measured["libsvm"][1:], gap)
            yield _proved(work, measured)


SECTIONS = {"hinge": hinge, "squared": squared, "linear": linear, "machine": machine}
