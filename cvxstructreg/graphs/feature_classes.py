"""Classes of features, each with a virtual mean node (Sandler, Talukdar, Ungar and Blitzer, NIPS 2008, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.building.vocabulary import ColumnFinder, vocabulary_names
from cvxstructreg.core.checks import checked_names, inferred_count, plural, real_array
from cvxstructreg.graphs.graph import Graph
from cvxstructreg.graphs.weight_matrix import pair_indices


def class_graph(
    classes: Any,
    vocabulary: Any = None,
    dissimilar: Any = (),
    class_names: Iterable[str] | None = None,
    missing: str = "ignore",
) -> Graph:
    """W_ic = share of feature i in class c, for a virtual node per class: the penalty sum_i (w_i - sum_c W_ic mu_c)^2.

    The means mu_c are virtual nodes, and the penalty minimises over them. So the features of a class are pulled to the
    mean of the class; with m features in a class this takes m edges, not m^2. The shares of a feature are scaled to sum
    to one; a feature in no class has no edge. A dissimilar pair (a, b) adds (mu_a + mu_b)^2.

    Parameters
    ----------
    classes : mapping, sequence of labels, or matrix
        A mapping from class name to features (names or columns; a feature in several classes has an equal share in
        each); or one label per feature (None or NaN: no class); or a matrix of shares >= 0, dense or sparse, with one
        row per feature and one column per class.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the features; needed for a mapping.
    dissimilar : sequence of pairs of classes (names or indices)
        Classes whose means should have opposite signs. Several pairs with the same first class pull its mean to minus
        the average of the others.
    class_names : sequence of str, optional
        Names of the columns of a matrix.
    missing : {"ignore", "error"}
        What to do with features of a mapping that are not in the vocabulary.

    Returns
    -------
    graph : Graph
        Directed. The features come first, then the virtual nodes, named "mean of <class>".

    Examples
    --------
    >>> classes = {"praise": ["good", "great"], "blame": ["bad", "awful"]}
    >>> words = ["good", "bad", "great", "awful", "table"]
    >>> graph = class_graph(classes, words, dissimilar=[("praise", "blame")])
    >>> graph
    Graph(7 nodes, 5 edges: 4 similar, 1 dissimilar, directed, 2 virtual)
    >>> from cvxstructreg import FeatureNetwork
    >>> round(FeatureNetwork(graph)([1.0, -1.0, 1.0, -1.0, 5.0]), 10)
    0.0
    """
    names = None if vocabulary is None else vocabulary_names(vocabulary)
    shares, found_names = _shares(classes, names, missing)
    labels = checked_names(found_names if class_names is None else class_names, shares.shape[1], "class")
    if names is not None and len(names) != shares.shape[0]:
        raise ValueError(
            f"classes are given for {plural(shares.shape[0], 'feature')}, but the vocabulary has {len(names)}"
        )
    _check_occupied(shares, labels)
    d, k = shares.shape
    sums = np.asarray(shares.sum(axis=1)).ravel()
    shares.data /= np.repeat(sums, np.diff(shares.indptr))
    W = sparse.block_array([[None, shares], [sparse.csr_array((k, d)), _opposite(dissimilar, labels, k)]])
    mean_names = [f"mean of {label}" for label in (labels or map(str, range(k)))]
    return Graph(W, None if names is None else [*names, *mean_names], virtual=np.arange(d, d + k))


def _shares(classes: Any, names: Any, missing: str) -> tuple[sparse.csr_array, list[str] | None]:
    """Return the matrix of shares (features by classes) and the names of the classes, None if they have none."""
    if isinstance(classes, Mapping):
        return _shares_of_mapping(classes, names, missing)
    if sparse.issparse(classes):
        return _checked_shares(classes.toarray() if classes.ndim == 1 else classes), None
    if isinstance(classes, str) or not (isinstance(classes, Iterable) or hasattr(classes, "__array__")):
        raise TypeError(f"classes must be a mapping, one label per feature, or a matrix, not {classes!r}")
    given = classes if hasattr(classes, "__array__") else list(classes)
    array = np.asarray(given, dtype=None if hasattr(given, "dtype") else object)
    if array.ndim == 1 and any(isinstance(item, list | tuple | np.ndarray) for item in array[:1]):
        raise ValueError("classes has rows of unequal lengths; expected one share per feature and class")
    if array.ndim == 2:
        return _checked_shares(np.asarray(given)), None
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"classes must be a mapping, one label per feature, or a matrix, not of shape {array.shape}")
    return _shares_of_labels(array.tolist())


def _shares_of_labels(labels: list[Any]) -> tuple[sparse.csr_array, list[str] | None]:
    labelled = [i for i, label in enumerate(labels) if label is not None and label == label]  # NaN != NaN
    try:
        distinct = sorted({labels[i] for i in labelled})
    except TypeError:
        raise TypeError("labels of the features must be all strings or all numbers, or None for no class") from None
    number = {label: c for c, label in enumerate(distinct)}
    columns = [number[labels[i]] for i in labelled]
    shape = (len(labels), len(distinct))
    if not distinct:
        raise ValueError("no feature has a class; give at least one label that is not None or NaN")
    return sparse.csr_array((np.ones(len(labelled)), (labelled, columns)), shape=shape), [str(x) for x in distinct]


def _shares_of_mapping(
    classes: Mapping[str, Iterable[Any]], names: Any, missing: str
) -> tuple[sparse.csr_array, list[str]]:
    if names is None:
        raise ValueError("a mapping from class to features needs vocabulary=..., the names of the columns of X")
    if not classes:
        raise ValueError("classes is empty; expected at least one class with its features")
    members, finder = [], ColumnFinder(names, len(names), missing)
    for label, features in classes.items():
        if isinstance(features, str):
            raise TypeError(f"the features of class {label!r} must be a list, not the single string {features!r}")
        members.append(np.unique(finder.find(features, f"feature of class {label!r}")[0]))
    rows, columns = np.concatenate(members), np.repeat(np.arange(len(members)), [len(m) for m in members])
    shape = (len(names), len(members))
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape), [str(label) for label in classes]


def _checked_shares(matrix: Any) -> sparse.csr_array:
    if not sparse.issparse(matrix):
        matrix = real_array(matrix, "shares of classes")
    shares = sparse.csr_array(matrix, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(shares.data) & (shares.data >= 0)))
    if len(bad):
        row = np.searchsorted(shares.indptr, bad[0], side="right") - 1
        raise ValueError(f"feature {row} has the share {shares.data[bad[0]]}; shares must be finite and >= 0")
    shares = shares.copy()
    shares.sum_duplicates()
    shares.eliminate_zeros()
    return shares


def _check_occupied(shares: sparse.csr_array, labels: Any) -> None:
    counts = np.bincount(shares.indices, minlength=shares.shape[1])
    if not counts.all():
        empty = int(np.argmin(counts))
        name = empty if labels is None else repr(labels[empty])
        raise ValueError(f"class {name} has no feature of the vocabulary; leave it out")


def _opposite(pairs: Any, labels: Any, k: int) -> sparse.csr_array:
    """Return -1 from the first to the second class of each pair."""
    ends: NDArray[np.int64] = pair_indices(pairs, labels)
    if len(ends) and (ends.min() < 0 or inferred_count(None, None, ends, "classes") > k):
        raise ValueError(f"dissimilar pairs must be of classes 0 to {k - 1}, not {ends.tolist()}")
    ends = np.unique(ends, axis=0)
    return sparse.csr_array((-np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(k, k))
