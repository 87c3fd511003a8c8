"""The benchmarks of the linear methods: our solvers and their peers side by side, one thread, as ratios.

    python benchmarks/run.py                       # all that the machine has data and peers for
    python benchmarks/run.py network lasso         # some sections
    python benchmarks/run.py --json out.json --figure out.png

A time is the median of three runs after one that warms caches and compilers (reported as "cold"). Our times include
the certificate. A peer is stopped by its own rule with a tolerance tightened until our certificate of *its* weights
says that it is as good as we are; "gap" is what that certificate says.
"""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import asdict
from datetime import date
from typing import Any

import data
import numpy as np
import peers
from measure import Result, lambda_max, ours, peer, timed
from threadpoolctl import threadpool_limits

import cvxstructreg as csr


def network() -> list[Result]:
    """Feature network on sci.med / sci.space against plain ridge by scikit-learn."""
    X, y, _, _ = data.newsgroups(data.MED_SPACE)
    graph, section, results = data.cosine_graph(X), "feature network, med/space", []
    beta = 0.1
    for ratio, target in ((10, "<= 1.2 x ridge"), (1000, "<= 2.5 x ridge"), (10_000, "<= 5 x ridge")):

        def make(ratio: float = ratio) -> csr.Problem:
            penalty = ratio * beta * csr.FeatureNetwork(graph) + beta * csr.Ridge()
            return csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty)

        work = f"alpha/beta = {ratio:,}"
        results.append(ours(section, work, make, "newton", 1e-6, target=target))
        results.append(ours(section, work, make, "lbfgs", 1e-6))
        results.append(ours(section, work, make, "lbfgs", 1e-12, scaled=False, max_iter=200))
        _, seconds, cold = timed(lambda: peers.sklearn_ridge(X, y, beta)(1e-6))
        results.append(Result(section, work, "sklearn ridge lbfgs", seconds, cold, float("nan")))
    return results


def classes() -> list[Result]:
    """Feature network on all 20 classes against plain multinomial ridge."""
    X, y, _, _ = data.newsgroups(None, 10)
    graph, section, work = data.cosine_graph(X), "feature network, 20 classes", "alpha/beta = 10"

    def make() -> csr.Problem:
        return csr.Problem(csr.Linear(X), csr.Multinomial(y) + 1.0 * csr.FeatureNetwork(graph) + 0.1 * csr.Ridge())

    results = [ours(section, work, make, "newton", 1e-6, target="<= 0.8 x ridge", repeats=1)]
    _, seconds, cold = timed(lambda: peers.sklearn_ridge(X, y, 0.1)(1e-6), 1)
    return [*results, Result(section, work, "sklearn ridge lbfgs", seconds, cold, float("nan"))]


def lasso() -> list[Result]:
    """The Laplacian elastic net without Laplacian: the lasso, where the peers are at home."""
    results = []
    sets = {
        "med/space": data.newsgroups(data.MED_SPACE)[:2],
        "dense 2,000 x 600": data.dense_problem(2000, 600),
        "sparse 2,000 x 30,000": data.sparse_problem(2000, 30_000),
    }
    for work, (X, y) in sets.items():
        lam = 0.05 * lambda_max(X, y)

        def make(X: Any = X, y: Any = y, lam: float = lam) -> csr.Problem:
            return csr.Problem(csr.Linear(X), csr.Logistic(y) + lam * csr.L1())

        section = "lasso (lam2 = 0)"
        results.append(ours(section, work, make, "working_set", 1e-6, target="<= best peer"))
        for name, fit in peers.lasso(X, y, lam).items():
            results.append(peer(section, work, make(), name, fit, 1e-6))
    return results


def elastic_net() -> list[Result]:
    """The Laplacian elastic net proper."""
    X, y, _, _ = data.newsgroups(data.MED_SPACE)
    graph = data.cosine_graph(X).symmetrized()
    lam, section, work = 0.05 * lambda_max(X, y), "Laplacian elastic net", "med/space, lam2 = 1"

    def make() -> csr.Problem:
        return csr.Problem(
            csr.Linear(X), csr.Logistic(y) + lam * csr.L1() + 0.5 * csr.Laplacian(graph, normalized=True)
        )

    results = [
        ours(section, work, make, "working_set", 1e-6, target="<= 1/3 of the others"),
        ours(section, work, make, "irls", 1e-6),
        ours(section, work, make, "fista", 1e-6, repeats=1, time_limit=60.0),
    ]
    for name, fit in peers.elastic_net(X, y, lam, graph.laplacian(normalized=True)).items():
        results.append(peer(section, work, make(), name, fit, 1e-6))
    return results


