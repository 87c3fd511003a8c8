"""Penalties from a CVXPY expression alone: structure, certificates, given formulas, and what is refused."""

import pickle

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.expressions.dual_bound import DualBound
from cvxstructreg.testing import check_atom, check_solver

RNG = np.random.default_rng(3)
MAP, OFFSET = RNG.normal(size=(4, 6)), RNG.normal(size=4)

RECOGNISED = {
    "norm1": (lambda w: 3.0 * cp.norm1(w), "[3 * L1()]"),
    "pnorm": (lambda w: cp.norm(w, 1), "[L1()]"),
    "sum of abs": (lambda w: cp.sum(cp.abs(MAP @ w)), "[Composed(L1(), K of 4 x 6)]"),
    "tv and norm1": (lambda w: cp.tv(w) + 0.5 * cp.norm1(w), "[0.5 * L1(), Composed(L1(), K of 5 x 6)]"),
    "weighted": (lambda w: cp.norm1(cp.multiply(np.arange(1.0, 7.0), w)), "[L1(weights=<6 numbers>)]"),
    "trend": (lambda w: cp.norm1(cp.diff(w, 2)), "[Composed(L1(), K of 4 x 6)]"),
    "norm": (lambda w: cp.norm(MAP @ w), "[Composed(BlockNorms(1 blocks of 4 rows), K of 4 x 6)]"),
    "loop": (lambda w: sum(cp.norm(w[g]) for g in ([0, 1], [1, 2, 3])), "GroupLasso(Groups(2 groups"),
    "mixed norm": (lambda w: cp.mixed_norm(cp.reshape(w, (2, 3), order="F"), 2, 1), "GroupLasso(Groups(2 groups"),
    "isotropic": (lambda w: cp.tv(cp.reshape(w, (2, 3), order="F")), "[Composed(BlockNorms(2 blocks of 4 rows)"),
    "squares": (lambda w: cp.sum_squares(w) + cp.norm1(w), "[Ridge(), L1()]"),
    "squares of a map": (lambda w: 2.0 * cp.sum_squares(MAP @ w), "[Quadratic(factor for 6 features)]"),
    "quadratic form": (lambda w: cp.quad_form(w, MAP.T @ MAP + np.eye(6)), "[Quadratic(matrix for 6 features)]"),
    "huber": (lambda w: cp.sum(cp.huber(w, 0.5)), "[HuberPenalty(M=0.5, weights=<6 numbers>)]"),
    "huber of a map": (lambda w: 2.0 * cp.sum(cp.huber(3.0 * MAP @ w, 0.7)), "HuberPenalty(M=0.7"),
    "maximum": (lambda w: cp.sum(cp.maximum(w, -w)), "[L1()]"),
}
GENERAL = {
    "norm_inf": cp.norm_inf,
    "offset": lambda w: cp.norm1(MAP @ w - OFFSET),
    "squared offset": lambda w: cp.sum_squares(MAP @ w - OFFSET) + 0.1 * cp.norm1(w),
    "sum_largest": lambda w: cp.sum_largest(cp.abs(w), 2),
    "constant": lambda w: cp.norm1(w) + 2.0,
    "logistic": lambda w: cp.sum(cp.logistic(MAP @ w)),
    "largest difference": lambda w: cp.norm_inf(cp.diff(w)),
    "power": lambda w: cp.sum(cp.power(cp.abs(w), 1.5)),
    "range": lambda w: cp.max(w) - cp.min(w),
    "positive part": lambda w: cp.sum(cp.pos(w)),
    "one-sided": lambda w: cp.max(cp.hstack([w, 0.0])) + cp.sum(cp.pos(MAP @ w - OFFSET)),
    "norm squared": lambda w: cp.norm1(w) ** 2,
    "log_sum_exp": lambda w: cp.log_sum_exp(cp.abs(w)),
    "nuclear": lambda w: cp.normNuc(cp.reshape(w, (2, 3), order="F")),
}


def problem_with(penalty, loss=csr.Squared, n=25, d=6, strength=1.5, intercept=True):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    scores = X @ np.linspace(-1.0, 1.0, d) + 0.5 * rng.normal(size=n)
    y = scores if loss is csr.Squared else (scores > 0).astype(int)
    return csr.Problem(csr.Linear(X, intercept), loss(y) + strength * penalty)


@pytest.mark.parametrize("name", RECOGNISED)
def test_known_structure_is_recognised_and_right(name):
    function, expected = RECOGNISED[name]
    penalty = csr.FromExpression(function, name=name)
    assert expected in str(list(penalty.parts((6, 1))))
    check_atom(penalty, (6, 1))
    problem = problem_with(penalty)
    reference = problem.to_cvxpy().solve(solver="CLARABEL")
    solution = problem.solve()
    assert solution.status == "optimal"
    assert abs(solution.objective - reference) <= solution.certificate.gap + 1e-6 * abs(reference)


