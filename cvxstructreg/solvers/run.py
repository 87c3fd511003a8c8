"""One solve: certificates, history, limits, and the change to another solver where one does not get there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate, certify_point, from_known_bound
from cvxstructreg.certificates.no_minimiser import Escape, escape
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Record, Solution
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers import handover
from cvxstructreg.solvers.found import Found, handed_over, lifted
from cvxstructreg.solvers.iterate import Iterate, SolverFailedError
from cvxstructreg.solvers.solver import Solver

#: Iterations of each solver without ``max_iter``.
DEFAULT_MAX_ITER = 20_000
#: Certificates are due at iterations that grow by this factor. Points of which the solver expects nothing get one now
#: and then all the same, for the record: from an iteration on, sooner if somebody is watching. By counts and not by the
#: clock, so that runs can be repeated.
EVERY, HOPELESS_EVERY, HOPELESS_FROM, WATCHED_FROM = 1.15, 2.0, 100, 2
#: Seconds that a last certificate may take after the time limit has passed.
GRACE = 0.3


@dataclass(frozen=True)
class End:
    """How a solver ended: "optimal", "time_limit", "max_iter", "interrupted", "inaccurate", "stalled" or "failed"."""

    kind: str
    reason: str

    @property
    def status(self) -> str:
        """The status of a solution that ends like this."""
        return "inaccurate" if self.kind in ("stalled", "failed") else self.kind


@dataclass(eq=False)
class Turn:
    """One solver at work, or waiting for its turn."""

    solver: Solver
    taken: Problem
    steps: Iterator[Iterate]
    stall: handover.Stall | None  # None: it may go on as long as it likes
    count: int = 0
    certified: int = 0  # its iteration of the last certificate


class Run:
    """One solve with one solver, or with those that ``auto`` asks one after the other."""

    def __init__(
        self,
        problem: Problem,
        first: Solver,
        auto: bool,
        tol: float,
        max_iter: int | None,
        verbose: bool,
        callback: Callable[[Record], Any] | None,
    ) -> None:
        self.problem, self.first, self.auto, self.tol = problem, first, auto, tol
        self.small = handover.is_small(problem)
        self.max_iter, self.most = max_iter or math.inf, DEFAULT_MAX_ITER if max_iter is None else math.inf
        self.verbose, self.callback = verbose, callback
        self.history: list[Record] = []
        self.count = 0
        self.latest: Found | None = None
        self.best: Found | None = None  # the point of the lowest objective
        self.lowest = math.inf
        self.prover: Found | None = None  # the point whose dual point proves the highest lower bound
        self.bound = -math.inf
        #: The certificate of the best point, if its own dual point has just given it in the problem's coordinates.
        self.own: Certificate | None = None
        self.closest: Certificate | None = None  # the certificate of the smallest error
        self.final: tuple[Array, Array, Certificate] | None = None
        self.searched = False  # whether a direction was looked for along which the objective falls forever
        self.escape: Escape | None = None
        self.began = deadline.clock()

    def go(self, start: Iterate, options: dict[str, Any]) -> tuple[Solution, str]:
        """Run the solvers to their end and certify what they found.

        The solution, and why it is no better; without a minimiser, the direction along which the objective falls.
        """
        self.start = Found(start, self.first)
        end = self._first_turns(options)
        solution = self._solution(end)
        along = "" if self.escape is None else self.escape.in_words(self.problem.feature_names)
        return solution, along or end.reason

    def _first_turns(self, options: dict[str, Any]) -> End:
        """Every solver once, until one of them gets there; then those that stalled go on."""
        waiting: list[Turn] = []
        turn = self._turn(self.first, self.start.iterate, options)
        later = iter(handover.successors(self.problem, self.first)) if self.auto else iter(())
        while True:
            end = self._worked(turn)
            if self._is_over(end):
                return end
            if end.kind == "stalled":
                waiting.append(turn)
            solver = next(later, None)
            if solver is None:
                return self._second_turns(waiting, end, turn.solver)
            self._switch(turn.solver, solver, end.reason)
            turn = self._turn(solver, self._handed(solver), dict(solver.accurate))

    def _second_turns(self, waiting: list[Turn], end: End, before: Solver) -> End:
        """Solvers that stalled go on from where they were: nobody else got there."""
        for turn in waiting if self.small else []:
            self._switch(before, turn.solver, f"{end.reason}; no solver is left, {turn.solver.name} goes on")
            turn.stall, before = None, turn.solver
            end = self._worked(turn)
            if self._is_over(end):
                break
        return end

    def _turn(self, solver: Solver, start: Iterate, options: dict[str, Any]) -> Turn:
        taken = solver.reduced(self.problem).problem
        stall = None
        if self.auto and (self.small or solver is not self.first):
            stall = handover.Stall(self.tol, handover.PATIENCE if solver is self.first else handover.PATIENCE_NEXT)
        return Turn(solver, taken, solver.run(taken, start, self.tol, **options), stall)

    def _is_over(self, end: End) -> bool:
        """Whether no other solver is to be asked."""
        if end.kind == "optimal" and self._final_point()[2].status(self.tol) is not None:
            return True
        if end.kind == "max_iter" and (self.count >= self.max_iter or not self.small):
            return True
        return end.kind in ("time_limit", "interrupted") or (self.auto and self._has_no_minimiser())

    def _has_no_minimiser(self) -> bool:
        """Whether the objective falls forever along a direction: then no solver can get there."""
        if not self.searched and not deadline.passed():
            theta, b, _ = self._final_point()
            self.searched, self.escape = True, escape(self.problem, theta, b)
        return self.escape is not None

    def _worked(self, turn: Turn) -> End:
        """Let a solver work, and say how it ended."""
        self.final, name = None, turn.solver.name
        end = End("inaccurate", f"{name} has no more to give")
        try:
            end = self._iterated(turn) or end
        except deadline.OutOfTimeError:
            end = End("time_limit", f"the time limit passed in {name}")
        except KeyboardInterrupt:
            if self.latest is None:
                raise
            end = End("interrupted", f"{name} was interrupted")
        except Exception as error:
            if not handover.is_numerical(error):
                raise
            end = End("failed", _told(name, error))
        if end.kind != "stalled":
            turn.steps.close()  # type: ignore[attr-defined]
        return end

    def _iterated(self, turn: Turn) -> End | None:
        name = turn.solver.name
        for iterate in turn.steps:
            turn.count += 1
            self.count += 1
            found = self.latest = Found(iterate, turn.solver)
            late = deadline.passed()
            over = self.count >= self.max_iter or turn.count >= self.most
            last = late or over or iterate.exhausted
            if not last and not self._due(turn, iterate.promising):
                continue
            error = self._certified(turn, found)
            if error <= self.tol:
                return End("optimal", "")
            if late:
                return End("time_limit", "the time limit passed")
            if iterate.exhausted:
                return End("inaccurate", f"{name} got no further than a relative gap of {error:.1e}")
            if over:
                return End("max_iter", f"{name} made {turn.count} iterations")
            if turn.stall is not None and turn.stall.seen(turn.count, error):
                return End("stalled", f"{name} {turn.stall}")
        return None

    def _due(self, turn: Turn, promising: bool | None) -> bool:
        """When the solver says so; else at every early iteration and ever more rarely later."""
        if promising is None:
            return turn.count >= EVERY * turn.certified
        first = WATCHED_FROM if self.verbose or self.callback is not None else HOPELESS_FROM
        return promising or turn.count >= max(first, HOPELESS_EVERY * turn.certified)

    def _certified(self, turn: Turn, found: Found) -> float:
        """Certify a point, keep it if it is the best, and tell who is watching; its error."""
        turn.certified = turn.count
        if not found.is_finite:
            raise SolverFailedError("its weights are no finite numbers")
        certificate = self._keep(turn.taken, found)
        self._record(certificate, turn.solver.name)
        return certificate.error

    def _keep(self, taken: Problem, found: Found) -> Certificate:
        iterate = found.iterate
        certificate = bounded(taken, iterate.theta, iterate.b, iterate.dual, self.bound, self.tol)
        self.own = None
        if certificate.lower_bound > self.bound:
            self.bound, self.prover = certificate.lower_bound, found
            self.own = certificate if taken is self.problem else None
        if self.best is None or certificate.objective <= self.lowest:
            self.best, self.lowest = found, certificate.objective
        if self.closest is None or not certificate.error >= self.closest.error:
            self.closest = certificate
        return certificate

    def _record(self, certificate: Certificate, solver: str, switch: str = "") -> None:
        seconds = deadline.clock() - self.began
        record = Record(self.count, seconds, certificate.objective, certificate, solver, switch)
        self.history.append(record)
        if self.verbose:
            told = f"  ({switch})" if switch else ""
            print(f"{solver} {self.count:>7d}  {seconds:8.2f} s  objective {record.objective:.8g}  {certificate}{told}")
        if self.callback is not None:
            self.callback(record)

    def _switch(self, before: Solver, after: Solver, reason: str) -> None:
        """Put the change of solvers on record, with the best certificate so far."""
        if self.closest is None:
            self._keep(before.reduced(self.problem).problem, self._any_point())
        assert self.closest is not None
        self._record(self.closest, after.name, reason)

    def _any_point(self) -> Found:
        """A point that nobody has certified: the latest, or the start within the bounds."""
        if self.latest is not None and self.latest.is_finite:
            return self.latest
        found, part = self.start, self.first.reduced(self.problem).problem.normal_form.separable
        if part is None:
            return found
        theta = np.clip(found.iterate.theta, part.lower, part.upper)
        return replace(found, iterate=replace(found.iterate, theta=theta))

    def _handed(self, solver: Solver) -> Iterate:
        """The best point and dual point so far, as the start of the next solver."""
        assert self.best is not None
        dual = (self.prover or self.best).iterate.dual
        return handed_over(self.problem, self.best, dual, solver)

    def _solution(self, end: End) -> Solution:
        """The best point in the coordinates of the problem."""
        if end.kind == "interrupted" and self.latest is not None:
            taken, iterate = self.latest.solver.reduced(self.problem).problem, self.latest.iterate
            if self.best is None or taken.value_at(iterate.theta, iterate.b) < self.lowest:
                self.best, self.final = self.latest, None
        theta, b, certificate = self._final_point()
        status = certificate.status(self.tol) or ("inaccurate" if end.kind == "optimal" else end.status)
        if self._has_no_minimiser():
            status = "no_minimiser"
        single = theta.shape[1] == 1
        assert self.best is not None
        return Solution(
            problem=self.problem,
            coef=theta[:, 0].copy() if single else theta.copy(),
            intercept=float(b[0]) if single else b.copy(),
            objective=certificate.objective,
            certificate=certificate,
            status=status,
            solver=self.best.solver.name,
            n_iter=self.count,
            time=deadline.clock() - self.began,
            history=tuple(self.history),
            dual=dict((self.prover or self.best).iterate.dual),
        )

    def _final_point(self) -> tuple[Array, Array, Certificate]:
        """The best point in the coordinates of the problem, with its certificate from scratch."""
        if self.final is None:
            if self.best is None:
                self.best = self._any_point()
            if self.best.solver.rough_zeros:
                self._round_to_zero(self.best)
            theta, b = lifted(self.problem, self.best)
            self.final = theta, b, self._final_certificate(theta, b)
        return self.final

    def _round_to_zero(self, best: Found) -> None:
        """Weights that are nearly zero become zero where terms have kinks there and the objective does not rise."""
        taken, theta, b = best.solver.reduced(self.problem).problem, best.iterate.theta, best.iterate.b
        if not theta.any() or (taken.normal_form.separable is None and not taken.normal_form.weight_pieces):
            return
        with deadline.at_least(GRACE), suppress(deadline.OutOfTimeError):
            value = self.lowest if math.isfinite(self.lowest) else taken.value_at(theta, b)
            for part in (np.inf, 1e-4, 1e-6, 1e-8):
                rounded = np.where(np.abs(theta) <= part * np.abs(theta).max(), 0.0, theta)
                if not np.array_equal(rounded, theta) and taken.value_at(rounded, b) <= value:
                    self.best, self.own = replace(best, iterate=replace(best.iterate, theta=rounded)), None
                    return

    def _final_certificate(self, theta: Array, b: Array) -> Certificate:
        """From scratch: the bound from the dual point at hand, or anew from the point that proved the best bound."""
        assert self.best is not None
        if self.own is not None and self.prover is self.best:
            return self.own
        dual = self.best.iterate.dual
        certificate = bounded(self.problem, theta, b, dual, tol=self.tol)
        if self.prover is None or self.prover is self.best or certificate.error <= self.tol:
            return certificate
        proof = bounded(self.problem, *lifted(self.problem, self.prover), self.prover.iterate.dual)
        return bounded(self.problem, theta, b, dual, known_bound=proof.lower_bound)


def bounded(
    problem: Problem, theta: Array, b: Array, dual: dict[int, Array], known_bound: float = -np.inf, tol: float = 0.0
) -> Certificate:
    """The certificate of a point in a bounded time: where the time limit interrupts it, from a known bound alone."""
    with deadline.at_least(GRACE):
        try:
            return certify_point(problem, theta, b, dual, known_bound, tol=tol)
        except (deadline.OutOfTimeError, np.linalg.LinAlgError):
            pass
    with deadline.at_least(math.inf):  # the objective must be known, and takes one evaluation
        return from_known_bound(problem, theta, b, known_bound)


def _told(name: str, error: Exception) -> str:
    kind = "" if isinstance(error, SolverFailedError) else f" with {type(error).__name__}"
    return f"{name} failed{kind}: {error}"
