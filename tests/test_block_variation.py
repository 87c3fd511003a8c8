"""Isotropic total variation denoising by the dual problem: proved, equal to CVXPY, and taken by auto."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

RNG = np.random.default_rng(0)
SIDE = 8
IMAGE = np.kron([[0.0, 1.0], [2.0, 0.0]], np.ones((SIDE // 2, SIDE // 2))).ravel() + 0.4 * RNG.normal(size=SIDE**2)
ISOTROPIC = csr.TotalVariation((SIDE, SIDE))
MORE = {
    "plain": (csr.Squared(IMAGE) + 0.5 * ISOTROPIC, False),
    "ridge": (csr.Squared(IMAGE) + 0.5 * ISOTROPIC + 0.3 * csr.Ridge(), False),
    "weights": (csr.Squared(IMAGE, sample_weight=RNG.uniform(0.2, 2.0, SIDE**2)) + 0.5 * ISOTROPIC, False),
    "intercept": (csr.Squared(IMAGE) + 0.5 * ISOTROPIC, True),
    "tasks": (csr.MultiTask(RNG.normal(size=(SIDE**2, 2)), task_weight=[1.0, 0.05]) + 0.5 * ISOTROPIC, False),
    "volume": (csr.Squared(IMAGE) + 0.5 * csr.TotalVariation((4, 4, 4)), False),
}


def problem_of(objective, intercept=False):
    return csr.Problem(csr.Linear(sp.eye_array(SIDE**2, format="csr"), intercept=intercept), objective)


@pytest.mark.parametrize("name", MORE)
def test_auto_proves_the_optimum_of_cvxpy(name):
    problem = problem_of(*MORE[name])
    solution, reference = problem.solve(tol=1e-7), problem.solve(solver="cvxpy")
    assert solution.solver == "block_variation" and solution.status == "optimal" and not solution.switches
    assert solution.certificate.kind == "duality_gap"
    assert abs(solution.objective - reference.objective) <= 2e-7 * reference.objective + reference.certificate.gap


def test_a_strong_penalty_gives_the_mean_and_a_weak_one_the_image():
    flat, same = (problem_of(csr.Squared(IMAGE) + lam * ISOTROPIC).solve(tol=1e-9) for lam in (1e3, 1e-7))
    np.testing.assert_allclose(flat.coef, IMAGE.mean(), atol=1e-4)
    np.testing.assert_allclose(same.coef, IMAGE, atol=1e-5)


def test_other_problems_go_elsewhere():
    refused = {
        "L1": csr.Squared(IMAGE) + 0.5 * ISOTROPIC + 0.1 * csr.L1(),
        "Huber": csr.Huber(IMAGE) + 0.5 * ISOTROPIC,
        "anisotropic": csr.Squared(IMAGE) + 0.5 * csr.TotalVariation((SIDE, SIDE), isotropic=False),
    }
    for objective in refused.values():
        assert "block_variation" in csr.solvers.refusals(problem_of(objective))


def test_chains_do_not_take_outputs_of_different_weights():
    chains = csr.TotalVariation((SIDE, SIDE), isotropic=False)
    loss = csr.MultiTask(RNG.normal(size=(SIDE**2, 2)), task_weight=[1.0, 0.05])
    assert "equal weights" in csr.solvers.refusals(problem_of(loss + 0.5 * chains))["total_variation"]
