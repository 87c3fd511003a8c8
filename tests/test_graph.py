"""Graph: construction and what it refuses."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from small_graphs import ABC, SIGNED

from cvxstructreg.graphs import Graph

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


class TestConstruction:
    @pytest.mark.parametrize("format", FORMATS)
    def test_every_sparse_format_and_dense_agree(self, format):
        for W in (sparse.coo_array(SIGNED).asformat(format), sparse.coo_matrix(SIGNED).asformat(format)):
            graph = Graph(W)
            assert isinstance(graph.weights, sparse.csr_array)
            assert_array_equal(graph.weights.toarray(), SIGNED)
        assert_array_equal(Graph(SIGNED).weights.toarray(), SIGNED)
        assert_array_equal(Graph(SIGNED.tolist()).weights.toarray(), SIGNED)

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32])
    def test_real_dtypes_become_float64(self, dtype):
        W = np.array([[0, 1], [1, 0]], dtype=dtype)
        assert Graph(W).weights.dtype == Graph(sparse.csr_array(W)).weights.dtype == np.float64

    def test_storage_is_canonical(self):
        W = sparse.csr_array(
            (np.array([0.0, 1.0, 2.0, 1.0, 2.0]), np.array([0, 2, 1, 0, 0]), np.array([0, 3, 4, 5])),
            shape=(3, 3),
        )
        assert not W.has_sorted_indices
        stored = Graph(W).weights
        assert stored.has_canonical_format
        assert stored.nnz == 4
        assert_array_equal(stored.indices, [1, 2, 0, 0])

    @pytest.mark.parametrize("index", [np.int32, np.int64])
    def test_index_type_does_not_depend_on_the_input(self, index):
        W = sparse.csr_array(SIGNED)
        W.indices, W.indptr = W.indices.astype(index), W.indptr.astype(index)
        graph = Graph.from_edges(np.array([[0, 1]], dtype=index))
        for stored in (Graph(W).weights, graph.weights, graph.transition(), graph.incidence()):
            assert stored.indices.dtype == stored.indptr.dtype == np.int32

    def test_duplicates_of_a_sparse_matrix_are_summed(self):
        W = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
        assert_array_equal(Graph(W).weights.toarray(), [[0, 3], [3, 0]])
        assert W.nnz == 3

    def test_duplicates_of_opposite_sign_are_refused(self):
        W = sparse.coo_array(([1.0, -1.0], ([0, 0], [1, 1])), shape=(2, 2))
        with pytest.raises(ValueError, match=r"edge \(0, 1\) .* both as similar and as dissimilar"):
            Graph(W)

    @pytest.mark.parametrize("convert", [np.array, sparse.csr_array, sparse.coo_array])
    def test_input_is_neither_changed_nor_shared(self, convert):
        W = convert(SIGNED)
        graph = Graph(W)
        if sparse.issparse(W):
            assert_array_equal(W.toarray(), SIGNED)
            W.data[:] = 7
        else:
            W[:] = 7
        assert_array_equal(graph.weights.toarray(), SIGNED)

    def test_the_graph_cannot_be_changed_through_what_it_returns(self):
        graph = Graph(SIGNED, virtual=[2])
        graph.weights.data[:] = 9
        graph.virtual[:] = 0
        graph.transition().data[:] = 9
        graph.laplacian().data[:] = 9
        graph.edges()[2][:] = 9
        assert_array_equal(graph.weights.toarray(), SIGNED)
        assert_array_equal(graph.virtual, [2])
        with pytest.raises(AttributeError):
            graph.names = ("x",)

    def test_names_of_many_kinds(self):
        assert Graph(SIGNED, names=np.array(ABC)).names == ("a", "b", "c")
        assert all(type(name) is str for name in Graph(SIGNED, names=[np.str_("a"), "b", "c"]).names)
        assert Graph(SIGNED).names is None
        assert Graph(SIGNED).feature_names is None

    @pytest.mark.parametrize("virtual", [[2, 0], ["c", "a"], [True, False, True], [0, 2, 2], np.array([0, 2])])
    def test_virtual_nodes(self, virtual):
        graph = Graph(SIGNED, ABC, virtual)
        assert_array_equal(graph.virtual, [0, 2])
        assert_array_equal(graph.features, [1])
        assert graph.feature_names == ("b",)
        assert (graph.n_nodes, graph.n_features, graph.n_virtual) == (3, 1, 2)

    def test_a_single_virtual_node(self):
        assert_array_equal(Graph(SIGNED, ABC, "b").virtual, [1])
        assert_array_equal(Graph(SIGNED, virtual=1).virtual, [1])

    def test_pickle(self):
        graph = pickle.loads(pickle.dumps(Graph(SIGNED, ABC, ["c"])))
        assert repr(graph) == "Graph(3 nodes, 2 edges: 1 similar, 1 dissimilar, undirected, 1 virtual)"
        assert_array_equal(graph.weights.toarray(), SIGNED)
        assert graph.names == ("a", "b", "c")


class TestRefusals:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_weights_that_are_not_finite(self, bad):
        W = SIGNED.copy()
        W[0, 2] = bad
        with pytest.raises(ValueError, match=rf"edge \(0, 2\) has weight {bad}; weights must be finite"):
            Graph(W)
        with pytest.raises(ValueError, match=rf"edge \('a', 'c'\) has weight {bad}"):
            Graph(sparse.csr_array(W), ABC)

    @pytest.mark.parametrize("W", [np.ones((2, 3)), np.ones(3), sparse.csr_array((2, 3)), np.ones((0, 0))])
    def test_shape(self, W):
        with pytest.raises(ValueError, match=r"square matrix .* not of shape .*from_edges"):
            Graph(W)

    def test_self_loops(self):
        with pytest.raises(ValueError, match=r"node 1 has an edge to itself.*W\.setdiag\(0\)"):
            Graph(np.diag([0.0, 1.0]))
        with pytest.raises(ValueError, match="node 'b' has an edge to itself"):
            Graph(sparse.diags_array([0.0, 1.0]), names=["a", "b"])

    @pytest.mark.parametrize("dtype", [complex, object, str])
    def test_wrong_dtype(self, dtype):
        with pytest.raises(TypeError, match="graph weights must be real numbers, not"):
            Graph(SIGNED.astype(dtype))

    def test_wrong_sparse_dtype(self):
        with pytest.raises(TypeError, match="graph weights must be real numbers, not complex128"):
            Graph(sparse.csr_array(SIGNED.astype(complex)))

    @pytest.mark.parametrize(
        ("names", "error", "message"),
        [
            (["a", "b"], ValueError, "2 node names for 3 nodes"),
            (["a", "b", "a"], ValueError, "node name 'a' occurs 2 times"),
            ([1, 2, 3], TypeError, r"node names must be strings, not 1; use \[str"),
            ("abc", TypeError, "not the single string 'abc'"),
        ],
    )
    def test_names(self, names, error, message):
        with pytest.raises(error, match=message):
            Graph(SIGNED, names)

    @pytest.mark.parametrize(
        ("virtual", "error", "message"),
        [
            ([3], ValueError, "node index 3 in virtual is out of range for 3 nodes"),
            ([-1], ValueError, "node index -1 in virtual is out of range"),
            (["z"], ValueError, r"unknown node name 'z'; the names are \('a', 'b', 'c'\)"),
            ([True, False], ValueError, "virtual is a mask of 2 entries, expected one for each of 3 nodes"),
            ([0.0], TypeError, "nodes must be integer indices or names, not float64"),
            ([[0, 1]], ValueError, "virtual must be a one-dimensional list"),
            ([0, 1, 2], ValueError, "every node is virtual; at least one"),
        ],
    )
    def test_virtual(self, virtual, error, message):
        with pytest.raises(error, match=message):
            Graph(SIGNED, ABC, virtual)

    def test_virtual_names_without_names(self):
        with pytest.raises(TypeError, match="'a' is not a node index; use integers, or pass the node names"):
            Graph(SIGNED, virtual=["a"])


class TestFromEdges:
    @pytest.mark.parametrize(
        "pairs",
        [
            [(0, 1), (2, 0)],
            np.array([[0, 1], [2, 0]], dtype=np.uint8),
            zip([0, 2], [1, 0], strict=True),
            [("a", "b"), ("c", "a")],
            np.array([["a", "b"], ["c", "a"]], dtype=object),
        ],
    )
    def test_pairs_of_indices_or_names(self, pairs):
        graph = Graph.from_edges(pairs, [2, -1], names=ABC)
        assert_array_equal(graph.weights.toarray(), SIGNED)

    def test_weights_default_and_scalar(self):
        assert_array_equal(Graph.from_edges([(0, 1)]).weights.toarray(), [[0, 1], [1, 0]])
        assert_array_equal(Graph.from_edges([(0, 1)], -3).weights.toarray(), [[0, -3], [-3, 0]])

    def test_directed(self):
        graph = Graph.from_edges([(0, 1), (1, 0), (1, 2)], [1, -2, 3], directed=True)
        assert_array_equal(graph.weights.toarray(), [[0, 1, 0], [-2, 0, 3], [0, 0, 0]])
        assert graph.is_directed
        assert graph.n_edges == 3

    def test_number_of_nodes(self):
        assert Graph.from_edges([(0, 4)]).n_nodes == 5
        assert Graph.from_edges([(0, 4)], n_nodes=7).n_nodes == 7
        assert Graph.from_edges([(0, 1)], names=ABC).n_nodes == 3

    @pytest.mark.parametrize("empty", [[], np.zeros((0, 2), dtype=int), np.zeros(0)])
    def test_no_pairs(self, empty):
        assert Graph.from_edges(empty, n_nodes=3).is_empty
        assert Graph.from_edges(empty, weights=[], names=ABC).n_nodes == 3
        with pytest.raises(ValueError, match="cannot infer n_nodes from empty input; pass n_nodes or the names"):
            Graph.from_edges(empty)

    def test_edges_of_weight_zero_are_dropped(self):
        assert Graph.from_edges([(0, 1), (1, 2)], [0, 1]).n_edges == 1

    def test_virtual(self):
        assert Graph.from_edges([("a", "m")], names=["a", "m"], virtual=["m"]).feature_names == ("a",)

    @pytest.mark.parametrize("pairs", [[(0, 1), (0, 1)], [(0, 1), (1, 0)]])
    def test_duplicates(self, pairs):
        with pytest.raises(ValueError, match=r'edge \(0, 1\) is given 2 times.*duplicates="sum"'):
            Graph.from_edges(pairs)
        with pytest.raises(ValueError, match=r"edge \('a', 'b'\) is given 2 times"):
            Graph.from_edges(pairs, names=ABC)
        assert Graph.from_edges(pairs, [1, 2], duplicates="sum").weights[0, 1] == 3

    def test_reversed_pairs_are_no_duplicates_when_directed(self):
        assert Graph.from_edges([(0, 1), (1, 0)], [1, 2], directed=True).n_edges == 2
        with pytest.raises(ValueError, match="is given 2 times"):
            Graph.from_edges([(0, 1), (0, 1)], directed=True)

    @pytest.mark.parametrize("duplicates", ["error", "sum"])
    def test_similar_and_dissimilar_at_once(self, duplicates):
        with pytest.raises(ValueError, match=r"edge \('a', 'b'\).*both.*two separate penalty terms"):
            Graph.from_edges([("a", "b"), ("b", "a")], [1, -1], names=ABC, duplicates=duplicates)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"pairs": [(0, 3)], "n_nodes": 3}, ValueError, "node index 3 in pairs is out of range.*3 nodes"),
            ({"pairs": [(0, -1)]}, ValueError, "node index -1 in pairs is out of range"),
            ({"pairs": [("a", "z")], "names": ABC}, ValueError, "unknown node name 'z'"),
            ({"pairs": [("a", "b")], "n_nodes": 2}, TypeError, "pass the node names"),
            ({"pairs": [(0.0, 1.0)]}, TypeError, "integer indices or names, not float64"),
            ({"pairs": [(True, False)]}, TypeError, "not bool values; use np.flatnonzero"),
            ({"pairs": [(0, 1, 2)]}, ValueError, "two nodes each.*weights as a separate argument"),
            ({"pairs": [(0, 1), (2,)]}, ValueError, "two nodes each"),
            ({"pairs": [0, 1]}, ValueError, "two nodes each"),
            ({"pairs": [(1, 1)]}, ValueError, "node 1 has an edge to itself.*the pair"),
            ({"pairs": [("b", "b")], "names": ABC}, ValueError, "node 'b' has an edge to itself"),
            ({"pairs": [(0, 1)], "weights": [1, 2]}, ValueError, r"shape \(2,\) for 1 pair; give a scalar"),
            ({"pairs": [(0, 1)], "weights": [1j]}, TypeError, "pair weights must be real numbers"),
            ({"pairs": [(0, 1)], "weights": np.nan}, ValueError, r"edge \(0, 1\) has weight nan"),
            ({"pairs": [(0, 1)], "names": ABC, "n_nodes": 4}, ValueError, "3 node names for 4 nodes"),
            ({"pairs": [(0, 1)], "n_nodes": 2.5}, TypeError, "n_nodes must be an integer, not 2.5"),
            ({"pairs": [], "n_nodes": 0}, ValueError, "n_nodes must be at least 1, not 0"),
            ({"pairs": [(0, 1)], "duplicates": "max"}, ValueError, "duplicates must be .* not 'max'"),
        ],
    )
    def test_refusals(self, arguments, error, message):
        with pytest.raises(error, match=message):
            Graph.from_edges(**arguments)

    def test_many_edges(self):
        rng = np.random.default_rng(0)
        n = 20_000
        i, j = np.sort(rng.integers(0, n, size=(200_000, 2)), axis=1).T
        i, j, w = i[i != j], j[i != j], rng.random(np.sum(i != j))
        graph = Graph.from_edges(np.column_stack([i, j]), w, duplicates="sum")
        assert graph.n_edges == len(np.unique(i * n + j))
        degrees = np.bincount(i, w, minlength=n) + np.bincount(j, w, minlength=n)
        assert_allclose(graph.degrees, degrees)
        v = rng.normal(size=n)
        energy = np.sum(w * (v[i] - v[j]) ** 2)
        assert_allclose(v @ (graph.laplacian() @ v), energy)
        assert_allclose(np.sum((graph.incidence() @ v) ** 2), energy)
        assert_allclose(graph.transition().sum(axis=1), degrees > 0)
