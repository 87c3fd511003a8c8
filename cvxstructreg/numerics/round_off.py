"""How much the round-off of floating-point arithmetic can change an objective or a bound.

A lower bound is proved in exact arithmetic and computed in floating point. What the computation may have lost is
charged to the bound, so that the bound stays valid:

- a sum of numbers is wrong by at most about ``UNIT`` times the sum of their absolute values;
- the product ``A'u`` is wrong, in entry j, by at most about ``UNIT ||A_j|| ||u||``.

These are estimates and no worst cases: the worst case of a sum of n numbers is n / 2 times larger, but errors of both
signs cancel, and NumPy adds in pairs.
"""

from __future__ import annotations

import numpy as np

#: Relative error charged for a sum or a product with a vector.
UNIT = 16.0 * float(np.finfo(float).eps)
#: A free direction (an intercept, a weight without penalty) is assumed to be at the optimum at most so many times as
#: far from zero as at the point that is certified.
REACH = 10.0
