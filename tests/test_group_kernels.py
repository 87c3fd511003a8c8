"""The kernels of overlapping groups, each against a few lines of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from overlapping_group_problems import basic, build, some_groups, without_intercept

from cvxstructreg.solvers.groups import group_newton, group_subproblem
from cvxstructreg.solvers.groups.group_steps import CompiledSteps, PlainSteps
from cvxstructreg.solvers.iterate import Iterate


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
    slow.radial.agreement(w, np.arange(12, dtype=np.int32))
    slow.radial.follow(np.zeros(12), 1.0)  # no group turns: both have the true Hessian
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
