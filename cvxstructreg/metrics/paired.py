"""Tests of whether one model is better than another on the same folds or the same examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from cvxstructreg.core.checks import real_array

# Two scores that differ by no more than this fraction of the largest are equal.
ROUND_OFF = 8 * np.finfo(float).eps
ALTERNATIVES = ("two-sided", "greater", "less")


@dataclass(frozen=True)
class PairedTest:
    """The result of a paired test of a against b.

    Attributes
    ----------
    test : str
        Name of the test.
    statistic, p_value : float
    difference : float
        Mean of a - b; positive if a is larger.
    wins, losses, ties : int
        Folds (examples) in which a is larger than b (only a is right), smaller, equal.
    alternative : {"two-sided", "greater", "less"}
    symbol : str
        What the statistic is, such as "t(9)".

    Examples
    --------
    >>> test = paired_t_test([0.9, 0.8, 0.7], [0.8, 0.8, 0.5])
    >>> test.wins, test.losses, test.ties, round(test.difference, 6)
    (2, 0, 1, 0.1)
    """

    test: str
    statistic: float
    p_value: float
    difference: float
    wins: int
    losses: int
    ties: int
    alternative: str
    symbol: str

    @property
    def n(self) -> int:
        """Number of folds or examples."""
        return self.wins + self.losses + self.ties

    def significant(self, level: float = 0.05) -> bool:
        """Whether the p-value is below the level."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, not {level}")
        return bool(self.p_value < level)

    def __str__(self) -> str:
        sides = "" if self.alternative == "two-sided" else f" ({self.alternative})"
        return (
            f"{self.test}{sides}: mean difference {self.difference:+.4g}, {self.symbol} = {self.statistic:.4g}, "
            f"p = {self.p_value:.4g}; {self.wins} wins, {self.losses} losses, {self.ties} ties"
        )


def paired_t_test(a: ArrayLike, b: ArrayLike, alternative: str = "two-sided") -> PairedTest:
    """t = mean(a - b) / sqrt(var(a - b) / J) with J - 1 degrees of freedom, for J independent pairs of scores.

    Scores of folds that share training examples are not independent; this test then finds differences too often. Use
    `corrected_resampled_t_test` for them. If all differences are equal, t is infinite and p is 0 (1 if they are zero).

    Parameters
    ----------
    a, b : scores of two models
        On the same folds or data sets, at least two.
    alternative : {"two-sided", "greater", "less"}
        "greater": a is larger than b.

    Examples
    --------
    >>> print(paired_t_test([0.90, 0.92, 0.88, 0.91], [0.89, 0.89, 0.87, 0.88]))
    paired t-test: mean difference +0.02, t(3) = 3.464, p = 0.04052; 4 wins, 0 losses, 0 ties
    """
    differences = _differences(a, b, at_least=2)
    return _t_test("paired t-test", differences, 1.0 / len(differences), alternative)


def corrected_resampled_t_test(
    a: ArrayLike, b: ArrayLike, n_train: int, n_test: int, alternative: str = "two-sided"
) -> PairedTest:
    """t = mean(a - b) / sqrt((1/J + n_test/n_train) var(a - b)), J - 1 degrees of freedom: for overlapping folds.

    The variance is increased to account for examples that the training sets share (Nadeau and Bengio 2003), as in
    repeated splits and (repeated) cross-validation.

    Parameters
    ----------
    a, b : scores of two models
        On the same J splits.
    n_train, n_test : int
        Sizes of the training and test parts of a split, up to a common factor; 9 and 1 for ten folds.
    alternative : {"two-sided", "greater", "less"}
        "greater": a is larger than b.

    Examples
    --------
    >>> test = corrected_resampled_t_test([0.90, 0.92, 0.88, 0.91], [0.89, 0.89, 0.87, 0.88], n_train=3, n_test=1)
    >>> print(test)
    corrected resampled t-test: mean difference +0.02, t(3) = 2.268, p = 0.1081; 4 wins, 0 losses, 0 ties
    """
    for name, size in (("n_train", n_train), ("n_test", n_test)):
        if isinstance(size, bool) or not isinstance(size, int | float | np.number) or not 0 < size < np.inf:
            raise ValueError(f"{name} must be a positive number, not {size!r}")
    differences = _differences(a, b, at_least=2)
    factor = 1.0 / len(differences) + float(n_test) / float(n_train)
    return _t_test("corrected resampled t-test", differences, factor, alternative)


def sign_test(a: ArrayLike, b: ArrayLike, alternative: str = "two-sided") -> PairedTest:
    """wins ~ Binomial(wins + losses, 1/2): whether a beats b more often than by chance; ties do not count.

    Parameters are those of `paired_t_test`; without wins and losses p is 1.

    Examples
    --------
    >>> print(sign_test([3, 4, 5, 6, 7, 5], [2, 3, 4, 5, 6, 5]))
    sign test: mean difference +0.8333, wins = 5, p = 0.0625; 5 wins, 0 losses, 1 ties
    """
    return _binomial("sign test", _differences(a, b, at_least=1), alternative)


