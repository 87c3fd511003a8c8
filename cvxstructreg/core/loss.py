"""The base class of all losses: labels with an explicit encoding, sample weights, labelled rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.core.atom import Atom, freeze, needs
from cvxstructreg.core.checks import real_array
from cvxstructreg.core.offset import with_offset
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.monotone_root import increasing_root
from cvxstructreg.runtime.lazy import cached_names, cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.runtime.short_repr import shown_fields


@dataclass(frozen=True, eq=False, repr=False)
class Loss(Atom):
    """A sum over labelled rows, each multiplied by its sample weight.

    Parameters
    ----------
    y : array of n labels
        In the order of ``rows``.
    rows : array of n row indices, optional
        The rows of the model that the labels belong to; by default all rows, in order.
    sample_weight : array of n nonnegative numbers, optional
        Ones by default.
    offset : array of n numbers, or n x k for k outputs, optional
        Scores that are known in advance: the loss is evaluated at the scores of the model plus the offset.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> issubclass(csr.Squared, Loss), csr.Squared([1.0, 2.0], sample_weight=[1.0, 4.0])([0.0, 0.0])
    (True, 8.5)
    """

    y: Any
    rows: Any = None
    sample_weight: Any = None
    offset: Any = field(default=None, kw_only=True)

    target: ClassVar[str] = "rows"
    #: Whether the loss has its minimum at finite scores. The logistic loss has not: it decreases forever along a
    #: direction that separates the classes.
    attains_infimum: ClassVar[bool] = True
    #: Whether the loss is no sum of functions of the scores of one row each. The partial likelihood of Cox is none.
    couples_rows: ClassVar[bool] = False
    #: Whether constants added to all scores change nothing, so that an intercept would not be determined.
    ignores_constants: ClassVar[bool] = False
    #: Whether the second derivative is the same everywhere.
    has_constant_curvature: ClassVar[bool] = False
    #: Whether the loss is 1/2 sum_i s_i (f_i - y_i)^2 with its own y and sample weights; not inherited by subclasses.
    has_squared_residuals: ClassVar[bool] = False
    #: Whether the second derivative jumps at some scores, as that of the squared hinge at the margin.
    has_curvature_jumps: ClassVar[bool] = False
    #: Whether the prox takes many steps, so that solvers that use derivatives are faster.
    has_slow_prox: ClassVar[bool] = False
    #: The class of the same loss without offset; None for a class without offset.
    plain_class: ClassVar[type[Loss] | None] = None

    def __post_init__(self) -> None:
        y = self._encode(self.y)
        n = y.shape[0]
        if n == 0:
            raise ValueError("y is empty: a loss needs at least one labelled row")
        freeze(self, y=y, rows=_checked_rows(self.rows, n), sample_weight=_checked_weights(self.sample_weight, n))
        offset = _checked_offset(self.offset, (n, self.n_outputs))
        freeze(self, offset=offset if offset is None or offset.any() or self._requires_offset() else None)
        plain = type(self).plain_class or type(self)
        object.__setattr__(self, "__class__", plain if self.offset is None else with_offset(plain))

    def __getstate__(self) -> dict[str, Any]:
        """The fields without what is computed from them: a copy may get other weights or rows."""
        return {name: value for name, value in self.__dict__.items() if name not in cached_names(type(self))}

    @property
    def without_offset(self) -> Self:
        """The same loss without offset."""
        return self

    def described(self) -> tuple[str, str]:
        """The formula, without weights if all are one, and the convention."""
        weighted = np.any(self.sample_weight != 1)
        return (self.formula if weighted else self.formula.replace("s_i ", "")), self.convention

    def _requires_offset(self) -> bool:
        """Whether the labels are valid only with an offset, so that one of zeros is kept."""
        return False

    def _encode(self, y: Any) -> Array:
        raise TypeError(f"{type(self).__name__} does not define _encode(y), which turns labels into numbers")

    @property
    def n_outputs(self) -> int:
        """Number of score columns k."""
        return 1

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless the scores have one row for each label and one column for each output."""
        if shape != self._score_shape:
            wanted = self._score_shape
            raise ValueError(f"{self!r} acts on scores of shape {wanted}, got {shape}; pass one row for each label")

    @cached_property
    def _score_shape(self) -> tuple[int, int]:
        return len(self.y), self.n_outputs

    @cached_property
    def weight_column(self) -> Array:
        """The sample weights as an (n, 1) array."""
        return np.asarray(self.sample_weight).reshape(-1, 1)

    @cached_property
    def _counted(self) -> NDArray[np.bool_] | None:
        """The rows with a positive weight as an (n, 1) array; None if all have one."""
        counted = self.weight_column > 0
        return None if counted.all() else counted

    def into_domain(self, u: Array) -> Array:
        """u clipped to :meth:`dual_box`, if the loss has one."""
        return np.clip(u, *self.dual_box()) if self.can("dual_box") else u

    def constants(self) -> list[Array]:
        """Constant scores that minimise the loss; without a gradient, candidates for such scores."""
        return [lowest_constants(*self.kinks())] if self.can("kinks") else [np.zeros(self.n_outputs)]

    def gains(self, columns: Array) -> Array | sp.csr_array:
        """For a loss that does not attain its infimum: a matrix G such that it grows nowhere along d if G d >= 0.

        The loss then decreases where G d > 0. A direction d has coefficients (m, k) of the ``columns`` (n, m).
        Here G d are the gains of the true class over each other class, for labels -1/+1 or indicators of classes.
        """
        counted = np.asarray(self.sample_weight) > 0
        labels, columns = np.asarray(self.y)[counted], columns[counted]
        if labels.shape[1] == 1:
            return np.asarray(labels * columns)
        k = labels.shape[1]
        others = [labels - np.eye(k)[other] for other in range(k)]
        rows = [(columns[:, :, None] * picks[:, None, :])[picks.any(axis=1)] for picks in others]
        return sp.csr_array(np.concatenate(rows).reshape(-1, columns.shape[1] * k))

    @cached_property
    def best_intercepts(self) -> dict[bool, tuple[Array, float, float]]:
        """For models with and without intercept: the best one beside zero weights, and two values (the null point)."""
        return {}

    @cached_property
    def grows_both_ways(self) -> bool:
        """Whether the loss grows for large constant scores of either sign, if it does not attain its infimum."""
        gains = self.gains(np.ones((len(self.y), 1)))
        return bool(gains.min() < 0 < gains.max())

    @needs("dual_box")
    def rebalance(self, u: Array, target: Array) -> Array | None:
        """A u' near u in the domain of the conjugate whose column sums are ``target``; None if there is none.

        In a model with an intercept, a dual point is feasible only if it has certain column sums. This default shifts u
        inside ``dual_box``; a class has it only if it defines ``dual_box``, which a sum over rows of functions of one
        score can. A loss without gradient needs ``dual_box`` or ``rebalance`` for a duality gap in a model with an
        intercept.
        """
        lower, upper = self.dual_box()
        columns = [shift_into_box(u[:, j], lower[:, j], upper[:, j], float(target[j])) for j in range(u.shape[1])]
        if any(column is None for column in columns):
            return None
        return np.column_stack([column for column in columns if column is not None])

    def _weighted_sum(self, terms: cp.Expression) -> cp.Expression:
        if np.all(self.sample_weight == 1):
            return cp.sum(terms)
        weights = np.broadcast_to(self.weight_column, terms.shape)
        return cp.sum(cp.multiply(weights, terms))

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        given = [f"{len(self.y)} rows"] + (["weighted"] if np.any(self.sample_weight != 1) else [])
        given += [] if self.offset is None else ["offset"]
        given += shown_fields(self, but={"y", "rows", "sample_weight", "classes", "offset"})
        return f"{type(self).__name__}({', '.join(given)})"


