"""Hard and awkward input for the solvers of overlapping groups: a certified answer, or a clear error."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

SOLVERS = ("group_newton", "admm", "sentence_admm")
CHAIN = [[0, 1, 2], [2, 3], [3, 4, 5], [1, 5]]


def case(d=6, n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] - (X[:, 1] if d > 1 else 0.0) + 0.7 * rng.normal(size=n) > 0).astype(int)
    return X, y


def problem(X, y, lam1=0.3, lam=0.5, lists=None, **model):
    d = X.shape[1]
    groups = csr.Groups(CHAIN if lists is None else lists, n_features=d)
    return csr.Problem(csr.Linear(X, **model), csr.Logistic(y) + lam1 * csr.L1() + lam * csr.GroupLasso(groups))


def solved(given, solver, tol=1e-5, **options):
    """An answer within the tolerance, which warnings would deny."""
    solution = given.solve(solver, tol=tol, **options)
    assert solution.status == "optimal"
    assert 0.0 <= solution.certificate.relative_gap <= tol
    return solution


def same(solution, other):
    """Either bound is below the other's objective."""
    slack = 1e-9 * abs(other.objective)
    assert solution.certificate.lower_bound <= other.objective + slack
    assert other.certificate.lower_bound <= solution.objective + slack


def separable(X, y):
    X = X.copy()
    X[:, 0] = np.where(y == 1, 1.0, -1.0) * (1.0 + np.abs(X[:, 0]))
    return X


AWKWARD = {
    "separable": lambda X, y: (separable(X, y), y),
    "duplicate columns": lambda X, y: (X[:, [0, 0, 1, 1, 2, 2]], y),
    "constant columns": lambda X, y: (np.column_stack([X[:, :4], np.ones(len(X)), np.zeros(len(X))]), y),
    "float32": lambda X, y: (X.astype(np.float32), y),
    "not contiguous": lambda X, y: (np.repeat(X, 2, axis=1)[:, ::2], y),
    "fortran order": lambda X, y: (np.asfortranarray(X), y),
    "int64 indices": lambda X, y: (with_indices(sp.csr_array(X), np.int64), y),
    "unsorted indices": lambda X, y: (unsorted(X), y),
    "duplicate entries": lambda X, y: (doubled(X), y),
    "csc": lambda X, y: (sp.csc_array(X), y),
}


def with_indices(X, dtype):
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


def unsorted(X):
    n, d = X.shape
    indices = np.tile(np.arange(d)[::-1], n)
    return sp.csr_array((X[:, ::-1].ravel(), indices, np.arange(0, n * d + 1, d)), shape=X.shape)


def doubled(X):
    n, d = X.shape
    indices = np.tile(np.repeat(np.arange(d), 2), n)
    return sp.csr_array((np.repeat(X / 2.0, 2), indices, np.arange(0, 2 * n * d + 1, 2 * d)), shape=X.shape)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", AWKWARD)
def test_awkward_data_is_solved(kind, solver):
    X, y = AWKWARD[kind](*case())
    same(solved(problem(X, y), solver), reference_of(kind))


@functools.cache
def reference_of(kind):
    """The solution for the same numbers in a plain array."""
    X, y = AWKWARD[kind](*case())
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    return problem(dense, y).solve("cvxpy")


@pytest.mark.parametrize("sparse", [False, True])
def test_read_only_data(sparse):
    X, y = case()
    expected = solved(problem(X, y), "group_newton", 1e-7)
    given = sp.csr_array(X) if sparse else X
    for array in (y, given.data, given.indices, given.indptr) if sparse else (y, given):
        array.flags.writeable = False
    for solver in SOLVERS:
        same(solved(problem(given, y), solver), expected)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_columns_of_extreme_scale(scale, sparse):
    X, y = case()
    X[:, 3] *= scale
    X = sp.csr_array(X) if sparse else X
    for solver in ("group_newton", "auto"):
        solved(problem(X, y), solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_large_strength_gives_exact_zeros(solver):
    X, y = case()
    solution = solved(problem(X, y, lam=1e4), solver, tol=1e-10)  # weights of 1e-9 would pass a loose tolerance
    assert not solution.coef.any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_feature_and_one_group_of_everything(solver):
    X, y = case(d=1)
    solved(problem(X, y, lists=[[0]]), solver)
    X, y = case()
    everything = problem(X, y, lists=[range(6)])
    same(solved(everything, solver), everything.solve("cvxpy"))


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_sample(solver):
    X = np.array([[1.0, 2.0, 0.5, -1.0, 0.0, 3.0]])
    groups = csr.Groups(CHAIN, n_features=6)
    loss = csr.Squared([2.0])
    given = csr.Problem(csr.Linear(X, intercept=False), loss + 0.1 * csr.L1() + 0.2 * csr.GroupLasso(groups))
    same(solved(given, solver), given.solve("cvxpy"))


@pytest.mark.parametrize("solver", SOLVERS)
def test_groups_of_one_are_the_lasso(solver):
    X, y = case()
    lasso = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.8 * csr.L1()).solve("working_set", tol=1e-8)
    same(solved(problem(X, y, lists=[[j] for j in range(6)]), solver), lasso)


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_groups_are_one_of_twice_the_weight(solver):
    X, y = case()
    twice = problem(X, y, lists=[*CHAIN, *CHAIN])
    groups = csr.Groups([*CHAIN, *CHAIN], n_features=6).merged()
    merged = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.3 * csr.L1() + 0.5 * csr.GroupLasso(groups))
    assert len(groups) == len(CHAIN)
    same(solved(twice, solver), solved(merged, solver))


