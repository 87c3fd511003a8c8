"""Settings, violations and outcomes of the cross-check.

A *violation* is one of

============  =========================================================================================
bound         a lower bound is above the value of a feasible point, from any source
objective     the reported objective and the textbook value of the same point differ beyond round-off
status        the status does not match the gap, or the gap is negative
atom          a prox, gradient, conjugate or split of a term contradicts its textbook value
exception     an error that is not a documented refusal
warning       a warning that is not one of the library's own, such as an overflow in NumPy
time          a solve takes more than twice its time limit and a grace period
repetition    the same solve gives different weights the second time
threads       two solves in two threads give results that fail the other checks
input         the user's arrays were changed
crash         the process died or did not answer
============  =========================================================================================

The allowed round-off is that of :class:`cvxstructreg.crosscheck.textbook.value.Value`: 1e-12 of the sum of the terms,
plus 32 units in the last place of the magnitudes that were added.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Which checks are run on each problem.

    The solver that "auto" chooses has ``time_limit`` seconds; all others have ``other_limit`` seconds and ``max_iter``
    iterations. A solve may take twice its limit plus ``grace`` seconds. ``solvers`` and ``points`` are names; None
    means all solvers, and ``n_points`` of the points. ``certify``, ``search``, ``repeat`` and ``threads`` are shares of
    the problems.
    """

    tol: float = 1e-6
    time_limit: float = 1.0
    other_limit: float = 0.5
    grace: float = 1.0
    max_iter: int = 300
    solvers: tuple[str, ...] | None = None
    points: tuple[str, ...] | None = None
    n_points: int = 2
    textbook: bool = True
    atoms: bool = True
    certify: float = 1.0
    search: float = 0.05
    repeat: float = 0.25
    threads: float = 0.05


@dataclass(frozen=True)
class Violation:
    """One violation: its kind, where it occurred, whose point shows it, and the numbers."""

    kind: str
    where: str
    message: str
    witness: str = ""
    size: float = 0.0
    point: Any = None


@dataclass
class Outcome:
    """The result of the checks of one problem."""

    status: str
    solvers: dict[str, str] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0
    optimum: float | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the entries of a JSON record."""
        return asdict(self)
