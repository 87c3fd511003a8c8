"""Gram matrices: what is proved of them, what is taken as round-off, and what the user may vouch for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.core import model as models
from cvxstructreg.estimators import DissimilaritySVC, MixedGraphClassifier
from cvxstructreg.numerics import semidefinite
from cvxstructreg.warped_kernel import WarpedKernel

NOT_PSD = "gram must be positive semidefinite"


def steep(n, part):
    """Few large eigenvalues, zeros, and one eigenvalue of -part times the largest."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 10))
    v = rng.normal(size=n)
    v -= X @ np.linalg.lstsq(X, v, rcond=None)[0]
    v /= np.linalg.norm(v)
    gram = X @ X.T - part * np.linalg.norm(X, 2) ** 2 * np.outer(v, v)
    return (gram + gram.T) / 2


def flat(n, part):
    """All eigenvalues 1 but one, which is -part."""
    v = np.random.default_rng(n).normal(size=n)
    return np.eye(n) - (1.0 + part) / (v @ v) * np.outer(v, v)


def smooth(n, dtype=float, gamma=0.1):
    """A Gaussian kernel, every step of it in the given precision."""
    X = np.random.default_rng(n).normal(size=(n, 5)).astype(dtype)
    squares = (X**2).sum(axis=1)
    return np.exp(dtype(-gamma) * (squares[:, None] + squares[None] - dtype(2) * X @ X.T))


def problems(gram, **known):
    """A problem for every solver that works on kernels as they are."""
    n = len(gram)
    y, rows = np.array([1, -1, 1, -1, 1, -1]), np.arange(6)
    graph = 0.1 * csr.Laplacian(csr.Graph.from_edges([(i, i + 1) for i in range(n - 1)], n_nodes=n)).on_function()
    norm = 0.1 * csr.RKHSNorm()
    three = csr.MulticlassHinge(rows % 3, rows=rows) + csr.Dissimilarity([(6, 7)])
    model = csr.Kernel(gram, **known)
    yield "warped_kernel", csr.Problem(model, csr.Hinge(y, rows=rows) + norm + graph)
    yield "warped_kernel", csr.Problem(csr.Kernel(gram, **known), csr.Hinge(y, rows=rows) + norm)
    yield "kernel_cg", csr.Problem(csr.Kernel(gram, **known), csr.Squared(1.0 * y, rows=rows) + norm + graph)
    yield "douglas_rachford", csr.Problem(csr.Kernel(gram, **known), three + norm)


@pytest.mark.parametrize("part", [1e-3, 1e-5])
@pytest.mark.parametrize("make", [steep, flat])
def test_a_small_negative_eigenvalue_is_found_by_every_solver(make, part):
    gram = make(1500, part)
    for solver, problem in problems(gram):
        with pytest.raises(ValueError, match=f"{NOT_PSD}, but its smallest eigenvalue is at most -"):
            problem.solve(solver)
        with pytest.raises(ValueError, match=NOT_PSD):
            problem.to_cvxpy()
    with pytest.raises(ValueError, match=NOT_PSD):
        WarpedKernel(gram, csr.Graph.from_edges([(0, 1)], n_nodes=len(gram)))


@pytest.mark.parametrize("part", [1e-3, 1e-5])
def test_no_certificate_without_proof(part):
    gram = steep(300, part)
    for _, problem in problems(gram):
        coef = np.zeros(300) if problem.n_outputs == 1 else np.zeros((300, problem.n_outputs))
        with pytest.raises(ValueError, match=NOT_PSD):
            csr.certify(problem, coef, 0.0)
    loss = csr.Squared([1.0, 2.0], rows=[0, 1])
    with pytest.raises(ValueError, match=NOT_PSD):
        csr.certify(csr.Problem(csr.Kernel(gram), loss + csr.RKHSNorm() + csr.L1()), np.zeros(300))
    # where gram is a design matrix and no norm, it may be anything
    assert csr.Problem(csr.Kernel(gram), loss + csr.Ridge()).solve().status == "optimal"


@pytest.mark.parametrize("part", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("make", [steep, flat])
def test_the_error_of_large_matrices_names_a_bound(make, part, monkeypatch):
    monkeypatch.setattr(semidefinite, "EXACT_ROWS", 100)
    gram = make(400, part)
    values = np.linalg.eigvalsh(gram)
    with pytest.raises(ValueError, match=f"{NOT_PSD}, but its smallest eigenvalue is at most -.+add more than") as met:
        csr.Kernel(gram).require_psd()
    named = float(str(met.value).split("at most ")[1].split(" ")[0])
    assert 1.01 * values[0] <= named <= -semidefinite.PSD_ROUND_OFF * values[-1]


@pytest.mark.parametrize("exact", [0, 1000])
@pytest.mark.parametrize("part", [0.0, 1e-14, 1e-12, 3e-9])
@pytest.mark.parametrize("make", [steep, flat])
def test_round_off_is_no_mistake(make, part, exact, monkeypatch):
    monkeypatch.setattr(semidefinite, "EXACT_ROWS", exact)
    kernel = csr.Kernel(make(300, part))
    if part < 1e-9:
        assert kernel.convex() is kernel
    else:
        with pytest.warns(csr.RepairedGramWarning, match="round-off of double precision"):
            repaired = kernel.convex()
        top = float(np.linalg.norm(kernel.design, 2))
        assert 0.9 * part * top <= repaired.shift <= 4.1 * part * top


def test_the_largest_eigenvalue_is_asked_for_before_a_matrix_is_refused(monkeypatch):
    monkeypatch.setattr(semidefinite, "EXACT_ROWS", 0)
    signs = np.where(np.arange(300) % 2 == 0, 1.0, -1.0)  # neither diagonal nor sum of entries show that it is 300
    gram = np.outer(signs, signs)
    v = np.zeros(300)
    v[:2] = np.sqrt(0.5)
    with pytest.warns(csr.RepairedGramWarning):
        csr.Kernel(gram - 1e-6 * np.outer(v, v)).require_psd()
    with pytest.raises(ValueError, match=NOT_PSD):
        csr.Kernel(gram - 1e-5 * np.outer(v, v)).require_psd()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [400, 1200])
