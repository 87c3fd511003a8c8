"""What solvers with working sets have in common: look at all features, work on some of them, and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from cvxstructreg.solvers.iterate import Iterate

#: Rounds without progress before it gives up, and objectives that count as equal.
STALLED = 5
ROUND_OFF = 1e-13


class Point(Protocol):
    """What a solver keeps from round to round: its objective and the worst violation of optimality among others."""

    objective: float
    worst: float

    def iterate(self, exhausted: bool = False, promising: bool | None = None) -> Iterate:
        """The point for the driver."""
        ...


def rounds(
    point: Point, tol: float, look: Callable[[float], float], improve: Callable[[float], None]
) -> Iterator[Iterate]:
    """Iterates until nothing gets better; ``look`` returns the relative gap, and both are told which one is wanted."""
    target, stalled = tol, 0
    objective = violation = np.inf
    while stalled < STALLED:
        gap = look(target)
        if gap <= target or objective < np.inf:  # the start is no step yet
            yield point.iterate(promising=bool(gap <= target))
        if gap <= target:
            target = 0.2 * max(gap, 0.0)  # the certificate wanted more
        # near the optimum objectives differ by round-off only, but violations still fall
        better = point.objective < objective - ROUND_OFF * abs(objective) or point.worst < 0.9 * violation
        stalled = 0 if better else stalled + 1
        objective, violation = min(objective, point.objective), min(violation, point.worst)
        improve(target)
    look(target)
    yield point.iterate(exhausted=True)
