"""All checks of one problem: every solver, perturbed points, repetition and threads; and the violations found.

What counts as a violation is listed in :mod:`cvxstructreg.crosscheck.findings`.
"""

from __future__ import annotations

import threading
import time
import traceback
import warnings
from typing import Any

import numpy as np

import cvxstructreg as csr
from cvxstructreg.crosscheck import build
from cvxstructreg.crosscheck.atoms import wrong_atoms
from cvxstructreg.crosscheck.findings import Outcome, Settings, Violation
from cvxstructreg.crosscheck.patience import TooSlow, is_slow, patience
from cvxstructreg.crosscheck.recipe import Recipe, outputs_of
from cvxstructreg.crosscheck.refusals import is_documented
from cvxstructreg.crosscheck.textbook.escape import may_escape
from cvxstructreg.crosscheck.textbook.matrices import Array
from cvxstructreg.crosscheck.textbook.program import feasible, textbook_optimum
from cvxstructreg.crosscheck.textbook.value import Value, value
from cvxstructreg.solvers import registry

#: Warnings that the library may issue.
DOCUMENTED_WARNINGS = (csr.InaccurateWarning, csr.GraphDominatesWarning, csr.RepairedGramWarning)
STATUSES = ("optimal", "stationary", "max_iter", "time_limit", "inaccurate", "no_minimiser")
#: Losses that may approach their infimum without attaining it.
NEVER_REACHED = ("Logistic", "Multinomial", "Poisson", "Tweedie", "Cox")
#: Most that may be added to the diagonal of a Gram matrix, relative to its largest eigenvalue.
SHIFT = {"float64": 1e-8, "float32": 2e-5}
#: Checks that are run for a share of the problems only.
SHARES = ("certify", "search", "repeat", "threads")
#: No further points are certified after this many seconds.
PATIENT = 0.2
#: Relative noise of the certified points near the best point. Zero and distant points are certified too.
NEARBY = {"exact": 0.0, "1e-9": 1e-9, "1e-4": 1e-4, "1e-1": 1e-1}


def check(recipe: Recipe, settings: Settings | None = None) -> Outcome:
    """Run all checks on one problem.

    Examples
    --------
    >>> loss = {"kind": "Squared", "on": "rows", "scale": 1.0, "y": [3.0, 1.0], "rows": None, "sample_weight": None}
    >>> ridge = {"kind": "Ridge", "on": "weights", "scale": 1.0, "weights": None}
    >>> model = {"kind": "linear", "matrix": [[2.0], [1.0]], "dtype": "int64", "format": "csr", "intercept": True}
    >>> outcome = check({"name": "0-0", "model": model, "terms": [loss, ridge]})
    >>> outcome.status, outcome.violations
    ('optimal', [])
    """
    began = time.process_time()
    run = _Check(recipe, settings or Settings())
    run.everything()
    return Outcome(run.status, run.statuses, run.violations, time.process_time() - began, run.best_value())


