"""Certificates by sums over rows: scores stay where the blocks are, and the proof is the same."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows
from cvxstructreg.row_blocks import engine as engines
from cvxstructreg.row_blocks.engine import Engine

N, D = 1200, 30
STARTS = (0, 500, 700, N)
GROUPS = csr.Groups([np.arange(i, min(i + 4, D)) for i in range(0, D, 2)], n_features=D)
PENALTIES = {
    "l1": lambda: 12.0 * csr.L1(),
    "ridge": lambda: 3.0 * csr.Ridge(),
    "groups": lambda: 8.0 * csr.GroupLasso(GROUPS),
    "elastic net and groups": lambda: 5.0 * csr.L1() + 1.0 * csr.Ridge() + 4.0 * csr.GroupLasso(GROUPS),
    "box": lambda: csr.Box(-0.5, 0.4),
}


def data():
    rng = np.random.default_rng(0)
    X = sp.random_array((N, D), density=0.3, rng=rng, format="csr")
    return X, 3.0 * (X[:, :4].sum(axis=1) - X[:, 4:8].sum(axis=1)), rng


def losses():
    _, scores, rng = data()
    y, weights = np.where(scores + rng.logistic(size=N) > 0, 1, -1), rng.uniform(0.5, 2.0, size=N)
    return {
        "logistic": csr.Logistic(y, sample_weight=weights),
        "squared": csr.Squared(scores + rng.normal(size=N)),
        "huber": csr.Huber(scores + rng.standard_t(2, size=N)),
        "poisson": csr.Poisson(rng.poisson(np.exp(0.3 * scores)), offset=rng.normal(size=N)),
        "squared hinge": csr.SquaredHinge(y),
        "gamma": csr.Gamma(np.exp(0.2 * scores) * rng.gamma(2.0, size=N)),
        "tweedie": csr.Tweedie(rng.poisson(np.exp(0.3 * scores)).astype(float), power=1.5),
    }


class Watched(Engine):
    """Refuses results with an entry for each row of a block, and counts what leaves the blocks."""

    watching, numbers = True, 0

    def map(self, function, shared, jobs):
        for seen in super().map(function, shared, jobs):
            self.look(seen.result)
            yield seen

    def map_kept(self, function, shared, jobs, kept):
        for seen in super().map(function, shared, jobs):
            seen.result, state = seen.result
            assert len(state) in np.diff(STARTS)
            kept.append(state)
            self.look(seen.result)
            yield seen

    def look(self, result):
        if isinstance(result, tuple | list):
            for part in result:
                self.look(part)
        elif isinstance(result, np.ndarray) and self.watching:
            assert not set(result.shape) & set(np.diff(STARTS)), "a vector of rows has left its block"


def blocks_of(X, engine="serial", scores="workers"):
    return csr.RowBlocks([X[a:b] for a, b in pairwise(STARTS)], engine=engine, scores=scores)


def problem_of(name, penalty, engine, intercept=True):
    return csr.Problem(csr.Linear(blocks_of(data()[0], engine), intercept), losses()[name] + PENALTIES[penalty]())


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", losses())
def test_the_certificate_is_that_of_the_data_in_memory(name, penalty, intercept):
    memory = csr.Problem(csr.Linear(data()[0], intercept), losses()[name] + PENALTIES[penalty]())
    engine, rng = Watched(), np.random.default_rng(1)
    problem, b = problem_of(name, penalty, engine, intercept), np.array([0.2 if intercept else 0.0])
    best = memory.solve(tol=1e-9)
    for theta in (np.zeros(D), 0.1 * rng.normal(size=D).clip(-4.0, 4.0), best.coef):
        engine.watching = True
        first, second = (certify_point(each, theta[:, None], b) for each in (memory, problem))
        assert first.kind == second.kind == "duality_gap" and second.data.n_rows == N
        np.testing.assert_allclose(first.objective, second.objective, rtol=1e-12)
        np.testing.assert_allclose(first.lower_bound, second.lower_bound, rtol=1e-8)
        engine.watching = False  # who asks for the dual point gets it
        if first.dual is not None:
            np.testing.assert_allclose(first.dual.scores, second.dual.scores, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("penalty", ["l1", "groups", "elastic net and groups"])
@pytest.mark.parametrize("name", losses())
def test_a_solve_moves_no_vector_of_rows(name, penalty):
    memory = csr.Problem(csr.Linear(data()[0]), losses()[name] + PENALTIES[penalty]()).solve()
    problem = problem_of(name, penalty, Watched())
    found = problem.solve("working_columns", max_passes=30, sample=0)
    assert memory.status == found.status == "optimal"
    assert abs(memory.objective - found.objective) <= max(memory.certificate.gap, found.certificate.gap)
    assert found.certificate.data.n_blocks == 3


def test_auto_takes_a_solver_that_leaves_scores_where_they_are():
    blocks = blocks_of(data()[0])
    blocks.memory_limit = 1.0  # so the data do not fit
    problem = csr.Problem(csr.Linear(blocks), losses()["logistic"] + PENALTIES["l1"]())
    assert problem.solve().solver == "working_columns"
    assert "scores stay with the blocks" in problem.describe()
    here = csr.Problem(csr.Linear(blocks_of(data()[0], scores="here")), losses()["logistic"] + PENALTIES["l1"]())
    assert "scores stay" not in here.describe()


def test_losses_that_couple_rows_bring_their_scores_here():
    X, _, rng = data()
    objective = csr.Cox(rng.exponential(size=N)) + 20.0 * csr.L1()
    problem = csr.Problem(csr.Linear(blocks_of(X), intercept=False), objective)
    memory = csr.Problem(csr.Linear(X, intercept=False), objective).solve()
    assert kept_rows(problem.normal_form) is None
    assert abs(problem.solve().objective - memory.objective) <= 1e-5 * memory.objective
    assert "bring their scores here" in problem.describe()


def test_the_default_depends_on_rows_and_engine(monkeypatch):
    X = data()[0]
    remote = Engine()
    remote.remote = True
    assert not blocks_of(X, remote, None).keeps_scores
    monkeypatch.setattr(engines, "KEEP_FROM", N)
    assert blocks_of(X, remote, None).keeps_scores and not blocks_of(X, "serial", None).keeps_scores
    assert not blocks_of(X, remote, "here").keeps_scores
    assert blocks_of(X).take([0, 2]).keeps_scores and not blocks_of(X, remote, "here").take([0, 2]).keeps_scores
    with pytest.raises(ValueError, match="scores must be 'here' or 'workers', got 'there'"):
        blocks_of(X, "serial", "there")
