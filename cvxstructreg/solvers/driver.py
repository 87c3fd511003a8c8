"""The one loop around all solvers: certificates, history, limits, warm starts, callbacks and progress."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from types import ModuleType
from typing import Any

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.centring import centring
from cvxstructreg.core.certificate import Certificate, certify_point
from cvxstructreg.core.model import Kernel
from cvxstructreg.core.no_minimiser import escape
from cvxstructreg.core.null_point import null_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.quiet import warn
from cvxstructreg.core.solution import Record, Solution
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.graph_strength import warn_of_strong_graphs
from cvxstructreg.solvers.iterate import Iterate

#: Iterations without ``max_iter``.
DEFAULT_MAX_ITER = 20_000
#: Certificates are due at iterations that grow by this factor. Points of which the solver expects nothing get one now
#: and then all the same, for the record: from an iteration on, sooner if somebody is watching. By counts and not by the
#: clock, so that runs can be repeated.
EVERY, HOPELESS_EVERY, HOPELESS_FROM, WATCHED_FROM = 1.15, 2.0, 100, 2


class InaccurateWarning(UserWarning):
    """A solve ended before its tolerance was proved; the message carries the certified gap."""


def solve(
    problem: Problem,
    solver: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    warm_start: Any = None,
    verbose: bool = False,
    callback: Callable[[Record], Any] | None = None,
    **options: Any,
) -> Solution:
    """Solve a problem; see :meth:`cvxstructreg.Problem.solve`."""
    _check_limits(tol, max_iter, time_limit)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Record, got {type(callback).__name__}")
    module = registry.choose(problem, solver)
    _check_options(module, options)
    warn_of_strong_graphs(problem)
    run = _Run(problem, module, tol, max_iter or DEFAULT_MAX_ITER, time_limit, verbose, callback)
    solution = run.go(_start(problem, module, warm_start), options)
    if solution.status == "no_minimiser":
        _warn_of_no_minimiser(solution)
    elif solution.status not in ("optimal", "stationary"):
        warn(
            f"{module.NAME} ended with status {solution.status!r} after {solution.n_iter} iterations: "
            f"{solution.certificate}, tolerance {tol:g}",
            InaccurateWarning,
            stacklevel=3,
        )
    return solution


class NoMinimiserWarning(InaccurateWarning):
    """The objective has an infimum but no minimiser; the message names the direction along which it falls forever."""


class _Run:
    """One solve."""

    def __init__(
        self,
        problem: Problem,
        module: ModuleType,
        tol: float,
        max_iter: int,
        time_limit: float | None,
        verbose: bool,
        callback: Callable[[Record], Any] | None,
    ) -> None:
        self.problem, self.module, self.tol = problem, module, tol
        self.max_iter, self.time_limit = max_iter, time_limit or math.inf
        self.verbose, self.callback = verbose, callback
        self.history: list[Record] = []
        self.latest: Iterate | None = None
        self.best: Iterate | None = None  # the point of the lowest objective
        self.lowest = math.inf
        self.prover: Iterate | None = None  # the point whose dual point proves the highest lower bound
        self.bound = -math.inf
        self.own: Certificate | None = (
            None  # the certificate of the best point, if its own dual point has just given it
        )
        self.certified = 0  # the iteration of the last certificate
        self.began = time.perf_counter()

    def go(self, start: Iterate, options: dict[str, Any]) -> Solution:
        """Run the solver to its end and certify what it found."""
        linear = _as_taken(self.problem, self.module)
        count, status = 0, "inaccurate"
        steps = self.module.run(linear, start, self.tol, **options)
        try:
            for count, iterate in enumerate(steps, start=1):
                self.latest = iterate
                late = time.perf_counter() - self.began > self.time_limit
                last = count >= self.max_iter or late or iterate.exhausted
                if last or self._due(count, iterate.promising):
                    reached = self._certify(linear, iterate, count)
                    if reached or last:
                        limits = "time_limit" if late else "inaccurate" if iterate.exhausted else "max_iter"
                        status = "optimal" if reached else limits
                        break
        except KeyboardInterrupt:
            if self.latest is None:
                raise
            if self.best is None or linear.value_at(self.latest.theta, self.latest.b) < self.lowest:
                self.best = self.latest
            status = "interrupted"
        finally:
            steps.close()
        return self._finish(count, status)

    def _due(self, count: int, promising: bool | None) -> bool:
        """When the solver says so; else at every early iteration and ever more rarely later."""
        if promising is None:
            return count >= EVERY * self.certified
        first = WATCHED_FROM if self.verbose or self.callback is not None else HOPELESS_FROM
        return promising or count >= max(first, HOPELESS_EVERY * self.certified)

    def _certify(self, linear: Problem, iterate: Iterate, count: int) -> bool:
        self.certified = count
        certificate = certify_point(linear, iterate.theta, iterate.b, iterate.dual, self.bound, tol=self.tol)
        self.own = None
        if certificate.lower_bound > self.bound:
            self.bound, self.prover = certificate.lower_bound, iterate
            self.own = certificate if linear is self.problem else None
        if self.best is None or certificate.objective <= self.lowest:
            self.best, self.lowest = iterate, certificate.objective
        record = Record(count, time.perf_counter() - self.began, certificate.objective, certificate)
        self.history.append(record)
        if self.verbose:
            print(
                f"{self.module.NAME} {count:>7d}  {record.time:8.2f} s  objective {record.objective:.8g}  {certificate}"
            )
        if self.callback is not None:
            self.callback(record)
        return certificate.error <= self.tol

    def _finish(self, count: int, status: str) -> Solution:
        """The best point in the coordinates of the problem, with its certificate from scratch."""
        assert self.best is not None
        if getattr(self.module, "ROUGH_ZEROS", False):
            self._round_to_zero()
        theta, b = self._lifted(self.best)
        certificate = self._final_certificate(theta, b)
        status = certificate.status(self.tol) or ("inaccurate" if status == "optimal" else status)
        if escape(self.problem, theta, b) is not None:
            status = "no_minimiser"
        single = theta.shape[1] == 1
        return Solution(
            problem=self.problem,
            coef=theta[:, 0].copy() if single else theta.copy(),
            intercept=float(b[0]) if single else b.copy(),
            objective=certificate.objective,
            certificate=certificate,
            status=status,
            solver=self.module.NAME,
            n_iter=count,
            time=time.perf_counter() - self.began,
            history=tuple(self.history),
            dual=dict((self.prover or self.best).dual),
        )

    def _round_to_zero(self) -> None:
        """Weights that are nearly zero become zero where terms have kinks there and the objective does not rise."""
        assert self.best is not None
        linear, theta, b = _as_taken(self.problem, self.module), self.best.theta, self.best.b
        if not theta.any() or (linear.normal_form.separable is None and not linear.normal_form.weight_pieces):
            return
        value = self.lowest if math.isfinite(self.lowest) else linear.value_at(theta, b)
        for part in (np.inf, 1e-4, 1e-6, 1e-8):
            rounded = np.where(np.abs(theta) <= part * np.abs(theta).max(), 0.0, theta)
            if not np.array_equal(rounded, theta) and linear.value_at(rounded, b) <= value:
                self.best, self.own = replace(self.best, theta=rounded), None
                return

    def _lifted(self, iterate: Iterate) -> tuple[Array, Array]:
        """The weights in the coordinates of the problem."""
        model = self.problem.model
        if isinstance(model, Kernel) and _factored(self.problem, self.module):
            return model.lift(iterate.theta), iterate.b
        centred = centring(self.problem)
        return (iterate.theta, iterate.b) if centred is None else centred.lift(iterate.theta, iterate.b)

    def _final_certificate(self, theta: Array, b: Array) -> Certificate:
        """From scratch: the bound from the dual point at hand, or anew from the point that proved the best bound."""
        assert self.best is not None
        if self.own is not None and self.prover is self.best:
            return self.own
        certificate = certify_point(self.problem, theta, b, self.best.dual, tol=self.tol)
        if self.prover is None or self.prover is self.best or certificate.error <= self.tol:
            return certificate
        proof = certify_point(self.problem, *self._lifted(self.prover), self.prover.dual)
        return certify_point(self.problem, theta, b, self.best.dual, known_bound=proof.lower_bound)


def _warn_of_no_minimiser(solution: Solution) -> None:
    direction = escape(solution.problem, *solution.problem.shaped(solution.coef, solution.intercept))
    assert direction is not None
    along = direction.in_words(solution.problem.feature_names)
    warn(
        f"the problem has no minimiser: the classes are separated along {along}, where no penalty grows. The weights "
        f"returned are one point on the way to infinity ({solution.certificate}); add bounds, or a penalty such as "
        "0.01 * Ridge()",
        NoMinimiserWarning,
        stacklevel=4,
    )


def _as_taken(problem: Problem, module: ModuleType) -> Problem:
    """The problem as the solver takes it: with a Linear model, unless it works on kernels as they are; centred."""
    if isinstance(problem.model, Kernel):
        return problem if getattr(module, "ON_KERNELS", False) else problem.linear()
    centred = centring(problem)
    return problem if centred is None else centred.problem


def _factored(problem: Problem, module: ModuleType) -> bool:
    """Whether the solver's weights are coordinates in a factor of gram."""
    return problem.has_factor_coordinates and _as_taken(problem, module) is not problem


