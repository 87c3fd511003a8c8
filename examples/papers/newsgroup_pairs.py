"""The four newsgroup pairs as both text papers use them: word counts, a development part, and tuning on it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

import cvxstructreg as csr
from cvxstructreg.datasets import DataNotFoundError, fetch_20newsgroups, load_corpus

PAIRS = ("science", "sports", "religion", "computer")
#: A function from a training part to a problem, by its hyperparameters.
Make = Callable[["Part", dict[str, float]], csr.Problem]


@dataclass(frozen=True, eq=False)
class Part:
    """Documents as counts, their labels (0 or 1) and their texts."""

    X: Any
    y: Any
    texts: list[str]


@dataclass(frozen=True, eq=False)
class Pair:
    """A pair of newsgroups, split for tuning and for the test."""

    name: str
    vectorizer: Any
    training: Part  # 80 % of the training documents
    development: Part  # the other 20 %
    whole: Part  # both
    test: Part


@dataclass(frozen=True, eq=False)
class Fit:
    """A model after tuning: accuracies and size in percent, and what was chosen."""

    accuracy: float
    development: float
    size: float
    chosen: dict[str, float]
    gap: float
    coef: Any


def load_pair(name: str, data_home: str | None, quick: bool, seed: int) -> Pair:
    """Counts of words that occur in at least two training documents, headers kept."""
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


def accuracy(part: Part, coef: Any, intercept: float) -> float:
    """Percent of the documents on the right side."""
    return 100.0 * float(np.mean((part.X @ coef + intercept > 0) == (part.y == 1)))


def tuned(pair: Pair, make: Make, grid: Iterable[dict[str, float]], solver: str = "auto") -> Fit:
    """Choose on the development part (ties go to the sparsest model), fit on both parts, and test.

    ``rho`` and ``max_iter`` in a point of the grid are options of the solver, the rest hyperparameters of the problem.
    """
    best: tuple[float, float, dict[str, float]] | None = None
    previous = None
    for point in grid:
        solution = _solved(make(pair.training, point), point, solver, previous)
        previous = solution if solver == "auto" else None
        right = accuracy(pair.development, solution.coef, solution.intercept)
        size = float(np.count_nonzero(solution.coef))
        if best is None or (right, -size) > (best[0], -best[1]):
            best = right, size, point
    assert best is not None
    right, _, chosen = best
    solution = _solved(make(pair.whole, chosen), chosen, solver, None)
    return Fit(
        accuracy(pair.test, solution.coef, solution.intercept),
        right,
        100.0 * np.count_nonzero(solution.coef) / solution.coef.size,
        chosen,
        solution.certificate.error,
        solution.coef,
    )


def _solved(problem: csr.Problem, point: dict[str, float], solver: str, start: Any) -> csr.Solution:
    options: dict[str, Any] = {name: point[name] for name in ("rho", "max_iter") if name in point}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)  # truncation is asked for; the gap is reported
        return problem.solve(solver, tol=1e-4, warm_start=start, **options)
