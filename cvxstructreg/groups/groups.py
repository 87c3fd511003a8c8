"""Groups of features, stored flat like the rows of a CSR matrix."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.checks import (
    Names,
    check_range,
    checked_count,
    checked_names,
    chosen_names,
    index_type,
    indices_of,
    inferred_count,
    plural,
    real_array,
    show,
    weight_array,
)
from cvxstructreg.groups.members import checked_member_weights, first_identical, flat_member_weights, member_arrays
from cvxstructreg.groups.nesting import Nesting, nesting_of
from cvxstructreg.groups.weighted_members import split_weights
from cvxstructreg.numerics.block_norms import block_norms, row_squares
from cvxstructreg.runtime.cards import card, named, table
from cvxstructreg.runtime.lazy import cached_property

#: The HTML form shows so many groups, and so many members of each.
MOST_SHOWN = 8

Weights = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike] | None


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Groups:
    """Index sets g in {0, ..., d-1} with weights c_g >= 0, as in sum_g c_g ||w_g||_2, and perhaps member weights.

    Groups may overlap, and features may be in no group. The object is immutable: its arrays are read-only.

    Parameters
    ----------
    lists : sequence of sequences
        Feature indices of each group, or names if `feature_names` is given, or mappings from them to member weights.
    n_features : int, optional
        By default the number of feature names, or the largest index plus one.
    weights : float, one per group, or function of the group sizes such as np.sqrt; optional
        1 by default. A group of weight zero costs nothing.
    names : sequence of str, optional
        One name per group.
    feature_names : sequence of str, optional
        One distinct name per feature.
    member_weights : sequence of sequences of positive numbers, optional
        m_gj for each entry of ``lists``, as in sum_g c_g ||diag(m_g) w_g||_2: the square root of the number of copies
        of a token in a sentence, or the degree to which a word belongs to a topic. 1 by default.

    Attributes
    ----------
    indptr, indices : int64 arrays
        Group g is indices[indptr[g]:indptr[g + 1]], sorted.
    weights : float64 array
    member_weights : float64 array or None
        One number for each entry of ``indices``.
    n_features, names, feature_names
        As given or inferred; names are tuples or None.

    Examples
    --------
    >>> groups = Groups([[0, 1], [1, 2, 3]], n_features=5, weights=np.sqrt)
    >>> groups
    Groups(2 groups over 5 features, sizes 2-3, overlapping, 1 feature in no group)
    >>> groups.norms(np.array([3.0, 4.0, 0.0, 3.0, 9.0]))
    array([5., 5.])
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    weights: NDArray[np.float64]
    n_features: int
    names: Names
    feature_names: Names
    member_weights: NDArray[np.float64] | None = None

    def __init__(
        self,
        lists: Iterable[Iterable[Any]],
        n_features: int | None = None,
        weights: Weights = None,
        names: Iterable[str] | None = None,
        feature_names: Iterable[str] | None = None,
        member_weights: Iterable[Iterable[float]] | None = None,
    ):
        """Flatten and check the lists; see the class."""
        lists, member_weights = split_weights(lists, member_weights)
        members = member_arrays(lists)
        feature_names = checked_names(feature_names, n_features, "feature")
        indptr = _starts([len(array) for array in members])
        nonempty = [array for array in members if array.size]
        flat = np.concatenate(nonempty) if nonempty else np.zeros(0, dtype=np.int64)
        indices = indices_of(flat, feature_names, "feature")
        count = inferred_count(n_features, feature_names, indices, "n_features")
        flat_weights = None if member_weights is None else flat_member_weights(member_weights, members)
        vars(self).update(vars(Groups.from_csr(indptr, indices, count, weights, names, feature_names, flat_weights)))

    @classmethod
    def from_labels(cls, labels: ArrayLike, weights: Weights = None, names: Iterable[str] | None = None) -> Groups:
        """One group per distinct label, in sorted order; string labels become the names of the groups.

        Examples
        --------
        >>> [group.tolist() for group in Groups.from_labels(["verb", "noun", "verb"])]
        [[1], [0, 2]]
        """
        given = np.asarray(labels)
        if given.ndim != 1:
            raise ValueError(f"labels must be one-dimensional, one per feature, not of shape {given.shape}")
        if given.dtype.kind == "f" and np.isnan(given).any():
            raise ValueError(f"feature {np.argmax(np.isnan(given))} has the label NaN; give it a label")
        distinct, group = np.unique(given, return_inverse=True)
        if names is None and all(isinstance(label, str) for label in distinct):
            names = distinct.tolist()
        indptr = _starts(np.bincount(group, minlength=len(distinct)))
        return cls.from_csr(indptr, np.argsort(group, kind="stable"), len(given), weights, names)

    @classmethod
    def from_csr(
        cls,
        indptr: ArrayLike,
        indices: ArrayLike,
        n_features: int,
        weights: Weights = None,
        names: Iterable[str] | None = None,
        feature_names: Iterable[str] | None = None,
        member_weights: ArrayLike | None = None,
    ) -> Groups:
        """Group g is indices[indptr[g]:indptr[g + 1]], as in the rows of a CSR matrix.

        ``member_weights`` has one number for each entry of ``indices``.

        Examples
        --------
        >>> Groups.from_csr([0, 2, 3], [4, 1, 0], n_features=5)[0]
        array([1, 4])
        """
        feature_names = checked_names(feature_names, n_features, "feature")
        flat, starts = indices_of(np.asarray(indices), feature_names, "feature"), np.asarray(indptr)
        if starts.dtype.kind not in "iu":
            raise TypeError(f"indptr must hold integers, not {starts.dtype} values")
        flat_arrays = starts.ndim == flat.ndim == 1 and starts.size > 0
        if not flat_arrays or starts[0] != 0 or starts[-1] != flat.size or np.any(starts[1:] < starts[:-1]):
            given = reprlib.repr(starts.tolist())
            raise ValueError(f"indptr must increase from 0 to the number of indices ({flat.size}), not {given}")
        groups = cls.__new__(cls)
        freeze(groups, n_features=checked_count(n_features, "n_features"), feature_names=feature_names)
        freeze(groups, indptr=starts.astype(np.int64))
        freeze(groups, names=checked_names(names, groups.n_groups, "group", unique=False))
        if member_weights is not None:
            checked = checked_member_weights(member_weights, groups, flat)
            order = np.lexsort((flat, groups.owner))
            freeze(groups, member_weights=None if np.all(checked == 1.0) else checked[order])
        freeze(groups, indices=groups._sorted_indices(flat))
        freeze(groups, weights=groups._checked_weights(weights))
        return groups

    @classmethod
    def singletons(cls, n_features: int, weights: Weights = None, **names: Any) -> Groups:
        """One group for each feature; with several outputs, its weights for all outputs.

        Examples
        --------
        >>> Groups.singletons(3)
        Groups(3 groups over 3 features, size 1, disjoint)
        """
        d = checked_count(n_features, "n_features")
        return cls.from_csr(np.arange(d + 1), np.arange(d), d, weights, **names)

    @classmethod
    def from_memberships(cls, memberships: Any, weights: Weights = None, **names: Any) -> Groups:
        """One group per row of a matrix of nonnegative numbers, with its positive entries as member weights.

        Examples
        --------
        >>> groups = Groups.from_memberships([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]])
        >>> [group.tolist() for group in groups], groups.member_weights.tolist()
        ([[0, 2], [1]], [0.5, 1.0, 2.0])
        """
        matrix = sparse.csr_array(memberships)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return cls.from_csr(
            matrix.indptr, matrix.indices, matrix.shape[1], weights, **names, member_weights=matrix.data
        )

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """Sum of the group sizes."""
        return len(self.indices)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of features of each group."""
        return np.diff(self.indptr)

    @property
    def owner(self) -> NDArray[np.int64]:
        """The group to which each entry of `indices` belongs."""
        return np.repeat(np.arange(self.n_groups), self.sizes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of groups that contain each feature."""
        return np.bincount(self.indices, minlength=self.n_features)

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Whether each feature is in a group."""
        return self.counts > 0

    @property
    def is_disjoint(self) -> bool:
        """Whether the groups are disjoint."""
        return bool(np.all(self.counts <= 1))

    @cached_property
    def nesting(self) -> Nesting | None:
        """The parent and the height of each group if any two groups are disjoint or nested, else None."""
        return nesting_of(self)

    def __len__(self) -> int:
        """Return the number of groups."""
        return self.n_groups

    def __getitem__(self, group: int) -> NDArray[np.int64]:
        """Return the feature indices of one group."""
        if not -self.n_groups <= operator.index(group) < self.n_groups:
            raise IndexError(f"group {group} is out of range for {plural(self.n_groups, 'group')}")
        return self.indices[self.indptr[:-1][group] : self.indptr[1:][group]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        """Yield the feature indices of each group."""
        return (self[group] for group in range(self.n_groups))

    def selection(self) -> sparse.csr_array:
        """E with one 1 per row, so that E w stacks w_g over the groups."""
        shape = (self.n_entries, self.n_features)
        index = index_type(max(shape))
        parts = (np.ones(shape[0]), self.indices.astype(index), np.arange(shape[0] + 1, dtype=index))
        return sparse.csr_array(parts, shape=shape)

    def norms(self, w: ArrayLike) -> NDArray[np.float64]:
        """||w_g||_2, or ||diag(m_g) w_g||_2, of each group, for w of length d or (Frobenius norm) d x k."""
        values = real_array(w, "w")
        if values.ndim not in (1, 2) or len(values) != self.n_features:
            d = self.n_features
            raise ValueError(f"w has shape {values.shape}; expected ({d},) or ({d}, k), one row per feature")
        squares = row_squares(values)[self.indices]
        if self.member_weights is not None:
            squares = squares * self.member_weights**2
        return block_norms(squares, self.indptr)

    def with_weights(self, weights: Weights) -> Groups:
        """Return the same groups with other weights: a scalar, an array, or a function of the sizes.

        Examples
        --------
        >>> Groups([[0], [1, 2, 3, 4]]).with_weights(np.sqrt).weights
        array([1., 2.])
        """
        groups = object.__new__(type(self))
        vars(groups).update(vars(self))
        freeze(groups, weights=self._checked_weights(weights))
        return groups

    def merged(self) -> Groups:
        """Merge identical groups and add their weights: the same sum_g c_g ||w_g||_2 with fewer groups.

        A merged group has the position and the name of the first one.

        Examples
        --------
        >>> Groups([[0, 1], [2], [1, 0]], weights=[1, 5, 2]).merged().weights
        array([3., 5.])
        """
        if self.n_groups == 0:
            return self
        first = self.first_identical()
        keep = first == np.arange(self.n_groups)
        weights = np.bincount(first, self.weights, minlength=self.n_groups)[keep]
        names = chosen_names(self.names, np.flatnonzero(keep))
        indptr = _starts(self.sizes[keep])
        inside = np.repeat(keep, self.sizes)
        members = None if self.member_weights is None else self.member_weights[inside]
        return Groups.from_csr(
            indptr, self.indices[inside], self.n_features, weights, names, self.feature_names, members
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle through `from_csr`, because numpy does not pickle the read-only flag of an array."""
        names = (self.names, self.feature_names)
        parts = (self.indptr, self.indices, self.n_features, self.weights, *names, self.member_weights)
        return type(self).from_csr, parts

    def __repr__(self) -> str:
        """One line with the number, sizes and overlap of the groups."""
        text = f"Groups({plural(self.n_groups, 'group')} over {plural(self.n_features, 'feature')}"
        if self.n_groups:
            low, high = self.sizes.min(), self.sizes.max()
            text += f", size {low}" if low == high else f", sizes {low}-{high}"
            text += ", disjoint" if self.is_disjoint else ", overlapping"
        text += ", weighted members" if self.member_weights is not None else ""
        n_outside = self.n_features - int(self.covered.sum())
        return text + (f", {plural(n_outside, 'feature')} in no group)" if n_outside else ")")

    def _repr_html_(self) -> str:
        outside, most = self.n_features - int(self.covered.sum()), int(self.counts.max(initial=0))
        rows: list[tuple[str, Any]] = [("groups", f"{self.n_groups} over {plural(self.n_features, 'feature')}")]
        if self.n_groups:
            rows += [("sizes", f"{self.sizes.min()} to {self.sizes.max()}, median {np.median(self.sizes):g}")]
            rows += [("overlap", "none" if self.is_disjoint else f"a feature is in up to {most} groups")]
        rows += [("outside", f"{plural(outside, 'feature')} in no group")] if outside else []
        shown = [
            (named(self.names, g), f"{self.weights[g]:.4g}", self._members(g))
            for g in range(min(self.n_groups, MOST_SHOWN))
        ]
        left = self.n_groups - len(shown)
        grid = table(("group", "weight", "features"), shown, left=3) if shown else ""
        return card("Groups", rows, grid, note=f"and {left} more" if left else "")

    def _members(self, group: int) -> str:
        """Return the first few members of a group by name or number."""
        members = [named(self.feature_names, j) for j in self[group][:MOST_SHOWN]]
        return ", ".join(members) + (", ..." if self.sizes[group] > MOST_SHOWN else "")

    def _group(self, group: int) -> str:
        return f"group {show(self.names, group)}"

    def _checked_weights(self, weights: Weights) -> NDArray[np.float64]:
        given = weights(self.sizes) if callable(weights) else weights
        values = weight_array(given, self.n_groups, "group")
        good = np.isfinite(values) & (values >= 0)
        if not good.all():
            bad = int(np.argmin(good))
            raise ValueError(f"the weight of {self._group(bad)} is {values[bad]}; it must be finite and >= 0")
        return values

    def _sorted_indices(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Check the indices and sort them within each group."""
        empty = np.flatnonzero(self.sizes == 0)
        if len(empty):
            raise ValueError(f"{self._group(empty[0])} is empty ({len(empty)} such); drop the empty groups")
        first = self.indptr[1:]
        check_range(
            indices,
            self.n_features,
            "feature",
            lambda position: self._group(int(np.searchsorted(first, position, side="right"))),
        )
        rises = indices[1:] > indices[:-1]
        rises[first[:-1] - 1] = True  # from one group to the next
        if rises.all():
            return indices
        owner = self.owner
        offset = owner * self.n_features
        keys = offset + indices
        keys.sort()
        repeated = np.flatnonzero(np.diff(keys) == 0)
        if len(repeated):
            index, group = keys[repeated[0]] % self.n_features, self._group(owner[repeated[0]])
            feature = show(self.feature_names, index)
            raise ValueError(f"feature {feature} occurs twice in {group}; list it once")
        return keys - offset

    def first_identical(self) -> NDArray[np.int64]:
        """Return, for each group, the first group with the same features and member weights.

        Candidates are found by hash, then compared exactly.

        Examples
        --------
        >>> Groups([[0, 1], [2], [1, 0]]).first_identical()
        array([0, 1, 0])
        """
        return first_identical(self)


def _starts(sizes: ArrayLike) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
