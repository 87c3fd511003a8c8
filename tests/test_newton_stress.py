"""Truncated Newton and L-BFGS on bad input: a certified answer, an honest status or a clear error."""

from __future__ import annotations

import signal
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

SOLVERS = ("newton", "lbfgs")
each_solver = pytest.mark.parametrize("solver", SOLVERS)


def ring(d, weight=1.0):
    """Each node linked to the next."""
    nodes = np.arange(d)
    return csr.Graph.from_edges(np.stack([nodes, (nodes + 1) % d], axis=1), np.full(d, weight), n_nodes=d)


def data(n=40, d=6, seed=0):
    """Labels that no hyperplane separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def problem(X, y, graph=None, alpha=1.0, beta=0.1, loss=csr.Logistic):
    """A loss, a feature network and a ridge."""
    graph = ring(X.shape[1]) if graph is None else graph
    return csr.Problem(csr.Linear(X), loss(y) + alpha * csr.FeatureNetwork(graph) + beta * csr.Ridge())


def solved(problem, solver, tol=1e-6, **options):
    """A solution that is proved optimal."""
    solution = problem.solve(solver, tol=tol, **options)
    assert solution.status == "optimal"
    assert solution.certificate.kind == "duality_gap"
    assert 0 <= solution.certificate.relative_gap <= tol
    return solution


def same_optimum(one, other, tol=1e-6):
    """Two certified solutions of one problem differ by no more than their gaps."""
    assert abs(one.objective - other.objective) <= one.certificate.gap + other.certificate.gap + 1e-12
    assert one.objective == pytest.approx(other.objective, rel=2 * tol)


@each_solver
def test_separable_data_without_penalty_are_never_called_optimal_by_a_wrong_bound(solver):
    """The infimum 0 is not attained: whatever is said must hold of it."""
    X = np.linspace(-1, 1, 20)[:, None] * np.ones((1, 3))
    free = csr.Problem(csr.Linear(X), csr.Logistic(X[:, 0] > 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution = free.solve(solver, max_iter=200)
    certificate = solution.certificate
    assert np.isfinite(solution.coef).all()
    assert solution.objective < 1e-2 * 20 * np.log(2)
    if certificate.kind == "duality_gap":
        assert certificate.lower_bound <= 1e-12
        assert certificate.gap >= solution.objective * (1 - 1e-9)
    if solution.status == "optimal":  # an objective of nearly zero is close to the infimum, and that is what is said
        assert solution.objective <= 1e-6 * 20 * np.log(2)


@each_solver
def test_separable_data_with_a_network_alone(solver):
    """Equal weights on a ring cost nothing, so that the infimum is again 0."""
    X = np.linspace(-1, 1, 20)[:, None] * np.ones((1, 4))
    flat = csr.Problem(csr.Linear(X), csr.Logistic(X[:, 0] > 0) + 3.0 * csr.FeatureNetwork(ring(4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution = flat.solve(solver, max_iter=200)
    if solution.certificate.kind == "duality_gap":
        assert solution.certificate.lower_bound <= 1e-12
    np.testing.assert_allclose(solution.coef, solution.coef[0], rtol=1e-3)


@each_solver
def test_features_without_penalty(solver):
    X, y = data()
    pinned = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.5 * csr.Ridge(weights=[0, 1, 1, 0, 1, 1]))
    same_optimum(solved(pinned, solver), pinned.solve("cvxpy"))


@each_solver
@pytest.mark.parametrize("loss", [csr.Logistic, csr.Multinomial, csr.Squared, csr.SquaredHinge])
def test_duplicate_and_constant_columns(loss, solver):
    X, y = data()
    X = np.column_stack([X, X[:, 0], X[:, 0], np.ones(len(X)), np.zeros(len(X))])
    solution = solved(problem(X, y, csr.Graph.from_edges([(1, 2)], n_nodes=10), loss=loss), solver)
    coef = solution.coef.reshape(10, -1)
    np.testing.assert_allclose(coef[6], coef[7], atol=1e-4)  # equal columns without edges share equally
    np.testing.assert_allclose(coef[9], 0.0, atol=1e-4)


@each_solver
@pytest.mark.parametrize("sparse", [True, False])
def test_columns_of_very_different_scale(sparse, solver):
    """Scaling a column by c and its ridge weight by c^2 is the same problem in other units."""
    X, y = data()
    scale = np.array([1e-8, 1e-4, 1.0, 1.0, 1e4, 1e8])
    plain = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.1 * csr.Ridge())
    scaled = X * scale
    model = csr.Linear(sp.csr_array(scaled) if sparse else scaled)
    other = csr.Problem(model, csr.Logistic(y) + 0.1 * csr.Ridge(weights=scale**2))
    one, two = solved(plain, solver, 1e-8), solved(other, "newton", 1e-8)
    assert two.objective == pytest.approx(one.objective, rel=1e-7)
    np.testing.assert_allclose(two.coef * scale, one.coef, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@each_solver
def test_all_data_very_small_or_large(scale, solver):
    X, y = data()
    for loss in (csr.Logistic, csr.Multinomial, csr.SquaredHinge):
        solved(problem(scale * X, y, alpha=scale**2, beta=0.1 * scale**2, loss=loss), solver)


@each_solver
def test_one_sample_and_one_feature(solver):
    one = csr.Problem(csr.Linear(np.ones((1, 3))), csr.Squared([2.0]) + csr.Ridge())
    assert solved(one, solver).objective == pytest.approx(0.0, abs=1e-6)
    bare = csr.Problem(csr.Linear(np.ones((1, 3)), intercept=False), csr.Squared([2.0]) + csr.Ridge())
    np.testing.assert_allclose(solved(bare, solver).coef, 0.4, atol=1e-3)  # w = (X'X + 2)^-1 X'y
    X, y = data(d=1)
    solved(csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.Ridge()), solver)


@pytest.mark.parametrize("loss", [csr.Logistic, csr.Multinomial, csr.SquaredHinge])
def test_labels_that_are_all_equal_are_an_error_in_words(loss):
    with pytest.raises(ValueError, match="only one class"):
        loss([1, 1, 1])


@each_solver
def test_strengths_of_zero_and_huge_strengths(solver):
    X, y = data()
    without = problem(X, y, alpha=0.0, beta=0.0)
    solution = without.solve(solver, tol=1e-5)
    assert solution.status in ("optimal", "stationary")
    assert solution.objective == pytest.approx(without.solve("cvxpy").objective, rel=1e-5)
    flat = solved(problem(X, y, beta=1e12), solver)
    share = y.mean()
    constant = -len(y) * (share * np.log(share) + (1 - share) * np.log(1 - share))
    np.testing.assert_allclose(flat.coef, 0.0, atol=1e-9)
    assert flat.objective == pytest.approx(constant, rel=1e-6)
    equal = solved(problem(X, y, alpha=1e10), solver)
    np.testing.assert_allclose(equal.coef, equal.coef[0], atol=1e-5)


@each_solver
def test_disconnected_graphs_and_isolated_nodes(solver):
    X, y = data(d=9)
    parts = csr.Graph.from_edges([(0, 1), (1, 2), (3, 4)], n_nodes=9)
    for penalty in (csr.FeatureNetwork(parts), csr.Laplacian(parts), csr.Laplacian(parts, normalized=True)):
        split = csr.Problem(csr.Linear(X), csr.Logistic(y) + 10.0 * penalty + 0.1 * csr.Ridge())
        same_optimum(solved(split, solver), split.solve("cvxpy"))
    empty = csr.Graph(sp.csr_array((9, 9)))
    plain = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.1 * csr.Ridge())
    same_optimum(solved(problem(X, y, empty, alpha=5.0), solver), solved(plain, solver))


def test_a_graph_of_a_million_edges():
    rng = np.random.default_rng(0)
    n, d, degree = 300, 100_000, 10
    rows = np.repeat(np.arange(d), degree)
    columns = (rows + rng.integers(1, 50, size=d * degree)) % d
    graph = csr.Graph(sp.csr_array((np.ones(d * degree), (rows, columns)), shape=(d, d)))
    X = sp.random_array((n, d), density=1e-3, random_state=rng, format="csr")
    y = np.arange(n) % 2
    solved(problem(X, y, graph, alpha=1.0, beta=0.1), "newton", tol=1e-4)


def variants(X):
    """The same matrix in other dtypes, orders and formats."""
    S = sp.csr_array(X)
    wide = S.copy()
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    backwards = sp.csr_array((S.data.copy(), S.indices.copy(), S.indptr.copy()), shape=S.shape)
    for i in range(S.shape[0]):
        row = slice(S.indptr[i], S.indptr[i + 1])
        backwards.indices[row], backwards.data[row] = S.indices[row][::-1], S.data[row][::-1]
    backwards.has_sorted_indices = False
    doubled = sp.coo_array(S)
    twice = (np.tile(doubled.data / 2, 2), (np.tile(doubled.row, 2), np.tile(doubled.col, 2)))
    frozen = X.copy()
    frozen.flags.writeable = False
    spaced = np.repeat(X, 2, axis=1)[:, ::2]
    return {
        "csr": S,
        "csc": sp.csc_array(S),
        "matrix": sp.csr_matrix(S),
        "int64": wide,
        "unsorted": backwards,
        "duplicates": sp.coo_array(twice, shape=S.shape),
        "read-only": frozen,
        "strided": spaced,
        "fortran": np.asfortranarray(X),
        "float32": X.astype(np.float32),
        "sparse float32": S.astype(np.float32),
    }


@each_solver
def test_formats_and_dtypes_give_the_same_answer(solver):
    rng = np.random.default_rng(1)
    X = (rng.integers(-4, 5, size=(30, 8)) * (rng.random((30, 8)) < 0.5)).astype(float) / 4  # exact in float32
    y = np.arange(30) % 2
    reference = solved(problem(X, y), solver, 1e-12)
    for name, matrix in variants(X).items():
        before = matrix.copy()
        other = solved(problem(matrix, y), solver, 1e-12)
        assert other.coef.dtype == np.float64
        np.testing.assert_allclose(other.coef, reference.coef, atol=1e-5, err_msg=name)
        assert abs(matrix - before).max() == 0, name  # what was given is left as it was


@each_solver
def test_limits_return_the_best_point_with_its_honest_gap(solver):
    X, y = data(n=200, d=50)
    slow = problem(X, y, beta=1e-4)
    best = solved(slow, "newton", 1e-9)
    for limit in ({"max_iter": 2}, {"time_limit": 1e-9}):
        with pytest.warns(csr.InaccurateWarning, match=next(iter(limit))):
            solution = slow.solve(solver, tol=1e-12, **limit)
        assert solution.status == next(iter(limit))
        assert solution.certificate.gap >= solution.objective - best.objective - 1e-9
        assert solution.objective == pytest.approx(slow.value_at(*slow.shaped(solution.coef, solution.intercept)))


@each_solver
def test_an_interrupt_in_a_callback_leaves_the_best_point_so_far(solver):
    X, y = data(n=200, d=50)
    slow = problem(X, y, beta=1e-4)

    def stop(record):
        raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution = slow.solve(solver, tol=1e-12, callback=stop)
    # the first certificate may already be that of the optimum
    assert solution.status == ("optimal" if solution.certificate.relative_gap <= 1e-12 else "interrupted")
    assert len(solution.history) == 1
    same_optimum(solved(slow, solver), solved(slow, "newton"))  # nothing that is kept was corrupted


@pytest.fixture
def interruptible():
    """Python's own handler: a shell starts processes in the background with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@each_solver
