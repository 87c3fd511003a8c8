"""Scaled terms and sums of them are functions too: (s f)(z) = s f(z), with the prox and conjugate that belong to it."""

import cvxpy as cp
import numpy as np
import pytest
from atom_examples import EXAMPLES

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom, has_conjugate
from cvxstructreg.testing import check_atom

FUNCTIONS = ("value", "prox", "grad", "hessp", "lipschitz", "conj", "dual_norm")


def as_atom(term):
    """An atom with the methods of the term, so that the contract of atoms can be checked on it."""
    offered = [name for name in FUNCTIONS if term.can(name)]
    members = {name: lambda self, *inputs, name=name: getattr(term, name)(*inputs) for name in (*offered, "expr")}
    members["check_shape"] = lambda self, shape: term.check_shape(shape)
    return type(f"Scaled{type(term.atom).__name__}", (Atom,), members)()


#: The first example of each class; the others are slow tests.
FIRST = [
    param if param.id.endswith("-0") else pytest.param(*param.values, id=param.id, marks=pytest.mark.slow)
    for param in EXAMPLES
]


@pytest.mark.parametrize("atom, shape", FIRST)
def test_a_scaled_term_keeps_the_contract_of_atoms(atom, shape):
    check_atom(as_atom(2.5 * atom), shape)


@pytest.mark.parametrize("atom, shape", EXAMPLES)
def test_a_term_of_strength_one_is_its_atom(atom, shape):
    term, z = 1.0 * atom, np.random.default_rng(0).normal(size=shape)
    assert term.value(z) == atom.value(z)
    assert term(z) == atom(z)
    np.testing.assert_array_equal(term.prox(z, 0.3), atom.prox(z, 0.3))
    if atom.can("grad", "hessp"):
        np.testing.assert_array_equal(term.grad(z), atom.grad(z))
        np.testing.assert_array_equal(term.hessp(z, 2 * z), atom.hessp(z, 2 * z))