def mcnemar_test(
    y_true: ArrayLike, y_pred_a: ArrayLike, y_pred_b: ArrayLike, alternative: str = "two-sided", method: str = "exact"
) -> PairedTest:
    """wins ~ Binomial(wins + losses, 1/2) over the examples on which exactly one of two classifiers is right.

    Parameters
    ----------
    y_true, y_pred_a, y_pred_b : labels of any kind
        Of the same examples.
    alternative : {"two-sided", "greater", "less"}
        "greater": a is more often right than b.
    method : {"exact", "chi2"}
        The binomial distribution, or (two-sided only) the chi-squared approximation with continuity correction,
        (max(|wins - losses| - 1, 0))^2 / (wins + losses).

    Examples
    --------
    >>> truth = [1, 1, 1, 1, 0, 0, 0, 0]
    >>> print(mcnemar_test(truth, [1, 1, 1, 1, 0, 0, 0, 1], [1, 1, 0, 0, 1, 0, 0, 0]))
    McNemar's test: mean difference +0.25, wins = 3, p = 0.625; 3 wins, 1 losses, 4 ties
    """
    if method not in ("exact", "chi2"):
        raise ValueError(f'method must be "exact" or "chi2", not {method!r}')
    truth, *predictions = (np.asarray(labels) for labels in (y_true, y_pred_a, y_pred_b))
    if truth.ndim != 1 or truth.size == 0 or any(labels.shape != truth.shape for labels in predictions):
        shapes = ", ".join(str(labels.shape) for labels in (truth, *predictions))
        raise ValueError(
            f"y_true, y_pred_a and y_pred_b must be nonempty, one-dimensional and equally long, not {shapes}"
        )
    right_a, right_b = (np.asarray(labels == truth, dtype=np.float64) for labels in predictions)
    differences = right_a - right_b
    if method == "exact":
        return _binomial("McNemar's test", differences, alternative)
    if _checked(alternative) != "two-sided":
        raise ValueError(f'method "chi2" is two-sided; use method="exact" for the alternative {alternative!r}')
    wins, losses, ties = _counts(differences)
    statistic = max(abs(wins - losses) - 1, 0) ** 2 / (wins + losses) if wins + losses else 0.0
    p_value = float(stats.chi2.sf(statistic, 1))
    mean = float(differences.mean())
    return PairedTest("McNemar's test", statistic, p_value, mean, wins, losses, ties, alternative, "chi2(1)")


def _checked(alternative: str) -> str:
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative must be one of {', '.join(ALTERNATIVES)}, not {alternative!r}")
    return alternative


def _differences(a: ArrayLike, b: ArrayLike, at_least: int) -> NDArray[np.float64]:
    first, second = real_array(a, "a"), real_array(b, "b")
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"a and b must be one-dimensional arrays of equal length, not of shapes {first.shape} and {second.shape}"
        )
    if len(first) < at_least:
        raise ValueError(f"expected at least {at_least} pairs of scores, got {len(first)}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a and b must be finite; leave out folds in which a score is not defined")
    differences = first - second
    mean, scale = differences.mean(), max(np.abs(first).max(), np.abs(second).max())
    # scores such as 0.90 and 0.89 have round-off: make differences equal if they differ only by it
    for value in (0.0, mean):
        if np.all(np.abs(differences - value) <= ROUND_OFF * scale):
            return np.full(len(first), value)
    return np.where(np.abs(differences) <= ROUND_OFF * scale, 0.0, differences)


def _counts(differences: NDArray[np.float64]) -> tuple[int, int, int]:
    wins, losses = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return wins, losses, len(differences) - wins - losses


def _t_test(name: str, differences: NDArray[np.float64], factor: float, alternative: str) -> PairedTest:
    """Return the test of mean / sqrt(factor * variance)."""
    mean, freedom = float(differences.mean()), len(differences) - 1
    scale = float(np.sqrt(factor * differences.var(ddof=1)))
    without_spread = float(np.copysign(np.inf, mean)) if mean else 0.0
    statistic = without_spread if np.ptp(differences) == 0.0 else mean / scale
    p_value = _tail(stats.t(freedom), statistic, _checked(alternative))
    return PairedTest(name, statistic, p_value, mean, *_counts(differences), alternative, f"t({freedom})")


def _tail(distribution: Any, statistic: float, alternative: str) -> float:
    if alternative == "two-sided":
        return float(min(1.0, 2.0 * distribution.sf(abs(statistic))))
    return float(distribution.sf(statistic) if alternative == "greater" else distribution.cdf(statistic))


def _binomial(name: str, differences: NDArray[np.float64], alternative: str) -> PairedTest:
    _checked(alternative)
    wins, losses, ties = _counts(differences)
    p_value = float(stats.binomtest(wins, wins + losses, alternative=alternative).pvalue) if wins + losses else 1.0
    return PairedTest(name, float(wins), p_value, float(differences.mean()), wins, losses, ties, alternative, "wins")
