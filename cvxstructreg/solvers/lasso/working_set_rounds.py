"""The outer loop of solvers with working sets: evaluate all features, improve some of them, repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from cvxstructreg.solvers.iterate import Iterate

#: Rounds without progress before the solver stops.
STALLED = 5
#: Objectives with a smaller relative difference count as equal.
ROUND_OFF = 1e-13
#: A violation below this part of the smallest one so far is progress.
LESS_VIOLATION = 0.9
#: If the certificate does not confirm a gap within the target, the next target is this part of the gap.
STRICTER = 0.2


class Point(Protocol):
    """The state of a solver, with the objective and the worst violation of optimality."""

    objective: float
    worst: float

    def iterate(self, exhausted: bool = False, promising: bool | None = None) -> Iterate:
        """The point for the driver."""
        ...


def rounds(
    point: Point, tol: float, evaluate: Callable[[float], float], improve: Callable[[float], None]
) -> Iterator[Iterate]:
    """Yield iterates until there is no more progress. ``evaluate`` returns the relative gap; both take a target gap."""
    target, stalled = tol, 0
    objective = violation = np.inf
    while stalled < STALLED:
        gap = evaluate(target)
        if gap <= target or objective < np.inf:  # the starting point is not an iteration
            yield point.iterate(promising=bool(gap <= target))
        if gap <= target:
            target = STRICTER * max(gap, 0.0)  # the certificate did not confirm the gap
        # near the optimum, objectives differ only by round-off, but violations still decrease
        better = point.objective < objective - ROUND_OFF * abs(objective) or point.worst < LESS_VIOLATION * violation
        stalled = 0 if better else stalled + 1
        objective, violation = min(objective, point.objective), min(violation, point.worst)
        improve(target)
    evaluate(target)
    yield point.iterate(exhausted=True)
