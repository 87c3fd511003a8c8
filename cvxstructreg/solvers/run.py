"""One solve: certificates, history, limits, and the switch to another solver if one fails or stalls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import GRACE, MOST_SWEEPS, Certificate, bounded, tightened
from cvxstructreg.certificates.directions.no_minimiser import Escape, escape
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.certificates.row_sums.kept_dual import value_at
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Record, Solution
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.reduction import Point
from cvxstructreg.runtime import compiling, deadline
from cvxstructreg.solvers import handover
from cvxstructreg.solvers.checkpoint import Checkpoint
from cvxstructreg.solvers.found import Found, dual_points, handed_over, lifted
from cvxstructreg.solvers.handover import End
from cvxstructreg.solvers.iterate import Iterate, SolverFailedError
from cvxstructreg.solvers.passes import Passes
from cvxstructreg.solvers.registry import Choice
from cvxstructreg.solvers.sizes import is_small
from cvxstructreg.solvers.solver import Solver

#: Iteration limit of each solver if ``max_iter`` is not given.
DEFAULT_MAX_ITER = 20_000
#: A point is certified when the iteration count has grown by this factor since the last certificate. Counts are used
#: rather than the clock, so that runs are reproducible.
CERTIFY_GROWTH = 1.15
#: Unpromising points are still certified occasionally, for the history: when the count has grown by this factor, from
#: the given iteration on, and earlier if progress is printed or passed to a callback.
UNPROMISING_GROWTH, UNPROMISING_FROM, WATCHED_FROM = 2.0, 100, 2
#: Sweeps of one search for dual points where a solver has made few cheap steps.
LEAST_SWEEPS = 20
#: Proofs in the coordinates of a solver that may fail in those of the problem before another solver is tried.
MOST_REFUSED = 5
#: Certificates without a bound, of terms that may have one, before a small residual is good enough.
MOST_UNBOUNDED = 5
#: An objective that falls by this factor may decrease forever, as on separated classes: that is then looked into.
VANISHED = 1e-8
#: Weights of at most this size, relative to the largest weight, are tried as zeros; infinity sets all weights to zero.
ROUNDED = (np.inf, 1e-4, 1e-6, 1e-8)


@dataclass(eq=False)
class Attempt:
    """A solver that is running, or suspended after a stall."""

    solver: Solver
    taken: Problem  # the problem in the coordinates of the solver
    steps: Iterator[Iterate]
    stall: handover.Stall | None  # None: the solver is never stopped for slow progress
    count: int = 0
    certified: int = 0  # the iteration of the last certificate
    refused: int = 0  # how often a proof in the coordinates of the solver was none in those of the problem
    unbounded: int = 0  # how often the residual was small where no bound was found


class Run:
    """One solve, with one solver or with those that ``auto`` tries in order."""

    def __init__(
        self,
        problem: Problem,
        choice: Choice,
        auto: bool,
        tol: float,
        max_iter: int | None,
        verbose: bool,
        callback: Callable[[Record], Any] | None,
        passes: Passes,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.problem, self.choice, self.first, self.auto, self.tol = problem, choice, choice.solver, auto, tol
        self.small = is_small(problem)
        self.max_iter = max_iter or math.inf  # over all solvers
        self.max_iter_each = DEFAULT_MAX_ITER if max_iter is None else math.inf
        self.verbose, self.callback = verbose, callback
        self.passes, self.checkpoint = passes, checkpoint
        self.history: list[Record] = []
        self.count = 0
        self.latest: Found | None = None
        self.best: Found | None = None  # the point with the lowest objective
        self.lowest = math.inf
        self.prover: Found | None = None  # the point whose dual point proves the highest lower bound
        self.bound = -math.inf
        #: The certificate of the last point, if its own dual point raised the bound, in the problem's coordinates.
        self.own: Certificate | None = None
        self.closest: Certificate | None = None  # the certificate with the smallest error
        self.final: tuple[Array, Array, Certificate] | None = None
        self.searched = False  # whether a direction of endless decrease has been searched for
        self.escape: Escape | None = None
        self.began, self.compiled = deadline.clock(), compiling.seconds()

    def solve(self, start: Iterate, options: dict[str, Any]) -> Solution:
        """Run the solvers and certify the best point."""
        self.start = Found(start, self.first)
        if self.verbose and self.auto:
            print(self.choice.reason)
        end = self._try_solvers(options)
        return self._solution(end)

    def _try_solvers(self, options: dict[str, Any]) -> End:
        """Run each solver once until one reaches the tolerance; if none does, resume those that stalled."""
        stalled: list[Attempt] = []
        attempt = self._attempt(self.first, self.start.iterate, options)
        later = handover.successors(self.problem, self.first) if self.auto else iter(())
        while True:
            end = self._run_solver(attempt)
            if self._is_over(end):
                return end
            if end.kind == "stalled":
                stalled.append(attempt)
            solver = next(later, None)
            if solver is None:
                return self._resume(stalled, end, attempt.solver)
            self._switch(attempt.solver, solver, end.reason)
            attempt = self._attempt(solver, self._start_for(solver), dict(solver.accurate))

    def _resume(self, stalled: list[Attempt], end: End, before: Solver) -> End:
        """Resume the stalled solvers from their last iterates, since no other solver reached the tolerance."""
        for attempt in stalled:
            self._switch(before, attempt.solver, f"{end.reason}; no solver is left, {attempt.solver.name} resumes")
            attempt.stall, before = None, attempt.solver
            end = self._run_solver(attempt)
            if self._is_over(end):
                break
        return end

    def _attempt(self, solver: Solver, start: Iterate, options: dict[str, Any]) -> Attempt:
        taken = solver.reduced(self.problem).problem
        first = solver is self.first
        patience = solver.patience if first else min(solver.patience, handover.PATIENCE_NEXT)
        stall = handover.Stall(self.tol, patience) if self.auto else None
        return Attempt(solver, taken, self.passes.limited(solver.run(taken, start, self.tol, **options)), stall)

    def _is_over(self, end: End) -> bool:
        """Whether the solve is over, so that no other solver is tried."""
        if end.kind == "optimal" and self._final_point()[2].status(self.tol) is not None:
            return True
        if end.kind == "max_iter" and (self.count >= self.max_iter or not self.small):
            return True
        return end.kind in ("time_limit", "max_passes", "interrupted") or (self.auto and self._has_no_minimiser())

    def _has_no_minimiser(self) -> bool:
        """Whether the objective decreases forever along some direction, so that no solver can reach a minimiser."""
        if not self.searched and (self.small or not deadline.passed()):
            theta, b, _ = self._final_point()
            self.searched, self.escape = True, escape(self.problem, theta, b)
        return self.escape is not None

    def _run_solver(self, attempt: Attempt) -> End:
        """Run a solver until it ends or is stopped."""
        self.final, name = None, attempt.solver.name
        end = End("inaccurate", f"{name} made no further progress")
        try:
            end = self._iterate(attempt) or end
        except deadline.OutOfPassesError:
            end = End("max_passes", f"{name} made {self.passes.count} passes over the data")
        except deadline.OutOfTimeError:
            end = End("time_limit", f"the time limit passed in {name}")
        except KeyboardInterrupt:
            if self.latest is None:
                raise
            end = End("interrupted", f"{name} was interrupted")
        except Exception as error:
            if not handover.is_numerical(error):
                raise
            end = End("failed", _failure(name, error))
        if end.kind != "stalled":
            attempt.steps.close()  # type: ignore[attr-defined]
        return end

    def _iterate(self, attempt: Attempt) -> End | None:
        """Take and certify iterates until the solver must stop; None if the solver runs out of iterates first."""
        name = attempt.solver.name
        for iterate in attempt.steps:
            attempt.count += 1
            self.count += 1
            found = self.latest = Found(iterate, attempt.solver)
            if self.checkpoint is not None and found.is_finite:
                point = lifted(self.problem, found)
                self.checkpoint.save(point.theta, point.b)
            late = deadline.passed()
            over = self.count >= self.max_iter or attempt.count >= self.max_iter_each
            last = late or over or iterate.exhausted
            if not last and not self._is_due(attempt, iterate.promising):
                continue
            certificate = self._certify(attempt, found, last)
            error = certificate.error
            if error <= self.tol and (last or (self._is_enough(attempt, certificate) and self._is_proved(attempt))):
                return End("optimal", "")
            if late:
                return End("time_limit", "the time limit passed")
            if self.lowest <= VANISHED * self.history[0].objective and self._has_no_minimiser():
                return End("inaccurate", "the objective decreases forever")
            if iterate.exhausted:
                return End("inaccurate", f"{name} made no further progress at a relative gap of {error:.1e}")
            if over:
                return End("max_iter", f"{name} made {attempt.count} iterations")
            if attempt.stall is not None and attempt.stall.seen(attempt.count, error):
                if self.small or attempt.solver is not self.first or handover.has_rescuer(self.problem, self.first):
                    return End("stalled", f"{name} {attempt.stall}")
                attempt.stall = None
        return None

    def _is_enough(self, attempt: Attempt, certificate: Certificate) -> bool:
        """Whether no better certificate is expected: if all terms have conjugates, the next one may have a bound."""
        if certificate.kind == "kkt" and all(piece.has_conjugate for piece in attempt.taken.normal_form.pieces):
            attempt.unbounded += 1
            return attempt.unbounded > MOST_UNBOUNDED
        return True

    def _is_proved(self, attempt: Attempt) -> bool:
        """Whether the proof holds in the coordinates of the problem; if it never does, another solver should try."""
        if self._final_point()[2].status(self.tol) is None and attempt.refused < MOST_REFUSED:
            attempt.refused, self.final = attempt.refused + 1, None
            return False
        return True

    def _is_due(self, attempt: Attempt, promising: bool | None) -> bool:
        """Whether to certify the current iterate: if it is promising, else at geometrically growing intervals."""
        if promising is None:
            return attempt.count >= CERTIFY_GROWTH * attempt.certified
        early = min(UNPROMISING_FROM, attempt.solver.patience // 4)
        first = WATCHED_FROM if self.verbose or self.callback is not None else early
        return promising or attempt.count >= max(first, UNPROMISING_GROWTH * attempt.certified)

    def _certify(self, attempt: Attempt, found: Found, last: bool) -> Certificate:
        """Certify a point, keep it if it is the best, and record the certificate."""
        attempt.certified = attempt.count
        if not found.is_finite:
            raise SolverFailedError("the weights are not finite")
        few = attempt.solver.cheap_steps and not last  # a search should not cost more than the steps so far
        sweeps = min(max(attempt.count, LEAST_SWEEPS), MOST_SWEEPS) if few else MOST_SWEEPS
        certificate = self._keep(attempt.taken, found, sweeps)
        self._record(certificate, attempt.solver.name)
        return certificate

    def _keep(self, taken: Problem, found: Found, sweeps: int = MOST_SWEEPS) -> Certificate:
        """Certify a point, and update the best point, the best bound and the best certificate."""
        iterate = found.iterate
        certificate = bounded(taken, iterate.theta, iterate.b, iterate.dual, self.bound, self.tol, sweeps=sweeps)
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
        shown = certificate if certificate.dual is None else replace(certificate, dual=None)  # a history stays small
        compiled = compiling.seconds() - self.compiled
        facts = shown, solver, switch, compiled, self.passes.count
        record = Record(self.count, seconds, certificate.objective, *facts)
        self.history.append(record)
        if self.verbose:
            note = (f"  ({switch})" if switch else "") + self.passes.progress(certificate.error, self.tol)
            print(f"{solver} {self.count:>7d}  {seconds:8.2f} s  objective {record.objective:.8g}  {certificate}{note}")
        if self.callback is not None:
            self.callback(record)

    def _switch(self, before: Solver, after: Solver, reason: str) -> None:
        """Record the change of solvers in the history, with the best certificate so far."""
        if self.closest is None:
            self._keep(before.reduced(self.problem).problem, self._any_point())
        assert self.closest is not None
        self._record(self.closest, after.name, reason)

    def _any_point(self) -> Found:
        """An uncertified point: the latest iterate, or the starting point moved into the bounds if that is better."""
        found, part = self.start, self.first.reduced(self.problem).problem.normal_form.separable
        if part is not None:
            theta = np.clip(found.iterate.theta, part.lower, part.upper)
            found = replace(found, iterate=replace(found.iterate, theta=theta))
        if self.latest is None or not self.latest.is_finite:
            return found
        return self.latest if self._value(self.latest) <= self._value(found) else found

    def _value(self, found: Found) -> float:
        """The objective at an uncertified point."""
        with deadline.at_least(math.inf):  # one evaluation
            return value_at(found.solver.reduced(self.problem).problem, found.iterate.theta, found.iterate.b)

    def _start_for(self, solver: Solver) -> Iterate:
        """The best point and dual point so far, as the starting point of the next solver."""
        assert self.best is not None
        return handed_over(self.problem, self.best, self.prover or self.best, solver)

    def _solution(self, end: End) -> Solution:
        """The best point in the coordinates of the problem."""
        latest = self.latest if end.kind == "interrupted" else None
        if latest is not None and (self.best is None or self._value(latest) < self.lowest):
            self.best, self.final = latest, None
        theta, b, certificate = self._final_point()
        if self.checkpoint is not None:
            self.checkpoint.save(theta, b, now=True)
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
            dual=dual_points(self.problem, self.prover or self.best),
            n_passes=self.passes.count,
            solver_choice=self._choice_in_words(),
            reason="" if status in ("optimal", "stationary") else self._reason(end),
        )

    def _reason(self, end: End) -> str:
        """Why the solution is no better: the direction along which the objective decreases, or the end of a solver."""
        return end.reason if self.escape is None else self.escape.in_words(self.problem.feature_names)

    def _choice_in_words(self) -> str:
        """Why the first solver was taken, and why others took over."""
        later = (f"{record.solver} took over: {record.switch}" for record in self.history if record.switch)
        return "; ".join((self.choice.reason, *later))

    def _final_point(self) -> tuple[Array, Array, Certificate]:
        """The best point in the coordinates of the problem, with a certificate computed there."""
        if self.final is None:
            if self.best is None:
                self.best = self._any_point()
            if self.best.solver.rough_zeros:
                self._round_to_zero(self.best)
            point = lifted(self.problem, self.best)
            certificate = self._final_certificate(point)
            self.final = self._null_point(certificate) or (point.theta, point.b, certificate)
        return self.final

    def _null_point(self, certificate: Certificate) -> tuple[Array, Array, Certificate] | None:
        """The null point with the bound of a certificate, if its objective is lower: strong penalties give zeros."""
        null = null_point(self.problem)
        if certificate.kind != "duality_gap" or certificate.multipliers or not null.objective < certificate.objective:
            return None
        with deadline.at_least(math.inf):  # one evaluation; null.objective may belong to other weights
            objective = value_at(self.problem, null.theta, null.b)
        if not objective < certificate.objective:
            return None
        proved = tightened(self.problem, Certificate("kkt", objective, np.nan, np.nan, np.nan), certificate)
        return None if proved.kind == "kkt" else (null.theta.copy(), null.b.copy(), proved)

    def _round_to_zero(self, best: Found) -> None:
        """Round small weights to zero if some term has a kink there and the objective does not increase."""
        taken, theta, b = best.solver.reduced(self.problem).problem, best.iterate.theta, best.iterate.b
        if not theta.any() or (taken.normal_form.separable is None and not taken.normal_form.weight_pieces):
            return
        with deadline.at_least(GRACE), suppress(deadline.OutOfTimeError):
            value = self.lowest if math.isfinite(self.lowest) else taken.value_at(theta, b)
            for part in ROUNDED:
                rounded = np.where(np.abs(theta) <= part * np.abs(theta).max(), 0.0, theta)
                if not np.array_equal(rounded, theta) and taken.value_at(rounded, b) <= value:
                    self.best = replace(best, iterate=replace(best.iterate, theta=rounded))
                    return

    def _final_certificate(self, point: Point) -> Certificate:
        """The certificate of the final point, with the bound from its own dual point or from the best one found."""
        assert self.best is not None
        if self.own is not None and self.prover is self.best:
            return self.own
        certificate = bounded(self.problem, point.theta, point.b, point.dual, tol=self.tol)
        if self.prover is None or self.prover is self.best or certificate.error <= self.tol:
            return certificate
        if self.own is not None:
            return tightened(self.problem, certificate, self.own)
        other = lifted(self.problem, self.prover)
        return tightened(self.problem, certificate, bounded(self.problem, other.theta, other.b, other.dual))


def _failure(name: str, error: Exception) -> str:
    """The message for a solver that raised an exception."""
    kind = "" if isinstance(error, SolverFailedError) else f" with {type(error).__name__}"
    return f"{name} failed{kind}: {error}"
