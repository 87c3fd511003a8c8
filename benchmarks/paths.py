"""Paths of fifty points and their cross-validation on sci.med / sci.space, in CPU seconds.

A path is compared with the hardest of its points, solved alone from zero; both times include the construction of the
problem. The cross-validation of the sentence regularizer is compared with one fit of the paper's ADMM (100 iterations)
at the chosen strength. Only the CPU time of this process is measured, so folds run one after the other. Compared runs
take turns.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import data
import numpy as np
from measure import Result

import cvxstructreg as csr
from cvxstructreg.estimators import GroupLassoClassifierCV
from cvxstructreg.paths import Path, lambda_max, path
from cvxstructreg.paths.strength import sparsifying_terms, with_strength

N_POINTS, SMALLEST, REPEATS = 50, 0.01, 2


def cpu(run: Callable[[], Any]) -> tuple[Any, float]:
    """The result and its CPU seconds."""
    began = time.process_time()
    result = run()
    return result, time.process_time() - began


def against_hardest(section: str, make: Callable[[], csr.Problem]) -> list[Result]:
    """A path with warm starts, and the hardest of every seventh of its points (including the last) from zero."""
    strengths = lambda_max(make()) * np.geomspace(1.0, SMALLEST, N_POINTS)
    paths, hardest = [], []
    gap = 0.0
    for _ in range(REPEATS + 1):
        points, seconds = cpu(lambda: path(make(), strengths=strengths))
        paths.append(seconds)
        hardest.append(max(single_seconds(make, float(strength)) for strength in strengths[::-7]))
        gap = max(gap, float(points.gaps.max()))
    work = f"{N_POINTS} points from lambda_max to {SMALLEST:g} lambda_max"
    return [
        Result(section, work, "hardest single fit", float(np.median(hardest[1:])), hardest[0], gap),
        Result(section, work, "path", float(np.median(paths[1:])), paths[0], gap, "<= 5 x hardest"),
    ]


def single_seconds(make: Callable[[], csr.Problem], strength: float) -> float:
    """The time to create and solve the problem of one point from zero."""

    def run() -> csr.Solution:
        problem = make()
        return with_strength(problem, strength, sparsifying_terms(problem)).solve()

    return cpu(run)[1]


def elastic_net() -> list[Result]:
    """The Laplacian elastic net."""
    X, y, _, _ = data.newsgroups(data.MED_SPACE)
    graph = data.cosine_graph(X).symmetrized()

    def make() -> csr.Problem:
        penalty = csr.L1() + 0.5 * csr.Laplacian(graph, normalized=True)
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty)

    return against_hardest("path: Laplacian elastic net", make)


def sentences() -> list[Result]:
    """The sentence regularizer."""
    X, y, texts, vectorizer = data.newsgroups(data.MED_SPACE)
    groups = data.sentences(texts, vectorizer)

    def make() -> csr.Problem:
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.5 * csr.L1() + 0.1 * csr.GroupLasso(groups))

    return against_hardest("path: sentence group lasso", make)


def cross_validation() -> list[Result]:
    """Five folds of fifty points of the sentence regularizer, and one fit of the paper's ADMM."""
    X, y, texts, vectorizer = data.newsgroups(data.MED_SPACE)
    groups = data.sentences(texts, vectorizer)
    estimator = GroupLassoClassifierCV(groups, lam_group=0.1, lam_l1=0.5, n_strengths=N_POINTS, smallest=SMALLEST)
    model, seconds = cpu(lambda: estimator.fit(X, y))
    problem = model.solution_.problem
    section, work = "cross-validation: sentence group lasso", f"5 folds x {N_POINTS} points, and the fit on all rows"
    assert isinstance(model.path_, Path)
    gap = float(model.path_.gaps.max())
    results = [Result(section, work, "GroupLassoClassifierCV", seconds, seconds, gap, "<= a few ADMM fits")]
    for rho in (1.0, 10.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            solution, slow = cpu(lambda rho=rho: problem.solve("sentence_admm", rho=rho, max_iter=100))  # type: ignore[misc]
        name = f"sentence_admm, one fit, 100 iterations, rho={rho:g}"
        results.append(Result(section, work, name, slow, slow, solution.certificate.relative_gap))
    return results


SECTIONS = {
    "path_elastic_net": elastic_net,
    "path_sentences": sentences,
    "path_cross_validation": cross_validation,
}
NEED_NEWSGROUPS = set(SECTIONS)
