"""Feature network regularization against plain ridge, the paper's L-BFGS and CVXPY: sections for ``run.py``.

Times are CPU seconds on one thread, with the compared runs taking turns: the median of three runs after one that warms
caches and compilers ("cold"), or of fewer runs if one takes minutes. Our problems are created anew for each run. Our
times include the normal form and the certificate, to a certified gap of 1e-6. scikit-learn solves *plain* ridge with
the same beta and without the network, which is the baseline of the targets; its gap is our certificate of this ridge
problem. Words have two or more letters and occur in at least two documents (all 20 groups: ten). The network links each
word to its 25 nearest words by the cosine of their documents, if the cosine is at least 0.10. The constants of the
solver were tuned on sci.med / sci.space; the other pairs are held out.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

import data
import numpy as np
import scipy.sparse as sp
from measure import Result, by_cvxpy
from sklearn.linear_model import LogisticRegression

import cvxstructreg as csr

BETA, TOL, REPEATS = 0.1, 1e-6, 3
#: CPU seconds after which a run is not repeated.
LONG = 20.0
TARGETS = {10: "<= 1.2 x ridge lbfgs, 1/3 of the paper's", 1000: "<= 2.5 x ridge lbfgs", 10_000: "<= 5 x ridge lbfgs"}
HELD_OUT = {
    "baseball/hockey": ("rec.sport.baseball", "rec.sport.hockey"),
    "atheism/christian": ("alt.atheism", "soc.religion.christian"),
    "pc/mac": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
}
KINDS = ("counts", "presence")
COMPILED = "cvxstructreg.solvers.smooth.compiled_newton"

Run = Callable[[], float]


@cache
def groups(categories: tuple[str, ...] | None) -> tuple[Any, np.ndarray, csr.Graph]:
    """Counts, labels and the network of words."""
    X, y, _, _ = data.newsgroups(categories, 2 if categories else 10)
    return X, y, data.cosine_graph(X)


def as_kind(X: Any, kind: str) -> Any:
    """The counts, or the presence of each word."""
    return X if kind == "counts" else sp.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)


def race(section: str, work: str, runs: dict[str, Run], target: str, cold: bool = True) -> list[Result]:
    """Time all runs in turn; each returns the gap it reached. The first run is ours and gets the target."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    gaps = {}
    for _ in range(REPEATS + cold):
        for name, run in runs.items():
            if max(times[name], default=0.0) > LONG:
                continue
            began = time.process_time()
            gaps[name] = run()
            times[name].append(time.process_time() - began)
    results = []
    for name, taken in times.items():
        warm = taken[1:] if cold and len(taken) > 1 else taken
        results.append(Result(section, work, name, float(np.median(warm)), taken[0], gaps[name], target))
        target = ""
    return results


def ours(make: Callable[[], csr.Problem], solver: str, tol: float = TOL, **options: Any) -> Run:
    """A run of one of our solvers on a new problem."""

    def run() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            return float(make().solve(solver, tol=tol, **options).certificate.relative_gap)

    return run


def ridge(X: Any, y: np.ndarray, solver: str, tol: float = 1e-6, max_iter: int = 10_000) -> Run:
    """Plain ridge by scikit-learn in its preferred format; the gap is certified later, outside the timing."""
    rows = sp.csr_matrix(X) if sp.issparse(X) else X
    model = LogisticRegression(C=1.0 / (2.0 * BETA), solver=solver, tol=tol, max_iter=max_iter)

    def run() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows, y)
        return float("nan")

    run.model = model  # type: ignore[attr-defined]
    return run


def with_ridge_gap(results: list[Result], name: str, run: Any, X: Any, y: np.ndarray) -> list[Result]:
    """The results with the certified gap of scikit-learn's weights in its ridge problem."""
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + BETA * csr.Ridge())
    gap = csr.certify(problem, run.model.coef_[0], float(run.model.intercept_[0]), tol=TOL, search=False).relative_gap
    return [Result(**(asdict(r) | {"gap": gap})) if r.solver == name else r for r in results]


