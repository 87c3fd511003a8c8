"""Overlapping groups by group_newton and by the published ADMM, against the reference."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.core.loss import Loss
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.groups import group_newton, group_subproblem, sentence_admm
from cvxstructreg.solvers.groups.group_steps import CompiledSteps, PlainSteps
from cvxstructreg.solvers.iterate import Iterate
from random_problems import random_graph


def some_groups(rng, d, n_groups=12, largest=5, **options):
    members = [
        sorted(rng.choice(d, size=rng.integers(1, largest + 1), replace=False).tolist()) for _ in range(n_groups)
    ]
    return csr.Groups(members, n_features=d, **options)


def data(rng, n=30, d=12, sparse=False):
    X = rng.normal(size=(n, d))
    return sp.csr_array(X * (rng.random((n, d)) < 0.5)) if sparse else X


def labels(rng, n=30):
    return rng.permutation(np.arange(n) % 2)


def basic(rng, X, groups=None, lam=0.3, lam1=0.2, **model):
    groups = some_groups(rng, X.shape[1]) if groups is None else groups
    penalty = lam1 * csr.L1() + lam * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X, **model), csr.Logistic(labels(rng)) + penalty)


def sample_weights(rng, X, groups):
    loss = csr.Logistic(labels(rng), sample_weight=rng.uniform(0.0, 2.0, size=30))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups))


def rows(rng, X, groups):
    loss = csr.Logistic(labels(rng)[:20], rows=rng.permutation(30)[:20])
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups))


def no_l1(rng, X, groups):
    groups = csr.Groups([*groups, np.arange(12)], n_features=12)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.5 * csr.GroupLasso(groups))


def zero_l1_weights(rng, X, groups):
    groups = csr.Groups([*groups, np.arange(12)], n_features=12)
    weights = rng.choice([0.0, 1.0], size=12)
    penalty = csr.L1(weights=weights) + 0.2 * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def unpenalised(rng, X, groups):
    weights = np.r_[0.0, 0.0, np.ones(10)]
    groups = csr.Groups([[3, 4], [4, 5, 6]], n_features=12)
    penalty = csr.L1(weights=weights) + 0.2 * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def quadratic(rng, X, groups):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups) + 0.05 * csr.Ridge()
    penalty = penalty + 0.4 * csr.Laplacian(random_graph(rng, 12, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def network(rng, X, groups):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups) + 0.4 * csr.FeatureNetwork(random_graph(rng, 12, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def squared(rng, X, groups):
    return csr.Problem(csr.Linear(X), csr.Squared(rng.normal(size=30)) + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def squared_hinge(rng, X, groups):
    loss = csr.SquaredHinge(labels(rng))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def multinomial(rng, X, groups):
    loss = csr.Multinomial(rng.permutation(np.arange(30) % 3))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups))


def without_intercept(rng, X, groups):
    return basic(rng, X, groups, intercept=False)


def disjoint(rng, X, groups):
    return basic(rng, X, csr.Groups.from_labels(np.arange(12) % 4))


def singletons(rng, X, groups):
    return basic(rng, X, csr.Groups([[j] for j in range(12)], n_features=12))


def free_groups(rng, X, groups):
    return basic(rng, X, groups.with_weights(rng.choice([0.0, 1.0, 2.0], size=len(groups))))


def few_features(rng, X, groups):
    return basic(rng, X, csr.Groups([[0, 1], [1, 2]], n_features=12))


def equal_groups(rng, X, groups):
    return basic(rng, X, csr.Groups([*groups, *groups, *groups], n_features=12), lam=0.1)


def two_terms(rng, X, groups):
    problem = basic(rng, X, groups)
    loss, l1, term = problem.terms
    return csr.Problem(problem.model, loss + l1 + term + 0.2 * csr.GroupLasso(some_groups(rng, 12)))


KINDS = (
    basic, sample_weights, rows, no_l1, zero_l1_weights, unpenalised, quadratic, network, squared, squared_hinge,
    multinomial, without_intercept, disjoint, singletons, free_groups, few_features, equal_groups, two_terms,
)  # fmt: skip


def build(kind, seed, sparse):
    rng = np.random.default_rng(seed)
    X = data(rng, sparse=sparse)
    return kind(rng, X, some_groups(rng, 12))


def assert_agree(solution, reference):
    """Either bound is below the other's objective."""
    slack = 1e-11 * abs(reference.objective)
    assert solution.certificate.kind == "duality_gap"
    assert solution.certificate.lower_bound <= reference.objective + slack
    assert reference.certificate.lower_bound <= solution.objective + slack


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_group_newton_agrees_with_the_reference(kind, sparse):
    problem = build(kind, 5, sparse)
    solution = problem.solve("group_newton", tol=1e-8)
    assert solution.status == "optimal"
    assert 0 <= solution.certificate.relative_gap <= 1e-8
    assert_agree(solution, problem.solve("cvxpy"))


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
        (csr.LatentGroupLasso(csr.Groups([[0, 1, 2]])), csr.Logistic, "not a sum of norms.*admm"),
        (csr.FusedLasso(csr.Graph.from_edges([(0, 1), (1, 2)])), csr.Logistic, "not a sum of norms"),
    ],
)
def test_refusals(solver, penalty, loss, reason):
    problem = csr.Problem(csr.Linear(np.eye(3)), loss([0, 1, 1]) + penalty)
    with pytest.raises(ValueError, match=reason):
        problem.solve(solver)