def sentences() -> list[Result]:
    """The sentence regularizer."""
    X, y, texts, vectorizer = data.newsgroups(data.MED_SPACE)
    groups, section = data.sentences(texts, vectorizer), "sentence group lasso, med/space"
    work = f"{len(groups):,} sentences"

    def make() -> csr.Problem:
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.5 * csr.L1() + 0.1 * csr.GroupLasso(groups))

    results = [ours(section, work, make, "group_newton", 1e-6, target="<= 1/100 of sentence_admm to 1e-2")]
    for rho in (1.0, 10.0):
        slow = ours(section, work, make, "sentence_admm", 1e-2, rho=rho, time_limit=120.0, max_iter=10_000, repeats=0)
        results.append(slow)
    return results


def against_cvxpy() -> list[Result]:
    """Our solvers against CVXPY with Clarabel and SCS at medium sizes."""
    X, y = data.dense_problem(1000, 2000)
    ring = data.ring_graph(2000)
    X3, y3 = data.sparse_problem(200, 1900, 0.02)
    groups = data.random_groups(1900, 2000)
    lam = 0.05 * lambda_max(X, y)
    works = {
        ("feature network 1,000 x 2,000", "newton", "1/500 of Clarabel, 1/50 of SCS"): lambda: csr.Problem(
            csr.Linear(X), csr.Logistic(y) + 10.0 * csr.FeatureNetwork(ring) + 1.0 * csr.Ridge()
        ),
        ("Laplacian elastic net 1,000 x 2,000", "working_set", "1/500 of Clarabel, 1/50 of SCS"): lambda: csr.Problem(
            csr.Linear(X), csr.Logistic(y) + lam * csr.L1() + 1.0 * csr.Laplacian(ring, normalized=True)
        ),
        ("group lasso 200 x 1,900, 2,000 groups", "group_newton", "1/200 and 1/40"): lambda: csr.Problem(
            csr.Linear(X3), csr.Logistic(y3) + 0.1 * csr.L1() + 0.1 * csr.GroupLasso(groups)
        ),
    }
    results = []
    for (work, solver, target), make in works.items():
        results.append(ours("against CVXPY", work, make, solver, 1e-6, target=target))
        for name, options in (
            ("CLARABEL", {"tol_gap_rel": 1e-8}),
            ("SCS", {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 20_000}),
        ):
            slow = ours("against CVXPY", work, make, "cvxpy", 1e-6, cvxpy_solver=name, cvxpy_options=options, repeats=0)
            results.append(Result(**(asdict(slow) | {"solver": f"cvxpy {name}"})))
    return results


SECTIONS = {
    "network": network,
    "classes": classes,
    "lasso": lasso,
    "elastic_net": elastic_net,
    "sentences": sentences,
    "cvxpy": against_cvxpy,
}
NEED_NEWSGROUPS = {"network", "classes", "lasso", "elastic_net", "sentences"}


def table(results: list[Result]) -> str:
    """A Markdown table; ratios are to the first line (ours) of the same work."""
    lines = [
        "| section | work | solver | seconds | x ours | certified gap | first run | target |",
        "|---|---|---|---|---|---|---|---|",
    ]
    base: dict[tuple[str, str], float] = {}
    for r in results:
        ratio = r.seconds / base.setdefault((r.section, r.work), r.seconds)
        gap = "-" if np.isnan(r.gap) else f"{r.gap:.0e}"
        cells = (r.section, r.work, r.solver, f"{r.seconds:.3g}", f"{ratio:.2f}", gap, f"{r.cold:.3g}", r.target)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(results: list[Result], path: str) -> None:
    """Times relative to ours, one bar for each line."""
    import matplotlib.pyplot as plt

    base: dict[tuple[str, str], float] = {}
    ratios = [r.seconds / base.setdefault((r.section, r.work), r.seconds) for r in results]
    labels = [f"{r.section}: {r.work} | {r.solver}" for r in results]
    _, axes = plt.subplots(figsize=(9, 0.25 * len(results) + 1.5), layout="constrained")
    axes.barh(labels, ratios, color=["tab:blue" if ratio == 1 else "tab:gray" for ratio in ratios])
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("time relative to ours (blue)")
    plt.savefig(path, dpi=150)


def main() -> None:
    """Run the sections asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"some of {', '.join(SECTIONS)} (default all)")
    parser.add_argument("--json", help="write the results here too")
    parser.add_argument("--figure", help="draw the ratios here (needs matplotlib)")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    results: list[Result] = []
    with threadpool_limits(1):
        for name in options.sections or SECTIONS:
            if name in NEED_NEWSGROUPS and not data.available():
                print(f"left out {name}: 20 Newsgroups not found in {data.folder()} (set CVXSTRUCTREG_DATA)")
                continue
            results += SECTIONS[name]()
            print(f"done: {name}", flush=True)
    print(f"\n{date.today()}, {platform.machine()}, Python {platform.python_version()}, one thread\n")
    print(table(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([asdict(result) for result in results], file, indent=2)
    if options.figure:
        figure(results, options.figure)


if __name__ == "__main__":
    main()
