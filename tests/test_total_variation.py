"""Denoising by total variation: chains in one exact step, grids and volumes direction by direction."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.directions.free_directions import free_directions
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.forms.chains import plain_chain
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.solvers.denoising import compiled_chain, compiled_parts, total_variation
from cvxstructreg.solvers.denoising.paths import directions

RNG = np.random.default_rng(0)


def grid(*shape):
    """The edges between neighbours of an array."""
    nodes = np.arange(np.prod(shape)).reshape(shape)
    edges = []
    for axis, length in enumerate(shape):
        here, there = (np.take(nodes, r, axis=axis) for r in (range(length - 1), range(1, length)))
        edges += list(zip(here.ravel().tolist(), there.ravel().tolist(), strict=True))
    return edges


def graph_of(edges, n, weights=None):
    return csr.Graph.from_edges(edges, weights, n_nodes=n)


def denoising(y, penalty, intercept=False, dense=False, **loss):
    X = np.eye(len(y)) if dense else sp.eye_array(len(y), format="csr")
    return csr.Problem(csr.Linear(X, intercept=intercept), csr.Squared(y, **loss) + penalty)


CASES = {
    "chain": ((30,), lambda g, n: 0.7 * csr.FusedLasso(g), {}),
    "image": ((5, 6), lambda g, n: 0.3 * csr.FusedLasso(g), {}),
    "volume": ((3, 4, 2), lambda g, n: 0.2 * csr.FusedLasso(g), {}),
    "one pixel high": ((1, 12), lambda g, n: 0.5 * csr.FusedLasso(g), {}),
    "ridge": ((5, 6), lambda g, n: 0.3 * csr.FusedLasso(g) + 0.4 * csr.Ridge(), {}),
    "ridge of a chain": ((20,), lambda g, n: csr.FusedLasso(g) + csr.Ridge(weights=np.arange(n)), {}),
    "L1": ((5, 6), lambda g, n: 0.3 * csr.FusedLasso(g) + 0.2 * csr.L1(), {}),
    "L1 and ridge": ((4, 5), lambda g, n: 0.3 * csr.FusedLasso(g) + 0.2 * csr.L1() + 0.5 * csr.Ridge(), {}),
    "sample weights": ((5, 6), lambda g, n: 0.3 * csr.FusedLasso(g), {"sample_weight": RNG.uniform(0.1, 3.0, 30)}),
    "huge strength": ((5, 6), lambda g, n: 1e3 * csr.FusedLasso(g), {}),
    "tiny strength": ((5, 6), lambda g, n: 1e-6 * csr.FusedLasso(g), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_cvxpy(name):
    shape, penalty, loss = CASES[name]
    n = int(np.prod(shape))
    y = np.round(2.0 * RNG.normal(size=n)) + 0.3 * RNG.normal(size=n)
    problem = denoising(y, penalty(graph_of(grid(*shape), n), n), **loss)
    solution = problem.solve(tol=1e-9)
    assert (solution.solver, solution.status) == ("total_variation", "optimal")
    program = problem.to_cvxpy()
    program.solve("CLARABEL")
    assert solution.objective == pytest.approx(program.value, rel=1e-6)
    assert solution.certificate.lower_bound <= program.value * (1.0 + 1e-8)


def test_weighted_edges_holes_and_several_outputs():
    edges = [edge for count, edge in enumerate(grid(4, 5)) if count % 4]  # some edges are missing
    graph = graph_of(edges, 20, RNG.uniform(0.2, 2.0, len(edges)))
    problem = denoising(RNG.normal(size=(20, 3)), 0.4 * csr.FusedLasso(graph))
    solution = problem.solve(tol=1e-9)
    assert (solution.solver, solution.status) == ("total_variation", "optimal")
    program = problem.to_cvxpy()
    program.solve("CLARABEL")
    assert solution.objective == pytest.approx(program.value, rel=1e-6)


def test_a_long_chain_takes_one_step_and_is_proved_to_round_off():
    n = 20_000
    y = np.repeat(RNG.normal(size=n // 100), 100) + 0.1 * RNG.normal(size=n)
    solution = denoising(y, 0.5 * csr.FusedLasso(graph_of(grid(n), n))).solve()
    assert solution.n_iter == 1
    assert solution.certificate.relative_gap < 1e-9
    assert np.count_nonzero(np.diff(solution.coef)) < n // 10


@pytest.mark.parametrize("dense", [False, True])
def test_an_intercept_beside_differences_alone_changes_nothing(dense):
    y = RNG.normal(size=12)
    penalty = 0.5 * csr.FusedLasso(graph_of(grid(12), 12))
    plain, free = (denoising(y, penalty, intercept, dense).solve(tol=1e-9) for intercept in (False, True))
    assert free.solver == "total_variation"
    assert free.objective == pytest.approx(plain.objective, rel=1e-8)


def test_other_problems_are_refused():
    y, chain = RNG.normal(size=6), graph_of(grid(6), 6)
    signed = graph_of([(0, 1), (1, 2)], 6, [1.0, -1.0])
    far = graph_of([(0, i) for i in range(1, 10)], 10)
    model, fused = csr.Linear(np.eye(6), intercept=False), csr.FusedLasso(chain)
    cases = {
        "identity": csr.Problem(csr.Linear(2.0 * np.eye(6)), csr.Squared(y) + fused),
        "squared": csr.Problem(model, csr.Logistic(y > 0) + fused),
        "target": csr.Problem(model, csr.Squared(y[:4], rows=[0, 1, 2, 3]) + fused),
        "positive sample weight": csr.Problem(model, csr.Squared(y, sample_weight=[0, 1, 1, 1, 1, 1]) + fused),
        "two weights": csr.Problem(model, csr.Squared(y) + csr.FusedLasso(signed)),
        "fixed distances": csr.Problem(
            csr.Linear(np.eye(10), intercept=False), csr.Squared(np.arange(10.0)) + csr.FusedLasso(far)
        ),
        "intercept": csr.Problem(csr.Linear(np.eye(6)), csr.Squared(y) + fused + csr.Ridge()),
        "equal weights": csr.Problem(model, csr.Squared(y) + fused + csr.L1(weights=np.arange(6))),
        "ridge": csr.Problem(model, csr.Squared(y) + fused + csr.Laplacian(chain)),
    }
    for words, problem in cases.items():
        refusal = total_variation.SOLVER.refusal(problem)
        assert refusal is not None, words
        assert words in refusal.reason, (words, refusal.reason)
        assert problem.solve(tol=1e-5).status == "optimal"


def test_paths_follow_their_distance():
    K = csr.FusedLasso(graph_of(grid(3, 4), 12)).split()[1]
    across, down = sorted(directions(K), key=lambda paths: paths.offset)
    assert (across.offset, across.first.tolist(), across.lengths.tolist()) == (1, [0, 4, 8], [4, 4, 4])
    assert (down.offset, down.first.tolist(), down.lengths.tolist()) == (4, [0, 1, 2, 3], [3, 3, 3, 3])
    middle = directions(csr.FusedLasso(graph_of(grid(2, 3, 2), 12)).split()[1])[1]
    assert (middle.offset, middle.first.tolist(), middle.lengths.tolist()) == (2, [0, 1, 6, 7], [3, 3, 3, 3])
    uneven = directions(csr.FusedLasso(graph_of([(0, 3), (3, 6), (4, 7)], 8)).split()[1])[0]
    assert (uneven.first.tolist(), uneven.lengths.tolist()) == ([0, 1, 2, 4, 5], [3, 1, 1, 2, 1])
    assert directions(sp.csr_array([[1.0, -1.0], [2.0, -2.0]])) is None  # the same edge twice
    assert directions(sp.csr_array([[1.0, 1.0]])) is None


def test_free_directions_of_differences_are_the_components():
    graph = graph_of([(0, 1), (2, 3), (3, 4)], 6)
    problem = csr.Problem(csr.Linear(RNG.normal(size=(9, 6))), csr.Logistic(np.arange(9) % 2) + csr.FusedLasso(graph))
    basis = free_directions(problem.normal_form, np.zeros((6, 1)))
    assert basis.shape == (6, 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(problem.normal_form.weight_pieces[0].K @ basis, 0.0, atol=1e-12)


def test_means_over_regions_have_a_lower_objective_and_keep_the_certificate():
    y = np.kron(RNG.normal(size=(3, 3)), np.ones((8, 8))) + 0.2 * RNG.normal(size=(24, 24))
    problem = denoising(y.ravel(), 0.5 * csr.FusedLasso(graph_of(grid(24, 24), 576)))
    rounds = total_variation.Rounds(total_variation.Denoising(problem), 0)
    for _ in range(10):
        rounds.step()
    means, value = rounds.regions.means(rounds.x)
    assert value == pytest.approx(problem.value_at(means[:, None], np.zeros(1)), rel=1e-12)
    assert value < problem.value_at(rounds.x[:, None], np.zeros(1))
    assert len(np.unique(means)) < len(np.unique(rounds.x))
    assert rounds.bound <= problem.solve(tol=1e-9).objective
    assert problem.solve(tol=1e-6).status == "optimal"


def test_chains_of_unequal_lengths_are_solved_together():
    edges = [(0, 1), (1, 2), (3, 4), (5, 6), (6, 7), (7, 8), (9, 10)]
    problem = denoising(RNG.normal(size=12), 0.3 * csr.FusedLasso(graph_of(edges, 12)))
    solution = problem.solve(tol=1e-9)
    assert (solution.solver, solution.n_iter, solution.status) == ("total_variation", 1, "optimal")


@pytest.mark.parametrize("lam", [0.0, 0.01, 0.5, 3.0, 100.0])
def test_two_ways_to_solve_a_chain_of_equal_strengths_agree(lam):
    rng = np.random.default_rng(1)
    signals = [np.array([2.0]), rng.normal(size=2), np.round(rng.normal(size=80)), np.cumsum(rng.normal(size=80))]
    signals += [np.zeros(7), np.arange(20.0), np.arange(2_000.0)]  # the last is read too often
    for v in signals:
        n = len(v)
        found, other, rooms = np.empty(n), np.empty(n), [np.empty(2 * n + 2) for _ in range(4)]
        done = compiled_chain.denoise_even_chain(v, lam, found)
        compiled_chain.denoise_chain(v, np.ones(n), np.full(n, lam), other, *rooms)
        assert done or (n == 2_000 and lam >= 3.0)
        assert not done or np.allclose(found, other, rtol=0, atol=1e-12 * max(1.0, np.abs(v).max()))


def test_a_ramp_falls_back_to_dynamic_programming():
    y = np.arange(3_000.0)
    solution = denoising(y, 50.0 * csr.FusedLasso(graph_of(grid(3_000), 3_000))).solve(tol=1e-9)
    assert (solution.solver, solution.status) == ("total_variation", "optimal")


@pytest.mark.parametrize("kind", ["even", "uneven", "ramp", "huge strength", "constant", "zero", "far from zero"])
def test_a_long_chain_has_the_same_point_null_point_and_bound_by_fewer_passes(monkeypatch, kind):
    n = 400
    rng = np.random.default_rng(5)
    y = np.repeat(rng.normal(size=n // 20), 20) + 0.3 * rng.normal(size=n)
    loss, weights, strength = {}, None, 0.4
    if kind == "uneven":
        loss, weights = {"sample_weight": rng.uniform(0.1, 3.0, n)}, rng.uniform(0.1, 2.0, n - 1)
    elif kind == "ramp":
        y, strength = np.arange(n, dtype=float), 50.0
    elif kind == "huge strength":
        strength = 1e4
    elif kind in ("constant", "zero"):
        y = np.full(n, 2.0 if kind == "constant" else 0.0)
    elif kind == "far from zero":
        y = y + 1e3

    def fresh():
        return denoising(y, strength * csr.FusedLasso(graph_of(grid(n), n, weights)), **loss)

    general, problem = fresh(), fresh()
    usual = general.solve(tol=1e-9)
    assert plain_chain.plain_chain(general.normal_form) is None
    monkeypatch.setattr(plain_chain, "COMPILE_FROM", 2)
    solution = problem.solve(tol=1e-9)
    assert plain_chain.plain_chain(problem.normal_form) is not None
    assert (solution.solver, solution.status, solution.n_iter) == ("total_variation", usual.status, 1)
    np.testing.assert_allclose(solution.coef, usual.coef, rtol=0, atol=1e-9 * max(1.0, np.abs(y).max()))
    assert solution.objective == pytest.approx(usual.objective, rel=1e-12, abs=1e-15)
    assert solution.certificate.lower_bound <= min(solution.objective, usual.objective)
    for name in ("objective", "with_intercept", "with_zero_scores"):
        ours, its = (getattr(null_point(p), name) for p in (problem, general))
        assert ours == pytest.approx(its, rel=1e-12, abs=1e-12 * null_point(general).with_zero_scores)
    dual, K = solution.certificate.dual, problem.normal_form.weight_pieces[0].K
    np.testing.assert_allclose(dual.scores, -(K.T @ dual.terms[1]), rtol=0, atol=1e-9 * max(1.0, np.abs(y).max()))
    other = csr.certify(general, solution.coef, dual=solution.dual)  # the general way proves the same from this point
    assert other.lower_bound == pytest.approx(solution.certificate.lower_bound, rel=1e-9, abs=1e-15)


def test_the_bound_of_a_long_chain_is_refused_unless_the_dual_point_is_feasible(monkeypatch):
    monkeypatch.setattr(plain_chain, "COMPILE_FROM", 2)
    problem = denoising(RNG.normal(size=50), 0.3 * csr.FusedLasso(graph_of(grid(50), 50)))
    chain = plain_chain.plain_chain(problem.normal_form)
    x = problem.solve(tol=1e-9).coef
    u, q = (point[:, 0] for point in chain.dual(x))
    objective, value, round_off = chain.bounds(x, u, q)
    assert 0.0 <= round_off < 1e-11
    assert abs(objective - value) < 1e-11
    for wrong_u, wrong_q in (
        (np.nextafter(u, 9.0), q),
        (u, 1.01 * q),
        (2.0 * u, 2.0 * q),
        (np.nan * u, q),
        (u[:-1], q),
        (u, q[:9]),
    ):
        assert chain.bounds(x, wrong_u, wrong_q) is None
    lower = chain.bounds(x, 0.5 * u, 0.5 * q)  # feasible, but not optimal
    assert lower[1] < value
    found = csr.certify(problem, x + 0.1)  # without a dual point
    assert found.lower_bound <= objective
    assert found.gap > 0.0


def test_subclasses_of_the_squared_loss_are_not_taken_for_it(monkeypatch):
    class Doubled(csr.Squared):
        def value(self, z):
            return 2.0 * super().value(z)

    monkeypatch.setattr(plain_chain, "COMPILE_FROM", 2)
    y, penalty = RNG.normal(size=10), csr.FusedLasso(graph_of(grid(10), 10))
    model = csr.Linear(sp.eye_array(10, format="csr"), intercept=False)
    assert plain_chain.plain_chain(csr.Problem(model, csr.Squared(y) + penalty).normal_form) is not None
    others = [Doubled(y) + penalty, csr.Squared(y, offset=np.ones(10)) + penalty, csr.Squared(y) + penalty + csr.L1()]
    others += [csr.Squared(y) + penalty + csr.Ridge(), csr.Squared(y, sample_weight=np.arange(10.0)) + penalty]
    for objective in others:
        assert plain_chain.plain_chain(csr.Problem(model, objective).normal_form) is None
    for other in (csr.Linear(np.eye(10)), csr.Linear(2.0 * np.eye(10), intercept=False)):
        assert plain_chain.plain_chain(csr.Problem(other, csr.Squared(y) + penalty).normal_form) is None


@pytest.mark.parametrize("n", [2, 5, 17, 18, 256, 257, 1025, 4_097])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("jumps", [True, False])
def test_the_compiled_bound_of_a_chain_has_the_sums_of_its_dual_point(n, even, jumps):
    rng = np.random.default_rng(n)
    y = rng.normal(size=n)
    s, lam = (np.array([1.7]), np.array([0.5])) if even else (rng.uniform(0.5, 2.0, n), rng.uniform(0.1, 1.0, n - 1))
    x = np.repeat(rng.normal(size=n), 3)[:n] if jumps else np.full(n, y.mean())
    chain = plain_chain.PlainChain(s, y, lam)
    u, q = (point[:, 0] for point in chain.dual(x))
    flow = np.concatenate([[0.0], q, [0.0]])
    np.testing.assert_array_equal(u, flow[:-1] - flow[1:])
    assert np.all(np.abs(q) <= lam)
    variation, conjugate = np.broadcast_to(lam, n - 1) @ np.abs(np.diff(x)), u * y + u**2 / (2.0 * s)
    for objective, value, round_off in (chain.proof(x), chain.bounds(x, u, q)):
        assert objective == pytest.approx(0.5 * np.sum(s * (x - y) ** 2) + variation, rel=1e-12)
        assert value == pytest.approx(-np.sum(conjugate), rel=1e-12, abs=1e-13 * n)
        inner = np.abs(flow[:-1]) + np.abs(flow[1:])
        noise = np.abs(u * x) + inner * np.maximum(np.abs(x), np.abs(y + u / s))
        sizes = np.abs(u * y) + u**2 / (2.0 * s)
        assert round_off == pytest.approx(UNIT * np.sum(sizes + noise), rel=1e-12)


def test_the_dual_points_of_a_long_chain_are_computed_when_read(monkeypatch):
    monkeypatch.setattr(plain_chain, "COMPILE_FROM", 2)
    solution = denoising(RNG.normal(size=300), 0.3 * csr.FusedLasso(graph_of(grid(300), 300))).solve(tol=1e-9)
    assert "points" not in solution.dual.__dict__
    assert (set(solution.dual), len(solution.dual)) == ({0, 1}, 2)
    stored = pickle.loads(pickle.dumps(solution))
    for number, point in stored.dual.items():
        np.testing.assert_array_equal(point, solution.dual[number])
        np.testing.assert_array_equal(point[:, 0], solution.certificate.dual.terms[number])
        np.testing.assert_array_equal(point[:, 0], stored.certificate.dual.terms[number])
    assert repr(solution.dual) == repr(dict(solution.dual))


@pytest.mark.parametrize("n", [1, 5, 256, 1_000])
@pytest.mark.parametrize("even", [True, False])
def test_the_best_constant_of_a_chain_is_found_in_one_pass(n, even):
    rng = np.random.default_rng(n)
    s = np.array([1.7]) if even else rng.uniform(0.5, 2.0, n)
    for y in (rng.normal(size=n), 1e6 + rng.normal(size=n), np.full(n, 0.1)):
        best, value, at_zero = plain_chain.PlainChain(s, y, np.ones(1)).mean()
        weights = np.broadcast_to(s, n)
        assert best == pytest.approx(np.average(y, weights=weights), rel=1e-12)
        assert value == pytest.approx(0.5 * np.sum(weights * (y - best) ** 2), rel=1e-9, abs=1e-25)
        assert at_zero == pytest.approx(0.5 * np.sum(weights * y**2), rel=1e-12)
    assert (best, value) == (0.1, 0.0)


def assert_minimiser(v, lam, x):
    """The sums q of v - x are within lam, reach it where x jumps, and end at zero."""
    q, jumps, tol = np.cumsum(v - x), np.diff(x), 1e-12 * len(v) * max(1.0, np.abs(v).max())
    assert np.all(np.abs(q[:-1]) <= lam + tol)
    assert abs(q[-1]) <= tol
    np.testing.assert_allclose(q[:-1][jumps < -tol], lam, rtol=0, atol=tol)
    np.testing.assert_allclose(q[:-1][jumps > tol], -lam, rtol=0, atol=tol)


@pytest.mark.parametrize("lam", [0.0, 0.02, 0.5, 3.0, 30.0, 1_000.0])
@pytest.mark.parametrize("n", [4_095, 4_096, 5_003, 40_000])
def test_a_chain_searched_in_parts_has_the_same_minimiser(lam, n):
    rng = np.random.default_rng(n)
    noise = rng.normal(size=n)
    half = np.where(np.arange(n) < n // 2, noise, 0.001 * noise)
    blocks = np.repeat(rng.normal(size=n // 50 + 1), 50)[:n] + 0.2 * noise
    signals = {"noise": noise, "walk": np.cumsum(noise), "quiet right": half, "quiet left": half[::-1].copy()}
    signals |= {"blocks": blocks, "rounded": np.round(noise), "constant": np.ones(n), "high": 1e6 + blocks}
    done = 0
    for name, v in signals.items():
        x, other = np.full(n, np.nan), np.empty(n)
        if not compiled_parts.denoise_long_chain(v, lam, x):
            continue  # pieces are read too often
        done += 1
        assert_minimiser(v, lam, x)
        compiled_chain.denoise_row(v, -1.0, np.ones(n), np.full(n - 1, lam), other)
        np.testing.assert_allclose(x, other, rtol=0, atol=1e-10 * max(1.0, np.abs(v).max()), err_msg=name)
    assert done >= 5


def test_chains_with_short_pieces_are_searched_in_parts():
    rng = np.random.default_rng(3)
    n, outcomes = 20_000, []
    for v, lam in ((rng.normal(size=n), 1.0), (rng.normal(size=n), 1e3), (np.arange(float(n)), 200.0)):
        begins, found = np.zeros(compiled_parts.MOST_PARTS, np.int64), np.empty((compiled_parts.MOST_PARTS, 8))
        outcomes.append(np.sign(compiled_parts.search_parts(v, lam, np.empty(n), begins, found)))
    assert outcomes == [1, 0, -1]


@pytest.mark.parametrize("n", [2, 3, 60])
def test_the_differences_of_a_chain_are_known_as_such(n):
    K = plain_chain.chain_differences(n)
    np.testing.assert_array_equal(K.toarray(), -np.diff(np.eye(n), axis=0))
    assert plain_chain.is_chain(K)
    assert plain_chain.is_chain(sp.csr_array(K.toarray()))
    by_graph, by_shape = csr.FusedLasso(graph_of(grid(n), n)), csr.TotalVariation((1, n))
    weighted = csr.FusedLasso(graph_of(grid(n), n, np.arange(1.0, n)))
    signed = csr.FusedLasso(graph_of(grid(n), n, np.append(np.ones(n - 2), -1.0)))
    assert [plain_chain.is_chain(p.split()[1]) for p in (by_graph, by_shape, weighted, signed)] == [True] * 3 + [False]
    w = RNG.normal(size=(n, 1))
    jumps = np.abs(np.diff(w[:, 0]))
    assert by_graph.value(w) == pytest.approx(jumps.sum())
    assert weighted.value(w) == pytest.approx(np.arange(1.0, n) @ jumps)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e-20])
def test_a_long_chain_of_numbers_far_below_the_strength_takes_one_step(size):
    y = size * np.random.default_rng(0).normal(size=plain_chain.COMPILE_FROM + 1)
    solution = denoising(y, csr.TotalVariation(len(y))).solve()
    assert (solution.solver, solution.status, solution.n_iter) == ("total_variation", "optimal", 1)
    assert np.ptp(solution.coef) == 0.0 and not solution.switches