@pytest.mark.parametrize("kind", [basic, no_l1, quadratic, multinomial, two_terms])
def test_sentence_admm_converges(kind):
    problem = build(kind, 11, True)
    solution = problem.solve("sentence_admm", tol=1e-5)
    assert 0 <= solution.certificate.relative_gap <= 1e-5
    assert_agree(solution, problem.solve("cvxpy"))


def test_sentence_admm_truncated_has_an_honest_gap():
    problem = build(basic, 12, False)
    optimum = problem.solve("group_newton", tol=1e-9).objective
    gaps = []
    for max_iter in (1, 5, 50):
        with pytest.warns(csr.InaccurateWarning):
            solution = problem.solve("sentence_admm", tol=1e-12, max_iter=max_iter, rho=10.0)
        assert solution.objective == pytest.approx(problem.value(solution.coef, solution.intercept))
        assert solution.certificate.gap >= solution.objective - optimum - 1e-9
        gaps.append(solution.objective - optimum)
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2] > 0


def test_sentence_admm_stops_by_its_own_rule():
    problem = build(basic, 13, False)
    with pytest.warns(csr.InaccurateWarning, match="inaccurate"):
        stopped = problem.solve("sentence_admm", tol=1e-12, stop=True)
    assert 1 < stopped.n_iter < 1000
    with pytest.raises(ValueError, match="rho"):
        problem.solve("sentence_admm", rho=0.0)


def test_sentence_admm_starts_from_a_solution():
    problem = build(basic, 14, False)
    solution = problem.solve("group_newton", tol=1e-8)
    assert problem.solve("sentence_admm", tol=1e-5, warm_start=solution).n_iter == 1
    assert sentence_admm.SOLVER.needs == group_newton.SOLVER.needs


# kernels, each against a few lines of NumPy


@pytest.fixture
def flat():
    """Groups with a random dual point, weights, and the rest that the kernels need."""
    rng = np.random.default_rng(0)
    groups = some_groups(rng, 10, n_groups=15)
    slices = [slice(*groups.indptr[g : g + 2]) for g in range(len(groups))]
    q = 0.4 * rng.normal(size=groups.n_entries)
    return {
        "rng": rng, "indptr": groups.indptr.copy(), "indices": groups.indices.astype(np.uint32), "slices": slices,
        "radii": rng.uniform(0.5, 1.5, size=15), "sigma": rng.uniform(0.5, 2.0, size=15), "q": q,
        "w": rng.normal(size=10), "E": groups.selection(),
    }  # fmt: skip


@pytest.fixture
def kernels():
    from cvxstructreg.forms import compiled_groups

    return compiled_groups


def balls(x, radii, slices):
    """Each group of x in its ball."""
    out = x.copy()
    for group, radius in zip(slices, radii, strict=True):
        out[group] *= min(1.0, radius / np.linalg.norm(x[group]))
    return out


@pytest.fixture(scope="module")
def huber_kernels():
    from cvxstructreg.solvers.groups import compiled_huber

    return compiled_huber