def test_kernels_with_duplicates_and_of_low_rank_are_taken_in_both_precisions(n, dtype):
    X = np.random.default_rng(0).normal(size=(n // 2, 6)).astype(dtype)
    X = np.vstack([X, X])
    for gram in (X @ X.T, smooth(n, dtype), smooth(n, dtype, 1e-3), smooth(n, dtype, 5.0), np.ones((n, n), dtype)):
        with warnings.catch_warnings():
            if dtype is np.float32:
                warnings.simplefilter("ignore", csr.RepairedGramWarning)
            model = csr.Kernel(gram).convex()
        assert model.design.dtype == float and np.array_equal(model.design, model.design.T)


def test_single_precision_is_no_excuse_for_more_than_its_round_off():
    for part in (1e-3, 1e-4):
        with pytest.raises(ValueError, match=NOT_PSD):
            csr.Kernel(steep(600, part).astype(np.float32)).require_psd()
    asymmetric = np.eye(3, dtype=np.float32)
    asymmetric[0, 1] = 1e-6
    csr.Kernel(asymmetric)
    with pytest.raises(ValueError, match="gram must be symmetric"):
        csr.Kernel(asymmetric.astype(float))


def test_a_kernel_in_single_precision_is_solved_by_every_solver():
    for solver, problem in problems(smooth(300, np.float32, 1e-3)):
        with pytest.warns(csr.RepairedGramWarning):
            assert problem.solve(solver).status == "optimal"


def never(*args):
    raise AssertionError("nothing is to be proved")


def test_who_vouches_for_a_kernel_waits_for_no_proof(monkeypatch):
    monkeypatch.setattr(models, "prove", never)
    for solver, problem in problems(smooth(300), psd=True):
        assert problem.solve(solver).status == "optimal"
        problem.to_cvxpy()
    WarpedKernel(smooth(30), csr.Graph.from_edges([(0, 1)], n_nodes=30), psd=True)
    with pytest.raises(AssertionError, match="nothing is to be proved"):
        csr.Kernel(smooth(30)).require_psd()


def test_a_kernel_is_proved_once(monkeypatch):
    calls, prove = [], semidefinite.prove
    monkeypatch.setattr(models, "prove", lambda *args: calls.append(args) or prove(*args))
    model = csr.Kernel(smooth(30))
    for lam in (0.1, 0.2):
        csr.Problem(model, csr.Hinge([1, -1], rows=[0, 1]) + lam * csr.RKHSNorm()).solve()
    assert len(calls) == 1


def test_psd_is_true_or_false():
    with pytest.raises(TypeError, match="psd must be True or False, got 'rbf'"):
        csr.Kernel(np.eye(2), psd="rbf")


BY_CONSTRUCTION = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 2.0},
    {"kernel": "laplacian"},
    {"kernel": "linear"},
    {"kernel": "cosine"},
    {"kernel": "poly", "degree": 2, "coef0": 0.0},
]
TO_PROVE = [
    {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0},
    {"kernel": "rbf", "gamma": -1.0},
    {"kernel": "poly", "degree": 3, "coef0": -1.0},
    {"kernel": lambda X, Z: -(X @ Z.T)},
]


@pytest.mark.parametrize("estimator", [MixedGraphClassifier, DissimilaritySVC])
@pytest.mark.parametrize("options", BY_CONSTRUCTION + TO_PROVE)
def test_estimators_vouch_for_kernels_that_cannot_be_indefinite_and_for_no_others(estimator, options, monkeypatch):
    X = np.random.default_rng(0).normal(size=(12, 15))
    y = np.repeat([0, 1, 2, -1], 3)
    if options in TO_PROVE:
        with pytest.raises(ValueError, match=NOT_PSD):
            estimator(**options).fit(X, y)
    else:
        monkeypatch.setattr(models, "prove", never)
        estimator(**options).fit(X, y)


@pytest.mark.parametrize("part", [0.0, 5e-9, 2e-8, 1.0])
def test_the_matrix_of_a_quadratic_penalty_is_checked_up_to_round_off(part):
    matrix = np.ones((40, 40)) - part * np.diag(np.arange(40) == 7)  # an eigenvalue near -part
    if part > 1e-8:
        with pytest.raises(ValueError, match="matrix must be positive semidefinite, but its smallest eigenvalue"):
            csr.Quadratic(matrix=matrix)
    else:
        assert csr.Quadratic(matrix=matrix).size == 40
