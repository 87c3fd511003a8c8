"""The contract of atoms, over every atom of the package and over awkward instances of them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from atom_contract import require_capabilities, require_documentation
from atom_examples import CLASSES, EXAMPLES

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.core.loss import Loss
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.dissimilarity import PairHinge, PairSquaredHinge
from cvxstructreg.solvers.first_order import proximal_gradient
from cvxstructreg.testing import check_atom, check_solver

PUBLIC = [
    item for item in (getattr(csr, name) for name in csr.__all__) if isinstance(item, type) and issubclass(item, Atom)
]
PUBLIC.remove(csr.Penalty)  # a base class


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("atom, shape", EXAMPLES)
def test_examples_keep_the_contract(atom, shape, seed):
    check_atom(atom, shape, seed)


def awkward():
    """Zeros, empty structures, ties and weights of very different sizes."""
    empty = csr.Graph(np.zeros((3, 3)))
    directed = csr.Graph([[0, 2.0, -1], [0, 0, 0], [3, 0, 0]])
    unused_virtual = csr.Graph.from_edges([(0, 1), (0, 3)], [1.0, -2.0], n_nodes=5, virtual=[3, 4])
    no_groups = csr.Groups([], n_features=3)
    uncovered = csr.Groups([[0, 1], [1, 3]], n_features=5, weights=[0.5, 2.0])
    nested = csr.Groups([[0], [0, 1], [0, 1, 2], [0, 1, 2]], n_features=3)
    uneven = [1e3, 1.0, 1e-3]
    return {
        "L1 without cost": (csr.L1(weights=np.zeros(3)), (3, 1)),
        "L1 uneven": (csr.L1(weights=uneven), (3, 1)),
        "Ridge without cost": (csr.Ridge(weights=np.zeros(2)), (2, 2)),
        "Ridge uneven": (csr.Ridge(weights=uneven), (3, 2)),
        "Box of a point": (csr.Box([0.0, 1.0], [0.0, 1.0]), (2, 1)),
        "Box without bounds": (csr.Box(), (2, 2)),
        "Box far from zero": (csr.Box(-9.0, -7.0), (3, 1)),
        "Box one-sided": (csr.Box(upper=[1.0, np.inf, -2.0]), (3, 2)),
        "Quadratic zero": (csr.Quadratic(matrix=np.zeros((3, 3))), (3, 1)),
        "Quadratic sparse": (csr.Quadratic(matrix=sp.diags_array([1.0, 0.0, 4.0])), (3, 2)),
        "Quadratic rank one": (csr.Quadratic(matrix=np.outer([1, 2, 3], [1, 2, 3])), (3, 1)),
        "Quadratic flat factor": (csr.Quadratic(factor=np.zeros((1, 3))), (3, 1)),
        "FeatureNetwork empty": (csr.FeatureNetwork(empty), (3, 1)),
        "FeatureNetwork directed": (csr.FeatureNetwork(directed), (3, 2)),
        "FeatureNetwork virtual": (csr.FeatureNetwork(unused_virtual), (3, 2)),
        "Laplacian empty": (csr.Laplacian(empty), (3, 2)),
        "Laplacian empty normalized": (csr.Laplacian(empty, normalized=True), (3, 1)),
        "Laplacian virtual": (csr.Laplacian(unused_virtual, normalized=True), (3, 2)),
        "FusedLasso empty": (csr.FusedLasso(empty), (3, 1)),
        "GroupLasso empty": (csr.GroupLasso(no_groups), (3, 1)),
        "GroupLasso uncovered": (csr.GroupLasso(uncovered), (5, 2)),
        "GroupLasso nested": (csr.GroupLasso(nested, weights=[1.0, 0.0, 2.0, 0.5]), (3, 1)),
        "LatentGroupLasso uncovered": (csr.LatentGroupLasso(uncovered), (5, 1)),
        "LatentGroupLasso nested": (csr.LatentGroupLasso(nested), (3, 2)),
        "BlockNorms free block": (BlockNorms([0, 1, 3], [0.0, 1.0]), (3, 2)),
        "PairHinge free pair": (PairHinge([0.0, 2.0]), (2, 3)),
        "PairHinge free pair, one column": (PairHinge([0.0, 2.0]), (2, 1)),
        "PairSquaredHinge free pair": (PairSquaredHinge([0.0, 2.0]), (2, 3)),
        "PairSquaredHinge free pair, one column": (PairSquaredHinge([0.0, 2.0]), (2, 1)),
        "PairSquaredHinge five classes": (PairSquaredHinge([3.0]), (1, 5)),
        "Dissimilarity without pairs": (csr.Dissimilarity([]), (3, 2)),
        "Dissimilarity uneven": (csr.Dissimilarity([(2, 0), (0, 1)], weights=[1e2, 1e-2]), (5, 3)),
        "Dissimilarity sharing rows": (csr.Dissimilarity([(0, 1), (1, 2), (0, 2)], power=2), (3, 4)),
        "Logistic uneven": (csr.Logistic([1, 0, 1], sample_weight=uneven), (3, 1)),
        "Hinge uneven": (csr.Hinge([1, 0, 1], sample_weight=uneven), (3, 1)),
        "SquaredHinge uneven": (csr.SquaredHinge([1, 0, 1], sample_weight=uneven), (3, 1)),
        "Squared uneven": (csr.Squared([3.0, -40.0, 0.0], sample_weight=uneven), (3, 1)),
        "Multinomial uneven": (csr.Multinomial([0, 1, 2], sample_weight=uneven), (3, 3)),
        "Multinomial binary": (csr.Multinomial([1, 0, 1, 0]), (4, 2)),
        "MulticlassHinge uneven": (csr.MulticlassHinge([0, 1, 2], sample_weight=uneven), (3, 3)),
        "MulticlassHinge zero": (csr.MulticlassHinge([0, 1, 2, 0], sample_weight=[1.0, 0.0, 1.0, 2.0]), (4, 3)),
    }


@pytest.mark.parametrize("name", awkward())
def test_awkward_instances_keep_the_contract(name):
    check_atom(*awkward()[name])


def test_discovery_finds_the_inner_atoms_too():
    assert {BlockNorms, PairHinge, PairSquaredHinge} <= set(CLASSES)


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_public_atoms_are_covered_and_documented(cls):
    assert cls in CLASSES
    require_documentation(cls)


def test_public_names_hold_losses_and_penalties():
    losses = [cls for cls in PUBLIC if issubclass(cls, Loss)]
    assert len(losses) >= 6 and len(PUBLIC) - len(losses) >= 12


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_capabilities_are_what_the_class_defines(cls):
    require_capabilities(cls)


def lasso(n=12, d=4):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    return csr.Problem(csr.Linear(X), csr.Squared(X[:, 0] + rng.normal(size=n)) + 0.5 * csr.L1())


@pytest.mark.parametrize("solver", ["fista", "admm", "cvxpy"])
def test_solvers_reach_the_reference(solver):
    check_solver(solver, lasso())


def test_a_solver_that_stops_early_is_found(monkeypatch):
    run = proximal_gradient.run

    def short(*inputs):
        for count, iterate in enumerate(run(*inputs)):
            if count == 3:
                return
            yield iterate

    monkeypatch.setattr(proximal_gradient.SOLVER, "run", short)
    with pytest.raises(AssertionError, match=r"solver 'fista'.*status"):
        check_solver("fista", lasso())


def test_an_objective_that_is_not_that_of_the_point_is_found(monkeypatch):
    problem = lasso()
    solve = problem.solve
    monkeypatch.setattr(problem, "solve", lambda **options: replace(solve(**options), objective=1.0))
    with pytest.raises(
        AssertionError, match=r"objective: the reported value is 1, the value of the point is 3\.4.*\(at coef = "
    ):
        check_solver("fista", problem)


def test_a_point_away_from_the_optimum_is_found(monkeypatch):
    problem = lasso()
    good = problem.solve()
    bad = replace(good, coef=good.coef + 0.1, objective=problem.value(good.coef + 0.1, good.intercept))
    monkeypatch.setattr(problem, "solve", lambda **options: bad)
    with pytest.raises(
        AssertionError,
        match=r"certificate: the relative gap, recomputed from the point, is 0\.08.* the tolerance is 1e-06",
    ):
        check_solver("fista", problem)
