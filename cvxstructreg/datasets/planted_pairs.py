"""Two moons with few labelled points and pairs of points known to have different labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from cvxstructreg.core.checks import checked_count
from cvxstructreg.datasets.seeding import checked_at_most, checked_number, generator

#: The label of unlabelled points in `semi_target`, as in sklearn.semi_supervised.
UNLABELED = -1
_DESCR = """Two moons with dissimilar pairs.

Two interleaved half circles in the plane. A few points of each are labelled; some pairs of the other points are known
to have different labels.
"""


def make_moons_with_pairs(
    n_samples: int = 200,
    *,
    n_labeled: int = 1,
    n_pairs: int = 20,
    noise: float = 0.1,
    wrong: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Make two moons, labels for a few points, and dissimilar pairs (s, t) of the others, with y_s != y_t.

    Parameters
    ----------
    n_samples : int
        Total number of points of both moons, at least 4.
    n_labeled : int
        Number of labelled points of each moon.
    n_pairs : int
        Number of distinct pairs of unlabelled points.
    noise : float
        Standard deviation of the noise on the points.
    wrong : float from 0 to 1
        Share of wrong pairs: both points are in the same moon.
    random_state : int, Generator or None

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (n x 2), target (0/1: the truth), semi_target (the same, -1 where unlabelled), target_names, labeled_idx,
        unlabeled_idx, pairs (n_pairs x 2, row indices), wrong_pairs (mask), DESCR.

    Examples
    --------
    >>> bunch = make_moons_with_pairs(100, n_labeled=2, n_pairs=5, random_state=0)
    >>> bunch.data.shape, bunch.pairs.shape, int((bunch.semi_target >= 0).sum())
    ((100, 2), (5, 2), 4)
    >>> bool(np.all(bunch.target[bunch.pairs[:, 0]] != bunch.target[bunch.pairs[:, 1]]))
    True
    """
    from sklearn.datasets import make_moons

    n = checked_count(n_samples, "n_samples")
    if n < 4:
        raise ValueError(f"n_samples must be at least 4, two of each moon, not {n}")
    spread, share = checked_number(noise, "noise"), checked_number(wrong, "wrong", 1.0)
    labelled = checked_count(n_labeled, "n_labeled")
    checked_at_most(labelled, n // 2 - 1, "n_labeled", "one point of each moon stays unlabelled")
    rng = generator(random_state)
    X, y = make_moons(n, noise=spread, random_state=int(rng.integers(2**31)))
    labeled = np.sort(np.concatenate([rng.choice(np.flatnonzero(y == c), labelled, replace=False) for c in (0, 1)]))
    unlabeled = np.setdiff1d(np.arange(n), labeled)
    n_wrong = round(share * checked_at_most(n_pairs, n * n, "n_pairs", "pairs of points"))
    zeros, ones = (unlabeled[y[unlabeled] == c] for c in (0, 1))
    pairs = np.concatenate([_different(rng, zeros, ones, n_pairs - n_wrong), _same(rng, zeros, ones, n_wrong)])
    order = rng.permutation(n_pairs)
    return Bunch(
        data=X,
        target=y.astype(np.int64),
        semi_target=np.where(np.isin(np.arange(n), labeled), y, UNLABELED),
        target_names=["0", "1"],
        labeled_idx=labeled,
        unlabeled_idx=unlabeled,
        pairs=pairs[order],
        wrong_pairs=(np.arange(n_pairs) >= n_pairs - n_wrong)[order],
        DESCR=_DESCR,
    )


def _different(
    rng: np.random.Generator, zeros: NDArray[np.int64], ones: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    i, j = np.divmod(_chosen(rng, len(zeros) * len(ones), count, "different moons"), len(ones))
    return np.column_stack([zeros[i], ones[j]])


def _same(rng: np.random.Generator, zeros: NDArray[np.int64], ones: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    within = [len(moon) * (len(moon) - 1) // 2 for moon in (zeros, ones)]
    number = _chosen(rng, sum(within), count, "the same moon")
    pairs = []
    for moon, numbers in ((zeros, number[number < within[0]]), (ones, number[number >= within[0]] - within[0])):
        j = np.floor((1.0 + np.sqrt(1.0 + 8.0 * numbers)) / 2.0).astype(np.int64)  # pair j(j-1)/2 + i is (i, j), i < j
        pairs.append(np.column_stack([moon[numbers - j * (j - 1) // 2], moon[j]]))
    return np.concatenate(pairs)


def _chosen(rng: np.random.Generator, there: int, count: int, kind: str) -> NDArray[np.int64]:
    if count > there:
        raise ValueError(f"n_pairs needs {count} pairs of {kind}, but there are only {there}; use fewer")
    return rng.choice(there, count, replace=False) if count else np.zeros(0, dtype=np.int64)
