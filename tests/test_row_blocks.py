"""Data in blocks of rows: every kind of source gives the same numbers and the same certified optimum as memory."""

from __future__ import annotations

import os
import signal
import warnings
from concurrent.futures import Future

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import delayed, parallel_config

import cvxstructreg as csr
from cvxstructreg.row_blocks import engine
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.row_blocks import screening
from cvxstructreg.solvers.row_blocks.column_search import Search

N, D, AT_ONCE = 90, 12, 25


def matrix(seed=0, n=N, d=D):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.4, rng.normal(size=(n, d)), 0.0)


def split(X, rows=AT_ONCE):
    return [X[first : first + rows] for first in range(0, X.shape[0], rows)]


X = matrix()
TRUTH = np.where(np.arange(D) < 4, 1.5, 0.0)
SCORES = X @ TRUTH + 0.5 + np.random.default_rng(1).normal(size=N)
Y = np.where(SCORES > 0.5, 1, -1)
CLASSES = np.digitize(SCORES, [0.0, 1.5])
DISJOINT = csr.Groups([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], n_features=D)
OVERLAPPING = csr.Groups([[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9], [9, 10, 11]], n_features=D)
CHAIN = csr.Graph.from_edges([(j, j + 1) for j in range(D - 1)], n_nodes=D)


def part_of(X, first):
    return X[first : first + AT_ONCE]


def finished(value):
    future = Future()
    future.set_result(value)
    return future


def sources(folder):
    """The same rows as every kind of source."""
    sparse = sp.csr_array(X)
    np.save(folder / "all.npy", X)
    mapped = np.load(folder / "all.npy", mmap_mode="r")
    return {
        "dense list": split(X),
        "sparse list": split(sparse),
        "memory map": split(mapped),
        "dense folder": csr.io.write_blocks(folder / "dense", X, rows_per_block=AT_ONCE),
        "sparse folder": csr.io.write_blocks(folder / "sparse", sparse, rows_per_block=AT_ONCE),
        "functions": [lambda part=part: part for part in split(X)],
        "iterator": lambda: iter(split(sparse)),
        "calls": [delayed(part_of)(X, first) for first in range(0, N, AT_ONCE)],
        "futures": [finished(part) for part in split(X)],
        "pairs": list(zip(split(sparse), split(Y), strict=True)),
        "one matrix": [X],
    }


def by_passes(source, engine="serial", limit=14_000):
    """Blocks that do not fit into memory."""
    return csr.RowBlocks(source, engine=engine, memory_limit=limit)


def agree(one, other):
    gap = max(one.certificate.gap, other.certificate.gap)
    return abs(one.objective - other.objective) <= gap + 1e-12 * abs(one.objective)


