"""Every capability with a wrong factor, a wrong sign and a wrong shape: the contract has to find each of them."""

import re

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from closed_forms import ClosedForms, ClosedSquares

import cvxstructreg as csr
from cvxstructreg.core.atom import CAPABILITIES, Atom
from cvxstructreg.forms.centred_hinge import CentredHinges
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.forms.separable import Separable
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.dissimilarity import PairSquaredHinge
from cvxstructreg.testing import atoms, check_atom


def logistic():
    return csr.Logistic([0, 1, 1, 0], sample_weight=[1.0, 2.0, 0.5, 1.0]), (4, 1)


def squared():
    return csr.Squared([1.0, 2.0, -1.0], sample_weight=[1.0, 2.0, 0.5]), (3, 1)


def multinomial():
    return csr.Multinomial([0, 2, 1, 0], sample_weight=[1.0, 2.0, 0.5, 1.0]), (4, 3)


def blocks():
    return BlockNorms(np.array([0, 2, 3, 6]), np.array([1.0, 2.0, 0.5])), (6, 1)


def hinge():
    return csr.Hinge([0, 1, 1], sample_weight=[1.0, 2.0, 0.5]), (3, 1)


def pairs():
    return csr.Dissimilarity([(0, 1), (1, 2)]), (3, 3)


class Both(Atom):
    """L1 and squares."""

    def expr(self, z):
        return cp.norm1(z) + cp.sum_squares(z)

    def parts(self, shape):
        return [1.0 * csr.L1(), 1.0 * csr.Ridge()]


def each(change):
    """The change for every part of a tuple."""
    return lambda parts: tuple(change(part) for part in parts)


def first(change):
    return lambda parts: (change(parts[0]), *parts[1:])


def second(change):
    return lambda parts: (parts[0], change(parts[1]), *parts[2:])


def last(change):
    return lambda parts: (*parts[:-1], change(parts[-1]))


def minus(x):
    return -x


def twice(x):
    return 2.0 * x


def half(x):
    return 0.5 * x


def shorter(x):
    return x[:-1]


def flat(x):
    return x[:, 0]


def listed(x):
    return np.array([x, x])


def numbers(factor=twice):
    """The mistakes of a method that returns one number."""
    return {"factor": factor, "sign": minus, "shape": listed}