def test_sums(kernels, flat):
    out = flat["w"].copy()
    kernels.add_adjoint(flat["indices"], flat["q"], out, -2.0)
    np.testing.assert_allclose(out, flat["w"] - 2.0 * (flat["E"].T @ flat["q"]))
    out = np.zeros(10)
    kernels.add_radii(flat["indptr"], flat["indices"], flat["radii"], out)
    np.testing.assert_allclose(out, flat["E"].T @ np.repeat(flat["radii"], np.diff(flat["indptr"])))
    value = kernels.norm_sum(flat["indptr"], flat["indices"], flat["radii"], flat["w"])
    copies = flat["E"] @ flat["w"]
    norms = [np.linalg.norm(copies[g]) for g in flat["slices"]]
    assert value == pytest.approx(flat["radii"] @ norms)


def test_shrink_and_largest_ratio(kernels, flat):
    q = 5.0 * flat["q"]
    norms = [np.linalg.norm(q[g]) for g in flat["slices"]]
    ratio = kernels.largest_ratio(flat["indptr"], flat["radii"], q)
    assert ratio == pytest.approx(np.max(norms / flat["radii"]))
    assert kernels.largest_ratio(flat["indptr"], 0.0 * flat["radii"], q) == np.inf
    assert kernels.shrink(flat["indptr"], flat["radii"], q) == pytest.approx(ratio)
    np.testing.assert_allclose(q, balls(5.0 * flat["q"], flat["radii"], flat["slices"]))


@pytest.mark.parametrize("some_fixed", [False, True])
def test_repair(kernels, flat, some_fixed):
    rng, radii = flat["rng"], flat["radii"]
    q = balls(flat["q"], radii, flat["slices"])
    fixed = (rng.random(10) < 0.3 * some_fixed).astype(np.uint8)
    bound, pull = rng.uniform(0.0, 0.5, size=10), 2.0 * rng.normal(size=10)
    expected, moves = q.copy(), fixed[flat["indices"]] == 0

    def beyond(q):
        left = pull - flat["E"].T @ q
        return np.sum((left - np.clip(left, -bound, bound))[fixed == 0] ** 2)

    last = np.inf
    for _ in range(3):
        if beyond(expected) > 0.5 * last:
            break
        last = beyond(expected)
        for c, g in zip(radii, flat["slices"], strict=True):
            left = pull - flat["E"].T @ expected
            x = (left - np.clip(left, -bound, bound))[flat["indices"][g]]
            room = np.sqrt(max(0.0, c**2 - np.sum(expected[g][~moves[g]] ** 2)))
            if np.any(x[moves[g]]):
                trial = (expected[g] + x)[moves[g]]
                expected[g][moves[g]] = trial * min(1.0, room / np.linalg.norm(trial))
    left = pull - flat["E"].T @ q
    before = beyond(q)
    total = kernels.repair(flat["indptr"], flat["indices"], radii, q, left, bound, fixed, 3, 0.5)
    np.testing.assert_allclose(q, expected, atol=1e-14)
    np.testing.assert_allclose(left, pull - flat["E"].T @ q, atol=1e-13)
    assert total == pytest.approx(beyond(q))
    assert total < before