def test_products_of_all_sources_equal_those_of_memory(tmp_path):
    rng = np.random.default_rng(2)
    theta, u, chosen = rng.normal(size=(D, 2)), rng.normal(size=(N, 2)), [7, 0, 3]
    for name, source in sources(tmp_path).items():
        blocks = csr.RowBlocks(source, engine="serial")
        assert blocks.shape == (N, D), name
        np.testing.assert_allclose(blocks @ theta, X @ theta, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(blocks @ theta[:, 0], X @ theta[:, 0], atol=1e-12, err_msg=name)
        np.testing.assert_allclose(blocks.T @ u, X.T @ u, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(abs(blocks).T @ abs(u), abs(X).T @ abs(u), atol=1e-12, err_msg=name)
        np.testing.assert_allclose(blocks.squared_columns(), (X**2).sum(axis=0), atol=1e-12, err_msg=name)
        columns = blocks[:, chosen]
        columns = columns.toarray() if sp.issparse(columns) else columns
        np.testing.assert_allclose(columns, X[:, chosen], err_msg=name)
        selected = blocks.select(chosen)
        np.testing.assert_allclose(selected @ theta[:3], X[:, chosen] @ theta[:3], atol=1e-12, err_msg=name)
        assert blocks.record.n_rows == N


@pytest.mark.parametrize("name", ["serial", "threads", "joblib"])
def test_engines_give_the_same_numbers(tmp_path, name):
    path = csr.io.write_blocks(tmp_path, sp.csr_array(X), y=Y, rows_per_block=10)
    problem = csr.Problem(csr.Linear(by_passes(path, name)), csr.Logistic(Y) + 0.5 * csr.L1())
    expected = csr.Problem(csr.Linear(by_passes(path)), csr.Logistic(Y) + 0.5 * csr.L1()).solve()
    with parallel_config(backend="threading", n_jobs=2):  # starting processes takes seconds
        found = problem.solve()
    np.testing.assert_array_equal(found.coef, expected.coef)  # sums are in the order of the blocks
    assert found.n_passes == expected.n_passes > 0


def test_labels_and_weights_come_with_the_blocks():
    weights = np.linspace(0.5, 1.5, N)
    triples = list(zip(split(X), split(Y), split(weights), strict=True))
    given = {
        "list": triples,
        "functions": [lambda triple=triple: triple for triple in triples],
        "iterator": lambda: iter(triples),
        "futures": [finished(triple) for triple in triples],
    }
    expected = csr.Problem(csr.Linear(X), csr.Logistic(Y, sample_weight=weights) + 0.3 * csr.L1()).solve()
    for name, source in given.items():
        blocks = by_passes(source, limit=100_000)
        np.testing.assert_array_equal(blocks.y, Y, err_msg=name)
        np.testing.assert_array_equal(blocks.sample_weight, weights, err_msg=name)
        loss = csr.Logistic(blocks.y, sample_weight=blocks.sample_weight)
        for solver in ("gram_newton", "working_columns"):
            assert agree(csr.Problem(csr.Linear(blocks), loss + 0.3 * csr.L1()).solve(solver), expected), (name, solver)
    short = [(X[:10], Y[:10]), (X[10:20], Y[10:19])]
    for source in (short, [lambda pair=pair: pair for pair in short], lambda: iter(short)):
        with pytest.raises(csr.BlockError, match=r"block 1.* has 10 rows, but 9 labels"):
            csr.RowBlocks(source, engine="serial")
    failed = Future()
    failed.set_exception(OSError("no such bucket"))
    with pytest.raises(csr.BlockError, match=r"block 1 cannot be read: its future failed with .*no such bucket"):
        csr.RowBlocks([X[:5], failed])


def killed_once(mark):
    """A block whose first reader is killed."""
    if not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return X


def always_killed():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed by signals")
@pytest.mark.filterwarnings("ignore:A worker stopped:UserWarning")
def test_killed_workers_of_joblib(tmp_path, monkeypatch):
    """Blocks in progress are processed again; if workers die again and again, the error names these blocks."""
    make = [lambda: X, delayed(killed_once)(str(tmp_path / "mark")), lambda: 2.0 * X]
    with parallel_config(n_jobs=2):
        blocks = csr.RowBlocks(make, engine="joblib")
        np.testing.assert_allclose(blocks @ np.eye(D), np.vstack([X, X, 2.0 * X]))
        assert (tmp_path / "mark").exists()
        monkeypatch.setattr(engine, "RETRIES", 0)
        with pytest.raises(csr.BlockError, match=r"workers were killed 1 times while they processed .*block 1"):
            csr.RowBlocks([lambda: X, always_killed, lambda: X], engine="joblib")


def test_all_sources_are_solved_to_the_same_optimum(tmp_path):
    objective = csr.Logistic(Y) + 0.3 * csr.L1() + 0.5 * csr.GroupLasso(OVERLAPPING)
    expected = csr.Problem(csr.Linear(X), objective).solve()
    for name, source in sources(tmp_path).items():
        model = csr.Linear(by_passes(source))
        found = csr.Problem(model, objective).solve()
        assert found.status == "optimal" and agree(found, expected), name
        assert found.certificate.data.n_rows == N, name
    assert csr.Linear(split(X)).n_rows == csr.Linear(tmp_path / "dense").n_rows == N


LOSSES = {
    "squared": csr.Squared(SCORES, offset=np.linspace(0.0, 0.5, N)),
    "squared of two targets": csr.Squared(np.column_stack([SCORES, SCORES**2])),
    "logistic": csr.Logistic(Y, sample_weight=np.linspace(0.5, 1.5, N)),
    "poisson": csr.Poisson(np.round(np.abs(SCORES)), exposure=np.linspace(0.5, 2.0, N)),
    "huber": csr.Huber(SCORES),
    "quantile": csr.Quantile(SCORES, quantile=0.3),
    "squared hinge": csr.SquaredHinge(Y),
    "hinge": csr.Hinge(Y),
    "multinomial": csr.Multinomial(CLASSES),
    "multiclass hinge": csr.MulticlassHinge(CLASSES),
    "some rows": csr.Logistic(Y[::2], rows=np.arange(0, N, 2)),
}
TWICE_DIFFERENTIABLE = ("squared", "logistic", "poisson", "huber", "squared hinge")  # with one output and all labels
PENALTIES = {
    "ridge": 0.5 * csr.Ridge(),
    "elastic net": 0.4 * csr.L1() + 0.2 * csr.Ridge(),
    "groups": 0.8 * csr.GroupLasso(DISJOINT),
    "L1 and overlapping groups": 0.2 * csr.L1() + 0.6 * csr.GroupLasso(OVERLAPPING),
    "latent groups": 1.0 * csr.LatentGroupLasso(DISJOINT),
    "fused": 0.3 * csr.L1() + 0.5 * csr.FusedLasso(CHAIN),
    "graph": 0.5 * csr.Laplacian(CHAIN) + 0.1 * csr.Ridge(),
    "nonnegative": 0.3 * csr.L1() + csr.NonNegative(),
    "some weights free": csr.L1(np.where(np.arange(D) < 2, 0.0, 0.4)) + 0.1 * csr.Ridge(),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_equal_memory_for_every_loss_and_penalty(loss):
    """Each solver for data in blocks agrees with the solve in memory, within the certificates."""
    for name, penalty in PENALTIES.items():
        if name == "latent groups" and "hinge" in loss and loss != "squared hinge":
            continue  # takes seconds with every solver
        objective = LOSSES[loss] + penalty
        expected = csr.Problem(csr.Linear(X), objective).solve(tol=1e-5)
        blocked = csr.Problem(csr.Linear(split(X)), objective)
        solvers = {solver.name for solver in registry.accepting(blocked)} - {"lbfgs", "fista"}
        assert "in_memory" in solvers and ("working_columns" in solvers) == makes_zeros(penalty)
        assert ("gram_newton" in solvers) == (loss in TWICE_DIFFERENTIABLE)
        for solver in sorted(solvers if name == "ridge" else solvers - {"in_memory"}):
            model = csr.Linear(csr.RowBlocks(split(sp.csr_array(X)), engine="serial"))
            found = csr.Problem(model, objective).solve(solver, tol=1e-5)
            assert found.status == "optimal", (name, solver, found)
            assert agree(found, expected), (name, solver, found, expected)


def makes_zeros(penalty):
    parts = csr.Problem(csr.Linear(X), csr.Squared(SCORES) + penalty).normal_form
    return parts.separable is not None or bool(parts.weight_pieces)


def test_without_a_suitable_solver_the_error_says_why():
    problem = csr.Problem(csr.Linear(by_passes(split(X))), csr.Hinge(Y) + csr.Ridge())
    with pytest.raises(ValueError, match=r"in_memory: the data take .* too much for the memory limit"):
        problem.solve()
    with pytest.raises(ValueError, match="needs the data in memory, but they are in blocks of rows"):
        problem.solve("cvxpy")


def test_certify_works_on_blocks_as_in_memory():
    objective = csr.Logistic(Y) + 0.5 * csr.L1()
    memory, blocks = (csr.Problem(csr.Linear(data), objective) for data in (X, split(X)))
    for coef in (np.zeros(D), 0.1 * TRUTH):
        one, other = (csr.certify(problem, coef, 0.2, search=False) for problem in (memory, blocks))
        assert one.gap == pytest.approx(other.gap, rel=1e-9)
        assert one.data is None and other.data.n_blocks == len(split(X))
    assert csr.lambda_max(memory) == pytest.approx(csr.lambda_max(blocks), rel=1e-9)


def test_a_path_reads_each_column_once():
    blocks = csr.RowBlocks(split(sp.csr_array(X)))
    problem = csr.Problem(csr.Linear(blocks), csr.Squared(SCORES) + csr.L1())
    path = csr.path(problem, n_points=4, solver="working_columns")
    memory = csr.path(csr.Problem(csr.Linear(X), csr.Squared(SCORES) + csr.L1()), n_points=4)
    assert all(agree(one, other) for one, other in zip(path.solutions, memory.solutions, strict=True))
    assert sum(s.n_passes for s in path.solutions) <= 3 * 4


def test_strengths_of_a_path_share_passes():
    """The pass that certifies a strength tells the columns of the next one, and one pass reads columns for several."""
    rng = np.random.default_rng(5)
    wide = sp.random_array((400, 300), density=0.05, format="csr", rng=rng)
    y = np.where(wide[:, :20].sum(axis=1) + 0.3 * rng.normal(size=400) > 0.5, 1, -1)
    memory = csr.Problem(csr.Linear(wide), csr.Logistic(y) + csr.L1())
    blocks = csr.RowBlocks(split(wide, 100), engine="serial")
    problem = csr.Problem(csr.Linear(blocks), csr.Logistic(y) + csr.L1())
    strengths = csr.lambda_max(memory) * np.geomspace(0.9, 0.2, 8)
    found = csr.path(problem, strengths, solver="working_columns")
    alone = [
        csr.Problem(csr.Linear(csr.RowBlocks(split(wide, 100))), csr.Logistic(y) + s * csr.L1()).solve(
            "working_columns"
        )
        for s in strengths
    ]
    assert all(agree(one, other) for one, other in zip(found, alone, strict=True))
    assert all(s.status == "optimal" for s in found)
    shared, separate = (sum(s.n_passes for s in solutions) for solutions in (found, alone))
    assert shared <= 3 * len(strengths) and 2 * shared <= separate, (shared, separate)


def test_passes_are_counted_and_limited():
    objective = csr.Logistic(Y) + 0.01 * csr.L1()
    model = csr.Linear(by_passes(split(X)))
    found = csr.Problem(model, objective).solve("gram_newton", tol=1e-9)
    assert 3 < found.n_passes <= 15 and str(found.n_passes) in repr(found)
    assert found.history[-1].n_passes <= found.n_passes
    fresh = csr.Problem(csr.Linear(by_passes(split(X))), objective)
    with pytest.warns(csr.InaccurateWarning, match="max_passes"):
        early = fresh.solve("gram_newton", tol=1e-9, max_passes=6)
    assert early.status == "max_passes" and early.n_passes <= 6
    assert early.certificate.gap > found.certificate.gap
    with pytest.raises(ValueError, match="max_passes is for data in blocks"):
        csr.Problem(csr.Linear(X), objective).solve(max_passes=5)


def test_columns_that_do_not_fit_are_used_by_passes():
    objective = csr.Logistic(Y) + 0.3 * csr.L1()
    expected = csr.Problem(csr.Linear(X), objective).solve()
    blocks = by_passes(split(sp.csr_array(X)), limit=500)
    with pytest.warns(csr.MemoryLimitWarning, match=r"too much for the memory limit.*Raise memory_limit"):
        found = csr.Problem(csr.Linear(blocks), objective).solve("working_columns")
    assert found.status == "optimal" and agree(found, expected)
    assert not blocks._known.kept[0].size  # no column was kept


@pytest.mark.parametrize("penalty", ["L1", "elastic net", "groups"])
def test_the_gap_sphere_drops_only_weights_that_are_zero(penalty):
    rng = np.random.default_rng(3)
    wide = rng.normal(size=(60, 40))
    y = np.where(wide[:, :3].sum(axis=1) + 0.1 * rng.normal(size=60) > 0, 1, -1)
    overlapping = csr.Groups([range(i, min(i + 6, 40)) for i in range(0, 40, 3)], n_features=40)
    more = {"L1": 0.0 * csr.L1(), "elastic net": 0.5 * csr.Ridge(), "groups": 0.5 * csr.GroupLasso(overlapping)}
    objective = csr.Logistic(y) + 6.0 * csr.L1() + more[penalty]
    exact = csr.Problem(csr.Linear(wide), objective).solve(tol=1e-12)
    problem = csr.Problem(csr.Linear(split(wide)), objective)
    assert screening.applies(problem.normal_form)
    theta, b = problem.shaped(exact.coef, exact.intercept)
    u = problem.normal_form.smooth_score_grad(problem.model.scores(theta, b))
    u -= u.mean()
    pull = problem.model.adjoint(u)
    search = Search(problem, 1e-6)
    points = search.excess(-pull - problem.normal_form.quadratic_grad(theta), dict(exact.dual))[1]
    counts = []
    for shrink in (1.0, 0.9, 0.5):  # farther points drop fewer weights, and never a wrong one
        dropped = screening.zeros(problem.normal_form, problem.value(shrink * theta, b), u, pull, points)
        assert not np.any(dropped & (exact.coef != 0.0))
        counts.append(int(dropped.sum()))
    assert counts[0] > counts[1] > counts[2]
    search.drop(exact.objective, u, pull, points)
    kept = search.next_set(np.arange(40), np.zeros(0, dtype=np.int64), theta)
    assert set(np.flatnonzero(exact.coef)) <= set(kept) < set(range(40))


def test_threads_may_read_columns_at_the_same_time(monkeypatch):
    """Columns that another thread has read meanwhile are not kept twice."""
    blocks = csr.RowBlocks(split(X), engine="serial")
    run, others = blocks.run, [[3, 4]]

    def interrupted(*arguments):
        if others:
            blocks.read_columns(others.pop())  # as if in another thread, in the middle of this read
        return run(*arguments)

    monkeypatch.setattr(blocks, "run", interrupted)
    np.testing.assert_array_equal(blocks.read_columns([2, 3]), X[:, [2, 3]])
    theta = np.where(np.arange(D) == 3, 1.0, 0.0)
    np.testing.assert_allclose(blocks @ theta, X[:, 3])
    np.testing.assert_array_equal(blocks.read_columns([4, 3, 2]), X[:, [4, 3, 2]])


def test_a_checkpoint_continues_the_same_problem_only(tmp_path):
    file = tmp_path / "fit.npz"

    def problem(strength=0.05, labels=Y):
        model = csr.Linear(by_passes(split(X)))
        return csr.Problem(model, csr.Logistic(labels) + strength * csr.L1())

    with pytest.warns(csr.InaccurateWarning):
        first = problem().solve("gram_newton", tol=1e-9, max_passes=7, checkpoint=file)
    whole = problem().solve("gram_newton", tol=1e-9)
    second = problem().solve("gram_newton", tol=1e-9, checkpoint=file)
    assert second.status == "optimal" and agree(second, whole)
    assert second.n_passes < whole.n_passes and second.objective <= first.objective
    with pytest.raises(ValueError, match="checkpoint of another problem"):
        problem(strength=0.06).solve(checkpoint=file)
    with pytest.raises(ValueError, match="checkpoint of another problem"):
        problem(labels=-Y).solve(checkpoint=file)
    file.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="is no checkpoint"):
        problem().solve(checkpoint=file)


def test_progress_names_passes_and_rows_per_second(capsys):
    problem = csr.Problem(csr.Linear(by_passes(split(X))), csr.Logistic(Y) + 0.1 * csr.L1())
    problem.solve("gram_newton", tol=1e-9, verbose=True)
    printed = capsys.readouterr().out
    assert "passes" in printed and "rows/s" in printed


def test_bad_arguments_are_named():
    with pytest.raises(csr.BlockError, match="block 1 has 3 columns, but the first has 2"):
        csr.RowBlocks([np.eye(2), np.ones((1, 3))])
    with pytest.raises(ValueError, match="engine must be 'serial'"):
        csr.RowBlocks([X], engine="warp")
    with pytest.raises(ValueError, match="memory limit is a positive number of bytes"):
        csr.RowBlocks([X], memory_limit="lots")
    with pytest.raises(TypeError, match="a source of blocks is a folder"):
        csr.RowBlocks(3)
    with pytest.raises(ValueError, match="has no blocks"):
        csr.RowBlocks(lambda: iter([]))
    with pytest.raises(TypeError, match="by columns only"):
        csr.RowBlocks([X])[3]


def test_intercepts_far_from_zero_and_constant_columns():
    """Dense blocks with columns far from zero keep their accuracy."""
    shifted = X + np.where(np.arange(D) < 3, 50.0, 0.0)
    objective = csr.Squared(SCORES) + 0.5 * csr.L1()
    expected = csr.Problem(csr.Linear(shifted), objective).solve(tol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for solver in ("gram_newton", "working_columns"):
            found = csr.Problem(csr.Linear(split(shifted)), objective).solve(solver, tol=1e-7)
            assert found.status == "optimal" and agree(found, expected), solver
