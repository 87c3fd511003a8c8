"""What every loss must have: derivatives or kinks, conjugate, prox, offsets, weights, rows, and its convention."""

import pickle

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg import losses

N, D = 12, 3
RNG = np.random.default_rng(2)
X = RNG.normal(size=(N, D))
TWO, THREE, NUMBERS = np.arange(N) % 2, np.arange(N) % 3, RNG.normal(size=N)
MAKE = {
    "Absolute": lambda **more: csr.Absolute(NUMBERS, **more),
    "Cox": lambda **more: csr.Cox(1.0 + THREE, event=TWO, **more),
    "Gamma": lambda **more: csr.Gamma(1.0 + THREE, **more),
    "Hinge": lambda **more: csr.Hinge(TWO, **more),
    "Huber": lambda **more: csr.Huber(NUMBERS, delta=0.7, **more),
    "Logistic": lambda **more: csr.Logistic(TWO, **more),
    "MultiTask": lambda **more: csr.MultiTask(X[:, :2], **more),
    "MulticlassHinge": lambda **more: csr.MulticlassHinge(THREE, **more),
    "Multinomial": lambda **more: csr.Multinomial(THREE, **more),
    "Poisson": lambda **more: csr.Poisson(THREE, **more),
    "Quantile": lambda **more: csr.Quantile(NUMBERS, quantile=0.3, **more),
    "Squared": lambda **more: csr.Squared(NUMBERS, **more),
    "SquaredHinge": lambda **more: csr.SquaredHinge(TWO, **more),
    "Tweedie": lambda **more: csr.Tweedie(THREE, **more),
}


def test_every_loss_is_here():
    assert set(MAKE) == set(losses.__all__)


@pytest.mark.parametrize("name", MAKE)
def test_the_parts_of_a_loss(name):
    loss = MAKE[name]()
    assert loss.can("value", "conj", "prox", "rebalance")
    assert loss.can("grad", "hessp") or loss.can("dual_box") or name == "MulticlassHinge"
    found = type(loss).examples(np.random.default_rng(0))
    assert any(example.offset is not None for example, _ in found)
    assert any(np.any(example.sample_weight != 1) for example, _ in found)
    assert "offset" in type(loss).__doc__ and "Examples" in type(loss).__doc__
    model = csr.Linear(X, intercept=not loss.ignores_constants)
    assert type(loss).convention in csr.Problem(model, loss + csr.Ridge()).describe()


@pytest.mark.parametrize("name", MAKE)
def test_offsets_weights_and_rows_are_what_they_say(name):
    """Offsets add to the scores, weight zero leaves a row out, and rows= says where the labels belong."""
    loss = MAKE[name]()
    F = RNG.normal(size=(N, loss.n_outputs))
    offset = RNG.normal(size=F.shape)
    assert MAKE[name](offset=offset).value(F) == pytest.approx(loss.value(F + offset), rel=1e-12)
    weights = np.where(np.arange(N) == 4, 0.0, 1.0)  # censored in the survival times, so no event is lost
    other = F.copy()
    other[4] += 1.0
    assert MAKE[name](sample_weight=weights).value(F) == MAKE[name](sample_weight=weights).value(other)
    order = RNG.permutation(N + 3)[:N]
    larger = np.zeros((N + 3, D))
    larger[order] = X
    intercept = not loss.ignores_constants
    plain = csr.Problem(csr.Linear(X, intercept=intercept), loss + csr.Ridge())
    moved = csr.Problem(csr.Linear(larger, intercept=intercept), MAKE[name](rows=order) + csr.Ridge())
    theta, b = RNG.normal(size=(D, loss.n_outputs)), np.zeros(loss.n_outputs)
    assert moved.value_at(theta, b) == pytest.approx(plain.value_at(theta, b), rel=1e-12)


@pytest.mark.parametrize("kind", [csr.Logistic, csr.Hinge, csr.SquaredHinge])
@pytest.mark.parametrize("more", [{}, {"classes": (0, 1)}])
def test_three_labels_name_the_loss_for_them(kind, more):
    with pytest.raises(ValueError, match=r"for two classes: use Multinomial\(y\)"):
        kind(THREE, **more)


@pytest.mark.parametrize("kind", [csr.Logistic, csr.Hinge, csr.SquaredHinge])
def test_an_offset_of_zeros_is_an_offset(kind):
    """One class is allowed with an offset, and the loss can be copied and solved."""
    for labels, weights in (([1] * 5, None), ([1, 1, 0, 1, 1], [1.0, 1.0, 0.0, 1.0, 1.0])):
        loss = kind(labels, classes=(0, 1), offset=np.zeros(5), sample_weight=weights)
        assert loss.offset is not None
        again = pickle.loads(pickle.dumps(loss))
        assert again.offset is not None and again.value(np.zeros((5, 1))) > 0
        problem = csr.Problem(csr.Linear(RNG.normal(size=(5, 2)), intercept=False), loss + csr.Ridge())
        assert problem.solve().status == "optimal"
    assert kind([0, 1], offset=np.zeros(2)).offset is None
    with pytest.raises(ValueError, match="only one class"):
        kind([1] * 5, classes=(0, 1))
