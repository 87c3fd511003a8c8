"""Problems: what they say, what CVXPY makes of them, and the driver around the solvers."""

from __future__ import annotations

import pickle

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.solvers import names, refusals


@pytest.fixture
def data():
    """A small classification problem."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    return X, (X[:, 0] - X[:, 1] + rng.normal(size=60) > 0).astype(int)


@pytest.fixture
def problem(data):
    """Logistic loss with a feature network."""
    X, y = data
    graph = csr.Graph.from_edges([(0, 2), (1, 3)], n_nodes=6)
    return csr.Problem(csr.Linear(X), csr.Logistic(y) + 9.9 * csr.FeatureNetwork(graph) + 0.1 * csr.Ridge())


def test_describe_prints_objective_and_conventions(problem):
    text = problem.describe()
    for part in (
        "minimize over w in R^6, b in R",
        "sum_i log(1 + exp(-y_i f_i))",
        "9.9 * ||(I - P) w||^2",
        "0.1 * ||w||^2",
        "not averaged",
        "no factor 1/2",
        "f = X w + b",
        "penalties on the weights do not include b",
    ):
        assert part in text
    html = problem._repr_html_()
    assert "<table>" in html
    assert "9.9 * ||(I - P) w||^2" in html
    assert repr(problem).startswith("Problem(Linear(60 x 6 dense), Logistic(60 rows) + 9.9 * FeatureNetwork(")


def test_describe_tells_weights_rows_scores_and_kernels():
    graph = csr.Graph.from_edges([(0, 1)], n_nodes=4)
    loss = csr.Multinomial([0, 1, 2], rows=[0, 1, 3], sample_weight=[1.0, 2.0, 1.0])
    problem = csr.Problem(
        csr.Kernel(np.eye(4), intercept=False), loss + csr.RKHSNorm() + 2 * csr.Laplacian(graph).on_scores()
    )
    text = problem.describe()
    for part in (
        "theta in R^(4 x 3)",
        "s_i (log sum_j",
        "s_i are the sample weights",
        "on the 3 labelled of 4 rows",
        "|W_ij| (f_i - s_ij f_j)^2",
        "on the scores of all 4 rows",
        "F = gram theta, Kernel(4 x 4 dense, intercept=False); there is no intercept",
    ):
        assert part in text


def test_value_is_the_cvxpy_objective(problem):
    rng = np.random.default_rng(1)
    w, b = rng.normal(size=6), 0.3
    cvxpy_problem = problem.to_cvxpy()
    for variable in cvxpy_problem.variables():
        variable.value = w[:, None] if variable.name() == "theta" else np.array([[b]])
    assert problem.value(w, b) == pytest.approx(cvxpy_problem.objective.value, rel=1e-12)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "ECOS"])
def test_to_cvxpy_is_an_ordinary_problem(problem, solver):
    cvxpy_problem = problem.to_cvxpy()
    assert isinstance(cvxpy_problem, cp.Problem)
    assert cvxpy_problem.is_dcp()
    assert cvxpy_problem.solve(solver=solver) == pytest.approx(problem.solve().objective, rel=1e-4)


def test_to_cvxpy_of_a_quadratic_program_solves_with_osqp(data):
    X, y = data
    problem = csr.Problem(csr.Linear(X), csr.Hinge(y) + 0.5 * csr.Ridge() + 0.1 * csr.L1())
    cvxpy_problem = problem.to_cvxpy()
    assert cvxpy_problem.is_qp()
    assert cvxpy_problem.solve(solver="OSQP", eps_abs=1e-7, eps_rel=1e-7) == pytest.approx(
        problem.solve("cvxpy").objective, rel=1e-4
    )


def test_group_norms_are_vectorised():
    rng = np.random.default_rng(0)
    groups = csr.Groups([sorted(rng.choice(300, size=5, replace=False).tolist()) for _ in range(2000)], n_features=300)
    expression = csr.GroupLasso(groups).expr(cp.Variable((300, 1)))
    count, stack = 0, [expression]
    while stack:
        node = stack.pop()
        count += 1
        stack.extend(node.args)
    assert count < 40


def test_an_atom_is_a_function_of_cvxpy_expressions_too(data):
    X, y = data
    w = cp.Variable(6)
    groups = csr.Groups([[0, 1, 2], [2, 3, 4, 5]], n_features=6)
    plain = cp.Problem(cp.Minimize(csr.Logistic(y)(X @ w) + 0.5 * csr.GroupLasso(groups)(w)))
    model = csr.Linear(X, intercept=False)
    ours = csr.Problem(model, csr.Logistic(y) + 0.5 * csr.GroupLasso(groups)).solve()
    assert plain.solve(solver=cp.CLARABEL) == pytest.approx(ours.objective, rel=1e-6)


def test_sums_and_scales_make_the_same_objective(data):
    X, y = data
    one = csr.Problem(csr.Linear(X), csr.Logistic(y) + 2 * (csr.Ridge() + 0.5 * csr.L1()))
    two = csr.Problem(csr.Linear(X), sum([2 * csr.Ridge(), csr.L1(), csr.Logistic(y)]))
    w = np.arange(6.0)
    assert one.value(w, 1.0) == pytest.approx(two.value(w, 1.0), rel=1e-14)


def test_the_solution_tells_what_it_is(problem):
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.coef.shape == (6,)
    assert isinstance(solution.intercept, float)
    assert solution.objective == problem.value(solution.coef, solution.intercept)
    assert solution.objective == solution.certificate.objective
    assert solution.scores == pytest.approx(problem.model.design @ solution.coef + solution.intercept)
    assert "optimal" in repr(solution)
    times = [record.time for record in solution.history]
    assert times == sorted(times)
    again = pickle.loads(pickle.dumps(solution))
    assert np.array_equal(again.coef, solution.coef)


def test_status_comes_from_the_recomputed_certificate(problem):
    solution = problem.solve("fista", tol=1e-3)
    certificate = csr.certify(problem, solution.coef, solution.intercept, search=False)
    assert solution.certificate.relative_gap <= 1e-3
    assert certificate.gap >= 0
    assert certificate.objective == solution.objective


def test_limits_give_the_best_point_with_its_honest_gap(problem):
    with pytest.warns(csr.InaccurateWarning, match="max_iter"):
        solution = problem.solve("fista", max_iter=2)
    assert solution.status == "max_iter"
    assert solution.n_iter == 2
    optimum = problem.solve().objective
    assert solution.objective - optimum <= solution.certificate.gap
    with pytest.warns(csr.InaccurateWarning, match="time_limit"):
        solution = problem.solve("admm", time_limit=1e-9)
    assert solution.status == "time_limit"
    assert solution.n_iter == 1


def test_an_interrupt_returns_the_best_point(problem):
    def interrupt(record):
        if record.n_iter >= 2:
            raise KeyboardInterrupt

    with pytest.warns(csr.InaccurateWarning, match="interrupted"):
        solution = problem.solve("fista", tol=1e-15, callback=interrupt)
    assert solution.status == "interrupted"
    assert np.isfinite(solution.certificate.gap)


def test_warm_starts_save_iterations(problem):
    for solver in ("fista", "admm"):
        cold = problem.solve(solver, tol=1e-8)
        warm = problem.solve(solver, tol=1e-8, warm_start=cold)
        assert warm.n_iter <= 2 < cold.n_iter
        pair = problem.solve(solver, tol=1e-8, warm_start=(cold.coef, cold.intercept))
        assert pair.objective == pytest.approx(cold.objective, rel=1e-7)


def test_verbose_prints_progress_and_callbacks_see_it(problem, capsys):
    seen = []
    solution = problem.solve("fista", verbose=True, callback=seen.append)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(seen) == len(solution.history)
    assert "objective" in lines[0]


def test_refusals_are_in_words(data):
    X, y = data
    groups = csr.Groups([[0, 1], [1, 2]], n_features=6)
    problem = csr.Problem(csr.Linear(X), csr.Hinge(y) + csr.GroupLasso(groups) + csr.L1())
    assert "Hinge(60 rows) has no gradient" in refusals(problem)["fista"]
    with pytest.raises(
        ValueError,
        match=r"does not accept.*has no gradient.*These do: 'semismooth_newton',.* 'semismooth_cg', 'admm', 'cvxpy'",
    ):
        problem.solve("fista")
    assert names()[-1] == "cvxpy"
    assert {"fista", "admm"} < set(names())


def test_sparse_data_stay_sparse_and_give_the_same(data):
    import scipy.sparse as sp

    X, y = data
    X = X * (np.abs(X) > 0.7)
    objective = csr.Logistic(y) + 0.5 * csr.L1()
    dense = csr.Problem(csr.Linear(X), objective).solve(tol=1e-9)
    sparse = csr.Problem(csr.Linear(sp.coo_matrix(X)), objective)
    assert sp.issparse(sparse.model.design)
    assert sparse.solve(tol=1e-9).coef == pytest.approx(dense.coef, abs=1e-5)


def test_inputs_are_not_modified(data):
    X, y = data
    X.flags.writeable = False
    before = X.copy()
    csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1()).solve()
    assert np.array_equal(X, before)


def test_names_of_graphs_and_groups_reach_the_results(data):
    X, y = data
    names = [f"gene {j}" for j in range(6)]
    graph = csr.Graph.from_edges([("gene 0", "gene 2")], names=names)
    groups = csr.Groups([["gene 0", "gene 1"], ["gene 5"]], feature_names=names)
    objective = csr.Logistic(y) + csr.Laplacian(graph) + csr.GroupLasso(groups) + 5.0 * csr.L1()
    solution = csr.Problem(csr.Linear(X), objective).solve()
    weights = solution.named_weights()
    assert next(iter(weights)) in ("gene 0", "gene 1")
    assert weights == {names[j]: solution.coef[j] for j in np.flatnonzero(solution.coef)}
    sizes = [abs(weight) for weight in weights.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_names_in_another_order_are_an_error(data):
    X, y = data
    names = [f"gene {j}" for j in range(6)]
    graph = csr.Graph.from_edges([(0, 2)], names=names)
    groups = csr.Groups([[0, 1], [5]], feature_names=names[::-1])
    with pytest.raises(ValueError, match=r"number 0 is 'gene 0' and 'gene 5'"):
        csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.Laplacian(graph) + csr.GroupLasso(groups))


def test_a_label_that_may_mean_unlabelled_is_an_error():
    with pytest.raises(ValueError, match=r"label -1, .* rows="):
        csr.Multinomial([-1, 0, 1, -1])
    assert csr.MulticlassHinge([-1, 0, 1], classes=(-1, 0, 1)).n_outputs == 3


def test_more_bad_options_have_clear_errors(problem, data):
    X, _ = data
    for options, message in (
        ({"tol": "a"}, "tol must be"),
        ({"max_iter": float("nan")}, "max_iter must be"),
        ({"time_limit": "soon"}, "time_limit must be"),
        ({"solver": "fista", "first_step": -1.0}, "first_step must be"),
        ({"solver": "cvxpy", "cvxpy_solver": "OSQP"}, "OSQP does not accept this problem; CLARABEL, SCS and ECOS"),
    ):
        with pytest.raises(ValueError, match=message):
            problem.solve(**options)
    with pytest.raises(TypeError, match="cvxpy_options must be a dictionary"):
        problem.solve("cvxpy", cvxpy_options=3)
    with pytest.raises(TypeError, match="callback must be"):
        problem.solve(callback=3)
    gram = X @ X.T - 5.0 * np.eye(60)
    indefinite = csr.Problem(csr.Kernel(gram), csr.Squared(X[:, 0]) + csr.RKHSNorm() + csr.L1())
    with pytest.raises(ValueError, match="positive semidefinite"):
        indefinite.solve("admm")


def test_a_perfect_fit_is_certified():
    problem = csr.Problem(csr.Linear(np.eye(3), intercept=False), csr.Squared([1.0, 2.0, 3.0]))
    solution = problem.solve("newton", tol=1e-9)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(0.0, abs=1e-12)


def test_bounds_on_scores_hold_whatever_their_strength(data):
    X, y = data
    for strength in (0.0, 3.0):
        objective = csr.Logistic(y) + 0.1 * csr.Ridge() + strength * csr.Box(-1.0, 1.0).on_scores()
        solution = csr.Problem(csr.Linear(X), objective).solve("cvxpy", tol=1e-4)
        assert np.abs(solution.scores).max() == pytest.approx(1.0, abs=1e-6)


def test_solves_of_small_data_do_not_depend_on_earlier_ones():
    X = np.array([[-88.1, 1.2, 5e-3, -2.2, -9415.6, 0.002], [-118.5, 0.6, 0.02, -1.2, 17593.2, 0.008]])
    penalty = 742.7 * csr.L1(weights=[1.5, 1.8, 0.7, 0.0, 1.4, 0.6])
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Logistic([1, -1]) + penalty)
    with pytest.warns(csr.InaccurateWarning):
        before = problem.solve("fista", max_iter=300)
    problem.solve("working_set")  # stores the data by columns
    with pytest.warns(csr.InaccurateWarning):
        assert np.array_equal(problem.solve("fista", max_iter=300).coef, before.coef)
