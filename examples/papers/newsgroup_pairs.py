"""The four newsgroup pairs of both text papers: word counts, a development part, and tuning on that part."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from published_admm import Stops
from reporting import progress
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

import cvxstructreg as csr
from cvxstructreg.datasets import DataNotFoundError, fetch_20newsgroups, load_corpus
from cvxstructreg.groups import Groups, PunktSplitter, SentenceGroups

PAIRS = ("science", "sports", "religion", "computer")
#: A function from a training part and hyperparameters to a problem.
Make = Callable[["Part", dict[str, float]], csr.Problem]


def strengths(quick: bool) -> tuple[float, ...]:
    """Strengths of the models at their optimum, strongest first."""
    return (10.0, 1.0, 0.1) if quick else (10.0, 1.0, 0.1, 0.01)


@dataclass(frozen=True, eq=False)
class Part:
    """Documents as counts, their labels (0 or 1) and their texts."""

    X: Any
    y: Any
    texts: list[str]


@dataclass(frozen=True, eq=False)
class Pair:
    """A pair of newsgroups, split for tuning and testing."""

    name: str
    vectorizer: Any
    training: Part  # 80 % of the training documents
    development: Part  # the other 20 %
    whole: Part  # both
    test: Part


@dataclass(frozen=True, eq=False)
class Fit:
    """A tuned model: accuracies and size in percent, and the chosen hyperparameters."""

    accuracy: float
    development: float
    size: float
    chosen: dict[str, float]
    gap: float
    coef: Any
    intercept: float


def load_pair(name: str, data_home: str | None, quick: bool, seed: int) -> Pair:
    """Counts of words that occur in at least two training documents, headers included."""
    try:
        train = fetch_20newsgroups("train", name, data_home=data_home, download_if_missing=not quick)
        test = fetch_20newsgroups("test", name, data_home=data_home, download_if_missing=not quick)
        texts, y, test_texts, test_y = train.data, train.target, test.data, test.target
    except DataNotFoundError:
        if not quick:
            raise
        corpus = load_corpus()
        labels = np.unique(corpus.target, return_inverse=True)[1]
        texts, test_texts, y, test_y = train_test_split(
            corpus.data, labels, test_size=0.4, random_state=seed, stratify=labels
        )
    if quick:
        texts, y, test_texts, test_y = texts[:200], y[:200], test_texts[:200], test_y[:200]
    vectorizer = CountVectorizer(min_df=2, token_pattern=r"(?u)\b[a-zA-Z][a-zA-Z]+\b")
    X = sp.csr_array(vectorizer.fit_transform(texts), dtype=float)
    X_test = sp.csr_array(vectorizer.transform(test_texts), dtype=float)
    first, second = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)

    def part(rows: Any) -> Part:
        return Part(X[rows], y[rows], [texts[i] for i in rows])

    whole, test = Part(X, y, list(texts)), Part(X_test, test_y, list(test_texts))
    return Pair(name, vectorizer, part(first), part(second), whole, test)


def sentence_groups(pair: Pair) -> dict[int, Groups]:
    """The groups of the training part and of the whole, by the id of the part; Punkt is trained on the whole."""
    split = PunktSplitter().fit(pair.whole.texts)
    sentences = {text: split(text) for text in pair.whole.texts}
    builder = SentenceGroups(pair.vectorizer, splitter=sentences.__getitem__)
    return {id(part): builder.fit(part.texts).groups_ for part in (pair.training, pair.whole)}


def accuracy(part: Part, coef: Any, intercept: float) -> float:
    """Percentage of correctly classified documents."""
    return 100.0 * float(np.mean((part.X @ coef + intercept > 0) == (part.y == 1)))


def tuned(pair: Pair, make: Make, grid: Iterable[dict[str, float]]) -> Fit:
    """Choose on the development part (ties go to the sparsest model), fit on both parts to the optimum, and test."""
    best: tuple[float, float, dict[str, float]] | None = None
    previous = None
    for point in grid:
        previous = _solved(make(pair.training, point), previous)
        merit = _merit(pair, previous.coef, previous.intercept)
        if best is None or merit > best[:2]:
            best = *merit, point
    assert best is not None
    solution = _solved(make(pair.whole, best[2]), None)
    return _fitted(pair, solution.coef, solution.intercept, best[0], best[2], solution.certificate.error)


def _solved(problem: csr.Problem, start: csr.Solution | None) -> csr.Solution:
    """Solve to a relative gap of 1e-4; solve again from scratch if the warm start fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution = problem.solve(tol=1e-4, warm_start=start)
        if start is not None and solution.certificate.error > 1e-4:
            solution = problem.solve(tol=1e-4)
    if solution.certificate.error > 1e-4:
        progress(f"tolerance not reached: {solution.certificate}")
    return solution


