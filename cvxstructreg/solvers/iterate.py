"""What solvers return to the driver: iterates, refusals, failures and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.short_repr import short_repr


@dataclass(frozen=True)
class Refusal:
    """The reason why a solver does not accept a problem."""

    reason: str


class InaccurateWarning(UserWarning):
    """A solve ended before its tolerance was proved; the message contains the certified gap."""


class SolverFailedError(RuntimeError):
    """A solver found no point at all; the message states the reason."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point (theta, b) and the dual points that the solver has, keyed by term number.

    ``exhausted`` marks the last point: the solver cannot improve it. ``promising`` is for solvers with their own
    estimate of the gap. True means that the estimate is within the tolerance and the point should be certified now.
    False means that a certificate would be wasted time. With None, the driver decides when to certify.

    Examples
    --------
    >>> import numpy as np
    >>> def gradient_steps(problem, start, tol):
    ...     theta = start.theta
    ...     for _ in range(100):
    ...         theta = 0.9 * theta
    ...         yield Iterate(theta, start.b)
    >>> start = Iterate(np.ones((2, 1)), np.zeros(1))
    >>> *_, last = gradient_steps(None, start, 1e-6)
    >>> bool(np.all(last.theta < 1e-4))
    True
    """

    theta: Array
    b: Array
    dual: Mapping[int, Array] = field(default_factory=dict)
    exhausted: bool = False
    promising: bool | None = None

    __repr__ = short_repr