class _Check:
    def __init__(self, recipe: Recipe, settings: Settings) -> None:
        self.recipe = self.original = recipe
        self.settings = settings
        self.rng = np.random.default_rng([ord(letter) for letter in recipe.get("name", "0")])
        self.violations: list[Violation] = []
        self.statuses: dict[str, str] = {}
        self.status = "not solved"
        self.escapes: bool | None = None  # whether the problem may have no minimiser
        self.slow: dict[str, str] = {}  # what was stopped, and where
        zero = feasible(recipe, np.zeros((len(recipe["model"]["matrix"][0]), outputs_of(recipe))))
        self.null_value = value(recipe, zero, np.zeros(outputs_of(recipe))).high
        self.first = ""  # the solver that "auto" chooses
        self.points: dict[str, tuple[Array, Array, Value]] = {}
        self.bounds: dict[str, tuple[float, Value]] = {}
        self.chosen = {what: self.rng.random() < getattr(settings, what) for what in SHARES}

    def everything(self) -> None:
        """Run all checks."""
        problem = self.guarded("build", lambda: build.build(self.original))
        if problem is None:
            self.status = "refused" if not self.violations else "failed"
            return
        self.follow_repair(problem)
        if self.settings.textbook:
            optimum = textbook_optimum(self.recipe)
            if optimum is not None:
                self.add_point("textbook", *optimum)
        if self.settings.atoms:
            for name, text in self.guarded("atoms", lambda: list(wrong_atoms(problem, self.recipe, self.rng))) or ():
                self.violate("atom", name, text)
        self.solve_all(problem)
        self.certify_all(problem)
        if self.chosen["threads"] and self.status not in ("refused", "failed"):
            self.in_threads(problem)
        self.compare_bounds()
        if not np.array_equal(_dense(problem.given.design), np.array(self.original["model"]["matrix"], dtype=float)):
            self.violate("input", "model", "the design matrix has changed")

    def follow_repair(self, problem: csr.Problem) -> None:
        """Replace gram by gram + shift I if the package did so; a shift beyond the allowed round-off is a violation."""
        model = self.guarded("model", lambda: problem.model)
        if model is None or not getattr(model, "shift", 0.0):
            return
        gram = np.array(self.original["model"]["matrix"], dtype=float)
        most = SHIFT[self.original["model"]["dtype"]] * float(np.linalg.eigvalsh(gram)[-1])
        shifted = gram + model.shift * np.eye(len(gram))
        if model.shift > most or np.abs(model.design - shifted).max() > 1e-15 * np.abs(gram).max():
            self.violate("input", "model", f"the diagonal of the Gram matrix was changed by more than {most:.1e}")
        self.recipe = {**self.original, "model": {**self.original["model"], "matrix": model.design.tolist()}}

    def guarded(self, where: str, action: Any, point: Any = None) -> Any:
        """Return the result of an action; None if it raises, which is a violation unless the error is documented.

        ``point`` is the point that the action examines, for the script.
        """
        caught: list[str] = []

        def note(message: Warning | str, category: type[Warning], *_: Any) -> None:
            if not issubclass(category, DOCUMENTED_WARNINGS):
                caught.append(f"{category.__name__}: {message} [{_innermost(traceback.extract_stack())}]")

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = note  # type: ignore[assignment]
            try:
                with patience(3.0 * self.settings.time_limit + self.settings.grace):
                    result = action()
            except TooSlow as error:
                self.slow[where] = _place(error)
                result = None
            except Exception as error:
                if not is_documented(self.recipe, error):
                    message = f"{type(error).__name__}: {error} [{_place(error)}]"
                    self.violate("exception", where, message, point=point)
                result = None
        for message in caught:
            self.violate("warning", where, message, point=point)
        return result

    def violate(self, kind: str, where: str, message: str, **more: Any) -> None:
        """Record a violation; each kind and place is recorded once."""
        if not any(known.kind == kind and known.where == where for known in self.violations):
            self.violations.append(Violation(kind, where, message, **more))

    def add_point(self, label: str, theta: Array, b: Array) -> Value:
        """Record a point and its textbook value."""
        found = value(self.recipe, theta, b)
        if np.isfinite(found.high):
            self.points[label] = theta, b, found
        return found

    def best_value(self) -> float | None:
        """Return the lowest value found by any solver or by the textbook program."""
        return min((point[2].high for point in self.points.values()), default=None)

    # ------------------------------------------------------------------------------------------------ solvers

    def solve_all(self, problem: csr.Problem) -> None:
        """Run every solver that accepts the problem; "auto" uses the first of them."""
        accepting = self.guarded("accepting", lambda: [solver.name for solver in registry.accepting(problem)])
        if accepting is None:
            self.status = "refused" if not self.violations else "failed"
            return
        self.first = accepting[0]
        for number, name in enumerate(accepting):
            wanted = self.settings.solvers
            if wanted is not None and name not in wanted and not ("auto" in wanted and number == 0):
                continue
            solution = self.solve(problem, name)
            outcome = ("too slow" if name in self.slow else "refused") if solution is None else solution.status
            self.statuses[name] = outcome
            if number == 0:
                self.status = outcome
        if self.chosen["repeat"] and accepting:
            self.repeated(problem, accepting[int(self.rng.integers(len(accepting)))])

    def run(self, problem: csr.Problem, name: str) -> csr.Solution:
        """Solve within the limits."""
        most = None if name == self.first else self.settings.max_iter
        return problem.solve(name, self.settings.tol, max_iter=most, time_limit=self.limit(name))

    def limit(self, name: str) -> float:
        """Return the time limit of a solver in seconds."""
        return self.settings.time_limit if name == self.first else self.settings.other_limit

    def solve(self, problem: csr.Problem, name: str) -> csr.Solution | None:
        """Solve, and check the time, the status and the certificate of the solution."""
        limit = self.limit(name)
        began = time.process_time()
        solution = self.guarded(name, lambda: self.run(problem, name))
        seconds = time.process_time() - began
        most = 2.0 * limit + self.settings.grace
        if seconds > most and is_slow(lambda: self.run(problem, name), most):
            place = f", stopped in {self.slow[name]}" if name in self.slow else ""
            message = f"{seconds:.1f} s of CPU time for a limit of {limit:g} s{place}"
            self.violate("time", name, message, size=seconds / limit)
        if solution is not None:
            self.inspect(problem, name, solution)
        return solution

    def inspect(self, problem: csr.Problem, where: str, solution: csr.Solution) -> None:
        """Check the objective, the certificate and the status of a solution."""
        theta, b = problem.shaped(solution.coef, solution.intercept)
        self.inspect_certificate(where, theta, b, solution.certificate)
        if solution.objective != solution.certificate.objective:
            self.violate("status", where, "the objective differs from that of the certificate")
        expected = _proved(solution.certificate, self.settings.tol)
        if solution.status not in STATUSES:
            self.violate("status", where, f"status {solution.status!r} is not documented")
        elif solution.status == "no_minimiser":
            if self.escapes is None:
                self.escapes = self.recipe["terms"][0]["kind"] in NEVER_REACHED and may_escape(self.recipe)
            if not self.escapes:
                self.violate("status", where, "'no_minimiser', but no direction decreases the objective forever")
        elif expected != (solution.status if solution.status in ("optimal", "stationary") else ""):
            self.violate("status", where, f"{solution.status!r} with {solution.certificate}")

    def inspect_certificate(self, where: str, theta: Array, b: Array, certificate: csr.Certificate) -> None:
        """Check that objective, bound and gap of a certificate are consistent and agree with the textbook value."""
        if not (np.isfinite(theta).all() and np.isfinite(b).all()):
            self.violate("objective", where, "the weights are not finite")
            return
        found = self.add_point(where, theta, b)
        if not _agree(certificate.objective, found):
            self.violate(
                "objective",
                where,
                f"objective {certificate.objective!r}, textbook value {found.high!r} (round-off {found.slack:.1e})",
                size=abs(certificate.objective - found.high),
                point=_listed(theta, b),
            )
        if certificate.kind == "kkt" or not np.isfinite(certificate.objective):
            return
        self.bounds[where] = certificate.lower_bound, found
        difference = certificate.objective - certificate.lower_bound
        if certificate.gap < 0 or abs(certificate.gap - max(difference, 0.0)) > found.slack:
            self.violate(
                "status",
                where,
                f"gap {certificate.gap!r} for objective {certificate.objective!r}, bound {certificate.lower_bound!r}",
                size=-certificate.gap,
                point=_listed(theta, b),
            )
        scale = max(abs(certificate.objective), 1e-3 * self.null_value, np.finfo(float).tiny)
        if certificate.relative_gap < (1.0 - 1e-9) * certificate.gap / scale:
            text = f"relative gap {certificate.relative_gap!r} for gap {certificate.gap!r} and scale {scale!r}"
            self.violate("status", where, text)

    # ------------------------------------------------------------------------------------------------- points

    def certify_all(self, problem: csr.Problem) -> None:
        """Check certificates of zero, of points near the best one and of distant points."""
        if self.status in ("refused", "failed") or not self.chosen["certify"]:
            return
        points, began = self.perturbed(), time.process_time()
        some = self.rng.permutation(list(points))[: self.settings.n_points].tolist()
        for label in some if self.settings.points is None else self.settings.points:
            theta, b = points[label]
            if time.process_time() - began > PATIENT:
                return
            search = self.chosen["search"] and label.startswith("near")
            where = f"certify {label}" + (" by search" if search else "")
            point = _listed(theta, b)
            certificate = self.guarded(where, lambda: csr.certify(problem, theta, b, search=search), point)  # noqa: B023
            if certificate is not None:
                self.inspect_certificate(where, theta, b, certificate)

    def perturbed(self) -> dict[str, tuple[Array, Array]]:
        """Return the points to certify."""
        d, k = len(self.recipe["model"]["matrix"][0]), outputs_of(self.recipe)
        rng = np.random.default_rng([ord(letter) for letter in self.recipe.get("name", "0")])
        free = float(self.recipe["model"]["intercept"])
        best = min(self.points.values(), key=lambda point: point[2].high, default=None)
        theta, b = (np.zeros((d, k)), np.zeros(k)) if best is None else best[:2]
        sizes = np.abs(theta).max(initial=0.0) or 1.0, np.abs(b).max(initial=0.0) or 1.0
        points = {"zero": (np.zeros((d, k)), np.zeros(k))}
        for label, noise in NEARBY.items():
            moved = theta + noise * sizes[0] * rng.normal(size=(d, k)) * (rng.random((d, k)) < 0.5)
            points[f"near {label}"] = feasible(self.recipe, moved), b + free * noise * sizes[1] * rng.normal(size=k)
        far = 10.0 ** rng.uniform(0, 6)
        points["far"] = feasible(self.recipe, far * sizes[0] * rng.normal(size=(d, k))), far * free * rng.normal(size=k)
        points["wild"] = rng.normal(size=(d, k)), free * rng.normal(size=k)
        return points

    def compare_bounds(self) -> None:
        """Check that no bound exceeds any value by more than round-off."""
        if not self.points:
            return
        witness, (theta, b, lowest) = min(self.points.items(), key=lambda item: item[1][2].high)
        for where, (bound, origin) in self.bounds.items():
            excess = bound - lowest.high
            if excess > origin.slack + lowest.slack:
                self.violate(
                    "bound",
                    where,
                    f"bound {bound!r} is above the value {lowest.high!r} found by {witness} "
                    f"(by {excess:.1e}, relative {excess / max(abs(lowest.high), 1e-300):.1e}; "
                    f"round-off {origin.slack + lowest.slack:.1e})",
                    witness=witness,
                    size=excess,
                    point=_listed(theta, b),
                )

    # ------------------------------------------------------------------------------------ repetition, threads

    def repeated(self, problem: csr.Problem, name: str) -> None:
        """Check that repeated solves, of the same problem and of a rebuilt one, give identical results."""
        results = []
        for given in (problem, problem, None):
            target = given or self.guarded("build", lambda: build.build(self.original))
            solution = self.guarded(name, lambda: self.run(target, name))  # noqa: B023
            if solution is None or solution.time > self.limit(name):
                return
            results.append(solution)
        for other in results[1:]:
            same = np.array_equal(results[0].coef, other.coef) and np.array_equal(results[0].intercept, other.intercept)
            if not same or results[0].status != other.status:
                size = float(np.max(np.abs(results[0].coef - other.coef), initial=0.0))
                self.violate("repetition", name, f"the weights differ by {size:.1e} in a second run", size=size)

    def in_threads(self, problem: csr.Problem) -> None:
        """Run two solvers on one problem at the same time; their results must pass the same checks as alone."""
        names = [name for name, status in self.statuses.items() if status not in ("refused", "time_limit")]
        if not names:
            return
        pair = (names[0], names[int(self.rng.integers(len(names)))])
        results: dict[int, Any] = {}

        def work(number: int) -> None:
            try:
                results[number] = self.run(problem, pair[number])
            except Exception as error:
                results[number] = error

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        for number, result in results.items():
            if isinstance(result, Exception):
                self.violate("threads", pair[number], f"{type(result).__name__}: {result} [{_place(result)}]")
            else:
                known = len(self.violations)
                self.inspect(problem, f"{pair[number]} in a thread", result)
                self.violations[known:] = [_renamed(violation) for violation in self.violations[known:]]


