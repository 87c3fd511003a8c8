"""A formula stands once. One that must stand twice, as in compiled loops, gives the same numbers twice."""

from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from formula_patterns import FORMULAS, SECOND_TIMES

import cvxstructreg as csr
from cvxstructreg.forms import compiled_groups, row_selection
from cvxstructreg.forms.centred_hinge import CentredHinges, centred
from cvxstructreg.forms.function_norm import ScaledFunctionNorm
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.quadratic_penalty import MatrixPenalty
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.solvers.groups.disjoint_blocks import Blocks
from cvxstructreg.solvers.kernels import augmented_lagrangian
from cvxstructreg.solvers.kernels.box_qp import BoxProgram
from cvxstructreg.solvers.multiclass import compiled_hinge

PACKAGE = Path(csr.__file__).parent
GROUPS = csr.Groups([[0, 1, 2], [2, 3], [0, 3], [4]], n_features=5, weights=[1.0, 0.5, 2.0, 1.5])
INDPTR, INDICES, RADII = (np.array(part) for part in (GROUPS.indptr, GROUPS.indices, GROUPS.weights))
SMALL = 10.0 ** np.array([-3, 0, 2])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# no second home


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.name)
def test_a_formula_stands_at_home_only(formula):
    files = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    found = {path: list(formula.found(code)) for path, code in files.items()}
    assert found[formula.homes[0]], "the home has moved"
    elsewhere = {path: lines for path, lines in found.items() if lines and not formula.is_home(path)}
    assert not elsewhere, f"the {formula.name} has its home in {formula.homes[0]}; use that"


@pytest.mark.parametrize(("formula", "code"), SECOND_TIMES)
def test_a_formula_written_out_again_is_found(formula, code):
    assert list(formula.found(code))


# group norms


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("k", [1, 3])
def test_group_norms(size, k, monkeypatch, rng):
    w = size * rng.normal(size=(5, k))
    blocks, E = csr.GroupLasso(GROUPS).split()
    norms = [np.linalg.norm(w[group]) for group in GROUPS]
    for found in (GROUPS.norms(w), blocks.norms(E @ w), blocks_of_slots(k).norms((E @ w).ravel())):
        np.testing.assert_allclose(found, norms, rtol=1e-13)
    for pays in (False, True):
        monkeypatch.setattr("cvxstructreg.penalties.group_lasso.compiled_pays", lambda count, pays=pays: pays)
        assert csr.GroupLasso(GROUPS).value(w) == pytest.approx(RADII @ norms, rel=1e-13)
    assert blocks.value(E @ w) == pytest.approx(RADII @ norms, rel=1e-13)
    if k == 1:
        found = compiled_groups.norm_sum(INDPTR, E.indices, RADII, w[:, 0].copy())
        assert found == pytest.approx(RADII @ norms, rel=1e-13)


def blocks_of_slots(k):
    """The groups as the solvers for disjoint groups store them."""
    return Blocks(INDICES.astype(np.int64), INDPTR.astype(np.int64), RADII, np.zeros(len(INDICES) * k), k)


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("k", [1, 2])
def test_dual_norms_and_projections_of_groups(size, k, monkeypatch, rng):
    blocks, q = BlockNorms(INDPTR, RADII), size * rng.normal(size=(len(INDICES), k))
    found = []
    for pays in (False, True):
        monkeypatch.setattr("cvxstructreg.penalties.blocks.compiled_pays", lambda count, pays=pays: pays)
        found.append(blocks.dual_norm(q))
    largest = compiled_groups.largest_ratio(INDPTR * k, RADII, q.ravel())
    moved = q.ravel().copy()
    before = compiled_groups.shrink(INDPTR * k, RADII, moved)
    expected = np.max(blocks.norms(q) / RADII)
    np.testing.assert_allclose([*found, largest], expected, rtol=1e-13)
    assert before == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(moved.reshape(q.shape), blocks.project(q), rtol=1e-13)
    np.testing.assert_allclose(blocks.prox(q, 0.7), q - blocks.project(q, 0.7), rtol=1e-12, atol=1e-15 * size)