@pytest.mark.parametrize("name", GENERAL)
def test_every_other_expression_has_a_prox_and_a_certified_bound(name):
    penalty = csr.FromExpression(GENERAL[name], name=name)
    check_atom(penalty, (6, 1))
    for loss, intercept in ((csr.Squared, True), (csr.Logistic, False)):
        problem = problem_with(penalty, loss, intercept=intercept)
        reference = problem.to_cvxpy().solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9)
        solution = problem.solve()
        assert solution.solver == "fista" and solution.status == "optimal"
        assert solution.certificate.kind == "duality_gap"
        assert solution.certificate.lower_bound <= reference + 1e-7 * abs(reference)
        assert abs(solution.objective - reference) <= solution.certificate.gap + 1e-7 * abs(reference)


def test_the_bound_is_above_the_conjugate_however_inexact_the_cone_solver_is(monkeypatch):
    """Multipliers with noise of 1e-5 give a valid bound or none; noise of the usual size gives a good one."""
    x = cp.Variable(6)
    bound = DualBound(ConeProgram.compiled(cp.norm1(MAP @ x - OFFSET) + cp.sum_squares(x), x))
    solve, rng = type(bound.solver).solve, np.random.default_rng(0)
    for _ in range(20):
        u = rng.normal(size=6)
        v = cp.Variable(6)
        f = cp.norm1(MAP @ v - OFFSET) + cp.sum_squares(v)
        exact = cp.Problem(cp.Maximize(u @ v - f)).solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11)
        assert exact - 1e-9 <= bound.conj(u) <= exact + 1e-6 * (1.0 + abs(exact))
        for noise in (1e-8, 1e-5, 1e-2):

            def noisy(self, *inputs, noise=noise, **named):
                found = solve(self, *inputs, **named)
                return type(found)(found.v, found.y + noise * rng.normal(size=found.y.size), found.status)

            with monkeypatch.context() as patch:
                patch.setattr(type(bound.solver), "solve", noisy)
                assert bound.conj(u) >= exact - 1e-9


def test_norms_have_a_largest_strength_and_a_path():
    for function in (cp.norm_inf, lambda w: cp.tv(w) + 0.5 * cp.norm1(w), lambda w: cp.sum_largest(cp.abs(w), 2)):
        problem = problem_with(csr.FromExpression(function), strength=1.0)
        t = csr.lambda_max(problem)
        above, below = (problem_with(csr.FromExpression(function), strength=f * t).solve() for f in (1.001, 0.9))
        assert np.abs(above.coef).max() <= 1e-6 < 1e-3 < np.abs(below.coef).max()
    path = csr.path(problem, n_points=4)
    assert len(path) == 4 and all(solution.status == "optimal" for solution in path)


def test_the_strength_of_what_is_no_norm_has_no_largest_value():
    with pytest.raises(ValueError, match="not a norm"):
        csr.lambda_max(problem_with(csr.FromExpression(lambda w: cp.norm1(w) + cp.sum_squares(w))))


def test_verify_compares_all_solvers():
    for function in (RECOGNISED["tv and norm1"][0], GENERAL["norm_inf"]):
        report = csr.verify(problem_with(csr.FromExpression(function)))
        assert report.agrees and len(report.rows) >= 3, str(report)


@pytest.mark.parametrize("loss", [csr.Hinge, csr.Logistic])
def test_nonsmooth_losses_too(loss):
    problem = problem_with(csr.FromExpression(cp.norm_inf), loss)
    check_solver("admm", problem)


def test_several_outputs_are_summed_over_columns_unless_joint():
    rng = np.random.default_rng(0)
    X, y, W = rng.normal(size=(30, 4)), rng.integers(0, 3, size=30), rng.normal(size=(4, 3))
    for function in (cp.norm_inf, cp.norm1, lambda w: cp.norm(w, 2), lambda w: cp.tv(w) + cp.sum_squares(w)):
        penalty = csr.FromExpression(function)
        assert penalty(W) == pytest.approx(sum(float(function(cp.Constant(w)).value) for w in W.T))
        check_atom(penalty, (4, 3))
        problem = csr.Problem(csr.Linear(X), csr.Multinomial(y) + 0.5 * penalty)
        solution, reference = problem.solve(), problem.to_cvxpy().solve(solver="CLARABEL")
        assert solution.status == "optimal"
        assert abs(solution.objective - reference) <= solution.certificate.gap + 1e-6 * abs(reference)
    nuclear = csr.FromExpression(lambda W: cp.normNuc(W), joint=True)
    assert nuclear(W) == pytest.approx(np.linalg.svd(W)[1].sum())
    check_solver("fista", csr.Problem(csr.Linear(X), csr.Multinomial(y) + 2.0 * nuclear))


def test_given_formulas_are_used():
    calls = []

    def prox(v, t):
        calls.append("prox")
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)

    def dual_norm(u):
        calls.append("dual_norm")
        return np.abs(u).max()

    penalty = csr.FromExpression(cp.norm1, prox=prox, dual_norm=dual_norm)
    check_atom(penalty, (5, 1))
    check_solver("fista", problem_with(penalty))
    assert {"prox", "dual_norm"} <= set(calls)


