"""Proximal Newton steps for smooth losses beside several terms with a prox."""

import numpy as np
import pytest

import cvxstructreg as csr

N, D = 80, 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
RISK = X[:, 0] + X[:, 1] + 0.4 * RNG.normal(size=N)
PAIRS = csr.Groups([[j, j + 1] for j in range(0, D, 2)], n_features=D)
CHAIN = csr.Graph.from_edges([(j, j + 1) for j in range(D - 1)], n_nodes=D)
PENALTIES = {
    "slope": lambda: 0.1 * csr.SLOPE(np.linspace(3, 1, D)),
    "nuclear": lambda: 0.1 * csr.NuclearNorm(),
    "exclusive": lambda: 0.1 * csr.ExclusiveLasso(PAIRS),
    "l1": lambda: 0.01 * csr.L1(),
    "fused": lambda: 0.1 * csr.FusedLasso(CHAIN),
    "nonnegative": lambda: csr.NonNegative(),
}
TWO = [(a, b) for i, a in enumerate(PENALTIES) for b in list(PENALTIES)[i + 1 :] if i < 3]


def cox(*penalties, n=N, **options):
    terms = sum((PENALTIES[name]() for name in penalties[1:]), PENALTIES[penalties[0]]())
    return csr.Problem(csr.Linear(X[:n], intercept=False), csr.Cox(np.exp(-RISK[:n]), **options) + terms)


@pytest.mark.parametrize("pair", TWO, ids="+".join)
def test_cox_with_two_penalties_is_certified_in_a_few_steps(pair):
    solution = cox(*pair).solve()
    assert solution.status == "optimal" and solution.solver == "split_newton" and solution.n_iter <= 20
    assert solution.certificate.kind == "duality_gap"


@pytest.mark.parametrize("pair", [("slope", "l1"), ("nuclear", "fused"), ("exclusive", "nonnegative")], ids="+".join)
def test_the_optimum_is_that_of_cvxpy(pair):
    problem = cox(*pair, n=25)
    solution, reference = problem.solve(tol=1e-8), problem.solve("cvxpy", tol=1e-6)
    assert solution.objective == pytest.approx(reference.objective, rel=2e-6)


def test_the_step_choice_says_why():
    assert "admm accepts it but is expected to be slower: the prox of Cox" in cox("slope", "l1").solve().solver_choice


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_bounds_leave_no_rest_that_would_prevent_a_proof(strength):
    loss = csr.Cox(np.exp(-RISK), event=np.arange(N) % 3 > 0, ties="efron")
    terms = strength * csr.ExclusiveLasso(PAIRS) + csr.NonNegative() + csr.SLOPE(np.linspace(3, 1, D))
    solution = csr.Problem(csr.Linear(X, intercept=False), loss + terms).solve("split_newton")
    assert solution.status == "optimal" and solution.coef.min() >= 0


@pytest.mark.parametrize(
    "loss",
    [
        csr.Multinomial(np.digitize(RISK, [-0.7, 0.7])),
        csr.Tweedie(np.maximum(RISK, 0.0)),
        csr.MultiTask(np.column_stack([RISK, X[:, 2]])),
        csr.Logistic((RISK > 0).astype(int)),
        csr.Poisson(np.round(np.exp(RISK)), offset=0.1 * X[:, 3]),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_other_losses_with_an_intercept(loss):
    terms = PENALTIES["slope"]() + PENALTIES["nuclear"]() + PENALTIES["l1"]() + 0.1 * csr.HuberDifferences(CHAIN)
    problem = csr.Problem(csr.Linear(X), loss + terms + 0.01 * csr.Ridge())
    solution = problem.solve("split_newton")
    assert solution.status == "optimal" and solution.n_iter <= 25
    again = problem.solve("split_newton", warm_start=solution)
    assert again.status == "optimal" and again.n_iter <= solution.n_iter


def test_terms_on_the_scores_may_have_a_kink():
    terms = csr.Dissimilarity([(0, 1), (2, 3)]) + csr.Ridge()
    solution = csr.Problem(csr.Linear(X, intercept=False), csr.Cox(np.exp(-RISK)) + terms).solve()
    assert solution.status == "optimal" and solution.solver == "split_newton"


def test_zeros_are_exact():
    problem = csr.Problem(
        csr.Linear(X, intercept=False), csr.Cox(np.exp(-RISK)) + 0.1 * csr.NuclearNorm() + 15.0 * csr.L1()
    )
    solution = problem.solve()
    assert solution.status == "optimal" and 0 < np.count_nonzero(solution.coef) < D


def test_problems_without_a_smooth_loss_are_refused():
    problem = csr.Problem(csr.Linear(X), csr.Hinge((RISK > 0).astype(int)) + csr.SLOPE.bh(D) + csr.L1())
    assert csr.solvers.refusals(problem)["split_newton"] == (
        "no term on the scores has a gradient and a Hessian row by row"
    )


def test_losses_with_a_quick_prox_still_go_to_admm():
    problem = csr.Problem(csr.Linear(X), csr.Squared(RISK) + csr.SLOPE.bh(D) + csr.L1())
    assert csr.solvers.accepting(problem)[0].name == "admm" and problem.solve().solver == "admm"
