"""Sums over rows for several outputs and for weights without penalty: the proofs of the data in memory."""

import numpy as np
import pytest
from test_row_block_scores import PENALTIES, D, N, Watched, blocks_of, data, losses

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.certificates.directions import no_minimiser
from cvxstructreg.certificates.directions.free_directions import free_reach
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows
from cvxstructreg.row_blocks.sampling import loss_of_rows

K = 3
FREE = np.r_[np.zeros(3), np.full(D - 3, 9.0)]


def outputs():
    X, _, rng = data()
    W = np.zeros((D, K))
    W[:6] = 2.0 * rng.normal(size=(6, K))
    F = X @ W
    classes = (F + rng.gumbel(size=F.shape)).argmax(axis=1)
    weights = rng.uniform(0.5, 2.0, size=N)
    return {
        "multinomial": csr.Multinomial(classes, sample_weight=weights),
        "tasks": csr.MultiTask(F + rng.normal(size=F.shape)),
        "weighted tasks": csr.MultiTask(F + rng.normal(size=F.shape), sample_weight=weights, task_weight=[1.0, 0.5, 2]),
    }


OUTPUTS = outputs()


def pair(objective, intercept=True):
    X, engine = data()[0], Watched()
    memory = csr.Problem(csr.Linear(X, intercept), objective)
    return memory, csr.Problem(csr.Linear(blocks_of(X, engine), intercept), objective), engine


def same_proofs(memory, problem, engine, points):
    assert kept_rows(problem.normal_form) is not None
    for theta, b in points:
        engine.watching = True
        first, second = (certify_point(each, theta, b) for each in (memory, problem))
        assert first.kind == second.kind == "duality_gap" and second.data.n_rows == N
        np.testing.assert_allclose(first.objective, second.objective, rtol=1e-12)
        np.testing.assert_allclose(first.lower_bound, second.lower_bound, rtol=1e-7)
        engine.watching = False  # who asks for the dual point gets it
        if first.dual is not None:
            np.testing.assert_allclose(first.dual.scores, second.dual.scores, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("name", "penalty"),
    [("multinomial", "l1"), ("multinomial", "groups"), ("tasks", "box"), ("weighted tasks", "ridge")],
)
def test_several_outputs(name, penalty, intercept):
    memory, problem, engine = pair(OUTPUTS[name] + PENALTIES[penalty](), intercept)
    rng, best = np.random.default_rng(1), memory.solve(tol=1e-9)
    b = rng.normal(size=K) if intercept else np.zeros(K)
    thetas = np.zeros((D, K)), 0.1 * rng.normal(size=(D, K)).clip(-4.0, 4.0)
    points = [*((theta, b) for theta in thetas), memory.shaped(best.coef, best.intercept)]
    same_proofs(memory, problem, engine, points)
    assert null_point(problem).objective == pytest.approx(null_point(memory).objective, rel=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["logistic", "poisson", "squared hinge", "multinomial", "weighted tasks"])
def test_weights_without_penalty(name, intercept):
    objective = {**losses(), **OUTPUTS}[name] + csr.L1(weights=FREE)
    memory, problem, engine = pair(objective, intercept)
    rng, best = np.random.default_rng(1), memory.solve(tol=1e-9)
    k = memory.n_outputs
    points = [(0.1 * rng.normal(size=(D, k)), np.zeros(k)), memory.shaped(best.coef, best.intercept)]
    same_proofs(memory, problem, engine, points)
    engine.watching = True
    first, second = null_point(memory), null_point(problem)
    assert second.objective == pytest.approx(first.objective, rel=1e-10)
    np.testing.assert_allclose(first.theta, second.theta, rtol=1e-5, atol=1e-6)


def test_weights_without_penalty_are_found_where_the_blocks_are(monkeypatch):
    monkeypatch.setattr(no_minimiser, "SMALL", 0)  # small data are searched for a direction of escape
    memory, problem, _ = pair(losses()["logistic"] + csr.L1(weights=FREE))
    found, expected = problem.solve("working_columns", max_passes=40, sample=0), memory.solve()
    assert found.status == "optimal"
    assert abs(found.objective - expected.objective) <= max(found.certificate.gap, expected.certificate.gap)


def test_weights_with_one_bound_only_bring_the_scores_here():
    _, problem, _ = pair(losses()["logistic"] + csr.Box(lower=0.0))
    assert kept_rows(problem.normal_form) is None


def test_a_block_with_as_many_rows_as_classes():
    loss = csr.Multinomial(["c", "a", "b"])
    part = loss_of_rows(loss, slice(0, 1))
    assert part.n_outputs == 3 and part.y.shape == (1, 3)


@pytest.mark.parametrize("near", [1e-3, 1e-9])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_without_penalty_whose_scores_nearly_cancel(near, intercept):
    """Products of scores cannot tell the two columns apart if near is 1e-9: the scores themselves must."""
    X = data()[0].toarray()
    X[:, 1] = X[:, 0] + near * X[:, 1]
    objective = losses()["squared"] + csr.L1(weights=FREE)
    memory = csr.Problem(csr.Linear(X, intercept), objective)
    problem = csr.Problem(csr.Linear(blocks_of(X), intercept), objective)
    assert kept_rows(problem.normal_form) is not None
    theta, b = np.zeros((D, 1)), np.zeros(1)
    first, second = (certify_point(each, theta, b) for each in (memory, problem))
    reaches = [free_reach(each.normal_form, theta)[:2] for each in (memory, problem)]
    np.testing.assert_allclose(*reaches, rtol=1e-3)
    # round-off in products with X moves a bound in proportion to how far the weights may move
    rtol = 32.0 * np.finfo(float).eps * reaches[0].max()
    np.testing.assert_allclose(first.lower_bound, second.lower_bound, rtol=rtol)
    assert reaches[0].min() > 0.1 / (near * np.sqrt(N))
