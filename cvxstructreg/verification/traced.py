"""Certify a sequence of weights, such as the iterates of a solver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate, certify_point, tightened
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Record, Solution
from cvxstructreg.runtime import deadline
from cvxstructreg.verification.certified import certified
from cvxstructreg.verification.given import GivenWeights, checked_problem, given_weights

#: An iterate is certified when the count has grown by this factor since the last certificate.
GROWTH = 1.15


def trace(
    problem: Problem,
    iterates: Iterable[Any],
    tol: float = 1e-6,
    every: int | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    name: str = "trace",
) -> Solution:
    """Certify a sequence of weights; the result has a history and can be plotted like the solution of a solver.

    Parameters
    ----------
    problem : Problem
        The problem that the weights should solve.
    iterates : iterable
        Each item is anything that :func:`~cvxstructreg.certify` accepts: weights, ``(coef, intercept)``, an estimator.
        A generator is timed while it computes an item; the time of the certificates does not count.
    tol : float
        The relative gap of the status "optimal".
    every : int, optional
        Certify each ``every``-th item. By default the first few items, and then at counts that grow by 15 %. The last
        item is always certified.
    max_iter, time_limit : optional
        Stop after so many items, or after so many seconds of the generator.
    name : str
        The name of the solver in the result, which plots show.

    Returns
    -------
    Solution
        The *last* item, with the records of all certified items in ``history``. All gaps use the best lower bound that
        was found, so they are upper bounds of the distance to the optimum at each item.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear(np.eye(2), intercept=False), csr.Squared([1.0, 2.0]) + 0.5 * csr.Ridge())
    >>> def descent(w=np.zeros(2), step=0.25):
    ...     for _ in range(30):
    ...         w = w - step * ((w - [1.0, 2.0]) + w)
    ...         yield w
    >>> traced = csr.trace(problem, descent(), tol=1e-8)
    >>> traced.status, traced.n_iter, traced.history[0].certificate.relative_gap > 0.1
    ('optimal', 30, True)
    """
    problem = checked_problem(problem, "trace")
    if every is not None and every < 1:
        raise ValueError(f"every must be at least 1, got {every!r}")
    limits = _Limits(math.inf if max_iter is None else max_iter, math.inf if time_limit is None else time_limit)
    run = _Trace(problem, tol, every, limits)
    run.follow(iter(iterates))
    if run.last is None:
        raise ValueError("iterates is empty; give at least one array of weights")
    if run.proof is None or not run.proof.error <= tol:
        run.improve(certified(problem, run.last, run.last.dual, tol))
    return run.solution(name)


@dataclass(frozen=True)
class _Limits:
    max_iter: float
    seconds: float
    stop: bool = False  # whether to stop as soon as the tolerance is proved


class _Trace:
    """The records of a sequence, and the best proof of a lower bound."""

    def __init__(
        self, problem: Problem, tol: float, every: int | None, limits: _Limits, proof: Certificate | None = None
    ) -> None:
        self.problem, self.tol, self.every, self.limits, self.proof = problem, tol, every, limits, proof
        self.records: list[Record] = []
        self.last: GivenWeights | None = None
        self.count, self.certified, self.seconds, self.end = 0, 0, 0.0, "inaccurate"

    def follow(self, iterates: Iterator[Any]) -> None:
        """Take and certify items until they, or the limits, are exhausted."""
        while True:
            if self.count >= self.limits.max_iter or self.seconds >= self.limits.seconds:
                self.end = "max_iter" if self.count >= self.limits.max_iter else "time_limit"
                break
            began = deadline.clock()
            try:
                item = next(iterates)
            except StopIteration:
                break
            finally:
                self.seconds += deadline.clock() - began
            self.count += 1
            self.last = self._read(item)
            if self._is_due():
                self._certify()
                if self.limits.stop and self.records[-1].certificate.error <= self.tol:
                    return
        if self.last is not None and self.certified < self.count:
            self._certify()

    def _read(self, item: Any) -> GivenWeights:
        try:
            return given_weights(self.problem, item)
        except (TypeError, ValueError) as error:
            raise type(error)(f"iterate {self.count}: {error}") from error

    def _is_due(self) -> bool:
        if self.every is not None:
            return self.count % self.every == 0
        return self.count >= GROWTH * self.certified

    def _certify(self) -> None:
        assert self.last is not None
        known = -np.inf if self.proof is None else self.proof.lower_bound
        dual = None if self.proof is None else self.proof.dual
        found = certify_point(self.problem, self.last.theta, self.last.b, self.last.dual, known, known_dual=dual)
        self.certified = self.count
        self.records.append(Record(self.count, self.seconds, found.objective, found))
        if found.kind != "kkt" and (self.proof is None or found.lower_bound > self.proof.lower_bound):
            self.proof = found

    def improve(self, proof: Certificate) -> None:
        """Use a better lower bound."""
        if proof.kind != "kkt" and (self.proof is None or proof.lower_bound > self.proof.lower_bound):
            self.proof = proof

    def solution(self, name: str) -> Solution:
        """Return the last item, with all gaps measured from the best bound."""
        assert self.last is not None
        found = [record.certificate for record in self.records]
        if self.proof is not None:
            found = [tightened(self.problem, certificate, self.proof) for certificate in found]
        history = tuple(
            replace(record, certificate=replace(certificate, dual=None), solver=name)
            for record, certificate in zip(self.records, found, strict=True)
        )
        return solution_of(self.problem, self.last, found[-1], self.tol, name, self.seconds, history, self)


def solution_of(
    problem: Problem,
    given: GivenWeights,
    certificate: Certificate,
    tol: float,
    name: str,
    seconds: float,
    history: tuple[Record, ...] = (),
    run: _Trace | None = None,
) -> Solution:
    """Return weights from any source as a Solution."""
    single = problem.n_outputs == 1
    return Solution(
        problem=problem,
        coef=given.theta[:, 0].copy() if single else given.theta.copy(),
        intercept=float(given.b[0]) if single else given.b.copy(),
        objective=certificate.objective,
        certificate=certificate,
        status=certificate.status(tol) or ("inaccurate" if run is None else run.end),
        solver=name,
        n_iter=1 if run is None else run.count,
        time=seconds,
        history=history,
        dual=dict(given.dual),
    )


def traced_until(
    problem: Problem, iterates: Iterator[Any], tol: float, limits: tuple[float, float], proof: Certificate, name: str
) -> Solution:
    """Follow the iterates of a solver until the tolerance is proved or ``limits`` (items, seconds) are reached."""
    run = _Trace(problem, tol, None, _Limits(*limits, stop=True), proof)
    run.follow(iterates)
    if run.last is None:
        raise ValueError("the solver yielded no iterates")
    return run.solution(name)
