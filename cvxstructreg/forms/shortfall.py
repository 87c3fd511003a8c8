"""The hinge: by how much a margin is below 1."""

from __future__ import annotations

import numpy as np

from cvxstructreg.numerics.arrays import Array


def shortfall(margins: Array) -> Array:
    """(1 - m_i)_+: by how much the margins m_i = y_i f_i are below 1.

    Examples
    --------
    >>> shortfall(np.array([-1.0, 0.5, 2.0])).tolist()
    [2.0, 0.5, 0.0]
    """
    return np.maximum(0.0, 1.0 - margins)
