"""The dual point of a certificate proves its bound: recomputed here in plain NumPy, without the library."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

import cvxstructreg as csr
import random_problems
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.runtime.quiet import muted

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 8)) + 0.5
TARGET = X[:, 0] - 2.0 * X[:, 1] + 0.5 * RNG.normal(size=40) + 3.0
LABEL = np.where(TARGET > 3.0, 1.0, -1.0)
GROUPS = [[0, 1, 2], [2, 3, 4], [5, 6, 7], [0, 7]]


def squared_conj(u):
    return u @ TARGET + 0.5 * u @ u


def logistic_conj(u):
    """sum p log p + (1 - p) log (1 - p) with p = -y u in [0, 1]."""
    p = -LABEL * u
    assert p.min() >= 0 and p.max() <= 1
    return np.sum(xlogy(p, p) + xlogy(1 - p, 1 - p))


def hinge_conj(u):
    p = -LABEL * u
    assert p.min() >= 0 and p.max() <= 1
    return -p.sum()


LOSSES = {
    "squared": (csr.Squared(TARGET), squared_conj),
    "logistic": (csr.Logistic(LABEL), logistic_conj),
    "hinge": (csr.Hinge(LABEL), hinge_conj),
}


def rebuilt(problem, dual, conj, l1=0.0, ridge=0.0, group=0.0):
    """The dual objective, after a check of every condition, from the fields of the dual point."""
    u = dual.scores
    if problem.model.intercept:
        assert abs(u.sum()) <= 1e-10 * np.abs(u).sum()
    rest = -X.T @ u
    size = np.abs(X).T @ np.abs(u) + 1.0
    if l1:
        assert np.abs(dual.separable).max() <= l1 * (1 + 1e-12)
        rest = rest - dual.separable
    if group:
        stack = dual.terms[len(problem.terms) - 1]
        ends = np.cumsum([len(members) for members in GROUPS])
        for members, block in zip(GROUPS, np.split(stack, ends[:-1]), strict=True):
            assert np.linalg.norm(block) <= group * (1 + 1e-12)
            rest[members] -= block
    if not ridge:
        assert np.all(np.abs(rest) <= 1e-10 * size)
        return -conj(u)
    return -conj(u) - rest @ rest / (4.0 * ridge)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strengths", [(1.5, 0.0, 0.0), (0.0, 0.7, 0.0), (0.5, 0.3, 0.0), (0.2, 0.0, 1.0)])
def test_anyone_can_recompute_the_bound(loss, strengths, intercept):
    atom, conj = LOSSES[loss]
    l1, ridge, group = strengths
    penalty = l1 * csr.L1() + ridge * csr.Ridge() + group * csr.GroupLasso(csr.Groups(GROUPS, n_features=8))
    problem = csr.Problem(csr.Linear(X, intercept=intercept), atom + penalty)
    solution = problem.solve(tol=1e-7)
    for certificate in (solution.certificate, csr.certify(problem, solution.coef, solution.intercept)):
        value = rebuilt(problem, certificate.dual, conj, l1, ridge, group)
        assert value == pytest.approx(certificate.dual.value, rel=1e-9)
        assert certificate.lower_bound <= value + 1e-9 * abs(value)
        assert value - certificate.lower_bound <= 1e-7 * solution.objective
    # far from the optimum, the dual point is scaled down or costly, but still feasible
    far = csr.certify(problem, 3.0 * solution.coef + 0.1, solution.intercept, search=False)
    value = rebuilt(problem, far.dual, conj, l1, ridge, group)
    assert far.lower_bound <= value + 1e-9 * abs(value) <= solution.objective * (1 + 1e-9)


def dense(forms):
    return sum(form.scale * (M.toarray() if sp.issparse(M := form.form.matrix) else np.asarray(M)) for form in forms)


def columns(u):
    return u[:, None] if u.ndim == 1 else u


def dual_objective(problem, dual):
    """The dual objective from the conjugates of all terms, after a check that the dual points add up to zero."""
    parts, u = problem.normal_form, columns(dual.scores)
    terms = {number: columns(q) for number, q in dual.terms.items()}
    size = np.abs(u).sum() + 1e-300
    assert not problem.model.intercept or np.abs(u.sum(axis=0)).max() <= 1e-8 * size
    cost = sum(piece.conj(terms[piece.number]) for piece in parts.score_pieces)
    rest = u - sum(piece.adjoint(terms[piece.number]) for piece in parts.score_pieces)
    assert np.abs(rest).max() <= 1e-9 * size
    left = -problem.model.adjoint(u)
    for piece in parts.weight_pieces:
        cost += piece.conj((1.0 - 1e-12) * terms[piece.number])
        left = left - piece.adjoint(terms[piece.number])
    if parts.separable is not None:
        cost += parts.separable.conj(columns(dual.separable))
        left = left - columns(dual.separable)
    if parts.weight_forms:
        M = dense(parts.weight_forms)
        inverse = np.linalg.pinv(M, rcond=1e-13, hermitian=True)
        cost += np.sum(left * (inverse @ left)) / 4.0
        left = left - M @ (inverse @ left)
    assert np.abs(left).max() <= 1e-7 * np.abs(problem.model.design).max() * size
    return -cost


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from(sorted(random_problems.LOSSES)),
    st.sampled_from(sorted(random_problems.PENALTIES)),
    st.booleans(),
    st.sampled_from([0.0, 0.1]),
)
def test_the_dual_point_is_feasible_for_every_loss_and_penalty(seed, loss, penalty, intercept, distance):
    problem = random_problems.linear_problem(seed, loss, penalty, intercept, False)
    with muted(csr.InaccurateWarning):
        solution = problem.solve(max_iter=2000)
    theta, b = problem.shaped(solution.coef, solution.intercept)
    certificate = solution.certificate
    if distance:
        theta = theta + distance * np.random.default_rng(seed).normal(size=theta.shape)
        part = problem.normal_form.separable
        theta = theta if part is None else np.clip(theta, part.lower, part.upper)
        certificate = certify_point(problem, theta, b, solution.dual)
    if certificate.kind == "duality_gap" and np.isfinite(certificate.objective):
        value = dual_objective(problem, certificate.dual)
        slack = 1e-7 * max(abs(value), abs(certificate.objective))
        assert certificate.lower_bound <= certificate.dual.value + slack <= value + 2.0 * slack


def test_the_dual_point_of_a_kernel_model():
    gram = np.exp(-0.1 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    problem = csr.Problem(csr.Kernel(gram), csr.Logistic(LABEL) + 0.3 * csr.RKHSNorm())
    certificate = problem.solve().certificate
    u = certificate.dual.scores
    assert abs(u.sum()) <= 1e-10
    assert -logistic_conj(u) - u @ gram @ u / 1.2 == pytest.approx(certificate.dual.value, rel=1e-10)
    assert certificate.gap >= certificate.objective - certificate.dual.value


def test_data_far_from_zero_have_a_dual_point_for_the_given_data():
    problem = csr.Problem(csr.Linear(X + 1e4), csr.Squared(TARGET + 1e5) + 1.0 * csr.L1())
    certificate = problem.solve().certificate
    u = certificate.dual.scores
    assert np.abs((X + 1e4).T @ u).max() <= 1.0 + 1e-8
    assert -(u @ (TARGET + 1e5) + 0.5 * u @ u) == pytest.approx(certificate.dual.value, rel=1e-6)


def test_several_outputs_have_a_column_each():
    y = RNG.integers(0, 3, 40)
    certificate = csr.Problem(csr.Linear(X), csr.Multinomial(y) + 1.0 * csr.L1()).solve().certificate
    assert certificate.dual.scores.shape == (40, 3) and certificate.dual.separable.shape == (8, 3)
    assert np.abs(certificate.dual.scores.sum(axis=1)).max() <= 1e-9
    assert np.abs(X.T @ certificate.dual.scores).max() <= 1.0 + 1e-9


def test_a_bound_of_zero_is_proved_by_the_zero_point():
    problem = csr.Problem(csr.Linear(np.eye(3), intercept=False), csr.Squared([1.0, 2.0, 3.0]) + 1e-12 * csr.L1())
    certificate = csr.certify(problem, [1.0, 2.0, 3.0], search=False)
    assert certificate.kind == "duality_gap" and certificate.dual is not None


def test_histories_stay_small_and_solutions_can_be_pickled():
    problem = csr.Problem(csr.Linear(sp.csr_array(X)), csr.Logistic(LABEL) + 0.5 * csr.L1())
    solution = problem.solve("fista", tol=1e-8)
    assert len(solution.history) > 3
    assert all(record.certificate.dual is None for record in solution.history)
    again = pickle.loads(pickle.dumps(solution))
    assert again.certificate.gap == solution.certificate.gap
    assert np.array_equal(again.certificate.dual.scores, solution.certificate.dual.scores)
    assert "DualPoint" not in repr(solution.certificate)


def test_the_pickle_of_an_estimator_has_no_dual_point():
    est = csr.LaplacianElasticNetClassifier(lam1=0.5).fit(X, LABEL)
    assert est.certificate_.dual is not None
    again = pickle.loads(pickle.dumps(est))
    assert again.certificate_.gap == est.certificate_.gap
    assert again.certificate_.dual is None
    assert again.attach_data(X, LABEL).solution_.certificate.dual is None
    assert np.array_equal(again.predict(X), est.predict(X))


def test_the_pickle_of_a_cross_validated_estimator_has_no_dual_point():
    est = csr.LaplacianElasticNetClassifierCV(n_strengths=3, cv=2).fit(X, LABEL)
    assert est.path_[-1].certificate.dual is not None
    again = pickle.loads(pickle.dumps(est))
    assert again.certificate_.dual is None


def test_kinds_without_a_bound_have_no_dual_point():
    atom = csr.Box(-1.0, 1.0)
    problem = csr.Problem(csr.Linear(X), csr.Hinge(LABEL) + atom)
    assert problem.solve(tol=1e-5).certificate.dual is not None
    two = [csr.Problem(csr.Linear(X), csr.Logistic(LABEL) + csr.Ridge()).solve().certificate] * 2
    from cvxstructreg.estimators.base import sum_of_certificates

    assert sum_of_certificates(two).dual is None
