"""Powers with exact exponents: CVXPY solves ``power(x, 2.718)`` for a fraction near the exponent.

CVXPY computes the *value* of such a power with the given exponent. A bound from its compiled program would belong to
another function, and might be above the optimum. So these powers are written with power cones, which are exact.
"""

from __future__ import annotations

from typing import Any

from cvxstructreg.runtime.lazy_cvxpy import cp


def approximates(e: Any) -> bool:
    """Whether an expression, an objective or a constraint contains a power that CVXPY solves for another exponent."""
    return _is_rounded(e) or any(approximates(argument) for argument in e.args)


def with_exact_powers(e: Any) -> Any:
    """The same expression with power cones for all such powers."""
    if not approximates(e):
        return e
    arguments = [with_exact_powers(argument) for argument in e.args]
    if _is_rounded(e):
        return cp.power(arguments[0], e.p, approx=False)
    return cp.transforms.indicator(arguments) if isinstance(e, cp.transforms.indicator) else e.copy(arguments)


def _is_rounded(e: Any) -> bool:
    """Whether e is a power with a rounded exponent: norms and means use the rounded numbers for values as well."""
    return hasattr(e, "p_used") and bool(getattr(e, "approx_error", 0.0))
