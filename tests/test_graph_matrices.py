"""Graph: properties, derived graphs, and its matrices against double loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from small_graphs import ABC, SIGNED

from cvxstructreg.graphs import Graph

without_deadline = settings(deadline=None, max_examples=60)


@st.composite
def weight_matrices(draw, symmetric=True):
    n = draw(st.integers(1, 7))
    seed = draw(st.integers(0, 2**32 - 1))
    density = draw(st.sampled_from([0.0, 0.3, 1.0]))
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(W, 0)
    return np.triu(W) + np.triu(W).T if symmetric else W


class TestProperties:
    def test_counts_of_undirected_and_directed_edges(self):
        assert Graph(SIGNED).n_edges == 2
        assert Graph(np.triu(SIGNED)).n_edges == 2
        assert Graph(np.triu(SIGNED)).is_directed
        assert not Graph(SIGNED).is_directed

    def test_round_off_does_not_make_a_graph_directed(self):
        W = np.array([[0.0, 0.1 + 0.2], [0.3, 0.0]])
        assert W[0, 1] != W[1, 0]
        stored = Graph(W).weights.toarray()
        assert not Graph(W).is_directed
        assert_array_equal(stored, stored.T)
        assert Graph([[0, 1], [1 + 1e-9, 0]]).is_directed
        assert Graph([[0, 1e-15, 1], [0, 0, 0], [1, 0, 0]]).is_directed

    def test_signs_and_emptiness(self):
        assert Graph(SIGNED).is_signed
        assert not Graph(abs(SIGNED)).is_signed
        assert Graph(np.zeros((2, 2))).is_empty
        assert not Graph(SIGNED).is_empty

    def test_isolated_means_in_either_direction(self):
        W = np.zeros((4, 4))
        W[0, 2] = 1
        assert_array_equal(Graph(W).isolated, [1, 3])

    def test_degrees_are_row_sums_of_absolute_weights(self):
        assert_array_equal(Graph(SIGNED).degrees, [3, 2, 1])
        assert_array_equal(Graph(np.triu(SIGNED)).degrees, [3, 0, 0])

    @pytest.mark.parametrize(
        ("graph", "text"),
        [
            (Graph(SIGNED), "Graph(3 nodes, 2 edges: 1 similar, 1 dissimilar, undirected)"),
            (
                Graph(SIGNED, virtual=[0]),
                "Graph(3 nodes, 2 edges: 1 similar, 1 dissimilar, undirected, 1 virtual)",
            ),
            (Graph(np.triu(abs(SIGNED))), "Graph(3 nodes, 2 edges, directed)"),
            (Graph([[0]]), "Graph(1 node, 0 edges, undirected)"),
        ],
    )
    def test_repr(self, graph, text):
        assert repr(graph) == text


class TestDerivedGraphs:
    def test_similarity_and_dissimilarity(self):
        graph = Graph(SIGNED, ABC, ["c"])
        for part, expected in (
            (graph.similarity(), SIGNED.clip(min=0)),
            (graph.dissimilarity(), SIGNED.clip(max=0)),
        ):
            assert_array_equal(part.weights.toarray(), expected)
            assert part.n_edges == 1
            assert part.names == graph.names
            assert_array_equal(part.virtual, [2])

    @pytest.mark.parametrize(("how", "expected"), [("max", 4), ("mean", 3), ("min", 2)])
    def test_symmetrized(self, how, expected):
        graph = Graph([[0, 2, -2], [4, 0, 0], [-4, 0, 0]], ABC, ["c"]).symmetrized(how)
        assert_array_equal(graph.weights.toarray(), expected * np.array([[0, 1, -1], [1, 0, 0], [-1, 0, 0]]))
        assert not graph.is_directed
        assert graph.feature_names == ("a", "b")

    @pytest.mark.parametrize(("how", "expected"), [("max", 1.0), ("mean", 0.5), ("min", 0.0)])
    def test_symmetrized_with_an_edge_in_one_direction(self, how, expected):
        weights = Graph([[0, -1], [0, 0]]).symmetrized(how).weights
        assert_array_equal(weights.toarray(), [[0, -expected], [-expected, 0]])

    def test_symmetrized_refusals(self):
        with pytest.raises(ValueError, match=r"edge \('a', 'b'\) is similar in one direction"):
            Graph([[0, 1], [-1, 0]], ["a", "b"]).symmetrized()
        with pytest.raises(ValueError, match=r"how must be .* not 'sum'"):
            Graph(SIGNED).symmetrized("sum")

    @pytest.mark.parametrize("nodes", [[2, 0], ["c", "a"]])
    def test_subgraph_keeps_the_given_order(self, nodes):
        part = Graph(SIGNED, ABC, ["c"]).subgraph(nodes)
        assert_array_equal(part.weights.toarray(), [[0, -1], [-1, 0]])
        assert part.names == ("c", "a")
        assert_array_equal(part.virtual, [0])

    def test_subgraph_by_mask(self):
        assert_array_equal(Graph(SIGNED).subgraph([True, True, False]).weights.toarray(), [[0, 2], [2, 0]])

    @pytest.mark.parametrize(
        ("nodes", "message"),
        [
            ([0, 0], "node 'a' is given twice"),
            ([5], "node index 5 in nodes is out of range"),
            ([], "at least one node"),
            ([2], "every node is virtual"),
        ],
    )
    def test_subgraph_refusals(self, nodes, message):
        with pytest.raises(ValueError, match=message):
            Graph(SIGNED, ABC, ["c"]).subgraph(nodes)


class TestMatrices:
    @without_deadline
    @given(weight_matrices(symmetric=False))
    def test_transition_rows_sum_to_one_in_absolute_value_or_are_zero(self, W):
        P = Graph(W).transition()
        sums = abs(P).sum(axis=1)
        assert np.all(np.isfinite(P.data))
        assert_allclose(sums, (abs(W).sum(axis=1) > 0).astype(float), atol=1e-12)
        assert_allclose(P.toarray() * abs(W).sum(axis=1, keepdims=True), W, atol=1e-12)

    @without_deadline
    @given(weight_matrices())
    def test_laplacian_is_the_double_sum(self, W):
        n = len(W)
        w = np.random.default_rng(0).normal(size=n)
        total = 0.0
        for i in range(n):
            for j in range(n):
                total += 0.5 * abs(W[i, j]) * (w[i] - np.sign(W[i, j]) * w[j]) ** 2
        assert_allclose(w @ (Graph(W).laplacian() @ w), total, atol=1e-10)

    @without_deadline
    @given(weight_matrices(), st.booleans())
    def test_incidence_squared_is_the_laplacian(self, W, normalized):
        graph = Graph(W)
        B, L = graph.incidence(normalized), graph.laplacian(normalized)
        assert B.shape == (graph.n_edges, graph.n_nodes)
        assert_allclose((B.T @ B).toarray(), L.toarray(), atol=1e-12)
        assert_array_equal(L.toarray(), L.T.toarray())

    @without_deadline
    @given(weight_matrices())
    def test_normalized_laplacian(self, W):
        degrees = abs(W).sum(axis=1)
        inverse_root = np.array([0.0 if d == 0 else d**-0.5 for d in degrees])
        expected = inverse_root[:, None] * (np.diag(degrees) - W) * inverse_root
        assert_allclose(Graph(W).laplacian(normalized=True).toarray(), expected, atol=1e-12)

    @without_deadline
    @given(weight_matrices(symmetric=False))
    def test_edges_rebuild_the_graph(self, W):
        graph = Graph(W)
        i, j, w = graph.edges()
        assert len(w) == graph.n_edges
        pairs = np.column_stack([i, j])
        again = Graph.from_edges(pairs, w, n_nodes=len(W), directed=graph.is_directed)
        assert_array_equal(again.weights.toarray(), W)

    def test_incidence_rows_follow_the_edges(self):
        graph = Graph(SIGNED)
        i, j, w = graph.edges()
        assert np.all(i < j)
        assert_array_equal(w, [2, -1])
        assert_allclose(graph.incidence().toarray(), [[2**0.5, -(2**0.5), 0], [1, 0, 1]])

    @pytest.mark.parametrize("normalized", [False, True])
    def test_isolated_nodes_contribute_nothing(self, normalized):
        graph = Graph.from_edges([(0, 2)], n_nodes=4)
        L = graph.laplacian(normalized).toarray()
        assert not L[[1, 3]].any()
        assert not L[:, [1, 3]].any()
        assert not graph.incidence(normalized).toarray()[:, [1, 3]].any()

    def test_an_empty_graph_has_empty_matrices(self):
        graph = Graph.from_edges([], n_nodes=2)
        assert graph.laplacian(normalized=True).nnz == graph.transition().nnz == 0
        assert graph.incidence().shape == (0, 2)

    @pytest.mark.parametrize("method", ["incidence", "laplacian"])
    def test_directed_graphs_are_refused_with_the_remedy(self, method):
        with pytest.raises(ValueError, match=r"needs an undirected graph.*graph\.symmetrized\(\)"):
            getattr(Graph([[0, 1], [0, 0]]), method)()
