"""Verification: certify weights from any source, and compare all solvers with the reference."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate, certify_point, objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers import InaccurateWarning, registry, solve
from cvxstructreg.solvers.reference import NAME as REFERENCE

#: Limits, in iterations and seconds, for a solver to reach the tolerance when it is verified.
MAX_ITER, TIME_LIMIT = 100_000, 120.0
#: Iterations of the search for a dual point when no solver has found one.
SWEEPS = 5000
#: Most iterations of each solver in the search for a better dual point.
SEARCH_STEPS = 5000
#: Iterations of the warm-up run, which compiles all loops of a solver.
WARM_UP = 200
#: Relative round-off allowed when an objective is compared with a bound.
ROUND_OFF = 1e-12


def certify(
    problem: Problem,
    coef: Any,
    intercept: Any = 0.0,
    dual: Mapping[int, Array] | None = None,
    tol: float = 1e-6,
    search: bool = True,
) -> Certificate:
    """Bound how far given weights, from any source, are from the optimum of a problem.

    Parameters
    ----------
    problem : Problem
        The problem that the weights should solve.
    coef, intercept
        The weights, shape (d,) or (d, k), and the intercept(s).
    dual : dict, optional
        A dual point for each term, by the index of the term, as in ``Solution.dual``.
    tol : float
        The relative gap below which a bound is tight enough.
    search : bool
        Whether to look for a better dual point with the library's solvers if the point itself gives no tight bound
        (because it is not optimal, or because a term such as the hinge loss does not determine its dual point). The
        bound is valid whatever they return, because it is recomputed from the dual point.

    Returns
    -------
    Certificate
        Its ``gap`` is an upper bound on ``objective - optimum``.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear(np.eye(2), intercept=False), csr.Squared([1.0, 2.0]) + 0.5 * csr.Ridge())
    >>> round(csr.certify(problem, [0.5, 1.0]).gap, 6), round(csr.certify(problem, [0.5, 1.1]).gap, 6)
    (0.0, 0.01)
    """
    theta, b = problem.shaped(coef, intercept)
    if not search:
        return certify_point(problem, theta, b, dual, sweeps=SWEEPS)
    certificate = certify_point(problem, theta, b, dual)
    if certificate.error <= tol or not np.isfinite(certificate.objective):
        return certificate
    found, tight = -np.inf, False
    for solver in registry.accepting(problem):
        with muted(InaccurateWarning):
            start = (coef, intercept)
            other = solve(problem, solver.name, tol=tol / 10, max_iter=SEARCH_STEPS, warm_start=start).certificate
        found = max(found, -np.inf if other.kind == "kkt" else other.lower_bound)
        tight = other.kind != "kkt" and other.relative_gap <= tol
        if tight:
            break
    if tight:  # no dual point can raise the bound by more than tol
        return certify_point(problem, theta, b, dual, known_bound=found)
    return certify_point(problem, theta, b, dual, known_bound=found, sweeps=SWEEPS)


@dataclass(frozen=True)
class Row:
    """One solver's result."""

    method: str
    size: str
    solver: str
    objective: float
    relative_gap: float
    distance: float
    seconds: float
    times_faster: float
    status: str
    certificate: str
    n_iter: int