@pytest.mark.parametrize(
    "formulas",
    [
        {"prox": lambda v, t: v},
        {"dual_norm": lambda u: 2.0 * np.abs(u).max()},
        {"conj": lambda u: 1.0},
        {"grad": lambda z: z},
    ],
    ids=lambda formulas: next(iter(formulas)),
)
def test_given_formulas_that_are_wrong_are_found_before_a_solve(formulas):
    name = next(iter(formulas))
    with pytest.raises(ValueError, match=f"given {name} differs from the expression"):
        problem_with(csr.FromExpression(cp.norm1, **formulas)).solve()


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda w: cp.sum(cp.sqrt(w)), "not convex.*CONCAVE"),
        (lambda w: cp.sum(cp.sqrt(1 + w**2)), "not convex"),
        (lambda w: -cp.norm1(w), "not convex"),
        (lambda w: cp.sum(w), "not nonnegative.*no minimum"),
        (lambda w: cp.norm1(w) - 1.0, "not nonnegative.*-1 at its minimum"),
        (lambda w: cp.abs(w), "one number.*sum it"),
        (lambda w: cp.norm1(MAP[:, :3] @ w), "cannot be applied to weights of shape"),
        (lambda w: cp.Constant(1.0), "does not depend on the weights"),
        (lambda w: cp.Parameter(nonneg=True, name="lam") * cp.norm1(w), "parameter lam.*lam.value"),
        (lambda w: cp.transforms.indicator([cp.reshape(w, (2, 3), order="F")[:, :2] >> 0]), "cp.lambda_min"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_expression_named(function, message):
    with pytest.raises((ValueError, TypeError), match=message):
        problem_with(csr.FromExpression(function, name="mine"))
    with pytest.raises((ValueError, TypeError), match="FromExpression"):
        problem_with(csr.FromExpression(function))


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="takes a function"):
        csr.FromExpression(3.0)
    with pytest.raises(TypeError, match="no argument 'proxx'"):
        csr.FromExpression(cp.norm1, proxx=lambda v, t: v)
    with pytest.raises(TypeError, match="must return a CVXPY expression"):
        problem_with(csr.FromExpression(lambda w: "text"))


def test_the_text_of_the_expression_names_it():
    problem = problem_with(csr.FromExpression(lambda w: cp.norm_inf(w)))
    assert "norm_inf(w)" in problem.describe() and "norm_inf(w)" in repr(problem)
    assert "sparse" in problem_with(csr.FromExpression(cp.norm1, name="sparse")).describe()


def largest(w):
    return cp.norm_inf(w)


def test_a_penalty_of_a_named_function_can_be_pickled():
    penalty = csr.FromExpression(largest)
    before = penalty.prox([3.0, 1.0], 0.5)
    again = pickle.loads(pickle.dumps(penalty))
    assert np.allclose(again.prox([3.0, 1.0], 0.5), before, atol=1e-7)
    part = pickle.loads(pickle.dumps(penalty.parts((2, 1))[0].atom))
    assert np.allclose(part.prox(np.array([[3.0], [1.0]]), 0.5)[:, 0], before, atol=1e-7)


def test_an_expression_after_a_map():
    for function in (cp.norm_inf, RECOGNISED["tv and norm1"][0]):
        penalty = csr.compose(csr.FromExpression(function), MAP)
        check_atom(penalty, (6, 1))
        problem = problem_with(penalty)
        reference = problem.to_cvxpy().solve(solver="CLARABEL")
        solution = problem.solve()
        assert solution.status == "optimal"
        assert abs(solution.objective - reference) <= solution.certificate.gap + 1e-6 * abs(reference)


class Own(csr.Penalty):
    """The largest weight, with nothing but its definition."""

    def expr(self, z):
        return cp.max(cp.abs(z))


def test_a_penalty_of_ones_own():
    problem = problem_with(Own())
    solution = problem.solve()
    assert solution.status == "optimal" and solution.certificate.kind == "duality_gap" and solution.solver != "cvxpy"
    assert solution.objective == pytest.approx(problem_with(csr.FromExpression(cp.norm_inf)).solve().objective)
    check_atom(Own(), (4, 2))
    again = pickle.loads(pickle.dumps(problem))
    assert again.solve().objective == pytest.approx(solution.objective)


def test_multipliers_that_are_not_finite_give_no_bound(monkeypatch):
    x = cp.Variable(6)
    bound = DualBound(ConeProgram.compiled(cp.norm1(x), x))
    solve, u = type(bound.solver).solve, 0.3 * np.ones(6)
    assert bound.conj(u) < 1e-6 and bound.dual_gauge(u) < 0.31
    for broken in (np.nan, np.inf):

        def overflowing(self, *inputs, broken=broken, **named):
            found = solve(self, *inputs, **named)
            return type(found)(np.full_like(found.v, broken), found.y, found.status)

        with monkeypatch.context() as patch:
            patch.setattr(type(bound.solver), "solve", overflowing)
            assert bound.conj(u) == bound.dual_gauge(u) == np.inf
