"""What is looked for, and what was found.

A *violation* is one of

============  =========================================================================================
bound         a lower bound above the value of a feasible point, whoever found the point
objective     the reported objective and the textbook value of the same point differ beyond round-off
status        the status does not match the gap, or the gap is negative
atom          a prox, gradient, conjugate or split of a term contradicts its textbook value
exception     an error that is no documented refusal
warning       a warning that is none of the library's own, such as an overflow in NumPy
time          a time limit exceeded by a factor of two and one second more
repetition    the same solve gives other weights the second time
threads       two solves at once, in two threads, give results that one alone does not
input         the arrays that the user gave were changed
crash         the process died or did not come back
============  =========================================================================================

Round-off is what :class:`cvxstructreg.crosscheck.textbook.value.Value` allows: 1e-12 of the sum of the terms, and 32
units in the last place of the magnitudes that were added.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """What is run on each problem.

    The solver that "auto" takes has ``time_limit`` seconds, all others ``other_limit`` seconds and ``max_iter``
    iterations; limits may be exceeded by a factor of two and ``grace`` seconds. ``solvers`` and ``points`` are names;
    None stands for all solvers and for ``n_points`` of the points. ``certify``, ``search``, ``repeat`` and ``threads``
    are shares of the problems.
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
    """One broken promise: its kind, who broke it, whose point shows it, and the numbers."""

    kind: str
    where: str
    message: str
    witness: str = ""
    size: float = 0.0
    point: Any = None


@dataclass
class Outcome:
    """What became of a problem."""

    status: str
    solvers: dict[str, str] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0
    optimum: float | None = None

    def as_data(self) -> dict[str, Any]:
        """For a line of JSON."""
        return asdict(self)
