"""The Laplacian elastic net under stress: a certified answer, a clear error, or an honest warning with the gap."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.solvers.lasso import working_set

SOLVERS = ("working_set", "irls")
STORAGE = pytest.mark.parametrize("sparse", [False, True])
BOTH = pytest.mark.parametrize("solver", SOLVERS)


def data(n=60, d=20, seed=0):
    """Correlated features with a sparse truth and both classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.3 * rng.normal(size=(n, 1))
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


def chain(d):
    return csr.Graph.from_edges(np.stack([np.arange(d - 1), np.arange(1, d)], axis=1), n_nodes=d)


def problem(X, y, lam=1.0, lam2=0.5, graph=None, sparse=False, **loss):
    X = sp.csr_array(X) if sparse else X
    objective = csr.Logistic(y, **loss) + lam * csr.L1()
    if lam2:
        objective = objective + 0.5 * lam2 * csr.Laplacian(chain(X.shape[1]) if graph is None else graph)
    return csr.Problem(csr.Linear(X), objective)


def certified(made, solver, tol=1e-6, **options):
    """Solved, and what the solution says of itself is true."""
    solution = made.solve(solver=solver, tol=tol, **options)
    assert solution.status == "optimal"
    assert solution.certificate.relative_gap <= tol
    assert solution.objective == pytest.approx(made.value(solution.coef, solution.intercept), rel=1e-12)
    return solution


