"""Overlapping groups by group_newton, against the reference."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from overlapping_group_problems import KINDS, assert_agree, basic, build, data, multinomial, no_l1, some_groups, squared

import cvxstructreg as csr
from cvxstructreg.core.loss import Loss
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.groups import group_newton, group_steps


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_group_newton_agrees_with_the_reference(kind, sparse):
    problem = build(kind, 5, sparse)
    solution = problem.solve("group_newton", tol=1e-8)
    assert solution.status == "optimal"
    assert 0 <= solution.certificate.relative_gap <= 1e-8
    assert_agree(solution, problem.solve("cvxpy"))


@pytest.mark.parametrize("kind", KINDS)
def test_loops_are_compiled_for_one_kind_of_indices(kind):
    assert not group_newton.stacked(build(kind, 5, True).normal_form).indices.flags.writeable


@pytest.mark.parametrize("kind", [basic, no_l1, multinomial])
def test_it_agrees_with_admm(kind):
    problem = build(kind, 6, True)
    solution = problem.solve("group_newton")
    assert_agree(solution, problem.solve("admm"))
    assert solution.n_iter <= 3


@pytest.mark.parametrize("kind", [basic, no_l1, squared])
def test_zeros_are_exact(kind):
    problem = build(kind, 7, False)
    solution, reference = problem.solve("group_newton", tol=1e-9), problem.solve("cvxpy", tol=1e-7)
    assert not np.any(solution.coef[np.abs(reference.coef) < 1e-7])
    assert np.all(solution.coef[np.abs(reference.coef) > 1e-4])


@pytest.mark.parametrize("solver", ["group_newton", "sentence_admm"])
@pytest.mark.parametrize("kind", [basic, multinomial, squared])
def test_strong_groups_give_zero(kind, solver):
    problem = build(kind, 8, False)
    terms = [term if isinstance(term.atom, Loss) else 1e4 * term.atom for term in problem.terms]
    solution = csr.Problem(problem.model, sum(terms[1:], terms[0])).solve(solver)
    assert solution.status == "optimal"
    assert not solution.coef.any()


def test_a_warm_start_that_is_worse_than_nothing_is_left_alone():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.2, size=(40, 90)).astype(float))
    y = np.arange(40) % 2
    groups = csr.Groups([rng.choice(90, size=30, replace=False).tolist() for _ in range(6)], n_features=90)

    def problem(lam, lam1):
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + lam * csr.GroupLasso(groups) + lam1 * csr.L1())

    dense = problem(0.3, 0.01).solve("group_newton")
    strong = problem(0.03, 2.0)
    assert strong.value(dense.coef, dense.intercept) > strong.value(np.zeros(90))
    cold, warm = strong.solve("group_newton"), strong.solve("group_newton", warm_start=dense)
    assert (warm.status, warm.n_iter) == ("optimal", cold.n_iter)
    np.testing.assert_array_equal(warm.coef, cold.coef)


def test_a_warm_start_from_the_solution_is_optimal_at_once():
    problem = build(basic, 9, True)
    solution = problem.solve("group_newton")
    again = problem.solve("group_newton", warm_start=solution)
    assert again.n_iter == 1
    assert again.objective == pytest.approx(solution.objective, rel=1e-6)
    elsewhere = problem.solve("group_newton", warm_start=(np.ones(12), 3.0))
    assert_agree(elsewhere, solution)


def test_more_features_than_join_at_once(monkeypatch):
    monkeypatch.setattr(group_newton, "LEAST_GROWTH", 1)
    monkeypatch.setattr(group_newton, "LEAST_DENSE", 1)
    monkeypatch.setattr(group_newton, "SMALL", 0)
    rng = np.random.default_rng(10)
    problem = basic(rng, data(rng, d=40), some_groups(rng, 40, n_groups=60), lam=0.05, lam1=0.05)
    assert_agree(problem.solve("group_newton"), problem.solve("cvxpy"))


@pytest.mark.parametrize("kind", [basic, multinomial, squared])
def test_selected_groups_by_the_copies(kind):
    """Copies of groups whose multipliers are inside their balls are zero, also where a solver leaves tiny weights."""
    problem = build(kind, 21, False)
    stronger = [term if isinstance(term.atom, Loss) else 3.0 * term.scale * term.atom for term in problem.terms]
    problem = csr.Problem(problem.model, sum(stronger[1:], stronger[0]))
    number, term = next((n, t) for n, t in enumerate(problem.terms) if isinstance(t.atom, csr.GroupLasso))
    exact = problem.solve("group_newton", tol=1e-10)
    expected = term.atom.selected(exact.coef)
    assert 0 < len(expected) < len(term.atom.groups)
    kept = term.atom.selected(exact.coef, exact.dual[number], term.scale)
    np.testing.assert_array_equal(kept, expected)
    noisy = exact.coef + 1e-9
    assert len(term.atom.selected(noisy)) == len(term.atom.groups)
    found = term.atom.selected(noisy, exact.dual[number], term.scale)  # multipliers are not unique: some may be left
    assert set(expected) <= set(found)
    assert len(found) < len(term.atom.groups)
    with pytest.raises(ValueError, match="one row for each"):
        term.atom.selected(exact.coef, exact.dual[number][:-1])


def test_auto_prefers_it_to_admm():
    problem = build(basic, 1, False)
    names = [module.name for module in registry.accepting(problem)]
    assert names.index("group_newton") < names.index("admm") < names.index("sentence_admm")


@pytest.mark.parametrize("solver", ["group_newton", "sentence_admm"])
@pytest.mark.parametrize(
    ("penalty", "loss", "reason"),
    [
        (csr.L1(), csr.Logistic, "there are no groups"),
        (csr.Box(-1, 1) + csr.GroupLasso(csr.Groups([[0, 1, 2]])), csr.Logistic, "bounds"),
        (csr.GroupLasso(csr.Groups([[0, 1, 2]])), csr.Hinge, "second derivatives"),
        (csr.FusedLasso(csr.Graph.from_edges([(0, 1), (1, 2)])), csr.Logistic, "not a sum of norms"),
    ],
)
def test_refusals(solver, penalty, loss, reason):
    problem = csr.Problem(csr.Linear(np.eye(3)), loss([0, 1, 1]) + penalty)
    with pytest.raises(ValueError, match=reason):
        problem.solve(solver)


def test_the_published_method_refuses_latent_groups():
    penalty = csr.LatentGroupLasso(csr.Groups([[0, 1, 2]]))
    problem = csr.Problem(csr.Linear(np.eye(3)), csr.Logistic([0, 1, 1]) + penalty)
    with pytest.raises(ValueError, match=r"not a sum of norms.*admm"):
        problem.solve("sentence_admm")


def test_the_repair_of_a_certificate_finds_a_tight_dual_point():
    rng = np.random.default_rng(3)
    problem = basic(rng, data(rng), some_groups(rng, 12))
    solution = problem.solve("group_newton", tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = csr.certify(problem, solution.coef, solution.intercept, search=False)
    assert 0 <= certificate.relative_gap <= 1e-7


@pytest.mark.parametrize("loss", [csr.Squared, csr.Huber])
def test_data_that_overflow_end_its_linear_systems_without_warnings(loss, monkeypatch):
    rng, systems = np.random.default_rng(0), []
    X, groups = rng.normal(size=(200, 40)), csr.Groups([range(i, i + 8) for i in range(0, 33, 4)], n_features=40)
    y = X[:, :4].sum(axis=1) + rng.normal(size=200)
    inner = group_steps.conjugate_gradients

    def counted(product, *inputs):
        systems.append(0)

        def with_count(p):
            systems[-1] += not np.isfinite(p).all()
            return product(p)

        return inner(with_count, *inputs)

    monkeypatch.setattr(group_steps, "conjugate_gradients", counted)
    problem = csr.Problem(csr.Linear(1e150 * X), loss(y) + 1e151 * csr.GroupLasso(groups))
    assert problem.solve().status == "optimal"
    assert max(systems) == 1  # the first product that is no number is the last one