def lowest_constants(lower: Array, upper: Array, at: Array) -> Array:
    """argmin_c  sum_i max(l_i (c - o_i), u_i (c - o_i)) for each column: a weighted quantile of the kinks."""
    order = np.argsort(at, axis=0, kind="stable")
    slopes = lower.sum(axis=0) + np.cumsum(np.take_along_axis(upper - lower, order, axis=0), axis=0)
    first = np.argmax(slopes >= -1e-12 * np.abs(lower).sum(axis=0), axis=0)  # the slope to the right of each kink
    return np.take_along_axis(np.take_along_axis(at, order, axis=0), first[None, :], axis=0)[0]


def shift_into_box(u: Array, lower: Array, upper: Array, total: float) -> Array | None:
    """clip(u - mu, lower, upper) with the mu for which the sum is ``total``, by safeguarded Newton steps."""
    finite = np.concatenate([u, lower[np.isfinite(lower)], upper[np.isfinite(upper)], [total]])
    size = float(np.abs(finite).sum())
    slack = 1e-12 * size
    if lower.sum() > total + slack or upper.sum() < total - slack:
        return None

    def minus_excess(mu: Array) -> tuple[Array, Array]:
        shifted = np.clip(u - mu, lower, upper)
        free = np.count_nonzero((shifted > lower) & (shifted < upper))
        return np.atleast_1d(total - shifted.sum()), np.atleast_1d(float(free))

    reach = 4.0 * float(np.abs(finite).max())
    accuracy = np.array([2e-15 * (float(np.abs(u).sum()) + abs(total))])  # the round-off of the sum
    mu = increasing_root(minus_excess, np.array([-reach]), np.array([reach]), np.zeros(1), accuracy)
    return np.clip(u - mu, lower, upper)