@dataclass(frozen=True)
class Truncation:
    """The grid of the published algorithm, whose early stop is one of its hyperparameters.

    All grid points run to the first stop. The ``kept[0]`` points with the best development accuracies continue to the
    second stop, and the best ``kept[1]`` of those to the third.
    """

    lams: tuple[float, ...] = (1.0, 0.1, 0.01)
    lams1: tuple[float, ...] = (1.0, 0.1, 0.01)
    rhos: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    stops: tuple[int, ...] = (10, 30, 100)
    kept: tuple[int, ...] = (12, 4)


QUICK = Truncation((1.0,), (1.0,), (1.0,), (10, 20), (1,))


def truncated(
    pair: Pair, groups: dict[int, Groups], grid: Truncation, weights_are_counts: bool = False
) -> tuple[Fit, list[dict[str, float]]]:
    """The published algorithm, tuned on the development part, and the development accuracy of every point tried."""
    part, tried, running = pair.training, [], []
    for lam1, rho in itertools.product(grid.lams1, grid.rhos):
        first = None
        for lam in grid.lams:
            point = {"first": lam, "second": lam1, "rho": rho}
            run = Stops(part.X, part.y, groups[id(part)], lam, lam1, rho, weights_are_counts, first)
            first = run.after(1)[0]
            running.append((run, point))
    for stop, kept in zip(grid.stops, (*grid.kept, 0), strict=True):
        merits = []
        for run, point in running:
            (w, b), _ = run.after(stop)
            merits.append(_merit(pair, w, b))
            tried.append((*merits[-1], point | {"max_iter": stop}))
        order = sorted(range(len(running)), key=merits.__getitem__, reverse=True)
        running = [running[i] for i in order if not running[i][0].ended][:kept]
    right, _, chosen = max(tried, key=lambda one: one[:2])
    w, b, gap = published(pair.whole, groups[id(pair.whole)], chosen, weights_are_counts)
    found = [{"development": merit, "features": -size} | point for merit, size, point in tried]
    return _fitted(pair, w, b, right, chosen, gap), found


def published(
    part: Part, groups: Groups, chosen: dict[str, float], weights_are_counts: bool
) -> tuple[Any, float, float]:
    """w and b at the stop of the published algorithm, and their relative gap."""
    lam, lam1 = chosen["first"], chosen["second"]
    run = Stops(part.X, part.y, groups, lam, lam1, chosen["rho"], weights_are_counts=weights_are_counts)
    (w, b), multipliers = run.after(int(chosen["max_iter"]))
    problem = csr.Problem(csr.Linear(part.X), csr.Logistic(part.y) + lam * csr.GroupLasso(groups) + lam1 * csr.L1())
    return w, b, csr.certify(problem, w, b, dual={1: multipliers[:, None]}, tol=1e-4).error


def _merit(pair: Pair, coef: Any, intercept: Any) -> tuple[float, float]:
    """A sort key: development accuracy, then fewer features."""
    return accuracy(pair.development, coef, intercept), -float(np.count_nonzero(coef))


def _fitted(pair: Pair, coef: Any, intercept: Any, right: float, chosen: dict[str, float], gap: float) -> Fit:
    size = 100.0 * np.count_nonzero(coef) / coef.size
    return Fit(accuracy(pair.test, coef, intercept), right, size, chosen, gap, coef, float(intercept))