@dataclass(frozen=True)
class Report:
    """Results of all solvers that accept a problem, compared with the reference. Print it to see the table.

    Attributes
    ----------
    rows : tuple of Row
        The reference first. ``seconds`` are those of a second run, which excludes compilation; ``distance``
        is ``(objective - reference objective) / scale``.
    refusals : dict
        Why each of the other solvers refused the problem.
    disagreements : tuple of str
        One line for every pair whose objectives cannot both be right, and for every solver without a certificate.
    """

    rows: tuple[Row, ...]
    refusals: dict[str, str]
    disagreements: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether all solvers agree within their certificates, and all certificates are within the tolerance."""
        return not self.disagreements

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row."""
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        lines = table([self])
        lines += [f"  {name} refuses: {reason}" for name, reason in self.refusals.items()]
        return "\n".join([*lines, *self.disagreements])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def verify(
    problem: Problem, solvers: Iterable[str] | None = None, tol: float = 1e-6, method: str = "problem"
) -> Report:
    """Solve a problem with the reference and with every solver that accepts it, and compare.

    Parameters
    ----------
    problem : Problem
        Small enough for CVXPY.
    solvers : iterable of str, optional
        The solvers to run (the reference is always included).
    tol : float
        The certified relative gap that each solver must reach.
    method : str
        A name for the table.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> report = csr.verify(csr.Problem(csr.Linear(np.eye(3)), csr.Squared([1.0, 2.0, 4.0]) + csr.L1()))
    >>> report.agrees, report.rows[0].solver
    (True, 'cvxpy')
    """
    accepted = [solver.name for solver in registry.accepting(problem)]
    chosen = accepted if solvers is None else list(solvers)
    for name in chosen:
        registry.choose(problem, name)  # raise if a solver given by name is unknown or refuses
    with muted(InaccurateWarning):
        solutions = [solve(problem, REFERENCE, tol=tol)]
        for name in chosen:
            if name != REFERENCE:
                solve(problem, name, tol=tol, max_iter=WARM_UP)  # compile before timing
                accurate: dict[str, Any] = dict(registry.choose(problem, name).accurate)
                found = solve(problem, name, tol=tol, max_iter=MAX_ITER, time_limit=TIME_LIMIT, **accurate)
                solutions.append(found)
    reference = solutions[0]
    scale = objective_scale(problem, reference.objective)
    rows = tuple(
        Row(
            method=method,
            size=size_of(problem),
            solver=solution.solver,
            objective=solution.objective,
            relative_gap=solution.certificate.relative_gap,
            distance=(solution.objective - reference.objective) / scale,
            seconds=solution.time,
            times_faster=reference.time / solution.time,
            status=solution.status,
            certificate=solution.certificate.kind,
            n_iter=solution.n_iter,
        )
        for solution in solutions
    )
    refusals = {} if solvers is not None else registry.refusals(problem)
    certificates = {solution.solver: solution.certificate for solution in solutions}
    return Report(rows, refusals, tuple(disagreements(certificates, tol, scale, method)))


def disagreements(certificates: Mapping[str, Certificate], tol: float, scale: float, method: str) -> list[str]:
    """Return a line for every uncertified solver and every pair of results that cannot both be right."""
    lines = [
        f"NOT CERTIFIED {method}: {name} has {certificate}, expected at most {tol:g}"
        for name, certificate in certificates.items()
        if not certificate.error <= tol
    ]
    slack = ROUND_OFF * scale
    for name, certificate in certificates.items():
        # a certificate of kind "kkt" has no bound: use the tolerance instead
        bound = certificate.lower_bound if certificate.kind != "kkt" else certificate.objective - tol * scale
        if certificate.gap < 0:
            lines.append(f"DISAGREEMENT {method}: {name} has a negative gap {certificate.gap:g}")
        lines += [
            f"DISAGREEMENT {method}: {other} found {better.objective:.12g}, below the bound {bound:.12g} of {name}"
            for other, better in certificates.items()
            if better.objective < bound - slack
        ]
    return lines


def size_of(problem: Problem) -> str:
    """Return the size of a problem as text: rows x weights (x outputs)."""
    k = f" x {problem.n_outputs}" if problem.n_outputs > 1 else ""
    return f"{problem.model.n_rows} x {problem.model.n_weights}{k}"


def table(reports: Iterable[Report]) -> list[str]:
    """Return the lines of one table for several reports."""
    head = ("method", "size", "solver", "objective", "certified gap", "to reference", "seconds", "x CVXPY")
    body = []
    for report in reports:
        for number, row in enumerate(report.rows):
            gap = f"{row.relative_gap:.1e}" if row.certificate != "kkt" else "kkt only"
            distance = "reference" if row.solver == REFERENCE else f"{row.distance:+.1e}"
            faster = "1" if row.solver == REFERENCE else f"{row.times_faster:.2g}"
            name, size = (row.method, row.size) if number == 0 else ("", "")
            body.append((name, size, row.solver, f"{row.objective:.8g}", gap, distance, f"{row.seconds:.3f}", faster))
    widths = [max(len(line[column]) for line in [head, *body]) for column in range(len(head))]
    rule = "  ".join("-" * width for width in widths)
    lines = [_aligned(head, widths), rule]
    for number, line in enumerate(body):
        if line[0] and number:
            lines.append("")
        lines.append(_aligned(line, widths))
    return lines


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "  ".join(cell.ljust(w) if number < 3 else cell.rjust(w) for number, (cell, w) in enumerate(pairs)).rstrip()
