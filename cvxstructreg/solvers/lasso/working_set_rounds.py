"""What solvers with working sets have in common: look at all features, work on some of them, and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.solvers.iterate import Iterate, Refusal

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


def matrix_refusal(parts: NormalForm) -> Refusal | None:
    """Why the quadratic terms of the weights cannot be had as sparse or small matrices, if so."""
    for scaled in parts.weight_forms:
        if scaled.form.is_operator:
            return Refusal("a quadratic term has no sparse matrix, as virtual nodes were eliminated")
        given = scaled.form.factor if scaled.form.factor is not None else scaled.form.matrix
        if not sp.issparse(given) and given.shape[1] > DENSE_LIMIT:
            return Refusal(f"a quadratic term has a dense matrix of more than {DENSE_LIMIT} rows")
    return None
