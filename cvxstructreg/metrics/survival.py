"""How well risks order the times of events."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.checks import real_array

#: Pairs that are compared at once.
PAIRS_AT_ONCE = 4_000_000


def concordance_index(time: Any, event: Any, risk: Any, sample_weight: Any = None) -> float:
    """Return the part of comparable pairs whose order the risks predict (Harrell's C); pairs of equal risk count half.

    A pair is comparable if the row with the shorter time has an event; of two equal times, if exactly one has an event
    (the other row was observed for longer). 0.5 is chance, 1 a perfect order.

    Parameters
    ----------
    time, event, risk : arrays of n numbers, n booleans, n numbers
        Times of events or of the end of the observation, whether there was an event, and predictions: a higher risk is
        an earlier event.
    sample_weight : array of n numbers, optional
        A pair counts as the product of its weights.

    Examples
    --------
    >>> concordance_index([1.0, 2.0, 3.0, 4.0], [True, True, False, True], [3.0, 1.0, 2.0, 0.0])
    0.8
    """
    times, risks = real_array(time, "time").reshape(-1), real_array(risk, "risk").reshape(-1)
    events = np.asarray(event, dtype=bool).reshape(-1)
    if not len(times) == len(events) == len(risks):
        raise ValueError(f"time, event and risk must have equal lengths, got {len(times)}, {len(events)}, {len(risks)}")
    weights = np.ones(len(times)) if sample_weight is None else real_array(sample_weight, "sample_weight").reshape(-1)
    if len(weights) != len(times):
        raise ValueError(f"sample_weight must have one number for each of the {len(times)} rows, got {len(weights)}")
    first = np.flatnonzero(events & (weights > 0))
    step = max(1, PAIRS_AT_ONCE // max(1, len(times)))
    total = agreeing = 0.0
    for start in range(0, len(first), step):
        rows = first[start : start + step, None]
        later = (times > times[rows]) | ((times == times[rows]) & ~events)
        counted = np.where(later, weights[rows] * weights, 0.0)
        total += float(counted.sum())
        agreeing += float(np.sum(counted * ((risks < risks[rows]) + 0.5 * (risks == risks[rows]))))
    if total == 0.0:
        raise ValueError("no pair of rows is comparable: no event has a later time after it; add events")
    return agreeing / total