def encode_binary(y: Any, classes: Any, one_class: bool = False) -> tuple[Array, tuple[Any, Any]]:
    """Labels as -1/+1 in one column, and the pair (negative, positive) they stand for.

    Labels of a single class are refused unless ``one_class``.
    """
    labels, classes = _label_vector(y), _label_sequence(classes)
    present = np.unique(labels)
    if classes is None:
        known = {(-1, 1), (0, 1)}
        pairs = [pair for pair in known if all(label in pair for label in present.tolist())]
        if not pairs or isinstance(present[0], str):
            remedy = "pass classes=(negative, positive) to say which is which"
            if len(present) > 2:
                remedy = "this loss is for two classes: use Multinomial(y) or MulticlassHinge(y) for more"
            raise ValueError(f"labels {_some(present)} are neither 0/1 nor -1/+1; {remedy}")
        pair: tuple[Any, Any] = (0, 1) if 0 in present else (-1, 1)
    else:
        if len(classes) != 2 or classes[0] == classes[1]:
            raise ValueError(f"classes must be two different labels (negative, positive), got {classes!r}")
        pair = (classes[0], classes[1])
        unknown = [label for label in present.tolist() if label not in pair]
        if unknown:
            remedy = "; this loss is for two classes: use Multinomial(y) for more" if len(present) > 2 else ""
            raise ValueError(f"y has labels {_some(unknown)} that are not in classes={pair}{remedy}")
    if len(present) < 2 and not one_class:
        raise ValueError(f"y has only one class, {_some(present)}; a classifier needs examples of both classes")
    return np.where(labels == pair[1], 1.0, -1.0).reshape(-1, 1), pair


