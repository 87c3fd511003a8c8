"""Shared code of the generators: random numbers from a seed, and checks of fractions and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator for None, a seed, a Generator, or a RandomState (as in older code)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if isinstance(random_state, bool) or not isinstance(
        random_state, int | np.integer | np.random.Generator | type(None)
    ):
        raise TypeError(f"random_state must be an integer, a numpy Generator or None, not {random_state!r}")
    if isinstance(random_state, int | np.integer) and random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}")
    return np.random.default_rng(random_state)


def checked_number(value: Any, name: str, upper: float = np.inf) -> float:
    """Return the value as a float, after checking that it is a real number from 0 to `upper`."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not (0 <= value <= upper and np.isfinite(value)):
        limits = "at least 0 and finite" if upper == np.inf else f"from 0 to {upper:g}"
        raise ValueError(f"{name} must be {limits}, not {value}")
    return float(value)


def checked_at_most(count: int, limit: int, name: str, of: str) -> int:
    """Return the count, after checking that it is an integer from 0 to the limit."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer):
        raise TypeError(f"{name} must be an integer, not {count!r}")
    if not 0 <= count <= limit:
        raise ValueError(f"{name} must be from 0 to {limit} ({of}), not {count}")
    return int(count)
