"""The loop of :mod:`cvxstructreg.numerics.checksum`. Import it only where it is called, because it imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.checksum import FACTORS, STRIPE, TURN
from cvxstructreg.runtime.compiled_clock import njit

LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
ONE, OTHER = np.uint64(FACTORS[0]), np.uint64(FACTORS[1])
LEFT, RIGHT = np.uint64(TURN), np.uint64(64 - TURN)


@njit(cache=True, nogil=True)
def add_stripes(words: Any, keys: Any, state: Any, upto: int) -> None:
    """Add all whole stripes that begin before word ``upto``: the state has the words so far and both chains."""
    at, h, g = np.int64(state[0]), state[1], state[2]
    while at < upto and at + STRIPE <= len(words):
        stripe, products, total = words[at : at + STRIPE], np.uint64(0), np.uint64(0)
        for i in range(STRIPE):
            keyed = stripe[i] ^ keys[i]
            products += (keyed & LOW) * (keyed >> HALF)
            total += stripe[i]
        h = (h ^ products) * ONE
        h = ((h << LEFT) | (h >> RIGHT)) * OTHER
        g = (g ^ total) * OTHER
        g = ((g << LEFT) | (g >> RIGHT)) * ONE
        at += STRIPE
    state[0], state[1], state[2] = np.uint64(at), h, g
