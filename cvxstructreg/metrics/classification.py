"""Sensitivity, specificity and accuracy of predicted labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxstructreg.core.checks import plural

# For the usual label codes, pos_label may be left out.
_USUAL = ({0, 1}, {-1, 1}, {False, True})


@dataclass(frozen=True)
class BinaryReport:
    """Counts of right and wrong predictions of the positive and negative class, and the rates computed from them.

    Attributes
    ----------
    n_true_positive, n_false_negative, n_true_negative, n_false_positive : int
    pos_label : the label that counts as positive

    Examples
    --------
    >>> report = binary_report([1, 1, 0, 0], [1, 0, 0, 0])
    >>> report.n_true_positive, report.sensitivity, report.specificity
    (1, 0.5, 1.0)
    """

    n_true_positive: int
    n_false_negative: int
    n_true_negative: int
    n_false_positive: int
    pos_label: Any

    @property
    def sensitivity(self) -> float:
        """Share of the positive examples that are found; nan if there are none."""
        return _ratio(self.n_true_positive, self.n_false_negative)

    @property
    def specificity(self) -> float:
        """Share of the negative examples that are recognised; nan if there are none."""
        return _ratio(self.n_true_negative, self.n_false_positive)

    @property
    def accuracy(self) -> float:
        """Share of the examples that are predicted correctly."""
        return _ratio(
            self.n_true_positive + self.n_true_negative,
            self.n_false_positive + self.n_false_negative,
        )

    def __str__(self) -> str:
        found = f"{self.n_true_positive} of {self.n_true_positive + self.n_false_negative}"
        recognised = f"{self.n_true_negative} of {self.n_true_negative + self.n_false_positive}"
        return (
            f"sensitivity {self.sensitivity:.4f} ({found}), specificity {self.specificity:.4f} ({recognised}), "
            f"accuracy {self.accuracy:.4f}"
        )


def binary_report(y_true: ArrayLike, y_pred: ArrayLike, pos_label: Any = None) -> BinaryReport:
    """Count true and false positives and negatives: sensitivity, specificity and accuracy in one object.

    Parameters
    ----------
    y_true, y_pred : array-like of labels of any kind
    pos_label : label, optional
        The positive class; by default 1 (True) if the labels are 0/1, -1/+1 or boolean. All other labels are negative:
        with three or more classes, an example of one negative class predicted as another one counts as right.

    Examples
    --------
    >>> print(binary_report(["ill", "ill", "well", "well"], ["ill", "well", "well", "well"], pos_label="ill"))
    sensitivity 0.5000 (1 of 2), specificity 1.0000 (2 of 2), accuracy 0.7500
    """
    truth, guess = _labels(y_true, y_pred)
    chosen = _positive(truth, guess, pos_label)
    positive, called = truth == chosen, guess == chosen
    return BinaryReport(
        n_true_positive=int(np.sum(positive & called)),
        n_false_negative=int(np.sum(positive & ~called)),
        n_true_negative=int(np.sum(~positive & ~called)),
        n_false_positive=int(np.sum(~positive & called)),
        pos_label=chosen,
    )


def sensitivity(y_true: ArrayLike, y_pred: ArrayLike, pos_label: Any = None) -> float:
    """TP / (TP + FN): the share of the positive examples that are found; nan if there are none.

    Parameters are those of `binary_report`; for cross-validation use ``sklearn.metrics.make_scorer(sensitivity)``.

    Examples
    --------
    >>> sensitivity([1, 1, 1, 1, 0], [1, 1, 1, 0, 1])
    0.75
    """
    return binary_report(y_true, y_pred, pos_label).sensitivity


def specificity(y_true: ArrayLike, y_pred: ArrayLike, pos_label: Any = None) -> float:
    """TN / (TN + FP): the share of the negative examples that are recognised; nan if there are none.

    Parameters are those of `binary_report`.

    Examples
    --------
    >>> specificity([1, -1, -1, -1, -1], [1, -1, -1, -1, 1])
    0.75
    """
    return binary_report(y_true, y_pred, pos_label).specificity


def accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """The share of examples whose label is right; any number of classes.

    Examples
    --------
    >>> accuracy(["a", "b", "c", "c"], ["a", "b", "c", "b"])
    0.75
    """
    truth, guess = _labels(y_true, y_pred)
    return float(np.mean(truth == guess))


def _ratio(right: int, wrong: int) -> float:
    return right / (right + wrong) if right + wrong else float("nan")


def _labels(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two arrays of labels that can be compared."""
    truth, guess = np.asarray(y_true), np.asarray(y_pred)
    for name, labels in (("y_true", truth), ("y_pred", guess)):
        if labels.ndim != 1:
            raise ValueError(f"{name} must be a one-dimensional list of labels, not of shape {labels.shape}")
        if labels.dtype.kind == "f" and np.isnan(labels).any():
            raise ValueError(f"{name} has NaN at position {np.argmax(np.isnan(labels))}; labels must not be missing")
        if labels.dtype.kind == "O" and any(label is None for label in labels):
            raise ValueError(f"{name} has None among its labels; labels must not be missing")
    if len(truth) != len(guess):
        raise ValueError(f"y_true has {plural(len(truth), 'label')} and y_pred {len(guess)}; give one per example")
    if len(truth) == 0:
        raise ValueError("y_true and y_pred are empty; give at least one example")
    if (truth.dtype.kind in "UST") != (guess.dtype.kind in "UST") and "O" not in (truth.dtype.kind, guess.dtype.kind):
        raise TypeError(f"y_true has {truth.dtype} and y_pred {guess.dtype} labels; use the same kind in both")
    return truth, guess


def _positive(truth: NDArray[Any], guess: NDArray[Any], pos_label: Any) -> Any:
    present = set(truth.tolist()) | set(guess.tolist())
    if pos_label is not None:
        if pos_label not in present and not any(present | {pos_label} <= codes for codes in _USUAL):
            shown = ", ".join(sorted(map(repr, present)))
            raise ValueError(f"pos_label {pos_label!r} is not among the labels {shown}")
        return pos_label
    if not any(present <= codes for codes in _USUAL):
        shown = ", ".join(sorted(map(repr, present)))
        raise ValueError(f"pass pos_label=, one of {shown}; only 0/1, -1/+1 and boolean labels have a default")
    return 1
