"""The report of a verification: one row for each solver, and what cannot all be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.runtime import cards
from cvxstructreg.solvers.reference import NAME as REFERENCE

#: The columns of the table.
HEAD = ("method", "size", "solver", "objective", "certified gap", "to reference", "seconds", "x CVXPY")
#: Relative round-off allowed when an objective is compared with a bound.
ROUND_OFF = 1e-12


@dataclass(frozen=True)
class Row:
    """One solver's result; of a solver that failed, only the names and the reason, as ``status``, are there."""

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
        One line for every pair whose objectives cannot both be right, and for every solver that failed or has no
        certificate within the tolerance.
    solutions : dict
        The :class:`~cvxstructreg.Solution` of each solver that did not fail. Pass the report to
        :func:`cvxstructreg.plots.convergence` to draw their histories.
    hints : tuple of str
        What to run next.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> report = csr.verify(problem, solvers=["fista"])
    >>> report.agrees, [row.solver for row in report.rows]
    (True, ['cvxpy', 'fista'])
    """

    rows: tuple[Row, ...]
    refusals: dict[str, str]
    disagreements: tuple[str, ...]
    solutions: dict[str, Solution] = field(default_factory=dict, repr=False, compare=False)
    hints: tuple[str, ...] = ()

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
        return "\n".join([*lines, *self.disagreements, *self.hints])

    def _repr_html_(self) -> str:
        rows = [(row.solver, *_numbers(row), row.status) for row in self.rows]
        verdict = "all solvers agree within their certificates" if self.agrees else "NOT all solvers agree"
        title = f"{self.rows[0].method}, {self.rows[0].size}: {verdict}" if self.rows else verdict
        refused = f"Refused by {', '.join(self.refusals)}: report.refusals says why." if self.refusals else ""
        lines = cards.items([*self.disagreements, *self.hints])
        return cards.card(title, (), cards.table(("solver", *HEAD[3:], "status"), rows), lines, note=refused)


def row_of(name: str, solution: Solution, reference: Solution, scale: float, method: str) -> Row:
    """Return the row of a solution."""
    return Row(
        method=method,
        size=size_of(solution.problem),
        solver=name,
        objective=solution.objective,
        relative_gap=solution.certificate.relative_gap,
        distance=(solution.objective - reference.objective) / scale,
        seconds=solution.time,
        times_faster=reference.time / solution.time if solution.time > 0 else np.nan,
        status=solution.status,
        certificate=solution.certificate.kind,
        n_iter=solution.n_iter,
    )


def failed_row(problem: Problem, name: str, method: str, reason: str) -> Row:
    """Return the row of a solver that raised or returned no usable weights."""
    nan = float("nan")
    return Row(method, size_of(problem), name, nan, nan, nan, nan, nan, f"failed: {reason}", "none", 0)


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
    body: list[tuple[str, ...]] = []
    for report in reports:
        for number, row in enumerate(report.rows):
            name, size = (row.method, row.size) if number == 0 else ("", "")
            body.append((name, size, row.solver, *_numbers(row)))
    widths = [max(len(line[column]) for line in [HEAD, *body]) for column in range(len(HEAD))]
    rule = "  ".join("-" * width for width in widths)
    lines = [_aligned(HEAD, widths), rule]
    for number, line in enumerate(body):
        if line[0] and number:
            lines.append("")
        lines.append(_aligned(line, widths))
    return lines


def _numbers(row: Row) -> tuple[str, ...]:
    """Return the cells of a row from the objective on."""
    if row.certificate == "none":
        return ("failed", "-", "-", "-", "-")
    gap = f"{row.relative_gap:.1e}" if row.certificate != "kkt" else "kkt only"
    distance = "reference" if row.solver == REFERENCE else f"{row.distance:+.1e}"
    seconds = "-" if np.isnan(row.seconds) else f"{row.seconds:.3f}"
    faster = "1" if row.solver == REFERENCE else "-" if np.isnan(row.times_faster) else f"{row.times_faster:.2g}"
    return (f"{row.objective:.8g}", gap, distance, seconds, faster)


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "  ".join(cell.ljust(w) if number < 3 else cell.rjust(w) for number, (cell, w) in enumerate(pairs)).rstrip()
