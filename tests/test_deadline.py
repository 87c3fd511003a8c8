"""Time limits hold inside proxes, certificates, long iterations and the reference, and leave an honest state."""

from __future__ import annotations

import itertools
import threading
import time
import warnings

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import GRACE, bounded
from cvxstructreg.core.atom import Atom
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers import Iterate, Solver, reference, registry


class Sizes(Atom):
    """The absolute values, with nothing but their definition."""

    def expr(self, z):
        return cp.norm1(z)


def ring(d: int, size: int) -> csr.Groups:
    """Groups of neighbours in a ring, each feature in several."""
    return csr.Groups([[(j + i) % d for i in range(size)] for j in range(0, d, 2)], n_features=d, weights=np.sqrt)


def latent_problem(n: int = 30, d: int = 24) -> csr.Problem:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    return csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.7 * csr.LatentGroupLasso(ring(d, 5)) + 0.2 * csr.L1())


class Ticks:
    """A clock that moves by one second whenever somebody looks at it."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> float:
        self.count += 1
        return float(self.count)


def test_limits_are_nested_and_end_with_their_block():
    assert deadline.remaining() == np.inf
    with deadline.within(100.0):
        with deadline.within(1000.0):
            assert deadline.remaining() <= 100.0
        with deadline.within(1e-9):
            assert deadline.passed()
            with pytest.raises(deadline.OutOfTimeError):
                deadline.check()
            with deadline.at_least(50.0):
                assert 0.0 < deadline.remaining() <= 50.0
        assert not deadline.passed()
    assert deadline.remaining() == np.inf


def test_a_thread_has_its_own_limit():
    seen = []
    with deadline.within(1e-9):
        thread = threading.Thread(target=lambda: seen.append(deadline.remaining()))
        thread.start()
        thread.join()
    assert seen == [np.inf]


@pytest.mark.parametrize("limit", [3, 30, 300])
def test_a_solve_ends_soon_after_the_limit_by_a_clock_that_counts(monkeypatch, limit):
    """No more than a few looks at the clock after the limit, whatever is at work then."""
    problem = latent_problem()
    optimum = problem.solve("cvxpy").objective
    clock = Ticks()
    monkeypatch.setattr(deadline, "clock", clock)
    with pytest.warns(csr.InaccurateWarning, match="time_limit"):
        solution = problem.solve("admm", time_limit=limit)
    assert solution.status == "time_limit"
    assert clock.count <= limit + 20
    assert solution.certificate.lower_bound <= optimum * (1.0 + 1e-9)
    assert solution.objective >= optimum * (1.0 - 1e-9)
    assert np.isfinite(solution.certificate.gap)


LIMITED = [
    csr.Problem(
        csr.Linear(np.random.default_rng(1).normal(size=(20, 6))),
        csr.Logistic(np.arange(20) % 2) + 0.3 * Sizes() + 0.1 * csr.Ridge(),
    ),
    csr.Problem(
        csr.Linear(np.random.default_rng(2).normal(size=(20, 6))),
        csr.MulticlassHinge(np.arange(20) % 3) + 0.3 * csr.GroupLasso(ring(6, 3)) + csr.Box(-1.0, 1.0),
    ),
    csr.Problem(csr.Kernel(np.eye(12) + 0.5), csr.Hinge(np.arange(12) % 2) + 0.3 * csr.RKHSNorm() + 0.0 * csr.Ridge()),
    latent_problem(),
]


@pytest.mark.parametrize("number", range(len(LIMITED)))
def test_every_solver_has_an_honest_state_when_there_is_no_time_at_all(number):
    problem = LIMITED[number]
    optimum = problem.solve("cvxpy").objective
    for module in registry.accepting(problem):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            solution = problem.solve(module.name, time_limit=1e-9, tol=1e-12)
        # a direct method may be there after its only step
        assert solution.status == "time_limit" or solution.certificate.relative_gap <= 1e-12, module.name
        assert solution.objective >= optimum * (1.0 - 1e-6), module.name
        if solution.certificate.kind != "kkt":
            assert solution.certificate.lower_bound <= optimum * (1.0 + 1e-6), module.name


def test_a_prox_by_cvxpy_stops_at_the_limit():
    atom = Sizes()
    v = np.ones((4, 1))
    assert atom.prox(v, 0.5) == pytest.approx(np.full((4, 1), 0.5), abs=1e-6)
    with deadline.within(1e-9), pytest.raises(deadline.OutOfTimeError):
        atom.prox(v, 0.5)
    assert atom.prox(v, 0.5) == pytest.approx(np.full((4, 1), 0.5), abs=1e-6)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_conic_solvers_are_told_the_time_that_is_left(monkeypatch, solver):
    given = []
    solved = reference._solved

    def spy(program, name, options):
        given.append(options)
        return solved(program, name, options)

    monkeypatch.setattr(reference, "_solved", spy)
    problem = LIMITED[0]
    problem.solve("cvxpy", time_limit=1000.0, cvxpy_solver=solver)
    assert 0.0 < given[0][reference.TIME_LIMITS[solver]] <= 1000.0
    given.clear()
    problem.solve("cvxpy", cvxpy_solver=solver)
    assert reference.TIME_LIMITS[solver] not in given[0]


def test_the_last_certificate_is_bounded_too(monkeypatch):
    """A certificate that does not fit into the grace is made from the known bound alone."""
    problem = latent_problem()
    theta, b = problem.shaped(np.zeros(24), 0.0)
    monkeypatch.setattr(deadline, "clock", itertools.count(step=2.0 * GRACE).__next__)
    with deadline.within(GRACE):
        certificate = bounded(problem, theta, b, {}, known_bound=1.5)
    assert certificate.lower_bound >= 1.5 * (1.0 - 1e-9)
    assert certificate.objective == pytest.approx(30 * np.log(2.0))


def test_the_seconds_of_a_limit():
    """Generous: it once took half a minute."""
    problem = latent_problem(120, 120)
    began = time.perf_counter()
    with pytest.warns(csr.InaccurateWarning):
        problem.solve("admm", time_limit=0.5, tol=1e-14)
    assert time.perf_counter() - began < 10.0


@pytest.mark.parametrize("seed", range(6))
def test_the_latent_norm_and_its_prox_by_their_optimality_conditions(seed):
    """u = v - prox is in the dual ball of radius t, and <u, x> = t times the norm of x."""
    rng = np.random.default_rng(seed)
    penalty = csr.LatentGroupLasso(ring(12, int(rng.integers(2, 6))))
    v = rng.normal(size=(12, 1 + seed % 2)) * 10.0 ** rng.uniform(-3, 3)
    t = float(np.abs(v).max()) * rng.uniform(0.2, 0.6)
    x = penalty.prox(v, t)
    u = v - x
    assert penalty.dual_norm(u) <= t * (1.0 + 1e-9)
    assert float(np.sum(u * x)) == pytest.approx(t * penalty.value(x), rel=1e-8)
    unit = float(np.abs(v).max())
    by_definition = cp.Problem(cp.Minimize(penalty.expr(w := cp.Variable(v.shape))), [w == v / unit])
    assert penalty.value(v) == pytest.approx(unit * by_definition.solve(cp.CLARABEL), rel=1e-7)


def test_a_solve_cut_short_returns_no_point_worse_than_its_start():
    def overshoot(problem, start, tol):
        yield Iterate(start.theta + 1e6, start.b, promising=False)
        raise deadline.OutOfTimeError("the time limit has passed")

    X = np.random.default_rng(0).normal(size=(10, 3))
    problem = csr.Problem(csr.Linear(X), csr.Squared(X[:, 0]) + csr.Ridge())
    with csr.solvers.register(Solver("overshoot", overshoot)), pytest.warns(csr.InaccurateWarning, match="time limit"):
        solution = problem.solve("overshoot")
    assert solution.objective <= problem.value(np.zeros(3), X[:, 0].mean()) * (1.0 + 1e-9)
