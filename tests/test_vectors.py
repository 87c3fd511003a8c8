"""Arrays of one dimension: every method of every atom takes (m,) as (m, 1), or refuses in words."""

import copy
import functools
import pickle

import numpy as np
import pytest
from atom_examples import CLASSES, EXAMPLES

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.core.columns import ARRAY_METHODS
from cvxstructreg.core.loss import Loss

SINGLE = [case for case in EXAMPLES if case.values[1][1] == 1]


def calls(atom, z):
    """Every array method that the atom has, as functions of an array."""
    t = 0.7
    yield "value", atom.value
    yield "prox", lambda v: atom.prox(v, t)
    for name in ("grad", "hess_diag", "hess_rows", "conj", "dual_norm"):
        if atom.can(name):
            yield name, getattr(atom, name)
    if atom.can("hessp"):
        yield "hessp", lambda p: atom.hessp(p, p)
    if atom.can("rebalance"):
        u = (z - atom.prox(z, t)) / t
        yield "rebalance", lambda x: atom.rebalance(0.0 * x + (u[:, 0] if np.ndim(x) == 1 else u), u.sum(axis=0))


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("atom, shape", SINGLE)
def test_vectors_give_what_columns_give(atom, shape):
    z = np.random.default_rng(3).normal(size=shape)
    for name, call in calls(atom, z):
        for flat in (z[:, 0], np.asfortranarray(z)[:, 0].astype(np.float32).astype(float)):
            column = parts(call(flat.reshape(-1, 1)))
            for found, expected in zip(parts(call(flat)), column, strict=True):
                if np.ndim(expected):
                    assert found.shape == (shape[0],), name
                    expected = expected[:, 0]
                np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("atom, shape", SINGLE)
def test_lists_and_integers_give_what_arrays_give(atom, shape):
    z = np.round(3.0 * np.random.default_rng(4).normal(size=shape))
    for name, call in calls(atom, z):
        if name == "rebalance":
            continue
        expected = parts(call(z))
        for other in (z[:, 0].tolist(), z[:, 0].astype(int), z.tolist(), z.astype(np.int32), z.astype(np.float32)):
            found = parts(call(other))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("atom, shape", EXAMPLES)
def test_wrong_shapes_are_refused(atom, shape):
    m, k = shape
    sized = isinstance(atom, Loss) or atom.size is not None
    wrong = [np.zeros((2, m, k)), np.float64(1.0), np.zeros((m, k)) * 1j]
    wrong += [np.zeros(m - 1), np.zeros((m + 1, k)), np.zeros((m - 1, k))] if sized else []
    wrong += [np.zeros((m, k + 1)), np.zeros((k, m))] if isinstance(atom, Loss) and m != k else []
    wrong += [np.zeros(m)] if isinstance(atom, Loss) and k > 1 else []
    for name, call in calls(atom, np.zeros(shape)):
        for array in wrong if name != "rebalance" else ():
            with pytest.raises((TypeError, ValueError)) as refusal:
                call(array)
            named = str(np.shape(array)) in str(refusal.value) or "complex" in str(refusal.value)
            assert named, f"{name}: {refusal.value}"


def test_the_loss_of_a_vector_is_not_that_of_a_square():
    loss, v = csr.Logistic([1, -1, 1]), np.array([0.1, 0.2, 0.3])
    margins = np.array([0.1, -0.2, 0.3])
    assert loss.value(v) == pytest.approx(np.sum(np.log1p(np.exp(-margins))), rel=1e-12)
    np.testing.assert_allclose(loss.grad(v), -loss.y[:, 0] / (1.0 + np.exp(margins)), rtol=1e-12)


def test_refusals_name_what_was_given_and_what_is_expected():
    loss = csr.Logistic([1, -1, 1])
    with pytest.raises(ValueError, match=r"scores of shape \(3, 1\), got \(1, 3\); pass one row for each label"):
        loss.value(np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"got \(2, 1\).*z in Logistic.value has shape \(2,\)"):
        loss.value([0.0, 1.0])
    with pytest.raises(ValueError, match=r"v in L1.prox must have shape \(m,\) or \(m, k\), got shape \(\)"):
        csr.L1().prox(3.0, 1.0)
    with pytest.raises(TypeError, match=r"u in Logistic.conj must be real numbers, not complex128"):
        loss.conj(np.zeros(3) * 1j)
    with pytest.raises(ValueError, match=r"Ridge.hessp got z of shape \(3,\) and p of shape \(2,\)"):
        csr.Ridge().hessp(np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="acts on 2 rows, got an array of shape"):
        csr.L1(weights=[1.0, 2.0]).value(np.zeros(3))


