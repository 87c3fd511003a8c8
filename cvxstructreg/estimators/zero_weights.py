"""The warning about a penalty that makes all weights zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.paths.largest_strength import lambda_max
from cvxstructreg.paths.path_start import zero_strength
from cvxstructreg.paths.strength import checked_terms
from cvxstructreg.runtime.notices import AllZeroWarning
from cvxstructreg.runtime.quiet import muted, warn
from cvxstructreg.solvers import InaccurateWarning

#: A strength this far beyond lambda_max is round-off; a gradient is below this part of the products that it adds up.
ROUND_OFF, NO_PULL = 1e-6, 1e-9


def warn_of_zero_weights(name: str, problems: Sequence[Problem], finished: bool) -> None:
    """Warn that the penalty makes all weights zero, with the factor of the strengths at which that begins if known.

    Without ``finished``, the weights may be zero because a solver stopped early.
    """
    known = all(problem.normal_form.scores_are_smooth for problem in problems)
    factor = _largest([_factor(problem) for problem in problems])
    too_strong = f"{name}: all weights are zero, because the penalty is too strong"
    if 0.0 < factor <= 1.0 + ROUND_OFF:
        size = f"{factor:.3g}" if known else f"at most {factor:.3g}"
        remedy = f"lambda_max is {size} times the strengths given: multiply them by less than {factor:.3g}"
    elif finished and (math.isnan(factor) or (factor > 0.0 and not known)):
        remedy = "Multiply the strengths by less than 1"
    else:
        return
    warn(f"{too_strong}. {remedy}, or let {name}CV choose", AllZeroWarning, stacklevel=4)


def _largest(factors: Sequence[float]) -> float:
    """The largest factor; NaN if one is not known."""
    return math.nan if any(map(math.isnan, factors)) else max(factors)


def _factor(problem: Problem) -> float:
    """``lambda_max``, for losses with kinks an upper bound; NaN if unknown, and 0 if no penalty makes weights zero."""
    try:
        numbers = checked_terms(problem, None)
    except ValueError:
        return 0.0
    try:
        if problem.normal_form.scores_are_smooth:
            return lambda_max(problem)
        if problem.given.row_blocks is not None:  # the labels may stay where the blocks are
            return math.nan
        with muted(InaccurateWarning):
            return zero_strength(problem.now, numbers)
    except ValueError:
        return math.nan if _pulls(problem) else 0.0


def _pulls(problem: Problem) -> bool:
    """Whether the loss alone would move weights away from zero; also if it has kinks, where that is not known."""
    parts = problem.normal_form
    if not parts.scores_are_smooth:
        return True
    null = null_point(problem)
    slopes = parts.smooth_score_grad(parts.model.scores(null.theta, null.b))
    pull = np.abs(parts.model.adjoint(slopes))
    return bool(np.any(pull > NO_PULL * parts.column_norms[:, None] * np.linalg.norm(slopes, axis=0)))