ARRAY = {"factor": twice, "sign": minus, "shape": flat}
# the capability: an atom that has it, and mistakes that change what it returns
MISTAKES = {
    "value": (logistic, numbers()),
    "prox": (logistic, ARRAY | {"rows": shorter}),
    "grad": (logistic, ARRAY | {"rows": shorter}),
    "hessp": (multinomial, ARRAY | {"half": half}),
    "hess_diag": (squared, ARRAY | {"half": half}),
    "derivatives": (
        logistic,
        {
            "factor": first(twice),
            "second factor": second(twice),
            "third factor": last(twice),
            "sign": second(minus),
            "shape": second(flat),
            "third shape": last(shorter),
            "one number": lambda parts: parts[0],
            "two parts": lambda parts: parts[:2],
        },
    ),
    "hess_rows": (
        multinomial,
        {
            "factor": first(twice),
            "second factor": second(twice),
            "sign": first(minus),
            "shape": first(flat),
            "second shape": second(shorter),
            "one array": lambda parts: parts[0],
            "three arrays": lambda parts: (*parts, parts[0]),
            "no second part": second(np.zeros_like),
        },
    ),
    "hess_factor": (
        lambda: (csr.Cox([3.0, 1.0, 2.0, 2.0], event=[1, 1, 0, 1], ties="efron"), (4, 1)),
        {
            "factor": first(twice),
            "second factor": second(twice),
            "sign": first(minus),
            "shape": first(flat),
            "rows": second(shorter),
            "no second part": second(np.zeros_like),
        },
    ),
    "hess_bound": (
        lambda: (csr.Cox([3.0, 1.0, 2.0, 2.0], event=[1, 1, 0, 1]), (4, 1)),
        {"factor": half, "sign": minus, "shape": flat, "rows": shorter, "nothing": np.zeros_like},
    ),
    "lipschitz": (logistic, numbers(half) | {"infinite": lambda x: np.inf}),
    "conj": (logistic, numbers() | {"half": half}),
    "dual_norm": (blocks, numbers() | {"half": half}),
    "split": (
        pairs,
        {
            "factor": second(twice),
            "sign": second(minus),
            "shape": second(lambda K: K.T),
            "rows": second(lambda K: K[:1]),
            "flat": second(lambda K: K.toarray().ravel()),
        },
    ),
    "parts": (
        lambda: (Both(), (3, 1)),
        {
            "factor": lambda parts: [2.0 * parts[0], parts[1]],
            "sign": lambda parts: [parts[1], parts[1]],
            "shape": lambda parts: parts[0].atom,
            "missing": lambda parts: parts[:1],
            "scores": lambda parts: [parts[0], csr.Ridge().on_scores()],
            "nested": lambda parts: [1.0 * Both()],
        },
    ),
    "quadratic": (
        lambda: (ClosedSquares(weights=[1.0, 2.0, 0.5]), (3, 1)),
        {
            "factor": lambda form: QuadraticForm(matrix=2.0 * form.matrix),
            "sign": lambda form: QuadraticForm(matrix=-form.matrix),
            "shape": lambda form: QuadraticForm(matrix=np.eye(4)),
            "rectangular": lambda form: QuadraticForm(matrix=np.ones((2, 3))),
            "matrix": lambda form: form.matrix,
        },
    ),
    "separable": (
        lambda: (ClosedForms(weights=[1.0, 2.0, 0.5]), (3, 1)),
        {
            "factor": lambda part: part.scaled(2.0),
            "sign": lambda part: Separable.l1(-part.weights),
            "shape": lambda part: Separable.l1(part.weights[:, 0]),
            "rows": lambda part: Separable.l1(part.weights[:2]),
            "bounds": lambda part: Separable(part.weights, np.array(-1.0), np.array(1.0)),
        },
    ),
    "blocks": (
        blocks,
        {
            "factor": second(twice),
            "sign": second(minus),
            "shape": second(shorter),
            "columns": second(lambda c: c[:, None]),
            "too few rows": each(shorter),
            "not from zero": first(lambda indptr: indptr + 1),
            "not rising": first(lambda indptr: indptr[[0, 2, 1, 3]]),
            "fractions": first(lambda indptr: indptr.astype(float)),
        },
    ),
    "latent_groups": (
        lambda: (csr.LatentGroupLasso(csr.Groups([[0, 1], [1, 2]], n_features=3, weights=[1.0, 2.0])), (3, 1)),
        {
            "factor": last(twice),
            "sign": last(minus),
            "shape": last(shorter),
            "other features": second(lambda features: features[[0, 1, 0, 3]]),
            "unknown features": second(lambda features: features + 1),
            "too few rows": first(shorter),
            "other groups": first(lambda indptr: np.array([0, 1, 4])),
        },
    ),
    "hinges": (
        hinge,
        {
            "factor": second(twice),
            "sign": first(minus),
            "sign of a weight": second(minus),
            "shape": first(lambda y: y[:, None]),
            "second shape": second(shorter),
            "labels of another size": lambda parts: (2.0 * parts[0], 0.5 * parts[1]),
        },
    ),
    "kinks": (
        lambda: (csr.Quantile([1.0, -2.0, 0.5], sample_weight=[1.0, 2.0, 0.5], quantile=0.7), (3, 1)),
        {
            "factor": first(twice),
            "second factor": second(twice),
            "sign": each(minus),
            "shape": each(flat),
            "rows": first(shorter),
            "other kinks": lambda parts: (*parts[:2], parts[2] + 0.1),
        },
    ),
    "centred_hinges": (
        lambda: (csr.MulticlassHinge([0, 2, 1, 0], sample_weight=[1.0, 2.0, 0.5, 1.0]), (4, 3)),
        {
            "factor": lambda h: CentredHinges(2.0 * h.costs, h.tau, h.power),
            "sign": lambda h: CentredHinges(h.costs, -h.tau, h.power),
            "sign of costs": lambda h: CentredHinges(-h.costs, h.tau, h.power),
            "shape": lambda h: CentredHinges(h.costs.T, h.tau, h.power),
            "one column": lambda h: CentredHinges(h.costs[:, :1], h.tau, h.power),
            "square": lambda h: CentredHinges(h.costs, h.tau, 2),
            "cube": lambda h: CentredHinges(h.costs, h.tau, 3),
            "costs of the own class": lambda h: CentredHinges(h.costs + (h.costs == 0), h.tau, h.power),
            "a kink for each row": lambda h: CentredHinges(h.costs, np.full((4, 1), h.tau), h.power),
            "another type": lambda h: h.costs,
        },
    ),
    "repair": (
        blocks,
        ARRAY | {"half": half, "rows": shorter, "nothing": lambda u: None, "worse": lambda u: 0.0 * u},
    ),
    "dual_box": (
        hinge,
        {
            "factor": each(twice),
            "half": each(half),
            "sign": each(minus),
            "swapped": lambda box: (-box[1], -box[0]),
            "shape": each(flat),
            "rows": first(shorter),
        },
    ),
    "rebalance": (hinge, ARRAY | {"half": half, "rows": shorter, "nothing": lambda u: None}),
}
CASES = [(name, mistake) for name, (_, mistakes) in MISTAKES.items() for mistake in mistakes]