@pytest.mark.parametrize("solver", ["group_newton", "sentence_admm"])
def test_without_strength_there_are_no_groups(solver):
    X, y = case()
    with pytest.raises(ValueError, match="there are no groups"):
        problem(X, y, lam=0.0).solve(solver)
    solved(problem(X, y, lam=0.0), "auto")


def test_empty_groups_are_an_error():
    with pytest.raises(ValueError, match="empty"):
        csr.Groups([[0], []], n_features=2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_words_that_nothing_penalises(solver):
    X, y = case()
    given = problem(X, y, lam1=0.0, lists=[[0, 1, 2], [2, 3]])
    same(solved(given, solver), given.solve("cvxpy"))


def test_separable_data_and_words_that_nothing_penalises_have_no_optimum():
    X, y = case()
    X = separable(X, y)
    given = problem(X, y, lam1=0.0, lists=[[3, 4], [4, 5]])
    for solver in SOLVERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            solution = given.solve(solver, max_iter=50, time_limit=5.0)
        # the infimum is 0 and never reached: what is returned is small enough, or says that it is not
        assert solution.objective <= 1e-3 * given.value(np.zeros(6)) or solution.status != "optimal"
        assert np.isfinite(solution.coef).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_warn_and_return_an_honest_gap(solver):
    X, y = case(n=60)
    given = problem(X, y, lam1=0.01, lam=0.02)
    best = solved(given, "group_newton", 1e-9)
    for limit in ({"max_iter": 1}, {"time_limit": 1e-9}):
        with pytest.warns(csr.InaccurateWarning, match="ended with status"):
            solution = given.solve(solver, tol=1e-14, **limit)
        assert solution.n_iter == 1
        assert solution.objective - solution.certificate.gap <= best.objective + 1e-9
    # nothing was changed by it
    same(solved(given, solver, 1e-5), best)


@pytest.mark.parametrize("solver", ["admm", "sentence_admm"])
def test_an_interrupt_returns_the_best_point(solver):
    X, y = case(n=60)

    def interrupt(record):
        raise KeyboardInterrupt

    with pytest.warns(csr.InaccurateWarning, match="interrupted"):
        solution = problem(X, y).solve(solver, tol=1e-14, callback=interrupt)
    assert solution.status == "interrupted"
    assert np.isfinite(solution.certificate.gap)


def test_an_interrupt_between_rounds_returns_the_best_point(monkeypatch):
    from cvxstructreg.solvers.groups import group_newton

    X, y = case(d=40, n=60)
    given = problem(X, y, lam1=0.05, lam=0.05)
    real, calls = group_newton.minimise, []

    def third_time_interrupted(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(group_newton, "LEAST_GROWTH", 1)
    monkeypatch.setattr(group_newton, "LEAST_DENSE", 1)
    monkeypatch.setattr(group_newton, "SMALL", 0)
    monkeypatch.setattr(group_newton, "minimise", third_time_interrupted)
    with pytest.warns(csr.InaccurateWarning, match="interrupted"):
        solution = given.solve("group_newton")
    assert solution.n_iter == 2
    assert solution.objective - solution.certificate.gap <= solved(given, "admm").objective


def test_an_interrupt_inside_a_step_leaves_the_problem_as_it_was(monkeypatch):
    from cvxstructreg.solvers.groups import group_newton

    X, y = case()
    given = problem(X, y)

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(group_newton, "minimise", interrupted)
        with pytest.raises(KeyboardInterrupt):
            given.solve("group_newton")
    solved(given, "group_newton", 1e-8)


@pytest.mark.parametrize(
    "loss",
    [
        lambda rng, n: csr.Squared(rng.normal(size=n)),
        lambda rng, n: csr.SquaredHinge(rng.permutation(np.arange(n) % 2)),
        lambda rng, n: csr.Multinomial(rng.permutation(np.arange(n) % 3)),
    ],
)
def test_other_losses_and_group_weights(loss):
    rng = np.random.default_rng(4)
    X, _ = case()
    penalty = csr.GroupLasso(csr.Groups(CHAIN, n_features=6), weights=[0.5, 2.0, 1.0, 0.0])
    given = csr.Problem(csr.Linear(sp.csr_array(X)), loss(rng, len(X)) + 0.4 * csr.L1() + 0.6 * penalty)
    solution = solved(given, "group_newton", 1e-8)
    same(solution, given.solve("cvxpy"))
    alive = {g for g, members in enumerate(CHAIN) if np.any(solution.coef[members]) and g != 3}
    assert set(penalty.selected(solution.coef)) == alive


def test_a_loss_without_curvature_gives_no_infinite_step():
    """The one row with data has a probability of one to the last digit."""
    groups = csr.Groups([[0]], 1, weights=[0.0])
    loss = csr.Multinomial([1, 2, 0], sample_weight=[2.0, 1e6, 1.0], classes=[0, 1, 2])
    problem = csr.Problem(csr.Linear([[0.0], [0.0], [2.0]]), loss + csr.GroupLasso(groups) + 5e-8 * csr.L1())
    solution = problem.solve("group_newton", max_iter=3)
    assert np.isfinite(solution.objective) and solution.status == "optimal"
