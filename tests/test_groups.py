"""Groups: construction, what it refuses, and its matrices and norms against plain loops."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cvxstructreg.groups import Groups

ABC = ["a", "b", "c"]
without_deadline = settings(deadline=None, max_examples=60)


@st.composite
def list_of_groups(draw):
    n_features = draw(st.integers(1, 5))
    group = st.lists(st.integers(0, n_features - 1), min_size=1, max_size=n_features, unique=True)
    return draw(st.lists(group, max_size=8)), n_features


def as_lists(groups):
    return [group.tolist() for group in groups]


class TestConstruction:
    def test_from_lists(self):
        groups = Groups([[2, 0], [1, 2, 3]], n_features=6)
        assert_array_equal(groups.indptr, [0, 2, 5])
        assert_array_equal(groups.indices, [0, 2, 1, 2, 3])
        assert_array_equal(groups.weights, [1, 1])
        assert groups.indptr.dtype == groups.indices.dtype == np.int64
        assert groups.weights.dtype == np.float64
        assert (groups.n_groups, groups.n_features, groups.n_entries) == (2, 6, 5)

    @pytest.mark.parametrize(
        "lists",
        [
            [[0, 1], [2]],
            ((1, 0), {2}),
            [np.array([0, 1], dtype=np.uint8), range(2, 3)],
            (iter(group) for group in ([0, 1], [2])),
            [["a", "b"], ["c"]],
            [np.array(["b", "a"]), {"c"}],
        ],
    )
    def test_every_kind_of_list(self, lists):
        assert as_lists(Groups(lists, feature_names=ABC)) == [[0, 1], [2]]

    def test_a_matrix_of_indices(self):
        assert as_lists(Groups(np.array([[0, 1], [2, 3]]))) == [[0, 1], [2, 3]]

    def test_number_of_features(self):
        assert Groups([[0, 4]]).n_features == 5
        assert Groups([[0]], feature_names=ABC).n_features == 3
        assert Groups([[0]], n_features=np.int32(7)).n_features == 7

    def test_no_groups(self):
        groups = Groups([], n_features=3)
        assert len(groups) == groups.n_entries == 0
        assert groups.is_disjoint
        assert not groups.covered.any()
        assert groups.selection().shape == (0, 3)
        assert groups.norms(np.ones(3)).shape == (0,)
        assert groups.merged().n_groups == 0
        assert Groups([], feature_names=ABC).n_features == 3
        with pytest.raises(ValueError, match="pass n_features"):
            Groups([])

    @pytest.mark.parametrize(
        ("weights", "expected"),
        [(None, [1, 1]), (2, [2, 2]), ([0, 3], [0, 3]), (np.sqrt, [1, 2]), ((1, 2), [1, 2])],
    )
    def test_weights(self, weights, expected):
        groups = Groups([[0], [1, 2, 3, 4]], weights=weights)
        assert_array_equal(groups.weights, expected)
        assert_array_equal(Groups([[0], [1, 2, 3, 4]]).with_weights(weights).weights, expected)

    def test_with_weights_leaves_the_original(self):
        groups = Groups([[0], [1]], names=["x", "y"])
        other = groups.with_weights(5)
        assert_array_equal(groups.weights, [1, 1])
        assert other.names == ("x", "y")
        assert other.indices is groups.indices

    def test_from_labels(self):
        groups = Groups.from_labels([5, 3, 5, 4])
        assert as_lists(groups) == [[1], [3], [0, 2]]
        assert groups.names is None
        assert Groups.from_labels(["v", "n", "v"]).names == ("n", "v")
        assert Groups.from_labels(np.array(["v", "n"], dtype=object)).names == ("n", "v")
        assert Groups.from_labels([1, 0], names=["x", "y"], weights=[2, 3]).names == ("x", "y")

    @without_deadline
    @given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
    def test_labels_make_a_partition(self, labels):
        groups = Groups.from_labels(labels)
        assert groups.is_disjoint
        assert groups.covered.all()
        assert as_lists(groups) == [np.flatnonzero(np.array(labels) == k).tolist() for k in sorted(set(labels))]

    def test_from_csr_sorts_and_copies(self):
        indptr, indices = np.array([0, 2, 3]), np.array([4, 1, 0])
        groups = Groups.from_csr(indptr, indices, 5, weights=[1, 2], names=["x", "y"])
        assert_array_equal(indices, [4, 1, 0])
        indptr[:] = indices[:] = 0
        assert as_lists(groups) == [[1, 4], [0]]
        assert groups.names == ("x", "y")

    def test_input_weights_are_not_shared(self):
        weights = np.array([1.0, 2.0])
        groups = Groups([[0], [1]], weights=weights)
        weights[:] = 9
        assert_array_equal(groups.weights, [1, 2])

    def test_immutable_also_after_pickling(self):
        groups = Groups([[1, 0], [2]], weights=[1, 2], names=["x", "y"], feature_names=ABC)
        for copy in (groups, pickle.loads(pickle.dumps(groups))):
            assert as_lists(copy) == [[0, 1], [2]]
            assert (copy.names, copy.feature_names) == (("x", "y"), ("a", "b", "c"))
            assert_array_equal(copy.weights, [1, 2])
            for array in (copy.indptr, copy.indices, copy.weights, copy[0]):
                with pytest.raises(ValueError, match="read-only"):
                    array[:] = 0
            with pytest.raises(dataclasses.FrozenInstanceError):
                copy.weights = np.ones(2)

    def test_many_groups(self):
        rng = np.random.default_rng(0)
        n_groups, n_features = 100_000, 10_000
        offsets = np.array([7, 0, 30])
        starts = rng.integers(0, n_features - 40, size=n_groups)
        indices = (starts[:, None] + offsets).ravel()
        groups = Groups.from_csr(np.arange(0, 3 * n_groups + 1, 3), indices, n_features, weights=np.sqrt)
        w = rng.normal(size=n_features)
        norms = np.linalg.norm(w[starts[:, None] + offsets], axis=1)
        assert_allclose(groups.norms(w), norms)
        merged = groups.merged()
        assert merged.n_groups == len(np.unique(starts))
        assert_allclose(merged.weights @ merged.norms(w), np.sqrt(3) * norms.sum())


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"lists": [[0], []]}, ValueError, r"group 1 is empty \(1 such\); drop the empty groups"),
            ({"lists": [[0], []], "names": ["x", "y"]}, ValueError, "group 'y' is empty"),
            (
                {"lists": [[0], [5]], "n_features": 3},
                ValueError,
                "index 5 in group 1 is out of range for 3 features",
            ),
            ({"lists": [[0], [-1]]}, ValueError, "feature index -1 in group 1 is out of range"),
            ({"lists": [[-1]], "names": ["x"]}, ValueError, "feature index -1 in group 'x' is out of range"),
            ({"lists": [[0], [1, 2, 1]]}, ValueError, "feature 1 occurs twice in group 1; list it once"),
            (
                {"lists": [["b", "b"]], "names": ["x"], "feature_names": ABC},
                ValueError,
                "feature 'b' occurs twice in group 'x'",
            ),
            ({"lists": [["z"]], "feature_names": ABC}, ValueError, "unknown feature name 'z'; the names are"),
            (
                {"lists": [["a"]]},
                TypeError,
                "'a' is not a feature index; use integers, or pass the feature names",
            ),
            ({"lists": [[0.0, 1.0]]}, TypeError, "integer indices or names, not float64 values"),
            (
                {"lists": [[0], [True, False]]},
                TypeError,
                r"group 1 is a boolean mask; .*np\.flatnonzero\(mask\)",
            ),
            (
                {"lists": [[[0, 1]]]},
                ValueError,
                r"group 0 must be a one-dimensional list of features, not of shape \(1, 2\)",
            ),
            ({"lists": [0, 0, 1]}, TypeError, r"group 0 is 0, not a list of features.*Groups\.from_labels"),
            ({"lists": ["ab"], "feature_names": ABC}, TypeError, "group 0 is 'ab', not a list of features"),
            ({"lists": {"x": [0]}}, TypeError, r"lists is a mapping; use Groups\(list\(lists\.values\(\)\)"),
            (
                {"lists": [[0]], "weights": [-1]},
                ValueError,
                "the weight of group 0 is -1.0; it must be finite and",
            ),
            (
                {"lists": [[0]], "weights": np.nan, "names": ["x"]},
                ValueError,
                "the weight of group 'x' is nan",
            ),
            ({"lists": [[0]], "weights": [np.inf]}, ValueError, "the weight of group 0 is inf"),
            (
                {"lists": [[0]], "weights": [1, 2]},
                ValueError,
                r"shape \(2,\) for 1 group; give a scalar or one",
            ),
            ({"lists": [[0]], "weights": ["1"]}, TypeError, "group weights must be real numbers"),
            (
                {"lists": [[0]], "names": ["x", "y"]},
                ValueError,
                "2 group names for 1 group; give one for each",
            ),
            ({"lists": [[0]], "names": "x"}, TypeError, "group names must be a list of strings"),
            ({"lists": [[0]], "feature_names": ["a", "a"]}, ValueError, "feature name 'a' occurs 2 times"),
            (
                {"lists": [[0]], "feature_names": ABC, "n_features": 4},
                ValueError,
                "3 feature names for 4 features",
            ),
            ({"lists": [[0]], "n_features": 2.0}, TypeError, "n_features must be an integer, not 2.0"),
            ({"lists": [], "n_features": 0}, ValueError, "n_features must be at least 1, not 0"),
        ],
    )
    def test_lists(self, arguments, error, message):
        with pytest.raises(error, match=message):
            Groups(**arguments)

    @pytest.mark.parametrize(
        ("indptr", "indices", "error", "message"),
        [
            (
                [0, 3],
                [0, 1],
                ValueError,
                r"indptr must increase from 0 to the number of indices \(2\), not \[0, 3\]",
            ),
            ([1, 2], [0, 1], ValueError, "indptr must increase from 0"),
            ([0, 2, 1, 2], [0, 1], ValueError, "indptr must increase from 0"),
            ([[0, 2]], [0, 1], ValueError, "indptr must increase from 0"),
            (np.zeros(0, dtype=int), [], ValueError, "indptr must increase from 0"),
            ([0, 1, 1, 2], [0, 1], ValueError, "group 1 is empty"),
            ([0.0, 2.0], [0, 1], TypeError, "indptr must hold integers, not float64"),
            ([0, 2], [0.0, 1.0], TypeError, "features must be integer indices"),
            ([0, 2], [True, False], TypeError, r"not bool values; use np\.flatnonzero\(mask\)"),
        ],
    )
    def test_csr(self, indptr, indices, error, message):
        with pytest.raises(error, match=message):
            Groups.from_csr(indptr, indices, n_features=2)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([[0, 1]], r"labels must be one-dimensional, one per feature, not of shape \(1, 2\)"),
            ([0, np.nan], "feature 1 has the label NaN"),
            ([], "n_features must be at least 1"),
        ],
    )
    def test_labels(self, labels, message):
        with pytest.raises(ValueError, match=message):
            Groups.from_labels(labels)

    def test_other_weights(self):
        with pytest.raises(ValueError, match=r"the weight of group 0 is -2\.0"):
            Groups([[0]]).with_weights(-2)

    @pytest.mark.parametrize("shape", [(), (2,), (2, 3), (3, 1, 1)])
    def test_norms_of_another_shape(self, shape):
        with pytest.raises(ValueError, match=r"w has shape .* expected \(3,\) or \(3, k\)"):
            Groups([[0]], n_features=3).norms(np.ones(shape))


class TestProperties:
    def test_overlap_and_cover(self):
        groups = Groups([[0, 1], [1, 2]], n_features=4)
        assert_array_equal(groups.sizes, [2, 2])
        assert_array_equal(groups.counts, [1, 2, 1, 0])
        assert_array_equal(groups.covered, [True, True, True, False])
        assert_array_equal(groups.owner, [0, 0, 1, 1])
        assert not groups.is_disjoint
        assert Groups([[0], [2]]).is_disjoint

    def test_sequence(self):
        groups = Groups([[0, 1], [2]])
        assert len(groups) == 2
        assert_array_equal(groups[0], [0, 1])
        assert_array_equal(groups[-1], [2])
        assert_array_equal(groups[np.int64(1)], [2])
        for outside in (2, -3):
            with pytest.raises(IndexError, match=f"group {outside} is out of range for 2 groups"):
                groups[outside]
        with pytest.raises(TypeError):
            groups["x"]

    @pytest.mark.parametrize(
        ("groups", "text"),
        [
            (
                Groups([[0, 1], [1, 2, 3, 4], [5, 6, 7, 8]], n_features=10),
                "Groups(3 groups over 10 features, sizes 2-4, overlapping, 1 feature in no group)",
            ),
            (Groups([[0, 1], [2, 3]]), "Groups(2 groups over 4 features, size 2, disjoint)"),
            (
                Groups([[0]], n_features=3),
                "Groups(1 group over 3 features, size 1, disjoint, 2 features in no group)",
            ),
            (Groups([], n_features=1), "Groups(0 groups over 1 feature, 1 feature in no group)"),
        ],
    )
    def test_repr(self, groups, text):
        assert repr(groups) == text


class TestMatricesAndNorms:
    @without_deadline
    @given(list_of_groups())
    def test_selection_stacks_the_lists(self, case):
        lists, n_features = case
        groups = Groups(lists, n_features)
        w = np.random.default_rng(0).normal(size=n_features)
        stacked = [w[feature] for group in lists for feature in sorted(group)]
        E = groups.selection()
        assert E.shape == (groups.n_entries, n_features)
        assert_array_equal(E @ w, stacked)
        assert_array_equal(groups.owner, [number for number, group in enumerate(lists) for _ in group])

    @without_deadline
    @given(list_of_groups())
    def test_norms(self, case):
        lists, n_features = case
        groups = Groups(lists, n_features)
        w = np.random.default_rng(0).normal(size=(n_features, 3))
        assert_allclose(groups.norms(w[:, 0]), [np.linalg.norm(w[group, 0]) for group in lists])
        assert_allclose(groups.norms(w), [np.linalg.norm(w[group]) for group in lists])

    @without_deadline
    @given(list_of_groups())
    def test_merged_keeps_the_penalty_and_has_no_twins(self, case):
        lists, n_features = case
        groups = Groups(lists, n_features, weights=np.arange(len(lists)))
        merged = groups.merged()
        w = np.random.default_rng(0).normal(size=n_features)
        assert_allclose(merged.weights @ merged.norms(w), groups.weights @ groups.norms(w))
        assert as_lists(merged) == list(map(list, dict.fromkeys(tuple(sorted(group)) for group in lists)))

    def test_merged_keeps_the_first_name(self):
        groups = Groups([[2], [0, 1], [1, 0], [2]], names=["x", "y", "z", "x2"], weights=[1, 2, 3, 4])
        merged = groups.merged()
        assert as_lists(merged) == [[2], [0, 1]]
        assert merged.names == ("x", "y")
        assert_array_equal(merged.weights, [5, 5])

    def test_merged_survives_hash_collisions(self, monkeypatch):
        class Constant:
            def integers(self, high, size, dtype):
                return np.ones(size, dtype=dtype)

        monkeypatch.setattr(np.random, "default_rng", lambda seed: Constant())
        assert as_lists(Groups([[0], [1, 2], [3], [0]]).merged()) == [[0], [1, 2], [3]]
