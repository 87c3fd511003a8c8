"""Newton's method on the dual of proximal steps: quantile and absolute losses with few rows and many columns."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.general import dual_newton
from cvxstructreg.solvers.general.dual_newton import _Data, _Step

LOSSES = {
    "Quantile": lambda y, **how: csr.Quantile(y, quantile=0.8, **how),
    "Absolute": lambda y, **how: csr.Absolute(y, **how),
    "Hinge": lambda y, **how: csr.Hinge((y > 0).astype(int), **how),
}


def data(n=40, d=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, :4] @ rng.normal(size=4) + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_it_proves_the_optimum_of_another_solver(name, form, intercept):
    X, y = data()
    weights = np.arange(len(y)) % 3 + 0.5
    offset = np.linspace(-0.3, 0.3, len(y))
    loss = LOSSES[name](y, sample_weight=weights, offset=offset)
    problem = csr.Problem(csr.Linear(form(X), intercept), loss + 3.0 * csr.L1())
    found, other = problem.solve("dual_newton", tol=1e-8), problem.solve("semismooth_newton", tol=1e-8)
    assert found.status == "optimal" and found.certificate.relative_gap <= 1e-8
    assert abs(found.objective - other.objective) <= found.certificate.gap + other.certificate.gap
    assert 0 < np.count_nonzero(found.coef) <= len(y)  # zeros are exact


def test_labelled_rows_and_weights_of_features():
    X, y = data()
    rows = np.arange(5, 35)
    loss = csr.Quantile(y[rows], rows=rows, quantile=0.3)
    problem = csr.Problem(csr.Linear(X), loss + 2.0 * csr.L1(np.linspace(0.5, 2.0, X.shape[1])))
    solution = problem.solve("dual_newton", tol=1e-8)
    assert solution.status == "optimal"
    again = problem.solve("dual_newton", tol=1e-8, warm_start=solution)
    assert again.status == "optimal"


def test_a_perfect_fit_without_weights():
    problem = csr.Problem(csr.Linear(data()[0]), csr.Absolute(np.full(40, 2.0)) + csr.L1())
    solution = problem.solve("dual_newton")
    assert solution.status == "optimal" and solution.objective == 0.0 and not solution.coef.any()


def test_many_columns_go_to_it_and_are_proved():
    X, y = data(n=60, d=2000)
    loss = csr.Quantile(y, quantile=0.7)
    problem = csr.Problem(csr.Linear(X), loss + 2.0 * csr.L1())
    assert registry.choose(problem, "auto").name == "dual_newton"
    solution = problem.solve(tol=1e-7)
    assert solution.solver == "dual_newton" and solution.status == "optimal"


def test_the_dual_function_has_the_gradient_and_newton_step_it_says():
    X, y = data(n=12, d=30)
    problem = csr.Problem(csr.Linear(X), csr.Quantile(y, quantile=0.8) + 0.5 * csr.L1())
    numbers, rng = _Data(problem), np.random.default_rng(1)
    step = _Step(numbers, rng.normal(size=31), rng.normal(size=12), 0.3, 0.8)
    point = step.at(0.3 * rng.normal(size=12))
    for direction in np.eye(12)[:4]:
        ahead, behind = (step.at(point.u + sign * 1e-6 * direction).value for sign in (1.0, -1.0))
        assert (ahead - behind) / 2e-6 == pytest.approx(direction @ (point.z - point.scores), abs=1e-6)
    chosen = numbers.columns[point.active]
    away = (point.p <= numbers.lower) | (point.p >= numbers.upper)
    matrix = 0.3 * chosen.T @ chosen + 0.8 * np.diag(away)
    np.testing.assert_allclose(matrix @ step.newton(point), point.scores - point.z, atol=1e-5)


@pytest.mark.parametrize(
    ("penalty", "reason"),
    [
        (csr.Ridge(), "L1 on all weights"),
        (csr.L1() + csr.Ridge(), "L1 on all weights"),
        (csr.L1([0.0] + [1.0] * 89), "L1 on all weights"),
        (csr.L1() + csr.NonNegative(), "L1 on all weights"),
    ],
)
def test_other_penalties_are_refused(penalty, reason):
    X, y = data()
    with pytest.raises(ValueError, match=reason):
        csr.Problem(csr.Linear(X), csr.Absolute(y) + penalty).solve("dual_newton")


def test_many_rows_are_refused():
    X, y = data()
    need = dual_newton.FewRows(39)
    assert need.missing(csr.Problem(csr.Linear(X), csr.Absolute(y) + csr.L1())) == (
        "at most 39 rows are supported, and there are 40"
    )
