"""Gram matrices that round-off made indefinite: one repair, which is shown, and the same problem for all solvers."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg import solvers
from cvxstructreg.warped_kernel import WarpedKernel

SCALES = [1e-9, 1.0, 1e9]
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(39)], n_nodes=40)
rows = np.arange(40)
y = np.where(rows % 3 == 0, 1.0, -1.0) + 0.3 * np.sin(rows)


def linear_gram(dtype=np.float32, d=25, n=40):
    """Of low rank: its zero eigenvalues are round-off of either sign."""
    Z = np.random.default_rng(3).normal(size=(n, d)).astype(dtype)
    return Z @ Z.T


def gaussian_gram(dtype=np.float32, n=40):
    """Smooth: most eigenvalues are below round-off."""
    X = np.random.default_rng(4).normal(size=(n, 2)).astype(dtype)
    squares = (X**2).sum(axis=1)
    return np.exp(dtype(-0.02) * (squares[:, None] + squares[None] - dtype(2) * X @ X.T))


GRAMS = {"linear": linear_gram, "gaussian": gaussian_gram}
LOSSES = {
    "squared": lambda: csr.Squared(y),
    "logistic": lambda: csr.Logistic(np.where(y > 0, 1, -1)),
    "hinge": lambda: csr.Hinge(np.where(y > 0, 1, -1)),
    "graph": lambda: csr.SquaredHinge(np.where(y > 0, 1, -1)) + 0.1 * csr.Laplacian(CHAIN).on_function(),
    "three": lambda: csr.MulticlassHinge(rows % 3),
}


def quiet(function, *args):
    """What a function returns, without its warnings of repairs and of solvers that stop early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.RepairedGramWarning)
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        return function(*args)


def solutions(problem):
    """Of every solver that accepts the problem."""
    for solver in quiet(solvers.accepting, problem):
        yield quiet(lambda name=solver.name: problem.solve(name, max_iter=300))


