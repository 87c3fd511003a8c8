"""The Laplacian elastic net against its peers at equal certified gaps: sections for ``run.py``.

Every library gets the data in its preferred format, prepared before the clock starts: a ``Linear`` model for us, whose
columns are built once ("from rows" includes this step), and CSC or Fortran order for the others. A peer stops by its
own rule, at the loosest of several tolerances for which our certificate of *its* weights is within 1e-4 or 1e-6. The
tolerances are tried once, from loose to tight, within a time limit. Times are CPU seconds, the median of three runs,
with the libraries taking turns. The constants of our solver were tuned on the row marked "seen", on the generated
problems and similar ones, and on the row against CVXPY; baseball/hockey was monitored meanwhile. The other two pairs of
newsgroups were not used for tuning.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import data
import numpy as np
import scipy.sparse as sp
from elastic_net_peers import elastic_net_peers, lasso_peers
from measure import Result, by_cvxpy, lambda_max

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point

ACCURACIES = (1e-4, 1e-6)
REPEATS = 3
#: Seconds for all tolerances of one peer on one problem; a run longer than ``LONG`` seconds is not repeated.
LADDER, LONG = 1.0, 1.0
LASSO, NET = "lasso (lam2 = 0)", "Laplacian elastic net"
HELD_OUT = {
    "autos/motorcycles": ("rec.autos", "rec.motorcycles"),
    "baseball/hockey": ("rec.sport.baseball", "rec.sport.hockey"),
    "christian/religion": ("soc.religion.christian", "talk.religion.misc"),
}

Fit = Callable[[float], tuple[np.ndarray, float]]
Run = Callable[[], Any]


def certified_gap(problem: csr.Problem, coef: Any, intercept: float) -> float:
    """The relative gap of a point, from our certificate."""
    return certify_point(problem, *problem.shaped(np.asarray(coef, dtype=float), intercept)).relative_gap


def climb(problem: csr.Problem, fit: Fit, seconds: float) -> dict[float, tuple[float, float]]:
    """For each accuracy, the loosest tolerance of the peer that reaches it and the gap, within the time limit."""
    found: dict[float, tuple[float, float]] = {}
    fit(1e-3)  # compile first, so that the times exclude compilation
    began, tolerance, gap = time.process_time(), 1e-2, np.inf
    while len(found) < len(ACCURACIES) and tolerance > 1e-13:
        gap = certified_gap(problem, *fit(tolerance))
        for accuracy in ACCURACIES:
            if gap <= accuracy:
                found.setdefault(accuracy, (tolerance, gap))
        if time.process_time() - began > seconds:
            break
        tolerance /= 10**0.5
    return found


def race(runs: dict[str, Run], warm: bool = False) -> dict[str, tuple[float, float]]:
    """CPU seconds of all runs, taken in turn: the median of those after the first, and the first.

    The libraries before a run leave little of its data and code in the caches of the processor. With ``warm``, a run of
    the same library that is not timed comes directly before it.
    """
    first, times = {}, {name: [] for name in runs}
    for turn in range(REPEATS + 1):
        for name, run in runs.items():
            if turn > 1 and first[name] > LONG:
                continue
            if warm:
                run()
            began = time.process_time()
            run()
            (times[name].append if turn else lambda t, name=name: first.setdefault(name, t))(
                time.process_time() - began
            )
    return {name: (float(np.median(times[name])), first[name]) for name in runs}


def contest(
    section: str, work: str, make: Callable[[], csr.Problem], ours: dict[str, Callable[[float], Run]],
    fits: dict[str, Fit], target: str, seconds: float = LADDER, warm: bool = False,
) -> Iterator[Result]:  # fmt: skip
    """Compare our solvers and the peers at each accuracy; ours come first. See :func:`race` for ``warm``."""
    problem = make()
    ladders = {name: climb(problem, fit, seconds) for name, fit in fits.items()}
    for accuracy in ACCURACIES:
        runs = {name: prepared(accuracy) for name, prepared in ours.items()}
        gaps = {name: run().certificate.relative_gap for name, run in runs.items()}
        for name, found in ladders.items():
            if accuracy in found:
                tolerance, gaps[name] = found[accuracy]
                runs[name] = lambda fit=fits[name], tolerance=tolerance: fit(tolerance)
        for name, (median, first) in race(runs, warm).items():
            mark = target if name == next(iter(ours)) else ""
            yield Result(section, f"{work}, gap {accuracy:g}", name, median, first, gaps[name], mark)
        for name in fits.keys() - runs.keys():
            yield Result(
                section, f"{work}, gap {accuracy:g}", name, float("nan"), float("nan"), float("nan"), "not reached"
            )


def solving(make: Callable[[], csr.Problem], solver: str = "working_set") -> Callable[[float], Run]:
    """A run that creates the problem and solves it to a given accuracy, without a warning if it fails."""

    def prepared(accuracy: float) -> Run:
        def run() -> csr.Solution:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", csr.InaccurateWarning)
                return make().solve(solver, tol=accuracy, time_limit=60.0)

        return run

    return prepared


def thirty_percent(n: int = 2000, d: int = 600, seed: int = 0) -> tuple[Any, np.ndarray]:
    """A sparse matrix that is nearly dense: 30 % of the entries are nonzero."""
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3))
    w = np.zeros(d)
    w[rng.choice(d, size=d // 10, replace=False)] = 2.0 * rng.normal(size=d // 10)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-(X @ w)))).astype(int)


def instances() -> Iterator[tuple[str, Any, np.ndarray, tuple[float, ...]]]:
    """Name, X, y, and the strengths as fractions of lam_max."""
    if data.available():
        yield "med/space (seen)", *data.newsgroups(data.MED_SPACE)[:2], (0.1, 0.05, 0.01)
        for name, pair in HELD_OUT.items():
            yield name, *data.newsgroups(pair)[:2], (0.05,)
    yield "dense 2,000 x 600", *data.dense_problem(2000, 600), (0.1, 0.05, 0.01)
    yield "30 % CSR 2,000 x 600", *thirty_percent(), (0.1, 0.05, 0.01)
    yield "sparse 2,000 x 30,000", *data.sparse_problem(2000, 30_000), (0.1, 0.05, 0.01)


def lasso() -> Iterator[Result]:
    """lam2 = 0, the problem the peers are made for; with an intercept for peers that do not penalise it."""
    for name, X, y, parts in instances():
        for part in parts:
            lam, loss = part * lambda_max(X, y), csr.Logistic(y)
            for intercept in (False, True) if part == 0.05 else (False,):
                model = csr.Linear(X, intercept=intercept)

                def make(model: Any = model, loss: Any = loss, lam: float = lam) -> csr.Problem:
                    return csr.Problem(model, loss + lam * csr.L1())

                def anew(intercept: bool = intercept, loss: Any = loss, lam: float = lam, X: Any = X) -> csr.Problem:
                    return csr.Problem(csr.Linear(X, intercept=intercept), loss + lam * csr.L1())

                work = f"{name}, {part:g} lam_max, {'free' if intercept else 'no'} intercept"
                ours = {"working_set": solving(make), "working_set, from rows": solving(anew)}
                yield from contest(LASSO, work, make, ours, lasso_peers(X, y, lam, intercept), "<= best peer")


def elastic_net() -> Iterator[Result]:
    """lam2 = 1 with the normalized Laplacian of a word network, and of a ring."""
    cases: list[tuple[str, Any, np.ndarray, csr.Graph, tuple[float, ...]]] = []
    if data.available():
        for name, pair in {"med/space (seen)": data.MED_SPACE, "baseball/hockey": HELD_OUT["baseball/hockey"]}.items():
            X, y = data.newsgroups(pair)[:2]
            graph = data.cosine_graph(X).symmetrized()
            cases.append((name, X, y, graph, (0.1, 0.05) if "seen" in name else (0.05,)))
            frequent = np.sort(np.argsort(-X.sum(axis=0))[:2000])
            part = graph.weights[frequent][:, frequent]
            cases.append((f"{name}, 2,000 words", X[:, frequent], y, csr.Graph(part), (0.05,)))
    cases.append(("dense 2,000 x 600, ring", *data.dense_problem(2000, 600), data.ring_graph(600), (0.05,)))
    for name, X, y, graph, parts in cases:
        model, loss, network = csr.Linear(X), csr.Logistic(y), csr.Laplacian(graph, normalized=True)
        for part in parts:
            lam = part * lambda_max(X, y)

            def make(model: Any = model, loss: Any = loss, lam: float = lam, network: Any = network) -> csr.Problem:
                return csr.Problem(model, loss + lam * csr.L1() + 0.5 * network)

            ours = {"working_set": solving(make), "irls": solving(make, "irls")}
            fits = elastic_net_peers(X, y, lam, graph.laplacian(normalized=True))
            yield from contest(NET, f"{name}, {part:g} lam_max", make, ours, fits, "<= 1/3 of the others", 12.0)


def against_cvxpy() -> Iterator[Result]:
    """1,000 x 2,000 against CVXPY, with sparse and dense X; each CVXPY solver runs once."""
    network = csr.Laplacian(data.ring_graph(2000), normalized=True)
    for name, (X, y) in {
        "sparse": data.sparse_problem(1000, 2000, 0.02),
        "dense": data.dense_problem(1000, 2000),
    }.items():
        model, loss, lam, work = csr.Linear(X), csr.Logistic(y), 0.05 * lambda_max(X, y), f"1,000 x 2,000 {name}, ring"

        def make(model: Any = model, loss: Any = loss, lam: float = lam) -> csr.Problem:
            return csr.Problem(model, loss + lam * csr.L1() + 1.0 * network)

        def anew(X: Any = X, loss: Any = loss, lam: float = lam) -> csr.Problem:
            return csr.Problem(csr.Linear(X), loss + lam * csr.L1() + 1.0 * network)

        runs = {"working_set": solving(make)(1e-6), "working_set, from rows": solving(anew)(1e-6)}
        gap, mark = runs["working_set"]().certificate.relative_gap, "1/500 of CLARABEL, 1/50 of SCS"
        for which, (median, first) in race(runs).items():
            yield Result(NET, work, which, median, first, gap, mark)
        yield from by_cvxpy(NET, work, make)


def growth() -> Iterator[Result]:
    """Time against n and against d over two decades, with the exponent fitted so far."""
    for what, sizes in {
        "n": [(n, 2000) for n in (300, 1000, 3000, 10_000, 30_000)],
        "d": [(1000, d) for d in (1000, 3000, 10_000, 30_000, 100_000)],
    }.items():
        grown, seconds = [], []
        for n, d in sizes:
            X, y = data.sparse_problem(n, d, density=0.02 if what == "n" else 100 / d)
            model, loss, lam = csr.Linear(X), csr.Logistic(y), 0.05 * lambda_max(X, y)
            network = csr.Laplacian(data.ring_graph(d), normalized=True)

            def make(model: Any = model, loss: Any = loss, lam: float = lam, network: Any = network) -> csr.Problem:
                return csr.Problem(model, loss + lam * csr.L1() + 0.5 * network)

            run = solving(make)(1e-6)
            gap = run().certificate.relative_gap
            median, first = race({"working_set": run})["working_set"]
            grown.append(n if what == "n" else d)
            seconds.append(median)
            slope = f"exponent {np.polyfit(np.log(grown), np.log(seconds), 1)[0]:.2f}" if len(grown) > 2 else ""
            work = f"growth with {what}: {n:,} x {d:,}, {X.nnz:,} nonzeros"
            yield Result(NET, work, "working_set", median, first, gap, slope)


SECTIONS = {
    "lasso": lasso,
    "elastic_net": elastic_net,
    "elastic_net_cvxpy": against_cvxpy,
    "elastic_net_growth": growth,
}
NEED_NEWSGROUPS = {"lasso", "elastic_net"}
