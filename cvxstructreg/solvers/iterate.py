"""What solvers hand to the driver, and how they refuse."""

from __future__ import annotations

from dataclasses import dataclass, field

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.short_repr import short_repr


@dataclass(frozen=True)
class Refusal:
    """Why a solver does not accept a problem, in words."""

    reason: str


class SolverFailedError(RuntimeError):
    """A solver found no point at all; the message says why, in words."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point (theta, b) and what the solver knows of the dual, by the numbers of the terms.

    ``exhausted`` says that the solver has nothing more to give. ``promising`` is what a solver that keeps a gap of its
    own thinks of the point: True, that it is within tolerance and should be certified now; False, that a certificate
    would only cost time. None leaves it to the driver.
    """

    theta: Array
    b: Array
    dual: dict[int, Array] = field(default_factory=dict)
    exhausted: bool = False
    promising: bool | None = None

    __repr__ = short_repr