@pytest.mark.parametrize("psd", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", GRAMS)
def test_all_solvers_agree_on_a_gram_matrix_of_single_precision(kind, loss, psd):
    gram = GRAMS[kind]()
    lam = 1e-4 if loss == "graph" else 1e-6  # a graph 10^5 times as strong as the norm costs more digits than tol has
    problem = csr.Problem(csr.Kernel(gram, psd=psd), LOSSES[loss]() + lam * csr.RKHSNorm())
    found = list(solutions(problem))
    assert len(found) >= 2
    best = min(solution.objective for solution in found)
    for solution in found:
        # no bound is above what another solver has reached, nor above the solver's own objective
        assert solution.certificate.lower_bound <= best * (1 + 1e-9), solution.solver
        assert solution.certificate.gap >= 0, solution.solver
    assert any(solution.status == "optimal" for solution in found)


@pytest.mark.parametrize("kind", GRAMS)
def test_the_issue_as_reported(kind):
    for solver in ("kernel_cg", "newton", "cvxpy"):
        problem = csr.Problem(csr.Kernel(GRAMS[kind]()), csr.Squared(y) + 1e-6 * csr.RKHSNorm())
        solution = quiet(problem.solve, solver)
        if solver == "kernel_cg":
            first = solution.objective
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(first, rel=2e-6)
        assert solution.certificate.gap >= 0


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", GRAMS)
def test_certificates_do_not_depend_on_the_scale_of_gram(kind, scale):
    gram = GRAMS[kind]().astype(np.float32)
    exact = np.float32(2.0) ** round(np.log2(scale))  # a power of two: the same digits
    reference = csr.Problem(csr.Kernel(gram), csr.Squared(y) + 1e-6 * csr.RKHSNorm())
    scaled = csr.Problem(csr.Kernel(gram * exact), csr.Squared(y) + float(exact) * 1e-6 * csr.RKHSNorm())
    shift = quiet(lambda: reference.model).shift
    assert quiet(lambda: scaled.model).shift == pytest.approx(float(exact) * shift, rel=1e-6)
    for solver in ("kernel_cg", "newton", "cvxpy"):
        at, other = quiet(reference.solve, solver), quiet(scaled.solve, solver)
        assert other.status == at.status == "optimal"
        assert other.objective == pytest.approx(at.objective, rel=2e-6)
        assert other.certificate.gap >= 0 and at.certificate.gap >= 0


def test_a_repair_is_said_once_and_shown():
    gram = linear_gram()
    smallest = float(np.linalg.eigvalsh(gram.astype(float))[0])
    kernel = csr.Kernel(gram)
    problem = csr.Problem(kernel, csr.Squared(y) + csr.RKHSNorm())
    with pytest.warns(
        csr.RepairedGramWarning, match="smallest eigenvalue is -.*round-off of single precision.*float64"
    ):
        text = problem.describe()
    assert f"gram is the given matrix + {problem.model.shift:.3g} I" in text
    assert f"smallest eigenvalue is {smallest:.3g}" in text
    assert f"shift={problem.model.shift:.3g}" in repr(problem.model)
    assert "I: its smallest" in problem._repr_html_()
    problem.solve()  # no further warning
    csr.Problem(kernel, csr.Squared(y) + 2.0 * csr.RKHSNorm()).solve()
    # the given model stays as it is
    assert kernel.shift == 0.0 and np.array_equal(kernel.design, gram.astype(float))
    assert -smallest <= problem.model.shift <= -1.1 * smallest
    assert np.array_equal(problem.model.design, kernel.design + problem.model.shift * np.eye(40))
    assert np.linalg.eigvalsh(problem.model.design)[0] >= -1e-13


def test_double_precision_needs_no_repair():
    for kind in GRAMS:
        for known in (False, True):
            kernel = csr.Kernel(GRAMS[kind](float), psd=known)
            problem = csr.Problem(kernel, csr.Squared(y) + csr.RKHSNorm())
            assert problem.model is kernel and kernel.shift == 0.0
            assert "given matrix" not in problem.describe() and "shift" not in repr(kernel)


def test_where_gram_is_no_norm_it_is_used_as_it_is():
    kernel = csr.Kernel(linear_gram())
    assert csr.Problem(kernel, csr.Squared(y) + csr.Ridge()).model is kernel
    assert csr.Problem(kernel, csr.Squared(y) + csr.Ridge() + 0.0 * csr.RKHSNorm()).model is kernel


def test_describe_shows_a_problem_that_is_not_convex():
    problem = csr.Problem(csr.Kernel(-np.eye(40)), csr.Squared(y) + csr.RKHSNorm())
    assert "gram must be positive semidefinite" in problem.describe()
    assert "Kernel(40 x 40 dense)" in repr(problem)


def test_large_matrices_are_repaired_without_their_eigenvalues(monkeypatch):
    from cvxstructreg.numerics import semidefinite

    monkeypatch.setattr(semidefinite, "EXACT_ROWS", 0)
    for kind in GRAMS:
        gram = GRAMS[kind]()
        smallest = float(np.linalg.eigvalsh(gram.astype(float))[0])
        with pytest.warns(csr.RepairedGramWarning, match="smallest eigenvalue is at most -"):
            repaired = csr.Kernel(gram).convex()
        assert -0.9 * smallest <= repaired.shift <= -4.1 * smallest
        assert np.linalg.eigvalsh(repaired.design)[0] >= -1e-13 * len(gram)


def test_a_warped_kernel_is_made_of_the_repaired_matrix():
    with pytest.warns(csr.RepairedGramWarning):
        warped = WarpedKernel(linear_gram(), CHAIN, strength=1e-3)
    assert np.linalg.eigvalsh(warped.gram())[0] >= -1e-13
    assert "shift=" in repr(warped)
    R = warped.factor()
    assert np.abs(R @ R.T - warped.gram()).max() <= 1e-9 * np.abs(warped.gram()).max()


@pytest.mark.parametrize("kernel", ["precomputed", lambda X, Z: X.astype(np.float32) @ Z.astype(np.float32).T])
def test_estimators_keep_the_precision_of_gram_matrices(kernel):
    Z = np.random.default_rng(3).normal(size=(40, 25)).astype(np.float32)
    classifier = csr.MixedGraphClassifier(kernel=kernel)
    with pytest.warns(csr.RepairedGramWarning, match="round-off of single precision"):
        classifier.fit(Z @ Z.T if kernel == "precomputed" else Z, (y > 0).astype(int))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("weight", [1.0, 3e-8])
@pytest.mark.parametrize("lam", [1e-3, 1e-5])
def test_low_rank_in_double_precision_has_no_negative_gap(weight, lam, scale):
    gram = linear_gram(float, 5) * scale
    weights = np.where(rows % 2, 1.0, weight)
    for loss in (csr.Squared(y, sample_weight=weights), csr.Hinge(np.where(y > 0, 1, -1), sample_weight=weights)):
        problem = csr.Problem(csr.Kernel(gram), loss + lam * scale * csr.RKHSNorm())
        found = list(solutions(problem))
        best = min(solution.objective for solution in found)
        for solution in found:
            assert solution.certificate.lower_bound <= best * (1 + 1e-11), solution.solver
            assert solution.certificate.gap >= 0, solution.solver
        assert any(solution.status == "optimal" for solution in found)


def test_a_kernel_shared_by_threads_gives_the_results_of_one():
    def tasks(kernel):
        for k in range(16):
            loss = csr.Squared(np.roll(y, k)) if k % 2 else csr.Hinge(np.roll(np.where(y > 0, 1, -1), k))
            yield csr.Problem(kernel, loss + 10.0 ** (-(k % 3)) * csr.RKHSNorm()), ("auto", "newton", "cvxpy")[k % 3]

    def solved(task):
        problem, solver = task
        accepted = {"auto", *(module.name for module in solvers.accepting(problem))}
        return problem.solve(solver if solver in accepted else "auto")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.RepairedGramWarning)
        serial = [solved(task) for task in tasks(csr.Kernel(gaussian_gram()))]
        with ThreadPoolExecutor(8) as pool:
            threaded = list(pool.map(solved, tasks(csr.Kernel(gaussian_gram()))))
    for one, other in zip(serial, threaded, strict=True):
        assert np.array_equal(one.coef, other.coef) and one.intercept == other.intercept
        assert one.objective == other.objective and one.certificate == other.certificate


def test_products_of_threads_are_not_mixed_up():
    kernel = csr.Kernel(gaussian_gram(float, 200))
    thetas = [np.random.default_rng(k).normal(size=(200, 1)) for k in range(8)]
    expected = [kernel.design @ theta for theta in thetas]

    def worst(k):
        return max(float(np.abs(kernel.scores(thetas[k], np.zeros(1)) - expected[k]).max()) for _ in range(300))

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(worst, range(8))) <= 1e-10


def test_a_repaired_kernel_survives_pickling():
    kernel = csr.Kernel(linear_gram())
    repaired = quiet(kernel.convex)
    again = pickle.loads(pickle.dumps(kernel))
    assert again.convex().shift == repaired.shift > 0
    assert np.array_equal(again.convex().design, repaired.design)
