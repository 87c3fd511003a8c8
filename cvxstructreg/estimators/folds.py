"""Paths in the folds of a cross-validation, in this process or in several."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.paths.warm_path import follow
from cvxstructreg.runtime import processes

if TYPE_CHECKING:
    from cvxstructreg.estimators.cross_validation import CrossValidated
    from cvxstructreg.estimators.linear import Matrix, TrainingData


class Fold(NamedTuple):
    """Scores and numbers of features along the path of a fold, and the worst certificate that exceeds ``tol``.

    ``endless`` describes each point without a minimiser.
    """

    scores: Matrix
    n_selected: NDArray[np.int64]
    n_unfinished: int
    worst: Certificate | None
    endless: tuple[str, ...] = ()


class Task(NamedTuple):
    """A path in one fold: the estimator with its ratio, all data, the rows of the fold, and the strengths.

    All tasks share the data: joblib writes large arrays to disk once, and all processes map them into memory.
    """

    estimator: CrossValidated
    data: TrainingData
    rows: tuple[NDArray[Any], NDArray[Any]]
    strengths: Matrix


def run_tasks(tasks: Sequence[Task], scorer: Any, weighted: bool, n_jobs: int | None, verbose: bool) -> list[Fold]:
    """Return the results of all tasks, in order.

    With several jobs, the first task runs here. The others run here too, unless processes are clearly faster (see
    :mod:`~cvxstructreg.runtime.processes`).
    """
    folds: list[Fold] = []
    jobs = 1 if len(tasks) < 3 else min(effective_n_jobs(n_jobs), len(tasks))
    apart = False
    if jobs > 1:
        start = processes.Moment.now()
        folds.append(run_task(tasks[0], scorer, weighted))
        work = processes.Work.since(start)
        apart = processes.worth_processes(work, len(tasks) - 1, jobs, processes.start_of(jobs))
    rest = (delayed(run_task)(task, scorer, weighted) for task in tasks[len(folds) :])
    for fold in Parallel(n_jobs=n_jobs if apart else 1, return_as="generator")(rest):
        folds.append(fold)
        if verbose:
            end = "\n" if len(folds) == len(tasks) else ""
            print(f"\r{len(folds)}/{len(tasks)} folds ", end=end, file=sys.stderr, flush=True)
    if apart:
        processes.remember(jobs)
    return folds


def run_task(task: Task, scorer: Any, weighted: bool) -> Fold:
    """Compute the path on the training rows of a fold and the scores of its points on the test rows."""
    estimator, train, test = task.estimator, task.data.rows(task.rows[0]), task.data.rows(task.rows[1])
    labels = estimator._labels(test.target)
    how: dict[str, Any] = {"sample_weight": test.weights} if weighted else {}
    how |= {name: column for name, column in test.known.items() if name != "strata"}
    scores, sizes, count = [], [], 0
    endless: tuple[str, ...] = ()
    worst: Certificate | None = None
    for solutions in _points(task, train):
        estimator._keep_weights(solutions)
        scores.append(float(scorer(estimator, test.X, labels, **how)))
        sizes.append(np.count_nonzero(np.atleast_2d(estimator.coef_).any(axis=0)))
        more, certificate, without = estimator._unfinished(solutions)
        count, endless = count + more, endless + without
        worst = max((c for c in (worst, certificate) if c is not None), key=error_of, default=None)
    return Fold(np.array(scores), np.array(sizes), count, worst, endless)


def error_of(certificate: Certificate) -> float:
    """Return the number that a tolerance is compared with."""
    return float(certificate.error)


def _points(task: Task, train: TrainingData) -> Iterator[tuple[Any, ...]]:
    """Return an iterator over the strengths; each item has one solution for each problem."""
    estimator = task.estimator
    problems = estimator._problems(train)
    terms = estimator._path_terms(problems[0])
    return zip(*(follow(problem, task.strengths, terms, estimator._attempt) for problem in problems), strict=True)