@pytest.mark.parametrize("join_singles", [False, True])
def test_restriction(flat, join_singles):
    """What is left of the groups on some features, equal ones as one, and the way back."""
    rng, chosen = flat["rng"], np.array([2, 5, 7, 8])
    stack = group_subproblem.Stack(flat["indptr"], flat["indices"], flat["radii"], 10)
    q = balls(flat["q"], flat["radii"], flat["slices"])
    norms = group_subproblem.Restricted(stack, chosen, q, join_singles)
    radii, multipliers, lam, origin = {}, {}, np.zeros(4), {}
    for number, (c, g) in enumerate(zip(flat["radii"], flat["slices"], strict=True)):
        here = np.isin(flat["indices"][g], chosen)
        key = tuple(np.searchsorted(chosen, flat["indices"][g][here]).tolist())
        if key and join_singles and len(key) == 1:
            lam[key[0]] += c
            origin[number] = key
        elif key:
            radii[key] = radii.get(key, 0.0) + c
            multipliers[key] = multipliers.get(key, 0.0) + q[g][here]
            origin[number] = key
    found = [tuple(norms.indices[a:b].tolist()) for a, b in zip(norms.indptr[:-1], norms.indptr[1:], strict=True)]
    order = sorted(radii, key=len)  # small groups first
    assert found == order
    np.testing.assert_allclose(norms.radii, [radii[key] for key in order])
    np.testing.assert_allclose(norms.y, np.concatenate([multipliers[key] for key in order]))
    np.testing.assert_allclose(norms.lam, lam)
    pull, bound = rng.normal(size=10), np.full(4, 0.1)
    left, old = pull.copy(), q.copy()
    norms.distribute_multipliers(left, bound, q)
    np.testing.assert_allclose(left, pull - flat["E"].T @ q, atol=1e-14)
    rest = pull[chosen].copy()
    np.subtract.at(rest, norms.indices.astype(int), norms.y)
    beyond = np.clip(rest - np.clip(rest, -bound, bound), -lam, lam)
    for number, (c, g) in enumerate(zip(flat["radii"], flat["slices"], strict=True)):
        here = np.isin(flat["indices"][g], chosen)
        key = origin.get(number)
        if key in radii:
            np.testing.assert_allclose(q[g][here], c / radii[key] * multipliers[key])
        elif key:
            np.testing.assert_allclose(q[g][here], c / lam[key[0]] * beyond[key[0]])
        room = np.sqrt(max(0.0, c**2 - np.sum(q[g][here] ** 2)))
        others = old[g][~here]
        np.testing.assert_allclose(q[g][~here], others * min(1.0, room / max(1e-300, np.linalg.norm(others))))