def honest(made, solver, **options):
    """Solved, or a warning with the number in it, and a finite point either way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = made.solve(solver=solver, **options)
    messages = [str(w.message) for w in caught if issubclass(w.category, csr.InaccurateWarning)]
    assert len(messages) == len(caught) == (solution.status not in ("optimal", "stationary"))
    assert all(str(solution.certificate) in message for message in messages)
    assert np.isfinite(solution.coef).all()
    assert np.isfinite(solution.objective)
    assert not solution.certificate.gap < 0
    return solution


@BOTH
@STORAGE
def test_separable_classes(solver, sparse):
    X, _ = data()
    y = (X[:, 0] > 0).astype(int)
    for lam in (1.0, 1e-3):
        certified(problem(X, y, lam, 0.0, sparse=sparse), solver, max_iter=5000)


@BOTH
def test_separable_classes_and_no_penalty_on_what_separates_them(solver):
    """The infimum is not attained: weights grow without end, the objective goes to that of the other terms."""
    X, _ = data()
    y = (X[:, 0] > 0).astype(int)
    weights = np.ones(20)
    weights[0] = 0.0
    made = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1(weights=weights))
    solution = honest(made, solver, max_iter=60)
    assert solution.objective < 0.05 * made.value(np.zeros(20))


@BOTH
@STORAGE
def test_features_without_penalty(solver, sparse):
    X, y = data()
    weights = np.ones(20)
    weights[[2, 7]] = 0.0
    X = sp.csr_array(X) if sparse else X
    solution = certified(csr.Problem(csr.Linear(X), csr.Logistic(y) + 3.0 * csr.L1(weights=weights)), solver)
    assert np.all(solution.coef[[2, 7]] != 0.0)


@BOTH
@STORAGE
def test_duplicate_constant_and_empty_columns(solver, sparse):
    X, y = data()
    X = np.column_stack([X, X[:, :4], np.ones(60), np.full(60, 1e5), np.zeros(60)])
    solution = certified(problem(X, y, 2.0, 0.0, sparse=sparse), solver)
    assert not solution.coef[-3:].any()
    twice = solution.coef[:4] * solution.coef[20:24]
    assert np.all(twice >= 0.0)  # copies never work against each other


@BOTH
@STORAGE
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_columns_of_extreme_scale(solver, sparse, scale):
    X, y = data()
    scaled = X * np.where(np.arange(20) % 3 == 0, scale, 1.0)
    solution = certified(problem(scaled, y, 1.0, 0.0, sparse=sparse), solver, max_iter=2000)
    if scale < 1:
        assert not solution.coef[::3].any()


@BOTH
def test_few_samples_few_features(solver):
    X, y = data()
    for n, d in ((2, 20), (60, 1), (2, 1)):
        labels = np.array([0, 1]) if n == 2 else y
        certified(problem(X[:n, :d], labels, 0.1, 0.0), solver)
    one = csr.Problem(csr.Linear(X[:1]), csr.Squared([3.0]) + 0.1 * csr.L1())
    solution = certified(one, solver)
    assert not solution.coef.any()  # the intercept fits one sample
    certified(csr.Problem(csr.Linear(X[:1], intercept=False), csr.Squared([3.0]) + 0.1 * csr.L1()), solver)


def test_what_cannot_be_a_problem_is_an_error():
    X, _ = data()
    with pytest.raises(ValueError, match="at least one row and one column"):
        csr.Linear(X[:, :0])
    with pytest.raises(ValueError, match="one class"):
        csr.Logistic(np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="both"):
        csr.Logistic([1])
    with pytest.raises(ValueError, match="NaN"):
        csr.Linear(np.where(X > 2, np.nan, X))


@BOTH
def test_equal_responses(solver):
    X, _ = data()
    solution = certified(csr.Problem(csr.Linear(X), csr.Squared(np.full(60, 2.5)) + csr.L1()), solver)
    assert not solution.coef.any()
    assert solution.intercept == pytest.approx(2.5)


@BOTH
@STORAGE
@pytest.mark.parametrize("lam2", [0.0, 2.0])
def test_huge_strength_gives_exact_zeros(solver, sparse, lam2):
    X, y = data()
    for lam in (1e3, 1e12):
        solution = certified(problem(X, y, lam, lam2, sparse=sparse), solver)
        assert not solution.coef.any()
        assert solution.intercept == pytest.approx(np.log(y.mean() / (1 - y.mean())), abs=1e-3)


@BOTH
def test_no_strength_at_all(solver):
    X, y = data()
    made = csr.Problem(csr.Linear(X[:, :5]), csr.Logistic(y) + 0.0 * csr.L1() + 0.0 * csr.Laplacian(chain(5)))
    with pytest.raises(ValueError, match="neither L1 nor a bound"):  # terms of strength zero are left out
        made.solve(solver)
    solution = certified(made, "auto")
    slope = X[:, :5].T @ csr.Logistic(y).grad(solution.scores[:, None])
    assert np.abs(slope).max() < 1e-2
    # without a penalty and with more features than samples the fit is perfect, and the weights grow without end
    honest(csr.Problem(csr.Linear(X[:15]), csr.Logistic(y[:15]) + 0.0 * csr.L1()), "auto", max_iter=30)


@BOTH
@STORAGE
def test_disconnected_graphs_and_isolated_nodes(solver, sparse):
    X, y = data()
    graph = csr.Graph.from_edges([(0, 1), (1, 2), (5, 6), (8, 9)], [1.0, -1.0, 2.0, 1.0], n_nodes=20)
    solution = certified(problem(X, y, 0.5, 50.0, graph, sparse), solver)
    assert np.count_nonzero(solution.coef)
    empty = csr.Graph.from_edges(np.zeros((0, 2), dtype=int), n_nodes=20)
    with_empty = certified(problem(X, y, 0.5, 50.0, empty, sparse), solver)
    without = certified(problem(X, y, 0.5, 0.0, sparse=sparse), solver)
    assert with_empty.objective == pytest.approx(without.objective, rel=1e-6)


def test_a_graph_with_a_million_edges():
    rng = np.random.default_rng(0)
    d, edges = 20_000, 1_000_000
    first = rng.integers(0, d, size=edges)
    pairs = np.stack([first, (first + rng.integers(1, d - 1, size=edges)) % d], axis=1)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    X = sp.random_array((300, d), density=0.005, random_state=rng, format="csr")
    y = np.asarray(X[:, :200].sum(axis=1)) > np.median(X[:, :200].sum(axis=1))
    made = problem(X, y.astype(int), 0.3, 0.01, csr.Graph.from_edges(pairs, n_nodes=d))
    solution = certified(made, "working_set")
    assert 0 < np.count_nonzero(solution.coef) < 2000


def test_storage_of_all_kinds():
    X, y = data()
    expected = certified(problem(X, y), "working_set", tol=1e-9)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    frozen = X.copy()
    frozen.flags.writeable = False
    frozen_sparse = sp.csr_array(X)
    for part in (frozen_sparse.data, frozen_sparse.indices, frozen_sparse.indptr):
        part.flags.writeable = False
    rows = np.repeat(np.arange(60), 20)
    columns = np.tile(np.arange(20)[::-1], 60)
    unsorted = sp.csr_array((X[:, ::-1].ravel().copy(), columns, np.arange(0, 1201, 20)), shape=X.shape)
    assert not unsorted.has_sorted_indices
    twice = sp.coo_array((np.tile(X.ravel() / 2, 2), (np.tile(rows, 2), np.tile(np.arange(20), 120))), shape=X.shape)
    strided = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    for kind in (wide, frozen, frozen_sparse, unsorted, twice, strided, np.asfortranarray(X), X[::-1][::-1]):
        for solver in SOLVERS:
            found = certified(problem(kind, y), solver, tol=1e-9)
            np.testing.assert_allclose(found.coef, expected.coef, atol=1e-4)
    for kind in (X.astype(np.float32), sp.csr_array(X.astype(np.float32))):
        found = certified(problem(kind, y), "working_set", tol=1e-9)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-3)


def test_sample_weights_are_repeated_samples():
    X, y = data()
    counts = np.arange(60) % 3
    kept = np.repeat(np.arange(60), counts)
    for solver in SOLVERS:
        weighted = certified(problem(X, y, sample_weight=counts.astype(float)), solver, tol=1e-9)
        repeated = certified(problem(X[kept], y[kept]), solver, tol=1e-9)
        np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-4)


@BOTH
@pytest.mark.parametrize("loss", ["Logistic", "Squared", "SquaredHinge"])
def test_fista_agrees(solver, loss):
    X, y = data()
    term = getattr(csr, loss)(y if loss != "Squared" else X[:, 0] - X[:, 1])
    made = csr.Problem(csr.Linear(X), term + 2.0 * csr.L1() + csr.Laplacian(chain(20), normalized=True))
    mine, theirs = certified(made, solver), certified(made, "fista")
    assert abs(mine.objective - theirs.objective) <= mine.certificate.gap + theirs.certificate.gap + 1e-12


@BOTH
def test_limits_give_the_best_point_and_a_warning(solver):
    X, y = data(200, 150)
    made = problem(X, y, 0.05, 0.1)
    for options in ({"max_iter": 1}, {"time_limit": 1e-9}):
        with pytest.warns(csr.InaccurateWarning, match="relative"):
            solution = made.solve(solver=solver, tol=1e-12, **options)
        assert solution.status == next(iter(options))
        assert solution.certificate.gap > 0
        assert solution.objective - solution.certificate.gap <= certified(made, "working_set").objective


@BOTH
def test_an_interrupt_from_a_callback_keeps_the_best_point(solver):
    X, y = data(200, 150)
    made = problem(X, y, 0.05, 0.1)

    def stop(record):
        raise KeyboardInterrupt

    with pytest.warns(csr.InaccurateWarning, match="interrupted"):
        solution = made.solve(solver=solver, tol=1e-12, max_iter=3, callback=stop)
    assert solution.status == "interrupted"
    assert np.isfinite(solution.certificate.gap)
    certified(made, solver)  # and nothing is spoilt


def test_an_interrupt_in_the_middle_of_a_step_spoils_nothing(monkeypatch):
    X, y = data(200, 150)
    made = problem(X, y, 0.05, 0.1)
    expected = certified(made, "working_set").objective
    original, calls = working_set.State.backtrack, []

    def interrupted(self, model):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, model)

    monkeypatch.setattr(working_set.State, "backtrack", interrupted)
    with pytest.warns(csr.InaccurateWarning, match="interrupted"):
        solution = made.solve(solver="working_set", tol=1e-9, max_newton=1)
    assert solution.objective >= expected * (1 - 1e-6)
    assert solution.certificate.lower_bound <= expected
    assert certified(made, "working_set").objective == expected


def test_warm_starts_along_a_path_give_what_cold_starts_give():
    X, y = data(100, 200)
    model, loss, last = csr.Linear(sp.csr_array(X)), csr.Logistic(y), None
    for lam in np.geomspace(20.0, 0.5, 12):
        made = csr.Problem(model, loss + lam * csr.L1())
        last = certified(made, "working_set", warm_start=last)
        cold = certified(made, "working_set")
        assert abs(last.objective - cold.objective) <= last.certificate.gap + cold.certificate.gap


def test_a_warm_start_for_other_penalties_or_bounds_is_only_a_start():
    X, y = data()
    free = certified(problem(X, y), "working_set")
    bounded = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.5 * csr.L1() + csr.NonNegative())
    solution = certified(bounded, "working_set", warm_start=free)
    assert solution.coef.min() >= 0.0
    assert solution.objective == pytest.approx(certified(bounded, "working_set").objective, rel=2e-6)


@STORAGE
def test_scores_of_sparse_weights_are_scores(sparse):
    X, _ = data(30, 40)
    rng, model = np.random.default_rng(1), csr.Linear(sp.csr_array(X) if sparse else X)
    for by_columns in (False, True):
        assert ("columns" in model.__dict__) == by_columns
        for k, used in ((1, []), (1, [3]), (2, [3, 7]), (2, range(40))):
            theta, b = np.zeros((40, k)), rng.normal(size=k)
            theta[list(used)] = rng.normal(size=(len(used), k))
            np.testing.assert_allclose(model.scores(theta, b), X @ theta + b, atol=1e-12)
        model.columns  # noqa: B018  made once, then used


def test_correlated_features_and_a_strong_network_take_few_iterations():
    """Passes over the coordinates take small steps here although far from the optimum."""
    rng, n, d = np.random.default_rng(0), 1000, 2000
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    truth = np.zeros(d)
    truth[rng.choice(d, size=d // 20, replace=False)] = rng.normal(size=d // 20)
    y = (X @ truth + rng.normal(size=n) > 0).astype(int)
    nodes = np.arange(d)
    pairs = np.concatenate([np.stack([nodes, (nodes + step) % d], axis=1) for step in (1, 2, 3)])
    lam, ring = 0.05 * np.abs(X.T @ (y - y.mean())).max(), csr.Graph.from_edges(pairs, n_nodes=d)
    objective = csr.Logistic(y) + lam * csr.L1() + csr.Laplacian(ring, normalized=True)
    assert certified(csr.Problem(csr.Linear(X), objective), "working_set").n_iter <= 25
