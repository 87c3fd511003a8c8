"""Total variation, trend filtering and Huber functions of differences: values, proofs, known answers, bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from penalty_problems import LOSSES, require_proof_and_reference, small_problem

import cvxstructreg as csr

GRAPH = csr.Graph.from_edges([(i, i + 1) for i in range(11)] + [(0, 5)], [1.0] * 11 + [2.0])
PENALTIES = {
    "signal": csr.TotalVariation(12),
    "image": csr.TotalVariation((3, 4)),
    "image, anisotropic": csr.TotalVariation((3, 4), isotropic=False),
    "volume": csr.TotalVariation((2, 2, 3)),
    "lines": csr.TrendFilter(2),
    "parabolas": csr.TrendFilter(3),
    "trend on a graph": csr.TrendFilter(2, GRAPH),
}
SMOOTH = {
    "huber on a graph": 2.0 * csr.HuberDifferences(GRAPH, M=0.3),
    "huber in an image": 2.0 * csr.HuberDifferences((3, 4)),
    "huber + L1": 2.0 * csr.HuberDifferences(12, M=0.1) + csr.L1(),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", SMOOTH)
def test_auto_proves_every_loss_with_huber_differences(name, loss):
    require_proof_and_reference(small_problem(loss, SMOOTH[name]))


def test_huber_differences_lie_between_laplacian_and_fused_lasso():
    w = np.random.default_rng(0).normal(size=12)
    assert csr.HuberDifferences(GRAPH, M=1e3)(w) == pytest.approx(csr.Laplacian(GRAPH)(w))
    M = 1e-8
    assert csr.HuberDifferences(GRAPH, M)(w) / (2.0 * M) == pytest.approx(csr.FusedLasso(GRAPH)(w))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", PENALTIES)
def test_auto_proves_every_loss_with_every_penalty(name, loss):
    solution = require_proof_and_reference(small_problem(loss, 2.0 * PENALTIES[name]))
    assert solution.solver in ("interior_point", "semismooth_newton")


@pytest.mark.parametrize("loss", LOSSES)
def test_several_outputs_of_an_image(loss):
    require_proof_and_reference(small_problem(loss, 2.0 * csr.TotalVariation((3, 4)) + 0.1 * csr.Ridge(), k=3))


def test_total_variation_by_numpy():
    rng = np.random.default_rng(0)
    for shape in ((5,), (3, 4), (2, 3, 4), (2, 2, 2, 2), (1, 4, 1)):
        w = rng.normal(size=shape)
        steps = [np.zeros(shape) for _ in shape]
        for axis, step in enumerate(steps):
            inside = tuple(slice(-1) if a == axis else slice(None) for a in range(len(shape)))
            step[inside] = np.diff(w, axis=axis)
        expected = [np.sqrt(sum(step**2 for step in steps)).sum(), sum(np.abs(step).sum() for step in steps)]
        found = [csr.TotalVariation(shape, isotropic=isotropic)(w.ravel()) for isotropic in (True, False)]
        assert found == pytest.approx(expected)


def test_anisotropic_total_variation_has_one_row_for_each_edge():
    outer, K = csr.TotalVariation((3, 4), isotropic=False).split()
    assert isinstance(outer, csr.L1) and sp.issparse(K) and K.shape == (2 * 4 + 3 * 3, 12)
    assert np.all(np.diff(K.indptr) == 2)


def test_trends_of_order_one_are_total_variation_and_fused_lasso():
    w = np.random.default_rng(1).normal(size=12)
    assert csr.TrendFilter(1)(w) == pytest.approx(csr.TotalVariation(12)(w))
    assert csr.TrendFilter(1, GRAPH)(w) == pytest.approx(csr.FusedLasso(GRAPH)(w))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polynomials_cost_nothing(order):
    t = np.linspace(-1.0, 1.0, 20)
    smooth = sum(t**power for power in range(order))
    assert csr.TrendFilter(order)(smooth) == pytest.approx(0.0, abs=1e-12)
    assert csr.TrendFilter(order)(t**order) > 1e-3


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: csr.TotalVariation((3, 0)), r"positive integers.*\(rows, columns\)"),
        (lambda: csr.TotalVariation(4.0), "positive integers"),
        (lambda: csr.TotalVariation(()), "no neighbours"),
        (lambda: csr.TotalVariation((1, 1)), "no neighbours"),
        (lambda: csr.TotalVariation(GRAPH), r"FusedLasso\(graph\)"),
        (lambda: csr.TotalVariation(3, isotropic="yes"), "True or False"),
        (lambda: csr.HuberDifferences(GRAPH, M=0.0), "positive"),
        (lambda: csr.HuberDifferences("x"), "pass d"),
        (lambda: csr.HuberDifferences(csr.Graph([[0, 1.0], [0, 0]])), "symmetrized"),
        (lambda: csr.TrendFilter(0), "at least 1"),
        (lambda: csr.TrendFilter(2, np.eye(3)), "edge to itself"),
        (lambda: csr.TrendFilter(2, "x"), r"pass Graph\(W\)"),
        (lambda: csr.TrendFilter(2, csr.Graph([[0, 1.0], [0, 0]])), "symmetrized"),
        (lambda: csr.TrendFilter(3)([1.0, 2.0, 3.0]), "lower the order"),
        (lambda: small_problem("squared", csr.TrendFilter(12)), "lower the order"),
        (lambda: small_problem("squared", csr.TotalVariation((3, 5))), "acts on 15 rows"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