def broken(name, mistake):
    """An atom like the example, but for one method."""
    make, mistakes = MISTAKES[name]
    right, shape = make()

    def method(self, *arguments):
        return mistakes[mistake](getattr(super(wrong, self), name)(*arguments))

    wrong = type(f"Wrong{type(right).__name__}", (type(right),), {name: method})
    atom = object.__new__(wrong)
    atom.__dict__.update(right.__dict__)
    return atom, shape


@pytest.mark.parametrize("make", dict.fromkeys(make for make, _ in MISTAKES.values()))
def test_the_examples_themselves_are_right(make):
    check_atom(*make())


@pytest.mark.parametrize("name, mistake", CASES, ids=[f"{name}-{mistake}" for name, mistake in CASES])
def test_a_mistake_is_found_and_named(name, mistake):
    atom, shape = broken(name, mistake)
    with pytest.raises(AssertionError) as failure:
        check_atom(atom, shape)
    message = str(failure.value)
    assert message.startswith(f"{atom!r}: "), message
    assert f": {name}: " in message, message
    why = message.split(f": {name}: ")[1]
    assert re.search(r"\d", why) or "must " in why, f"no number in {message}"


def test_every_capability_has_a_check_and_mistakes_for_it():
    assert set(atoms.CHECKS) == set(CAPABILITIES)
    assert set(MISTAKES) == set(CAPABILITIES)
    assert all({"factor", "sign", "shape"} <= set(mistakes) for _, mistakes in MISTAKES.values())


class Nothing(Atom):
    def expr(self, z):
        return csr.L1().expr(z)


def test_the_check_of_a_capability_runs_where_an_atom_offers_it(monkeypatch):
    called = set()
    for name in CAPABILITIES:
        monkeypatch.setitem(atoms.CHECKS, name, lambda probe, name=name: called.add(name))
    for name, (make, _) in MISTAKES.items():
        called.clear()
        atom, shape = make()
        assert atom.can(name)
        check_atom(atom, shape)
        assert called == atom.capabilities | {"value"}  # which every atom has
    called.clear()
    check_atom(Nothing(), (2, 1))
    assert called == {"value"}


def test_a_capability_without_check_fails_where_it_is_offered(monkeypatch):
    monkeypatch.delitem(atoms.CHECKS, "hinges")
    with pytest.raises(KeyError, match="hinges"):
        check_atom(*hinge())


def test_an_error_inside_the_atom_names_the_clause():
    class Raises(csr.Ridge):
        def conj(self, u):
            raise ZeroDivisionError("no")

    with pytest.raises(AssertionError, match=r"Raises\(\): conj: raises ZeroDivisionError: no"):
        check_atom(Raises(), (3, 1))


def test_centred_hinges_are_checked_at_a_single_column_too():
    class OneColumn(PairSquaredHinge):
        def centred_hinges(self, k):
            right = super().centred_hinges(k)
            return CentredHinges(right.costs, right.tau + 1.0, right.power)

    check_atom(PairSquaredHinge(np.ones(2)), (2, 1))
    with pytest.raises(AssertionError, match="centred_hinges: the value differs"):
        check_atom(OneColumn(np.ones(2)), (2, 1))


@pytest.mark.parametrize("diagonal", [[2.0, 0.5, 3.0, 1.0], [2.0, 0.0, 3.0, 1.0], [-1.0, -1.0, -1.0, -1.0]])
def test_repair_leaves_maps_alone_that_do_not_pick_rows(diagonal):
    norms, left = BlockNorms(np.array([0, 2, 4]), np.ones(2)), np.array([[2.0], [-3.0], [1.0], [0.5]])
    u = np.array([[0.1], [0.2], [0.3], [0.4]])
    K = sp.csr_array(np.diag(diagonal))
    K.eliminate_zeros()
    np.testing.assert_array_equal(norms.repair(u, K, left, np.zeros((1, 1)), 1.0, 50), u)
    same = norms.repair(u, Selection(np.arange(4), 4), left, np.zeros((1, 1)), 1.0, 50)
    np.testing.assert_array_equal(norms.repair(u, sp.eye_array(4, format="csr"), left, np.zeros((1, 1)), 1.0, 50), same)
    assert not np.array_equal(same, u)


def test_a_subclass_with_another_value_does_not_inherit_all_derivatives_at_once():
    class Doubled(csr.Gamma):
        def value(self, z):
            return 2.0 * super().value(z)

        def grad(self, z):
            return 2.0 * super().grad(z)

        def hess_diag(self, z):
            return 2.0 * super().hess_diag(z)

    class Renamed(Doubled):
        pass

    assert csr.Gamma.can("derivatives") and csr.Gamma([1.0], offset=[1.0]).can("derivatives")
    assert not Doubled.can("derivatives") and not Renamed.can("derivatives")
    assert not Renamed([1.0], offset=[1.0]).can("derivatives")