def _start(problem: Problem, module: ModuleType, warm_start: Any) -> Iterate:
    if warm_start is None:
        null = null_point(_as_taken(problem, module))
        return Iterate(null.theta.copy(), null.b.copy())
    dual: dict[int, Array] = {}
    if isinstance(warm_start, Solution):
        coef, intercept, dual = warm_start.coef, warm_start.intercept, warm_start.dual
    elif isinstance(warm_start, tuple) and len(warm_start) == 2:
        coef, intercept = warm_start
    else:
        raise TypeError(f"warm_start must be a Solution or (coef, intercept), got {type(warm_start).__name__}")
    theta, b = problem.shaped(coef, intercept)
    if isinstance(problem.model, Kernel) and _factored(problem, module):
        theta = problem.model.lower(theta)
    centred = centring(problem)
    if centred is not None:
        theta, b = centred.lower(theta, b)
    numbers = {piece.number for piece in problem.normal_form.pieces}
    return Iterate(theta, b, {number: u for number, u in dual.items() if number in numbers})


def _check_limits(tol: float, max_iter: int | None, time_limit: float | None) -> None:
    if not (isinstance(tol, Real) and 0 < tol < math.inf):
        raise ValueError(f"tol must be positive, got {tol!r}")
    if max_iter is not None and not (isinstance(max_iter, Integral) and max_iter >= 1):
        raise ValueError(f"max_iter must be a positive integer, got {max_iter!r}")
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be positive, got {time_limit!r}")


def _check_options(module: ModuleType, options: dict[str, Any]) -> None:
    if not options:
        return
    known = list(inspect.signature(module.run).parameters)[3:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"solver {module.NAME!r} has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}")