def test_copies_are_added_up_alike_by_numpy_and_compiled(monkeypatch, rng):
    E, u = csr.GroupLasso(GROUPS).split()[1], rng.normal(size=(len(INDICES), 2))
    found = []
    for pays in (False, True):
        monkeypatch.setattr(row_selection, "compiled_pays", lambda count, pays=pays: pays)
        found.append(E.T @ u)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13)
    np.testing.assert_allclose(found[0], E.tocsr().T @ u, rtol=1e-13)


# hinges

Y, S = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 2.0, 0.5, 1.0])


@pytest.mark.parametrize("size", SMALL)
def test_hinges(size, rng):
    loss, z = csr.Hinge(Y, sample_weight=S), size * rng.normal(size=(4, 1))
    expected = loss.value(z)
    y, s = loss.hinges()
    assert np.sum(s * np.maximum(0.0, 1.0 - y * z[:, 0])) == pytest.approx(expected, rel=1e-13)
    smooth = SmoothedHinge(Y, S, None)
    a = S[:, None] * rng.uniform(size=(4, 1))
    gap = expected + loss.conj(-loss.y * a) + np.sum(loss.y * a * z)  # Fenchel
    assert augmented_lagrangian._loss_gap(smooth, z, a) == pytest.approx(gap, rel=1e-11)
    sharp = 1e9
    smooth.recentre(0.5 * S[:, None], sharp)
    assert smooth.value(z) == pytest.approx(expected, abs=1.01 * np.sum((S / 2) ** 2) / (2 * sharp), rel=1e-12)


def test_the_gap_of_the_dual_box_is_that_of_the_hinge_loss(rng):
    X = rng.normal(size=(4, 4))
    gram, a = X @ X.T, 0.3 * S
    machine = BoxProgram(gram, Y, S, None, 0.0)
    z = gram @ (Y * a)
    primal = csr.Hinge(Y, sample_weight=S).value(z) + 0.5 * (Y * a) @ z
    dual = a.sum() - 0.5 * (Y * a) @ z
    assert machine.gap(a, 0.0) == pytest.approx(primal - dual, rel=1e-12)


def test_the_square_of_the_hinge(rng):
    z, one = rng.normal(size=(4, 1)), np.ones(4)
    rows = [csr.Hinge([y, -y], sample_weight=[1.0, 1e-300]).value([f, 0.0]) for y, f in zip(Y, z[:, 0], strict=True)]
    assert csr.SquaredHinge(Y, sample_weight=one).value(z) == pytest.approx(np.sum(np.square(rows)), rel=1e-12)


# hinges of centred rows


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("size", SMALL)
def test_centred_hinges(power, size, rng):
    costs = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [0.0, 0.3, 0.3]])
    hinges, tau, squared = CentredHinges(costs, -0.5, power), np.full(3, -0.5), np.full(3, power == 2)
    z = size * rng.normal(size=(3, 3))
    expected = hinges.value(z)
    assert compiled_hinge.hinge_sum(centred(z), costs, tau, squared) == pytest.approx(expected, rel=1e-12)
    assert hinges.expr(cp.Constant(z)).value == pytest.approx(expected, rel=1e-12)
    assert hinges.expr_of_zero_sums(cp.Constant(centred(z))).value == pytest.approx(expected, rel=1e-12)
    U = costs * rng.uniform(size=costs.shape)
    assert compiled_hinge.dual_sum(U, costs, tau, squared) == pytest.approx(hinges.conj(centred(U)), rel=1e-12)
    clipped = size * rng.normal(size=(3, 3))
    expected_domain = hinges.into_domain(centred(np.where(costs == 0, 0.0, clipped)))
    clipped[costs == 0] = 0.0
    compiled_hinge.into_domain(clipped, costs, squared)
    np.testing.assert_allclose(centred(clipped), expected_domain, atol=1e-12 * size)


