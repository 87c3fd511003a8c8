"""Which rows are labelled: unlabelled ones are marked by -1, as in ``sklearn.semi_supervised``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets


def labelled_rows(y: NDArray[Any], unlabeled: Any) -> NDArray[np.int64]:
    """The rows whose label is not the marker; None marks nothing.

    Two classes -1 and +1 with nothing else are refused: the marker is then more likely a class.
    """
    marked = np.array([bool(label == unlabeled) for label in y.tolist()], dtype=bool)
    if unlabeled is None:
        marked[:] = False
    rows = np.flatnonzero(~marked)
    present = set(y[rows].tolist())
    as_text = str(unlabeled)
    if unlabeled is not None and as_text != unlabeled and as_text in present and not marked.any():
        raise ValueError(
            f"y has the text {as_text!r} for a label, but unlabeled={unlabeled!r} is no text: say "
            f"unlabeled={as_text!r} if it marks unlabelled rows, or unlabeled=None if all rows are labelled"
        )
    if marked.any() and unlabeled == -1 and present == {1}:
        raise ValueError(
            "y has the labels -1 and 1 and no other, which is ambiguous: -1 marks unlabelled rows here, and only one "
            "class would be left. If -1 is a class, say so with unlabeled=None (all rows are labelled) or "
            "unlabeled=<another marker>, such as unlabeled=0; if it is not, add rows of a second class"
        )
    if not len(rows):
        raise ValueError(f"no row is labelled: all of y is {unlabeled!r}; a classifier needs at least two classes")
    check_classification_targets(y[rows])
    if len(present) < 2:
        raise ValueError(
            f"y has only one class, {next(iter(present))!r}, besides {unlabeled!r} for unlabelled rows: a classifier "
            "needs at least two classes (unlabeled= names another marker)"
        )
    return rows
