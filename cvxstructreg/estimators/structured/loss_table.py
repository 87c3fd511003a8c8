"""The losses of the generic estimators, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import d2_absolute_error_score, d2_pinball_score, d2_tweedie_score, r2_score

from cvxstructreg.core.loss import Loss
from cvxstructreg.losses import (
    Absolute,
    Cox,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    MulticlassHinge,
    Multinomial,
    MultiTask,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
    Tweedie,
)
from cvxstructreg.metrics.survival import concordance_index


class RegressionLoss(NamedTuple):
    """A loss of numbers: its class, parameters of the estimator that it takes, its link, and its score."""

    make: type[Loss]
    options: tuple[str, ...]
    link: Callable[[Any], Any]
    score: Callable[[Any, Any, Any, Any], float]


class ClassLoss(NamedTuple):
    """A loss of labels: for two classes, and jointly for more; without a joint form, one class against the rest."""

    two: type[Loss] | None
    joint: type[Loss] | None
    has_probabilities: bool


def _identity(scores: Any) -> Any:
    return scores


def _exp(scores: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.exp(scores)


def _r2(estimator: Any, y: Any, mean: Any, weights: Any) -> float:
    return float(r2_score(y, mean, sample_weight=weights))


def _d2_absolute(estimator: Any, y: Any, mean: Any, weights: Any) -> float:
    return float(d2_absolute_error_score(y, mean, sample_weight=weights))


def _d2_pinball(estimator: Any, y: Any, mean: Any, weights: Any) -> float:
    return float(d2_pinball_score(y, mean, sample_weight=weights, alpha=estimator.quantile))


def _d2_deviance(power: float | None) -> Callable[[Any, Any, Any, Any], float]:
    def score(estimator: Any, y: Any, mean: Any, weights: Any) -> float:
        exponent = estimator.power if power is None else power
        return float(d2_tweedie_score(y, mean, sample_weight=weights, power=exponent))

    return score


def _concordance(estimator: Any, y: Any, risk: Any, weights: Any) -> float:
    return concordance_index(y[:, 0], y[:, 1] > 0, risk, sample_weight=weights)


REGRESSION: dict[str, RegressionLoss] = {
    "squared": RegressionLoss(Squared, (), _identity, _r2),
    "absolute": RegressionLoss(Absolute, (), _identity, _d2_absolute),
    "quantile": RegressionLoss(Quantile, ("quantile",), _identity, _d2_pinball),
    "huber": RegressionLoss(Huber, ("delta",), _identity, _r2),
    "poisson": RegressionLoss(Poisson, (), _exp, _d2_deviance(1.0)),
    "gamma": RegressionLoss(Gamma, (), _exp, _d2_deviance(2.0)),
    "tweedie": RegressionLoss(Tweedie, ("power",), _exp, _d2_deviance(None)),
    "multi_task": RegressionLoss(MultiTask, ("task_weight",), _identity, _r2),
    "cox": RegressionLoss(Cox, ("ties",), _identity, _concordance),
}
CLASSIFICATION: dict[str, ClassLoss] = {
    "logistic": ClassLoss(Logistic, Multinomial, True),
    "multinomial": ClassLoss(None, Multinomial, True),
    "hinge": ClassLoss(Hinge, MulticlassHinge, False),
    "squared_hinge": ClassLoss(SquaredHinge, None, False),
}


def named_loss(name: Any, table: Mapping[str, Any], other: Mapping[str, Any], estimator: str) -> Any:
    """Return the entry of a table; an unknown name is an error with the closest name, or the other estimator."""
    if isinstance(name, str) and name in table:
        return table[name]
    if isinstance(name, str) and name in other:
        raise ValueError(f"loss={name!r} is a loss of {estimator}; use that estimator")
    close = get_close_matches(str(name), list(table), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"loss must be one of {', '.join(map(repr, table))}, got {name!r}{hint}")
