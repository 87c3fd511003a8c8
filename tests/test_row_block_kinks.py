"""Losses with kinks whose rows stay with the blocks: the optimum of memory, and no vector of rows leaves its block."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from test_row_block_scores import PENALTIES, N, Watched, blocks_of, data

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.certificates.row_sums.kept_dual import best_beside, kept_rows
from cvxstructreg.forms.smoothed_kinks import SmoothedRows
from cvxstructreg.row_blocks.block import LostBlockError
from cvxstructreg.row_blocks.engine import Engine
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.row_blocks import kept_multipliers as row_multipliers
from cvxstructreg.solvers.row_blocks.small_models import solved_model
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

SMALL, FEW = 60, 5


def losses():
    _, scores, rng = data()
    y, weights = np.where(scores + rng.logistic(size=N) > 0, 1, -1), rng.uniform(0.5, 2.0, size=N)
    targets = scores + rng.normal(size=N)
    return {
        "hinge": csr.Hinge(y, sample_weight=weights),
        "absolute": csr.Absolute(targets),
        "quantile": csr.Quantile(targets, quantile=0.3, offset=rng.normal(size=N)),
    }


def agree(found, memory):
    gap = max(found.certificate.gap, memory.certificate.gap)
    return abs(found.objective - memory.objective) <= gap + 1e-12 * abs(memory.objective)


@pytest.mark.parametrize(
    ("name", "penalty", "intercept"),
    [
        ("hinge", "l1", True),
        ("hinge", "groups", False),
        ("hinge", "ridge", True),
        ("absolute", "l1", False),
        ("absolute", "box", True),
        ("quantile", "elastic net and groups", True),
    ],
)
def test_a_solve_moves_no_vector_of_rows(name, penalty, intercept):
    X, objective = data()[0], losses()[name] + PENALTIES[penalty]()
    memory = csr.Problem(csr.Linear(X, intercept), objective).solve()
    problem = csr.Problem(csr.Linear(blocks_of(X, Watched()), intercept), objective)
    found = problem.solve("row_multipliers", sample=0)
    assert memory.status == found.status == "optimal" and agree(found, memory)
    assert found.certificate.data.n_rows == N
    problem.model.row_blocks.engine.watching = False  # who asks for the dual point gets it
    u = found.certificate.dual.scores
    assert (u.shape == (N,) and abs(u.sum()) <= 1e-9 * abs(u).sum()) or not intercept


def small(seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((SMALL, FEW)) < 0.7, rng.normal(size=(SMALL, FEW)), 0.0)
    return X, X @ np.array([1.0, -1.0, 0.5, 0.0, 0.0]) + 0.5 * rng.normal(size=SMALL), rng


def pair(X, objective, sizes, intercept=True, engine=None):
    """The problem in memory, and with scores on the workers in blocks of these sizes."""
    ends = np.cumsum(sizes)
    parts = [sp.csr_array(X[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    blocks = csr.RowBlocks(parts, engine=engine or "serial", scores="workers", memory_limit=1.0)
    return csr.Problem(csr.Linear(X, intercept), objective), csr.Problem(csr.Linear(blocks, intercept), objective)


FREE = csr.L1(weights=[0.0, 0.0, 0.5, 0.5, 0.5])
HARD = {
    "blocks of one row": (lambda X, s, rng: csr.Hinge(np.sign(s)) + 0.5 * csr.L1(), [1] * SMALL),
    "one class in each block": (lambda X, s, rng: csr.Hinge(np.sign(s)) + 0.5 * csr.L1(), "sorted"),
    "separable": (lambda X, s, rng: csr.Hinge(np.sign(X[:, 0] + 0.5)) + 0.01 * csr.L1(), [20, 40]),
    "no weights in a block": (
        lambda X, s, rng: csr.Absolute(s, sample_weight=(np.arange(SMALL) >= 20).astype(float)) + 0.3 * csr.L1(),
        [20, 25, 15],
    ),
    "an empty block": (lambda X, s, rng: csr.Quantile(s, quantile=0.9) + 0.3 * csr.L1(), [30, 0, 30]),
    "weights without penalty": (lambda X, s, rng: csr.Absolute(s) + 1.0 * FREE, [30, 30]),
    "hinges and weights without penalty": (lambda X, s, rng: csr.Hinge(np.sign(s)) + 1.0 * FREE, [30, 30]),
    "zero is best": (lambda X, s, rng: csr.Hinge(np.sign(s)) + 100.0 * csr.L1(), [30, 30]),
    "offsets": (
        lambda X, s, rng: csr.Hinge(np.sign(s), offset=3.0 * rng.normal(size=SMALL)) + 0.3 * csr.L1(),
        [25, 35],
    ),
    "far targets": (lambda X, s, rng: csr.Absolute(1e4 + s) + 0.3 * csr.L1(), [25, 35]),
    "a perfect fit": (lambda X, s, rng: csr.Absolute(X @ rng.normal(size=FEW) + 0.5) + 1e-3 * csr.L1(), [25, 35]),
    "groups and ridge": (
        lambda X, s, rng: csr.Hinge(np.sign(s)) + 0.2 * csr.Ridge() + 0.5 * csr.GroupLasso([[0, 1, 2], [2, 3, 4]]),
        [25, 35],
    ),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", HARD)
def test_hard_cases(case, intercept):
    X, scores, rng = small()
    make, sizes = HARD[case]
    if sizes == "sorted":
        order = np.argsort(scores)
        X, scores, sizes = X[order], scores[order], [int(np.sum(scores < 0)), int(np.sum(scores >= 0))]
    memory, problem = pair(X, make(X, scores, rng), sizes, intercept)
    expected = memory.solve(tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        found = problem.solve("row_multipliers", sample=0)
    assert found.objective >= expected.certificate.lower_bound - 1e-9 * abs(expected.objective)
    assert found.certificate.lower_bound <= expected.objective + 1e-9 * abs(expected.objective)
    assert found.status == "optimal" and agree(found, expected)


def test_auto_leaves_the_scores_there():
    X, scores, _ = small()
    memory, problem = pair(X, csr.Hinge(np.sign(scores)) + 0.5 * csr.L1(), [20, 20, 20])
    found = problem.solve()
    assert found.solver == "row_multipliers" and agree(found, memory.solve())
    assert "Cox" in problem.describe()
    path = csr.path(problem, [0.9, 0.5])
    assert all(solution.status == "optimal" for solution in path)


@pytest.mark.parametrize(
    "make",
    [
        lambda s, rng: csr.MulticlassHinge(np.digitize(s, [-0.5, 0.5])) + 1.0 * csr.Ridge(),
        lambda s, rng: csr.Absolute(np.column_stack([s, -s + 0.1 * rng.normal(size=SMALL)])) + 1.0 * csr.L1(),
    ],
    ids=["multiclass hinge", "two outputs"],
)
def test_several_outputs(make):
    X, scores, rng = small()
    memory, problem = pair(X, make(scores, rng), [20, 15, 25])
    found = problem.solve("row_multipliers", tol=1e-3, sample=0)
    assert found.status == "optimal" and agree(found, memory.solve())


def test_sparse_weights_of_several_outputs_leave_the_scores_there():
    X, scores, _ = small()
    memory, problem = pair(X, csr.Multinomial(np.digitize(scores, [-0.5, 0.5])) + 2.0 * csr.L1(), [20, 40])
    problem.model.row_blocks.times = None  # nobody asks for scores
    assert agree(problem.solve("working_columns", tol=1e-3, sample=0), memory.solve())


@pytest.mark.parametrize("make", [lambda s: csr.Hinge(np.sign(s)), lambda s: csr.MulticlassHinge(s > 0)])
def test_any_multipliers_prove_a_bound(make):
    X, scores, rng = small()
    loss = make(scores)
    memory, problem = pair(X, loss + 0.5 * csr.Ridge(), [20, 15, 25])
    best, k = memory.solve(tol=1e-9), memory.n_outputs
    rows = kept_rows(problem.normal_form)
    for size in (0.01, 1.0, 30.0):
        point = size * rng.normal(size=(FEW, k)), rng.normal(size=k)
        rows.smoothing = None
        found = certify_point(problem, *point)
        assert found.objective == pytest.approx(certify_point(memory, *point).objective)
        assert -np.inf < found.lower_bound <= best.objective


def test_smoothed_rows_have_their_derivatives():
    _, scores, rng = small()
    for loss in (csr.Quantile(scores, quantile=0.8), csr.MulticlassHinge(np.digitize(scores, [0.0, 1.0]))):
        rows = SmoothedRows(loss, 2.0)
        z, p = rng.normal(size=(SMALL, loss.n_outputs)), 1e-6 * rng.normal(size=(SMALL, loss.n_outputs))
        rows = rows.recentred(rows.multipliers(z), 3.0)
        change = (rows.value(z + p) - rows.value(z - p)) / 2.0
        assert change == pytest.approx(float(np.vdot(rows.grad(z), p)), rel=1e-6)
        np.testing.assert_allclose(rows.grad(z + p) - rows.grad(z - p), 2.0 * rows.hessp(z, p), atol=1e-9)
        assert rows.value(z) <= loss.value(z) + 1e-12 and rows.misfit(z) >= -1e-12
        assert rows.cost(rows.multipliers(z), False) >= loss.conj(rows.grad(z)) - 1e-9


class Forgetful(Engine):
    """Loses the multipliers of all blocks once."""

    left = 40

    def map(self, function, shared, jobs):
        for job in jobs:
            self.left -= any(isinstance(own, SmoothedRows) for own in job[1])
            if self.left == 0:
                self.left = -1
                raise LostBlockError("the multipliers were lost with their worker")
            yield function(*shared, *job)


def test_lost_multipliers_are_begun_again(monkeypatch):
    from cvxstructreg.row_blocks import known

    monkeypatch.setattr(known, "RETRIES", 0)
    X, scores, _ = small()
    memory, problem = pair(X, csr.Hinge(np.sign(scores)) + 0.5 * csr.L1(), [20, 20, 20], engine=Forgetful())
    found = problem.solve("row_multipliers", sample=0)
    assert problem.model.row_blocks.engine.left < 0 and agree(found, memory.solve())


def forgetful(problem, start, tol):
    """A point with the best multipliers, and then a better point with multipliers next to zero."""
    *_, last = row_multipliers.run(problem, start, tol, sample=0)
    rows = kept_rows(problem.normal_form)
    _, point = best_beside(problem.normal_form, last.theta, last.b, rows.smoothing)
    rows.smoothing = rows.smoothing.recentred(1e-6, (point.a, point.step), point.states)
    yield replace(last, theta=1.001 * last.theta, promising=True, exhausted=False)
    rows.smoothing = rows.smoothed(1e-3)
    yield replace(last, exhausted=True)


def test_the_best_bound_is_kept_when_the_multipliers_change():
    X, scores, _ = small()
    _, problem = pair(X, csr.Hinge(np.sign(scores)) + 0.5 * csr.L1(), [20, 20, 20])
    solver = Solver("forgetful", forgetful, row_multipliers.SOLVER.needs, coordinates=AS_GIVEN, by_passes=True)
    with registry.register(solver):
        found = problem.solve("forgetful", tol=1e-6)
    assert found.status == "optimal" and found.history[0].certificate.relative_gap > 1e-6


def test_a_fine_model_with_uneven_curvatures_takes_dense_systems():
    rng = np.random.default_rng(0)
    R = rng.normal(size=(40, 40)) * np.logspace(0, -4, 40)
    model = csr.Problem(csr.Linear(R, False), csr.Squared(R @ rng.normal(size=40)) + 1e-3 * csr.L1())
    fine, rough = (solved_model(model, accuracy, (np.zeros(40), 0.0)) for accuracy in (1e-11, 1e-3))
    assert fine.status == "optimal" and fine.solver == "semismooth_newton" != rough.solver