@pytest.mark.parametrize("patience", [0.0, 1e9])
def test_compiled_steps_equal_the_plain_ones(patience):
    """Values, gradients and Newton directions; with much patience the direction is the minimum of the dense model."""
    problem = build(without_intercept if patience else basic, 3, True)
    state = group_newton._State(problem, Iterate(np.zeros((12, 1)), np.zeros(1)), 1.0)
    state.inside[:] = True
    rng = np.random.default_rng(0)
    norms = group_subproblem.Restricted(state.stack, np.arange(12), state.q, True)
    norms.y[:] = 0.1 * rng.normal(size=len(norms.y))
    args = (state.parts, state.X, np.arange(12), state.lam)
    compiled = group_subproblem.Subproblem(*args, norms)
    state.X.compiled = False
    plain = group_subproblem.Subproblem(*args, norms)
    w, b, scale = 0.3 * rng.normal(size=12), np.array([0.2]) * problem.model.intercept, np.full(12, 0.5)
    w[:4] = 0.0
    sigma = norms.radii / 0.05
    fast, slow = (kind(sub, sigma, scale) for kind, sub in ((CompiledSteps, compiled), (PlainSteps, plain)))
    point, twin = fast.at(w, b), slow.at(w, b)
    for name in ("scores", "value", "slope", "slope_b", "error"):
        np.testing.assert_allclose(getattr(point, name), getattr(twin, name), rtol=1e-12, atol=1e-12)
    fast.patience = patience
    step, step_b = fast.direction(point, 1e-4, 1e-10)
    assert fast.crosses == (patience > 0)
    if not patience:
        expected, expected_b = slow.direction(twin, 1e-4, 1e-10)
        np.testing.assert_allclose(step, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(step_b, expected_b, rtol=1e-6, atol=1e-9)
        return
    chosen, starts, places, kept, g_starts, g_places, a, h, identity = fast.compiled.free_part(
        *compiled.columns, fast.ridge, w, point.slope, *fast.huber, 0.0, compiled.column_memory, norms.memory
    )
    X = sp.csr_array((kept, places.astype(int), starts), shape=(30, len(chosen))).toarray()
    H = X.T @ (compiled.score_curvature(point.scores) * X) + np.diag(identity)
    for g in range(len(h)):
        piece = slice(g_starts[g], g_starts[g + 1])
        H[np.ix_(g_places[piece].astype(int), g_places[piece].astype(int))] -= h[g] * np.outer(a[piece], a[piece])
    H[np.diag_indices_from(H)] *= 1.0 + 1e-4 + 1e-6
    smooth = point.slope - compiled.lam * np.where(w != 0, np.sign(w), -np.sign(point.slope))
    lam, p, start = compiled.lam[chosen], step[chosen], w[chosen]
    left = -(smooth[chosen] + H @ p)
    moved = start + p
    np.testing.assert_allclose(left[moved != 0], (lam * np.sign(moved))[moved != 0], atol=1e-5)
    assert np.all(np.abs(left) <= lam + 1e-5)


def huber_twin(flat, y, w):
    """Value, projection and Hessian of the Huber functions, dense."""
    value, hessian = 0.0, np.zeros((10, 10))
    q = np.zeros_like(y)
    for c, s, g in zip(flat["radii"], flat["sigma"], flat["slices"], strict=True):
        features = flat["indices"][g].astype(int)
        a = y[g] + s * w[features]
        norm = np.linalg.norm(a)
        q[g] = a * min(1.0, c / norm)
        value += q[g] @ w[features] - np.sum((q[g] - y[g]) ** 2) / (2 * s)
        block = s * np.eye(len(a)) if norm <= c else c * s / norm * (np.eye(len(a)) - np.outer(a, a) / norm**2)
        hessian[np.ix_(features, features)] += block
    return value, q, hessian


def test_huber(huber_kernels, flat):
    y = balls(flat["q"], flat["radii"], flat["slices"])
    w = 0.3 * flat["w"]
    groups = flat["indptr"], flat["indices"], flat["radii"], flat["sigma"]
    value, q, hessian = huber_twin(flat, y, w)
    grad = np.ones(10)
    assert huber_kernels.huber(*groups, y, w, grad) == pytest.approx(value)
    np.testing.assert_allclose(grad, 1.0 + flat["E"].T @ q)
    free = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1])
    diagonal, position = np.zeros(10), np.where(free, np.arange(10), -1).astype(np.int32)
    memory = [np.empty_like(x) for x in (flat["indptr"], flat["indices"], y, flat["radii"])]
    rest = huber_kernels.huber_curvature(*groups, y, w, position, diagonal, 0.0, *memory)
    ordered = huber_kernels.by_size(*rest)
    assert np.all(np.diff(ordered[0], n=2) >= 0)
    one, other = np.zeros(10), np.zeros(10)
    for listed, products in ((rest, one), (ordered, other)):
        huber_kernels.subtract_products(*listed, np.arange(10.0), products)
    np.testing.assert_allclose(one, other)
    p = flat["rng"].normal(size=10) * free
    out = diagonal * p
    huber_kernels.subtract_products(*rest, p, out)
    np.testing.assert_allclose(out, free * (hessian @ p), atol=1e-13)
    huber_kernels.subtract_squares(*rest, diagonal)
    np.testing.assert_allclose(diagonal, free * np.diag(hessian), atol=1e-13)
    zero, moved = np.zeros(10, dtype=np.uint8), y.copy()
    foreseen = huber_kernels.multipliers(*groups, moved, w, zero, False)
    np.testing.assert_array_equal(moved, y)
    assert not zero.any()
    slack = huber_kernels.multipliers(*groups, moved, w, zero, True)
    assert foreseen == pytest.approx(slack)
    np.testing.assert_allclose(moved, q)
    copies = flat["E"] @ w
    norms = [c * np.linalg.norm(copies[g]) for c, g in zip(flat["radii"], flat["slices"], strict=True)]
    assert slack == pytest.approx(sum(norms) - q @ copies)
    a = y + np.repeat(flat["sigma"], np.diff(flat["indptr"])) * copies
    inside = [g for c, g in zip(flat["radii"], flat["slices"], strict=True) if np.linalg.norm(a[g]) <= c]
    assert set(np.flatnonzero(zero)) == {int(j) for g in inside for j in flat["indices"][g]}


@pytest.mark.parametrize("count", range(10))
def test_dot(huber_kernels, count):
    rng = np.random.default_rng(count)
    places, values, p = rng.integers(0, 7, size=15).astype(np.uint32), rng.normal(size=15), rng.normal(size=7)
    expected = values[3 : 3 + count] @ p[places[3 : 3 + count]]
    assert huber_kernels.dot(places, values, 3, 3 + count, p) == pytest.approx(expected)


def test_the_repair_of_a_certificate_finds_a_tight_dual_point():
    rng = np.random.default_rng(3)
    problem = basic(rng, data(rng), some_groups(rng, 12))
    solution = problem.solve("group_newton", tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = csr.certify(problem, solution.coef, solution.intercept, search=False)
    assert 0 <= certificate.relative_gap <= 1e-7
