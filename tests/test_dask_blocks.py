"""Blocks of rows on a Dask cluster: the same optimum, and a killed worker does not matter."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows, kept_value
from cvxstructreg.certificates.row_sums.refitting import RowPoint
from cvxstructreg.row_blocks import dask_engine

distributed = pytest.importorskip("distributed")
array = pytest.importorskip("dask.array")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

N, D = 200, 12
RNG = np.random.default_rng(0)
X = np.where(RNG.random((N, D)) < 0.4, RNG.normal(size=(N, D)), 0.0)
Y = np.where(X[:, :3].sum(axis=1) + RNG.normal(size=N) > 0, 1, -1)
PENALTY = 0.5 * csr.L1() + 0.5 * csr.GroupLasso(csr.Groups([[0, 1, 2], [2, 3, 4]], n_features=D))
OBJECTIVE, KINKS = csr.Logistic(Y) + PENALTY, csr.Hinge(Y) + PENALTY


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def agrees(found, objective=OBJECTIVE):
    expected = csr.Problem(csr.Linear(X), objective).solve()
    gap = max(found.certificate.gap, expected.certificate.gap)
    return found.status == "optimal" and abs(found.objective - expected.objective) <= gap


def test_every_kind_of_data_on_a_cluster(client, tmp_path):
    parts = [X[first : first + 30] for first in range(0, N, 30)]
    path = csr.io.write_blocks(tmp_path, sp.csr_array(X), rows_per_block=30)
    sources = {
        "folder": csr.RowBlocks(path, engine=client),
        "list": csr.RowBlocks(parts, engine="dask"),
        "dask.array": csr.RowBlocks(array.from_array(X, chunks=(30, D))),
        "futures": csr.RowBlocks(client.scatter(parts)),
        "futures of pairs": csr.RowBlocks(client.scatter([(part, Y[30 * i :][:30]) for i, part in enumerate(parts)])),
    }
    np.testing.assert_array_equal(sources["futures of pairs"].y, Y)
    for name, blocks in sources.items():
        for solver in ("gram_newton", "working_columns") if name in ("folder", "list") else ("gram_newton",):
            assert agrees(csr.Problem(csr.Linear(blocks), OBJECTIVE).solve(solver)), (name, solver)
        assert blocks.engine.remote and blocks.record.n_rows == N, name
    with pytest.raises(ValueError, match="split into 2 parts along the columns"):
        csr.Linear(array.from_array(X, chunks=(30, D // 2)))


def test_errors_of_workers_name_the_block(client, tmp_path):
    path = csr.io.write_blocks(tmp_path, sp.csr_array(X), rows_per_block=50)
    (path / "00002.data.npy").unlink()
    with pytest.raises(csr.BlockError, match=r"block 2 of .* is missing"):
        csr.RowBlocks(path, engine=client) @ np.ones(D)


def test_weights_of_many_features_are_sent_once_to_each_worker(client):
    wide = sp.random_array((6, 50_000), density=1e-3, rng=0, format="csr")
    blocks = csr.RowBlocks([wide[:2], wide[2:5], wide[5:]], engine=client)
    theta = np.linspace(-1.0, 1.0, 50_000)
    assert isinstance(blocks.engine._sent((None, (theta,), True)), distributed.Future)
    np.testing.assert_allclose(blocks @ theta, wide @ theta, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "scores", "solver", "objective"),
    [
        ("folder", "here", "gram_newton", OBJECTIVE),
        ("list", "here", "gram_newton", OBJECTIVE),
        ("list", "workers", "gram_columns", OBJECTIVE),
        pytest.param("list", "workers", "row_multipliers", KINKS, marks=pytest.mark.slow),
    ],
)
def test_a_killed_worker_does_not_change_the_result(client, tmp_path, kind, scores, solver, objective):
    """Blocks of files are read by another worker; matrices that were sent from here are sent again."""
    size = 10 if objective is OBJECTIVE else 25  # a solve with kinks sends hundreds of tasks for each block
    parts = [X[first : first + size] for first in range(0, N, size)]
    source = csr.io.write_blocks(tmp_path, map(sp.csr_array, parts)) if kind == "folder" else parts
    killed = []

    def kill(record):
        if not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    blocks = csr.RowBlocks(source, engine=client, scores=scores)
    assert agrees(csr.Problem(csr.Linear(blocks), objective).solve(solver, callback=kill), objective)
    assert killed and blocks.record.n_rows == N


def test_futures_that_are_lost_are_named(client):
    """Data that only a lost worker had cannot be made again."""
    address, number = next(iter(client.run(os.getpid).items()))
    blocks = csr.RowBlocks(client.scatter([X[:50], X[50:]], workers=[address], hash=False))
    os.kill(number, signal.SIGKILL)
    with pytest.raises(csr.BlockError, match=r"future [01] was lost with its worker"):
        blocks @ np.ones(D)


def test_scores_that_were_lost_with_a_worker_are_made_again(client):
    """The worker had the only copy of a matrix and of its scores, and the scores of the same point are needed again."""
    blocks = csr.RowBlocks([X[:50], X[50:120], X[120:]], engine=client, scores="workers")
    rows = kept_rows(csr.Problem(csr.Linear(blocks), OBJECTIVE).normal_form)
    theta = np.linspace(-1.0, 1.0, D)[:, None]
    state, b = rows.state(theta), np.zeros(1)
    value, passes = kept_value(rows, theta, b), blocks.meter.passes
    (address, *_) = next(iter(client.who_has([state[0]]).values()))
    os.kill(client.run(os.getpid)[address], signal.SIGKILL)
    assert kept_value(rows, theta, b) == pytest.approx(value, rel=1e-14)
    assert rows.state(theta) is state and blocks.meter.passes <= passes + 2  # a pass of its own, if Dask could not
    point = RowPoint(rows, (state, rows.nothing), b[None, :], False)
    expected = np.asarray(X.T @ rows.loss.grad(X @ theta))
    np.testing.assert_allclose(point.pull(), expected, atol=1e-9)


def test_scores_of_data_that_cannot_be_made_again_name_the_block(client):
    address, number = next(iter(client.run(os.getpid).items()))
    futures = client.scatter([X[:50], X[50:]], workers=[address], hash=False)
    blocks = csr.RowBlocks(futures, engine=client, scores="workers")
    rows = kept_rows(csr.Problem(csr.Linear(blocks), OBJECTIVE).normal_form)
    theta = np.ones((D, 1))
    kept_value(rows, theta, np.zeros(1))
    os.kill(number, signal.SIGKILL)
    with pytest.raises(csr.BlockError, match=r"future [01] was lost with its worker"):
        kept_value(rows, theta, np.zeros(1))


def test_a_cluster_without_workers_is_an_error_and_not_an_endless_wait(monkeypatch):
    monkeypatch.setattr(dask_engine, "POLL", 0.1)
    monkeypatch.setattr(dask_engine, "NO_WORKERS", 0.2)
    cluster = distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0")
    named = pytest.raises(csr.BlockError, match=r"block 0 was not processed: the cluster has had no workers for")
    with cluster, distributed.Client(cluster, set_as_default=False) as nobody, named:
        csr.RowBlocks([lambda: X], engine=nobody)


@pytest.mark.parametrize(
    ("objective", "solver"),
    [(OBJECTIVE, "working_columns"), pytest.param(KINKS, "row_multipliers", marks=pytest.mark.slow)],
)
def test_scores_stay_on_the_workers(client, monkeypatch, objective, solver):
    parts = [X[:80], X[80:140], X[140:]]
    blocks = csr.RowBlocks(parts, engine=client, scores="workers")
    sizes: list[int] = []
    result = dask_engine.Dask._result

    def watched(self, *args):
        seen = result(self, *args)
        leaves = dask_engine._leaves(seen.result)
        sizes.extend(part.size for part in leaves if isinstance(part, np.ndarray))
        return seen

    monkeypatch.setattr(dask_engine.Dask, "_result", watched)
    problem = csr.Problem(csr.Linear(blocks), objective)
    found = problem.solve()
    assert found.solver == solver and agrees(found, objective)
    assert found.certificate.data.n_rows == N and found.certificate.data.n_blocks == 3
    assert sizes and not set(sizes) & {60, 80, N}  # no result has a number for each row
    memory = csr.certify(csr.Problem(csr.Linear(X), objective), found.coef, found.intercept)
    assert found.certificate.lower_bound == pytest.approx(memory.lower_bound, rel=1e-6)
    assert found.certificate.dual.scores.shape == (N,)