def encode_multiclass(y: Any, classes: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Labels as class numbers 0..k-1, and the classes they stand for (sorted unless given)."""
    labels, classes = _label_vector(y), _label_sequence(classes)
    present = np.unique(labels).tolist()
    if classes is None and present[0] == -1 and len(present) > 2:
        raise ValueError(
            "y contains the label -1, which often marks unlabelled rows; pass labelled rows only, with their "
            "indices as rows=, or pass all classes as classes= if -1 is one of them"
        )
    if classes is None and labels.dtype.kind == "f" and np.any(labels % 1):
        raise ValueError(f"labels {_some(present)} are not integers; use Squared(y) for regression, or pass classes=")
    names = tuple(present) if classes is None else classes
    if len(set(names)) != len(names):
        raise ValueError(f"classes must be distinct, got {names}")
    number = {label: index for index, label in enumerate(names)}
    unknown = [label for label in present if label not in number]
    if unknown:
        raise ValueError(f"y has labels {_some(unknown)} that are not in classes={names}")
    if len(names) < 2:
        raise ValueError(f"y has only one class, {_some(present)}; a classifier needs at least two")
    return np.array([number[label] for label in labels.tolist()]), names


def _label_vector(y: Any) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"y must be a vector of labels, got shape {labels.shape}")
    if labels.size == 0:
        raise ValueError("y is empty: a loss needs at least one labelled row")
    if labels.dtype.kind in "biu":
        return labels
    numbers = labels if labels.dtype.kind == "f" else [label for label in labels if isinstance(label, float)]
    if not np.isfinite(numbers).all():
        raise ValueError("y contains NaN or infinite values; pass labelled rows only, with their indices as rows=")
    if labels.dtype.kind == "O":
        kinds = sorted({type(label).__name__ for label in labels})
        if len(kinds) > 1 or "NoneType" in kinds:
            raise TypeError(
                f"y mixes {' and '.join(kinds)}; pass labels of one type; if some rows are unlabelled, "
                "pass only the labelled ones, with their indices as rows="
            )
    return labels


def _label_sequence(classes: Any) -> tuple[Any, ...] | None:
    if classes is None:
        return None
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise TypeError(f"classes must be a sequence of labels such as (0, 1), got {classes!r}")
    return tuple(classes.tolist() if isinstance(classes, np.ndarray) else classes)


def _some(labels: Any) -> str:
    items = list(np.asarray(labels).tolist())
    return "[" + ", ".join(map(repr, items[:5])) + (", ..." if len(items) > 5 else "") + "]"


def _checked_rows(rows: Any, n: int) -> Any:
    if rows is None:
        return None
    indices = np.asarray(rows)
    if indices.dtype == bool:
        raise TypeError("rows must be row indices in the order of y; convert a mask with np.flatnonzero(mask)")
    if indices.ndim != 1 or indices.size != n:
        raise ValueError(f"rows must have one index for each of the {n} labels, got shape {indices.shape}")
    if not np.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"rows must be integer indices, got dtype {indices.dtype}")
    if indices.min() < 0:
        raise ValueError("rows must be nonnegative indices")
    if np.unique(indices).size != n:
        raise ValueError("rows has repeated indices; double the sample_weight of such a row instead")
    return indices.astype(np.int64)


def _checked_weights(weights: Any, n: int) -> Array:
    if weights is None:
        return np.ones(n)
    array = real_array(weights, "sample_weight")
    if array.shape != (n,):
        raise ValueError(f"sample_weight must have one number for each of the {n} labels, got shape {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("sample_weight must be finite and nonnegative")
    if not array.any():
        raise ValueError("sample_weight is zero everywhere; at least one weight must be positive")
    return array


def _checked_offset(offset: Any, shape: tuple[int, int]) -> Any:
    """The offset as an (n, k) array; None if none is given."""
    if offset is None:
        return None
    array = real_array(offset, "offset")
    if array.ndim == 1 and shape[1] == 1:
        array = array.reshape(-1, 1)
    if array.shape != shape:
        wanted = f"({shape[0]},)" if shape[1] == 1 else f"{shape}, one number for each output"
        raise ValueError(f"offset must be one number for each label, of shape {wanted}, got shape {np.shape(offset)}")
    if not np.isfinite(array).all():
        raise ValueError("offset contains NaN or infinite values; drop the rows whose offset is unknown")
    return array
