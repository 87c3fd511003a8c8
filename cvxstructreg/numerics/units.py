"""Powers of two as units: scaling by them is exact and makes results independent of the units of the data."""

from __future__ import annotations

import math


def power_of_two(size: float) -> float:
    """Return a power of two within a factor sqrt(2) of a positive number; 1 if the number is zero or not finite.

    >>> power_of_two(3.0), power_of_two(0.9), power_of_two(0.0)
    (4.0, 1.0, 1.0)
    """
    if not 0.0 < size < math.inf:
        return 1.0
    mantissa, exponent = math.frexp(size)  # exact, unlike a logarithm
    return math.ldexp(1.0, min(exponent if mantissa >= math.sqrt(0.5) else exponent - 1, 1023))
