"""Find the labelled rows: unlabelled rows are marked by -1, as in ``sklearn.semi_supervised``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets


def labelled_rows(y: NDArray[Any], unlabeled: Any) -> NDArray[np.int64]:
    """Return the rows whose label is not the marker; if the marker is None, all rows are labelled.

    If the only labels are -1 and +1 and the marker is -1, raise an error: then -1 is more likely a class.
    """
    marked = np.array([bool(label == unlabeled) for label in y.tolist()], dtype=bool)
    if unlabeled is None:
        marked[:] = False
    rows = np.flatnonzero(~marked)
    present = set(y[rows].tolist())
    as_text = str(unlabeled)
    if unlabeled is not None and as_text != unlabeled and as_text in present and not marked.any():
        raise ValueError(
            f"y has the string label {as_text!r}, but unlabeled={unlabeled!r} is not a string: use "
            f"unlabeled={as_text!r} if it marks unlabelled rows, or unlabeled=None if all rows are labelled"
        )
    if marked.any() and unlabeled == -1 and present == {1}:
        raise ValueError(
            "y has only the labels -1 and 1, which is ambiguous: -1 marks unlabelled rows by default, and then only "
            "one class is left. If -1 is a class, pass unlabeled=None (all rows are labelled) or another marker, "
            "such as unlabeled=0; if -1 marks unlabelled rows, add rows of a second class"
        )
    if not len(rows):
        raise ValueError(
            f"no row is labelled: all entries of y are {unlabeled!r}; a classifier needs at least two classes"
        )
    check_classification_targets(y[rows])
    if len(present) < 2:
        raise ValueError(
            f"y has only one class, {next(iter(present))!r}, besides {unlabeled!r} for unlabelled rows: a classifier "
            "needs at least two classes (set another marker with unlabeled=)"
        )
    return rows
