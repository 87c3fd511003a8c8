"""Groups of hierarchies: builders, the exact prox, proofs, and refusals of cycles and crossing groups."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
from penalty_problems import LOSSES, require_proof_and_reference, small_problem
from scipy.cluster.hierarchy import linkage

import cvxstructreg as csr
from cvxstructreg.testing import check_atom

NESTED = csr.TreeGroups.from_nested([0, 1, [2, 3, [4, 5]], [6, [7, 8], [9, 10, 11]]])


@pytest.mark.parametrize("loss", LOSSES)
def test_auto_proves_every_loss(loss):
    require_proof_and_reference(small_problem(loss, 1.5 * csr.GroupLasso(NESTED)))


def test_three_solvers_agree_on_a_tree():
    problem = small_problem("logistic", 1.5 * csr.GroupLasso(NESTED))
    objectives = [problem.solve(solver=name, tol=1e-7).objective for name in ("group_newton", "fista", "admm")]
    assert np.ptp(objectives) <= 2e-7 * objectives[0]


def test_a_child_is_selected_only_with_its_parent():
    tree = csr.TreeGroups.from_taxonomy([None, 0, 1, 1, 0, 4, 4, None, 7, 8, 9, 10])
    problem = small_problem("squared", 30.0 * csr.GroupLasso(tree))
    w = problem.solve(tol=1e-8).coef.ravel()
    assert (w == 0).any() and (w != 0).any()
    parents = np.array([-1, 0, 1, 1, 0, 4, 4, -1, 7, 8, 9, 10])
    children = np.flatnonzero((w != 0) & (parents >= 0))
    assert children.size and np.all(w[parents[children]] != 0)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("t", [0.1, 0.8])
def test_one_pass_is_the_prox(t, k):
    rng = np.random.default_rng(0)
    penalty = csr.GroupLasso(NESTED.with_weights(rng.uniform(0.2, 2.0, len(NESTED))))
    v = rng.normal(size=(12, k))
    x = cp.Variable((12, k))
    cp.Problem(cp.Minimize(t * penalty.expr(x) + 0.5 * cp.sum_squares(x - v))).solve(solver=cp.CLARABEL)
    assert np.allclose(penalty.prox(v, t), x.value, atol=1e-5)


def test_trees_keep_the_contract_of_atoms():
    check_atom(csr.GroupLasso(csr.TreeGroups.from_nested([[0], [1, [2]], 3])), (4, 1))
    check_atom(csr.GroupLasso(csr.TreeGroups.from_nested([0, [[1, 2]]])), (3, 2))  # two equal groups


def test_the_builders_agree():
    nested = csr.TreeGroups.from_nested([0, [1, 2], [3, [4]]])
    taxonomy = csr.TreeGroups.from_taxonomy({1: "pair", 2: "pair", "pair": 0, 3: 0, 4: 3}, n_features=5)
    as_sets = [{tuple(group.tolist()) for group in tree} for tree in (nested, taxonomy)]
    assert as_sets[1] - as_sets[0] == {(1,), (2,)}  # features of a taxonomy are nodes, and have groups of their own
    assert as_sets[0] <= as_sets[1]
    points = np.array([[0.0], [0.1], [5.0], [5.3], [20.0]])
    tree = csr.TreeGroups.from_linkage(linkage(points, "average"), feature_names=list("abcde"))
    assert [group.tolist() for group in tree][5:] == [[0, 1], [2, 3], [0, 1, 2, 3], [0, 1, 2, 3, 4]]
    assert tree.parents.tolist() == [5, 5, 6, 6, 8, 7, 7, 8, -1] and tree.feature_names == tuple("abcde")


def test_nodes_without_features_are_left_out():
    tree = csr.TreeGroups.from_taxonomy({"dog": "mammal", "fern": "plant"}, feature_names=["dog", "tea"])
    assert tree.names == ("dog", "mammal") and tree.n_features == 2


def test_trees_are_groups():
    assert isinstance(NESTED.with_weights(np.sqrt), csr.TreeGroups)
    again = pickle.loads(pickle.dumps(NESTED))
    assert isinstance(again, csr.TreeGroups) and np.array_equal(again.parents, NESTED.parents)
    assert csr.Groups([[0, 1], [1, 2]]).nesting is None
    assert csr.Groups([[0], [1]]).nesting.heights.tolist() == [0, 0]


def cyclic_list():
    tree = [0, [1]]
    tree[1].append(tree)
    return tree


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: csr.TreeGroups.from_taxonomy({"a": "b", "b": "c", "c": "a"}),
            "cycle: 'a' -> 'b' -> 'c' -> 'a'; remove",
        ),
        (lambda: csr.TreeGroups.from_taxonomy({"a": "b"}), "pass feature_names"),
        (lambda: csr.TreeGroups.from_taxonomy([1, 0]), "cycle: 0 -> 1 -> 0"),
        (lambda: csr.TreeGroups.from_taxonomy([0]), "cycle: 0 -> 0"),
        (lambda: csr.TreeGroups.from_nested(cyclic_list()), "cycle.*remove"),
        (lambda: csr.TreeGroups.from_nested([0, [0, 1]]), "feature 0 is at several nodes.*keep it at one"),
        (lambda: csr.TreeGroups.from_nested("ab"), "list of features"),
        (lambda: csr.TreeGroups.from_nested(["a", ["b"]], feature_names=["a"]), "unknown feature name 'b'"),
        (lambda: csr.TreeGroups.from_linkage([[0, 5, 1.0, 2]]), "row 0 of linkage"),
        (lambda: csr.TreeGroups.from_linkage([[0, 1, 1.0, 2], [0, 3, 1.0, 2]]), "one parent"),
        (lambda: csr.TreeGroups.from_linkage([1.0, 2.0]), "scipy.cluster.hierarchy.linkage"),
        (lambda: csr.TreeGroups([[0, 1], [1, 2]]), "group 0 and group 1 overlap.*use Groups"),
    ],
)
def test_what_is_no_tree_is_refused_with_a_remedy(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_names_that_match_no_node_are_refused():
    with pytest.raises(ValueError, match="no feature is in the taxonomy: the first feature is 'CAT', the first node"):
        csr.TreeGroups.from_taxonomy({"cat": "mammal", "dog": "mammal"}, feature_names=["CAT", "DOG"])
    with pytest.raises(ValueError, match="no feature is in the taxonomy"):
        csr.TreeGroups.from_taxonomy({}, feature_names=["cat"])