def test_arguments_may_be_given_by_name():
    loss, v = csr.Logistic([1, -1, 1]), np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(loss.prox(t=0.5, v=v), loss.prox(v, 0.5))
    np.testing.assert_array_equal(loss.hessp(p=v, z=v), loss.hessp(v, v))
    assert loss.conj(u=loss.grad(z=v)) == loss.conj(loss.grad(v))

    class Named(csr.Logistic):
        def prox(self, point, t, accuracy=0.0):
            return super().prox(point, t) + accuracy

    named = Named([1, -1, 1])
    np.testing.assert_array_equal(named.prox(t=0.5, point=v, accuracy=1.0), loss.prox(v, 0.5) + 1.0)
    np.testing.assert_array_equal(named.prox(v[:, None], 0.5, 1.0), loss.prox(v[:, None], 0.5) + 1.0)
    with pytest.raises(TypeError, match="missing"):
        loss.prox(v)
    with pytest.raises(TypeError):
        loss.value()


def test_methods_are_wrapped_once_and_stay_what_they_were():
    class Inherited(csr.Logistic):
        def value(self, z):
            assert z.shape == (3, 1)
            return super().value(z)

    class Borrowed(Atom):
        expr, value, prox = csr.L1.expr, csr.L1.value, csr.L1.prox
        separable, weights = csr.L1.separable, None

    class Plain:
        def value(self, z):
            assert z.ndim == 2
            return float(np.sum(np.abs(z)))

    class Mixed(Plain, Atom):
        def expr(self, z):
            return csr.L1().expr(z)

    assert Inherited([1, -1, 1]).value([1, 2, 3]) == csr.Logistic([1, -1, 1]).value([1, 2, 3])
    assert Borrowed.value is csr.L1.value and Borrowed().value([1.0, -2.0]) == 3.0
    assert Mixed().value([1.0, -2.0]) == 3.0 and Mixed.can("value") and not Mixed.can("prox")
    assert Inherited.prox is csr.Logistic.prox
    for cls in CLASSES:
        for name in ARRAY_METHODS:
            method = getattr(cls, name, None)
            if method is not None:
                assert method.takes_vectors and not hasattr(method.__wrapped__, "__wrapped__")
                assert method.__doc__ and method.__name__ == name
        assert ("prox" in cls.capabilities) == (cls.prox is not Atom.prox)


def test_atoms_are_still_pickled_and_copied():
    loss = csr.Logistic([1, -1, 1])
    for other in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss), functools.partial(copy.copy, loss)()):
        assert other.value([1.0, 2.0, 3.0]) == loss.value([1.0, 2.0, 3.0])


def test_problems_and_certificates_take_vectors_and_check_lengths():
    X = np.random.default_rng(0).normal(size=(6, 3))
    problem = csr.Problem(csr.Linear(X), csr.Logistic([0, 1, 0, 1, 1, 0]) + 0.1 * csr.Ridge())
    w = np.array([0.1, -0.2, 0.3])
    assert problem.value(w, 0.5) == problem.value(w[:, None], [0.5])
    assert csr.certify(problem, w, 0.5, search=False) == csr.certify(problem, w[:, None], [0.5], search=False)
    for wrong in (np.zeros(4), np.zeros((1, 3)), np.zeros((3, 2))):
        with pytest.raises(ValueError, match="coef must have shape"):
            problem.value(wrong)
    for wrong in (np.zeros(4), np.zeros((1, 4)), np.zeros((3, 2))):
        with pytest.raises(ValueError, match="coef must have shape"):
            csr.certify(problem, wrong)
    # weights of any source are certified, also those in the shape of scikit-learn
    assert csr.certify(problem, w[None, :], 0.5, search=False) == csr.certify(problem, w, 0.5, search=False)