def _renamed(violation: Violation) -> Violation:
    return Violation("threads", violation.where, f"{violation.kind}: {violation.message}", size=violation.size)


def _proved(certificate: csr.Certificate, tol: float) -> str:
    """Return the status that a certificate proves; empty if it proves none."""
    if certificate.kind == "kkt":
        return "stationary" if certificate.residual <= tol else ""
    return "optimal" if 0.0 <= certificate.relative_gap <= tol else ""


def _agree(objective: float, found: Value) -> bool:
    if not np.isfinite(found.high) or not np.isfinite(objective):
        return bool(found.high == objective) or found.magnitude > 1e300
    return abs(objective - found.high) <= found.slack + found.spread


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)


def _listed(theta: Array, b: Array) -> list[Any]:
    return [np.asarray(theta, dtype=float).tolist(), np.asarray(b, dtype=float).tolist()]


def _place(error: BaseException) -> str:
    """Return the file and line of the package in which an error was raised."""
    return _innermost(traceback.extract_tb(error.__traceback__))


def _innermost(frames: traceback.StackSummary) -> str:
    """Return the innermost file and line of the package outside the cross-check."""
    places = [(f.filename.split("cvxstructreg/")[-1], f.lineno) for f in frames if "cvxstructreg/" in f.filename]
    inner = [place for place in places if not place[0].startswith("crosscheck/")] or places
    return f"{inner[-1][0]}:{inner[-1][1]}" if inner else "outside"