def test_an_interrupt_in_the_middle_of_a_run(solver, interruptible):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(2000, 400)), np.arange(2000) % 2
    slow = problem(X, y, beta=1e-9)
    solved(slow, "newton", 1e-4)  # whatever is compiled is compiled by now
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    solutions, raised = [], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            while timer.is_alive():  # until the signal arrives, and perhaps once more before the timer has ended
                solutions.append(slow.solve(solver, tol=1e-15, max_iter=10_000))
    except KeyboardInterrupt:
        raised = True  # between two solves, or before the first point of one, when there is nothing to return
    timer.join()
    # at the optimum there was nothing left to stop
    assert raised or {"interrupted", "optimal"} & {solution.status for solution in solutions[-2:]}
    assert all(np.isfinite(solution.objective) for solution in solutions)
    solved(slow, "newton", 1e-4)


def test_lbfgs_where_kept_margins_leave_no_curvature():
    X = np.array([[0.0, 0.0, -3.0], [0.3, -0.7, 0.0]])
    graph = csr.Graph.from_edges([[0, 2], [1, 2]], [0.001221530878720999, 0.0013552532966141543], 3)
    smooth = 0.4684956943088614 * csr.Laplacian(graph, power=3)
    separated = csr.Problem(csr.Linear(X), csr.SquaredHinge([1, -1], rows=[1, 0]) + smooth)
    solved(separated, "lbfgs")
    kept = csr.Problem(csr.Linear([[-1.0], [1.0]]), csr.SquaredHinge([0, 1]) + csr.Ridge())
    from_kept = solved(kept, "lbfgs", warm_start=([10.0], 0.5))
    same_optimum(from_kept, solved(kept, "newton"))


def test_newton_keeps_away_from_directions_that_only_round_off_sees():
    X = np.array([[0.7, -0.7, 0.4], [0.3, -0.2, 1.0]])
    form = csr.Quadratic(matrix=np.array([[5.67, 2.32], [2.32, 1.83]])).on_function()
    hidden = csr.Problem(csr.Linear(X, intercept=False), csr.Logistic([-1, 1]) + form)
    assert np.abs(solved(hidden, "newton").coef).max() < 10.0


@each_solver
def test_free_directions_on_features_without_data_stay_where_they_are(solver):
    rng = np.random.default_rng(0)
    unseen = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]) / np.sqrt(3.0)
    factor = rng.normal(size=(6, 6)) @ (np.eye(6) - np.outer(unseen, unseen))
    X = np.hstack([rng.normal(size=(4, 3)), np.zeros((4, 3))])
    without = csr.Problem(csr.Linear(X), csr.Logistic([0, 1, 0, 1]) + 0.1 * csr.Quadratic(factor=factor))
    assert np.abs(solved(without, solver).coef).max() < 10.0