def pair(name: str, categories: tuple[str, ...], ratios: tuple[int, ...], all_peers: bool) -> list[Result]:
    """One pair of newsgroups with several strengths of the network."""
    counts, y, graph = groups(categories)
    results = []
    for kind in KINDS:
        X = as_kind(counts, kind)
        for ratio in ratios:

            def make(X: Any = X, ratio: int = ratio) -> csr.Problem:
                penalty = ratio * BETA * csr.FeatureNetwork(graph) + BETA * csr.Ridge()
                return csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty)

            runs = {"newton": ours(make, "newton"), "sklearn ridge lbfgs": ridge(X, y, "lbfgs")}
            if all_peers:
                runs["lbfgs"] = ours(make, "lbfgs")
                runs["lbfgs of the paper, 200 steps"] = ours(make, "lbfgs", 1e-12, scaled=False, max_iter=200)
            if all_peers and ratio == 10:
                runs["sklearn ridge newton-cg"] = ridge(X, y, "newton-cg")
                runs["sklearn ridge saga, 100 epochs"] = ridge(X, y, "saga", max_iter=100)
            work = f"{name}, {kind}, alpha/beta = {ratio:,}"
            found = race("feature network", work, runs, TARGETS[ratio])
            for peer in [x for x in runs if x.startswith("sklearn")]:
                found = with_ridge_gap(found, peer, runs[peer], X, y)
            results += found
    return results


def network() -> list[Result]:
    """sci.med / sci.space with three strengths, counts and presence, and all peers."""
    return pair("med/space", data.MED_SPACE, (10, 1000, 10_000), True)


def held_out() -> list[Result]:
    """The other pairs, which were not used for tuning."""
    results = []
    for name, categories in HELD_OUT.items():
        results += pair(name, categories, (10, 1000, 10_000), False)
    return results


def classes() -> list[Result]:
    """All 20 groups against plain multinomial ridge."""
    counts, y, graph = groups(None)
    results = []
    for kind in KINDS:
        X = as_kind(counts, kind)

        def make(X: Any = X) -> csr.Problem:
            penalty = 10 * BETA * csr.FeatureNetwork(graph) + BETA * csr.Ridge()
            return csr.Problem(csr.Linear(X), csr.Multinomial(y) + penalty)

        runs = {"newton": ours(make, "newton"), "sklearn ridge lbfgs": ridge(X, y, "lbfgs")}
        results += race("feature network, 20 classes", kind, runs, "<= 0.8 x ridge lbfgs", cold=False)
    return results


def cvxpy() -> list[Result]:
    """Against CVXPY, including its compilation, at n = 1,000 and d = 2,000, with sparse and dense X.

    A larger problem is solved first, as in a run of all sections, because small problems use compiled loops only if
    these are in memory. The line "nothing compiled" is measured before.
    """
    results = []
    network = data.ring_graph(2000)
    for name, (X, y) in {
        "sparse": data.sparse_problem(1000, 2000, 0.02),
        "dense": data.dense_problem(1000, 2000),
    }.items():

        def make(X: Any = X, y: Any = y) -> csr.Problem:
            return csr.Problem(csr.Linear(X), csr.Logistic(y) + 10.0 * csr.FeatureNetwork(network) + 1.0 * csr.Ridge())

        section, work = "feature network, CVXPY", f"1,000 x 2,000 {name}"
        plain: list[Result] = []
        if COMPILED not in sys.modules:
            plain = race(section, work, {"newton, nothing compiled": ours(make, "newton")}, "")
            larger, labels = data.sparse_problem(1000, 20_000, 0.02)
            csr.Problem(csr.Linear(larger), csr.Logistic(labels) + 1.0 * csr.Ridge()).solve("newton")
        results += race(section, work, {"newton": ours(make, "newton")}, "1/500 of CLARABEL, 1/50 of SCS") + plain
        results += by_cvxpy(section, work, make)
    return results


def growth() -> list[Result]:
    """Cost over two decades of n and d, with 20 words per document and 6 neighbours per word."""
    results = []
    sizes = [(n, 10_000) for n in (500, 5_000, 50_000)] + [(5_000, d) for d in (1_000, 100_000)]
    for n, d in sizes:
        rng = np.random.default_rng(0)
        frequency = np.cumsum(1.0 / np.arange(1, d + 1) ** 0.7)
        words = np.searchsorted(frequency / frequency[-1], rng.random(20 * n))
        X = sp.csr_array((np.ones(20 * n), (np.repeat(np.arange(n), 20), words)), shape=(n, d))
        z = X @ rng.normal(size=d)
        y = (z + z.std() * rng.normal(size=n) > 0).astype(int)
        network = data.ring_graph(d)

        def make(X: Any = X, y: Any = y, network: csr.Graph = network) -> csr.Problem:
            return csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.0 * csr.FeatureNetwork(network) + BETA * csr.Ridge())

        work = f"n = {n:,}, d = {d:,}, {X.nnz + 6 * d:,} nonzeros"
        results += race("feature network, growth", work, {"newton": ours(make, "newton")}, "near linear")
    return results


SECTIONS = {
    "network": network,
    "held_out": held_out,
    "classes": classes,
    "network_cvxpy": cvxpy,
    "network_growth": growth,
}
NEED_NEWSGROUPS = {"network", "held_out", "classes"}
