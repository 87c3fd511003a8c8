"""SLOPE, the nuclear norm and the exclusive lasso: proofs, known answers, relations, bad input."""

import numpy as np
import pytest
from penalty_problems import LOSSES, require_proof_and_reference, small_problem

import cvxstructreg as csr

GROUPS = csr.Groups([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
PENALTIES = {
    "SLOPE": 1.0 * csr.SLOPE.bh(12),
    "OSCAR": 0.3 * csr.SLOPE.oscar(12),
    "SLOPE + Ridge": csr.SLOPE.bh(12) + 0.5 * csr.Ridge(),
    "NuclearNorm": 2.0 * csr.NuclearNorm((3, 4)),
    "ExclusiveLasso": 0.5 * csr.ExclusiveLasso(GROUPS),
    "ExclusiveLasso + L1": 0.5 * csr.ExclusiveLasso(GROUPS) + csr.L1(),
}
OF_SEVERAL = {"NuclearNorm": 2.0 * csr.NuclearNorm(), "SLOPE": 1.0 * csr.SLOPE.bh(12)}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", PENALTIES)
def test_auto_proves_every_loss_with_every_penalty(name, loss):
    require_proof_and_reference(small_problem(loss, PENALTIES[name]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_auto_proves_several_outputs(name, loss):
    require_proof_and_reference(small_problem(loss, OF_SEVERAL[name], k=3))


def test_slope_with_equal_weights_is_l1_and_with_one_weight_the_largest():
    w = np.random.default_rng(0).normal(size=6)
    assert csr.SLOPE(np.ones(6))(w) == pytest.approx(csr.L1()(w))
    assert np.allclose(csr.SLOPE(np.ones(6)).prox(w, 0.3), csr.L1().prox(w, 0.3))
    largest = csr.SLOPE([1.0, 0, 0, 0, 0, 0])
    assert largest(w) == pytest.approx(np.abs(w).max()) and largest.dual_norm(w) == pytest.approx(np.abs(w).sum())


def test_oscar_by_its_formula():
    w = np.random.default_rng(0).normal(size=5)
    pairs = sum(max(abs(w[i]), abs(w[j])) for i in range(5) for j in range(i))
    assert csr.SLOPE.oscar(5, a=2.0, b=0.5)(w) == pytest.approx(2.0 * np.abs(w).sum() + 0.5 * pairs)


def test_slope_gives_equal_features_equal_weights():
    x = np.random.default_rng(0).normal(size=(30, 3))
    problem = csr.Problem(csr.Linear(x[:, [0, 0, 1, 2]]), csr.Squared(x @ [3.0, 1.0, 0.0]) + 5.0 * csr.SLOPE.oscar(4))
    w = problem.solve(tol=1e-9).coef.ravel()
    assert w[0] == pytest.approx(w[1], abs=1e-5) and w[0] > 0.1


def test_the_nuclear_norm_finds_a_low_rank():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(60, 8)), np.outer(rng.normal(size=8), [1.0, -1.0, 2.0])
    problem = csr.Problem(
        csr.Linear(X), csr.MultiTask(X @ W + 0.1 * rng.normal(size=(60, 3))) + 5.0 * csr.NuclearNorm()
    )
    values = np.linalg.svd(problem.solve(tol=1e-8).coef, compute_uv=False)
    assert values[1] < 1e-4 * values[0]


def test_the_nuclear_norm_of_a_diagonal_is_l1():
    w = np.random.default_rng(0).normal(size=3)
    assert csr.NuclearNorm()(np.diag(w)) == pytest.approx(csr.L1()(w))
    assert np.allclose(csr.NuclearNorm().prox(np.diag(w), 0.4), np.diag(csr.L1().prox(w, 0.4)))


def test_exclusive_lasso_of_single_features_is_a_ridge_and_every_group_stays():
    w = np.random.default_rng(0).normal(size=4)
    single = csr.ExclusiveLasso(csr.Groups([[0], [1], [2], [3]]))
    assert single(w) == pytest.approx(csr.Ridge()(w))
    assert np.allclose(single.prox(w, 0.7), w / 2.4)
    problem = small_problem("squared", 30.0 * csr.ExclusiveLasso(GROUPS))
    w = problem.solve().coef.ravel().reshape(3, 4)
    assert np.all((w != 0).any(axis=1)) and (w == 0).any()


@pytest.mark.parametrize("penalty", [csr.SLOPE.bh(12), csr.NuclearNorm((3, 4))])
def test_the_largest_strength_makes_all_weights_zero_and_no_smaller_one_does(penalty):
    largest = csr.lambda_max(small_problem("squared", 1.0 * penalty))
    assert not small_problem("squared", 1.0001 * largest * penalty).solve(tol=1e-9).coef.any()
    assert small_problem("squared", 0.98 * largest * penalty).solve(tol=1e-9).coef.any()


def test_the_exclusive_lasso_has_no_largest_strength():
    with pytest.raises(ValueError, match=r"not a norm.*give strengths="):
        csr.lambda_max(small_problem("squared", 1.0 * csr.ExclusiveLasso(GROUPS)))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: csr.SLOPE([1.0, 2.0]), r"never rise.*np.sort\(weights\)\[::-1\]"),
        (lambda: csr.SLOPE([1.0, -2.0]), "at least 0"),
        (lambda: csr.SLOPE([1.0, np.nan]), "finite"),
        (lambda: csr.SLOPE([0.0, 0.0]), "all weights of SLOPE are zero"),
        (lambda: csr.SLOPE(2.0), r"SLOPE.bh\(d\)"),
        (lambda: csr.SLOPE.bh(5, q=1.5), "between 0 and 1"),
        (lambda: csr.SLOPE.bh(0), "at least 1"),
        (lambda: csr.SLOPE.oscar(5, a=-1.0), "at least 0"),
        (lambda: csr.SLOPE.bh(5)([1.0, 2.0]), "acts on 5 rows"),
        (lambda: csr.NuclearNorm((3, 0)), "two positive integers"),
        (lambda: csr.NuclearNorm(3), "two positive integers"),
        (lambda: small_problem("squared", csr.NuclearNorm((3, 5))), "acts on 15 rows"),
        (lambda: csr.ExclusiveLasso(csr.Groups([[0, 1], [1, 2]])), "feature 1 is in several.*one term for each"),
        (lambda: csr.ExclusiveLasso(GROUPS, weights=-1.0), ">= 0"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