def test_the_loss_and_the_pairs_are_centred_hinges(rng):
    z = rng.normal(size=(4, 3))
    loss = csr.MulticlassHinge([0, 2, 1, 0], sample_weight=S)
    pairs = csr.Dissimilarity([(0, 1), (2, 3)], power=2)
    outer, K = pairs.split()
    for atom, at in ((loss, z), (outer, K @ z)):
        hinges = atom.centred_hinges(3)
        assert atom.value(at) == hinges.value(at)
        np.testing.assert_array_equal(atom.prox(at, 0.4), hinges.prox(at, 0.4))


# the function norm


def test_the_norm_of_the_function(rng):
    """theta'gram theta as the objective, as a quadratic form, in factor coordinates and in CVXPY."""
    X = rng.normal(size=(6, 3))
    gram, theta, b = X @ X.T + np.eye(6), rng.normal(size=6), np.array([0.4])
    loss = csr.Squared(rng.normal(size=6))
    problem = csr.Problem(csr.Kernel(gram), loss + 0.3 * csr.RKHSNorm())
    norm = 0.3 * theta @ gram @ theta
    assert 0.3 * QuadraticForm(matrix=gram).value(theta[:, None]) == pytest.approx(norm, rel=1e-12)
    assert 0.3 * MatrixPenalty(gram).value(theta) == pytest.approx(norm, rel=1e-12)
    whole = loss.value(gram @ theta + b) + norm
    assert problem.value(theta, b) == pytest.approx(whole, rel=1e-12)
    beside = csr.Problem(csr.Kernel(gram), loss + 0.3 * csr.RKHSNorm() + 0.7 * csr.L1())  # a form among others
    assert beside.value(theta, b) == pytest.approx(whole + 0.7 * np.abs(theta).sum(), rel=1e-12)
    lowered = problem.model.factor().T @ theta
    as_linear = csr.Problem(csr.Linear(problem.model.factor()), loss + 0.3 * csr.RKHSNorm())
    assert as_linear.value(lowered, b) == pytest.approx(whole, rel=1e-9)
    program = problem.to_cvxpy()
    for variable in program.variables():
        variable.value = theta[:, None] if variable.name() == "theta" else b[None]
    assert program.objective.value == pytest.approx(whole, rel=1e-9)


def test_the_norm_of_the_function_as_an_object(rng):
    """Value, gradients and conjugate against the matrix lam gram."""
    X, lam = rng.normal(size=(5, 5)), 0.3
    gram, theta, p = X @ X.T, rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    norm, h = ScaledFunctionNorm(lam), gram @ theta
    form = lam * MatrixPenalty(gram)
    assert norm.value(theta, h) == pytest.approx(form.value(theta), rel=1e-12)
    assert norm.value(theta, -1e-18 * theta) == 0.0
    np.testing.assert_allclose(norm.grad(h), form.grad(theta), rtol=1e-11)
    step = norm.value(theta + p, h + gram @ p) - norm.value(theta, h) - norm.value(p, gram @ p)
    assert step == pytest.approx(np.vdot(norm.grad(theta), gram @ p), rel=1e-9)  # the gradient by h
    assert norm.grad(theta) == pytest.approx(norm.curvature * theta)
    # Fenchel's equality at u, the gradient by h
    u = norm.grad(theta)
    assert norm.conj(np.vdot(u, gram @ u)) == pytest.approx(np.vdot(u, h) - norm.value(theta, h), rel=1e-11)


def test_the_norm_of_the_function_in_certificates(rng):
    """The conjugate of theta'gram theta, at the optimum of kernel ridge regression in closed form."""
    X, y, lam = rng.normal(size=(6, 3)), rng.normal(size=6), 0.3
    gram = X @ X.T + np.eye(6)
    theta = np.linalg.solve(gram + 2.0 * lam * np.eye(6), y)
    problem = csr.Problem(csr.Kernel(gram, intercept=False), csr.Squared(y) + lam * csr.RKHSNorm())
    assert 0 <= csr.certify(problem, theta).relative_gap <= 1e-12
    assert csr.certify(problem, 1.001 * theta).relative_gap >= 1e-8