@pytest.mark.parametrize("atom, shape", [case for case in EXAMPLES if case.values[1][1] == 1])
@pytest.mark.parametrize("scale", [0.0, 0.7])
def test_vectors_and_lists_are_columns(atom, shape, scale):
    term, z = scale * atom, np.round(3.0 * np.random.default_rng(1).normal(size=shape))
    for given in (z[:, 0], z[:, 0].tolist(), z[:, 0].astype(int)):
        assert term.value(given) == pytest.approx(term.value(z), rel=1e-12)
        assert term(given) == pytest.approx(term.value(z), rel=1e-12)
        assert term.prox(given, 0.5).shape == (shape[0],)
        np.testing.assert_allclose(term.prox(given, 0.5), term.prox(z, 0.5)[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("atom, shape", EXAMPLES)
def test_strength_zero_leaves_nothing_but_bounds(atom, shape):
    term, z = 0 * atom, np.random.default_rng(2).normal(size=shape)
    if term.is_constraint:
        np.testing.assert_array_equal(term.prox(z, 1.0), atom.prox(z, 1.0))
        assert term.value(9.0 + z) == atom.value(9.0 + z) and term.conj(z) == atom.conj(z)
        return
    assert term.value(9.0 * z) == 0.0 and term.expr(cp.Constant(z)).value == 0.0
    moved = term.prox(z, 4.0)
    np.testing.assert_array_equal(moved, z)
    assert moved is not z
    if has_conjugate(atom):
        assert term.conj(np.zeros(shape)) == 0.0 and term.conj(z) == np.inf
    if atom.can("dual_norm"):
        assert term.dual_norm(np.zeros(shape)) == 0.0 and term.dual_norm(z) == np.inf
    if atom.can("grad", "hessp"):
        assert not term.grad(z).any() and not term.hessp(z, z).any()
    if atom.can("lipschitz"):
        assert term.lipschitz() == 0.0


def test_strength_zero_of_a_function_that_is_infinite():
    nowhere = csr.LatentGroupLasso(csr.Groups([[0]], n_features=2))
    assert nowhere.value([1.0, 1.0]) == np.inf and (0 * nowhere).value([1.0, 1.0]) == 0.0


def test_the_strength_of_a_constraint_does_not_matter():
    for scale in (0.0, 0.5, 7.0):
        term = scale * csr.Box(-1, 2)
        assert term.value([0.0, 2.0]) == 0.0 and term.value([0.0, 3.0]) == np.inf
        assert term.prox([5.0, -5.0], 0.1).tolist() == [2.0, -1.0]
        assert term.conj([1.0, -1.0]) == 3.0
        w = cp.Variable((2, 1))
        cp.Problem(cp.Minimize(cp.sum_squares(w - 5) + term.expr(w))).solve(solver="CLARABEL")
        np.testing.assert_allclose(w.value, 2.0, atol=1e-5)


def test_products_of_strengths_and_moved_targets():
    z = np.array([1.0, -2.0, 0.5])
    assert (2 * (3 * csr.L1())).value(z) == 21.0
    assert (2 * csr.Ridge().on_scores()).value(z) == 2 * csr.Ridge().value(z)
    assert (3 * csr.L1()).dual_norm(z) == pytest.approx(2 / 3)


def test_an_expression_in_gives_an_expression():
    w = cp.Variable(3)
    term = 2 * csr.L1() + csr.Ridge()
    w.value = np.array([1.0, -2.0, 0.5])
    for function in (2 * csr.L1(), term):
        assert function(w).is_convex()
        assert function(w).value == pytest.approx(function.value(w.value))


def test_what_the_atom_cannot_do_is_refused_in_words():
    term = 2 * csr.L1()
    assert term.can("prox", "dual_norm") and not term.can("grad")
    with pytest.raises(AttributeError, match=r"2 \* L1\(\) has no grad.*L1 is not smooth.*prox"):
        term.grad([1.0])
    with pytest.raises(AttributeError, match=r"2 \* Poisson\(1 rows\) has no lipschitz: the curvature of Poisson"):
        (2 * csr.Poisson([1.0])).lipschitz()
    with pytest.raises(AttributeError, match=r"has no conj.*GroupLasso defines neither conj nor dual_norm"):
        (2 * csr.GroupLasso(csr.Groups([[0, 1]], n_features=2))).conj([1.0, 1.0])
    with pytest.raises(ValueError, match=r"acts on 2 rows, got an array of shape \(3, 1\)"):
        (0 * csr.L1(weights=[1.0, 2.0])).value([1.0, 2.0, 3.0])


def test_sums_of_weight_terms_have_value_and_expr():
    objective = 2 * csr.L1() + 0.5 * csr.Ridge() + csr.Box(-9, 9)
    z = np.array([1.0, -2.0])
    assert objective.value(z) == objective(z) == objective.value(z[:, None]) == objective.value([1, -2]) == 8.5
    assert objective.expr(cp.Constant(z[:, None])).value == pytest.approx(8.5)
    assert objective.value([10.0, 0.0]) == np.inf
    assert sum([csr.L1(), csr.L1()]).value(z) == 6.0


def test_sums_that_need_a_model_are_refused_with_the_remedy():
    for objective in (csr.Squared([1.0, 2.0]) + csr.L1(), csr.L1() + csr.RKHSNorm(), csr.L1() + csr.L1().on_scores()):
        for call in (objective.value, objective):
            with pytest.raises(ValueError, match=r"acts on .*not on the weights.*Problem\(model, objective\)\.value"):
                call([1.0, 2.0])
        with pytest.raises(ValueError, match=r"Problem\(model, objective\)\.to_cvxpy"):
            objective.expr(cp.Variable((2, 1)))


@pytest.mark.parametrize("name", ["prox", "conj", "dual_norm", "grad", "hessp"])
def test_sums_have_no_other_methods_of_atoms(name):
    objective = csr.L1() + csr.Ridge()
    assert not hasattr(objective, name)
    with pytest.raises(AttributeError, match=f"a sum of terms has no {name}.*objective.terms"):
        getattr(objective, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = objective.nonsense
