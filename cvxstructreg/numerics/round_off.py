"""How much floating-point round-off can change an objective or a bound.

A lower bound is proved in exact arithmetic but computed in floating point. An estimate of the round-off is subtracted
from the bound, so that the bound stays valid:

- the error of a sum is at most about ``UNIT`` times the sum of the absolute values of its terms;
- the error of entry j of the product ``A'u`` is at most about ``UNIT ||A_j|| ||u||``.

These are estimates, not worst cases. The worst case for a sum of n numbers is n / 2 times larger, but errors of
opposite signs cancel, and NumPy sums pairwise.
"""

from __future__ import annotations

import numpy as np

#: Assumed relative error of a sum or of a product with a vector.
UNIT = 16.0 * float(np.finfo(float).eps)
#: An unpenalised variable (an intercept, a weight without penalty) is assumed to be at most this many times larger at
#: the optimum than at the certified point.
REACH = 10.0
