"""Problems and solves for several threads or processes at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.instances import METHODS
from cvxstructreg.runtime.quiet import muted
from random_problems import kernel_problem, linear_problem

PACKAGE = Path(csr.__file__).parent
THREADS = 8


class Excess(Atom):
    """sum_i (z_i - 1)_+ + ||z||: nothing but the definition."""

    def expr(self, z: cp.Expression) -> cp.Expression:
        return cp.sum(cp.pos(z - 1.0)) + cp.norm(z, "fro")


@contextmanager
def switching_often() -> Iterator[None]:
    """Threads take turns every few bytecodes, so that a race does not need luck to show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def at_once(tasks: list[Callable[[], Any]], threads: int = THREADS) -> list[Any]:
    """The results of the tasks, run by several threads."""
    with ThreadPoolExecutor(threads) as pool:
        return [future.result(timeout=300) for future in [pool.submit(task) for task in tasks]]


def with_an_atom_of_its_own() -> csr.Problem:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 4))
    return csr.Problem(csr.Linear(X), csr.Squared(X @ np.ones(4)) + 0.5 * Excess() + 0.1 * csr.Ridge())


def with_disjoint_groups() -> csr.Problem:
    rng = np.random.default_rng(6)
    X, groups = rng.normal(size=(30, 12)), csr.Groups.from_labels(np.arange(12) // 3)
    return csr.Problem(csr.Linear(X), csr.Logistic(X[:, 0] > 0) + 0.5 * csr.GroupLasso(groups))


def with_many_rows() -> csr.Problem:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 4))
    graph = csr.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n_nodes=4)
    return csr.Problem(
        csr.Linear(X),
        csr.Hinge(X[:, 0] + 0.3 * rng.normal(size=80) > 0) + csr.FeatureNetwork(graph) + 0.1 * csr.Ridge(),
    )


def with_virtual_nodes() -> csr.Problem:
    rng = np.random.default_rng(8)
    X, members = rng.normal(size=(25, 9)), [(i, 9 + (i + j) % 4) for i in range(9) for j in (0, 1)]
    graph = csr.Graph.from_edges(members, n_nodes=13, virtual=[9, 10, 11, 12], directed=True)
    return csr.Problem(csr.Linear(X), csr.Logistic(X[:, 0] > 0) + 2.0 * csr.FeatureNetwork(graph) + 0.1 * csr.Ridge())


def with_blocks_of_rows() -> csr.Problem:
    """Data in three blocks, each processed in threads of its own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    y = np.where(X[:, 0] + rng.normal(size=30) > 0, 1, -1)
    return csr.Problem(csr.Linear([X[:10], X[10:20], X[20:]]), csr.Logistic(y) + csr.L1())


def with_scores_in_their_blocks() -> csr.Problem:
    """The same, and the scores never leave their blocks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    blocks = csr.RowBlocks([X[:10], X[10:20], X[20:]], scores="workers")
    return csr.Problem(csr.Linear(blocks), csr.Squared(X[:, 0] + rng.normal(size=30)) + csr.Ridge())


def with_hinges_in_their_blocks() -> csr.Problem:
    """A loss with kinks whose multipliers never leave their blocks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    blocks = csr.RowBlocks([X[:10], X[10:20], X[20:]], scores="workers")
    return csr.Problem(csr.Linear(blocks), csr.Hinge(np.sign(X[:, 0] + rng.normal(size=30))) + csr.L1())


def with_hinges_and_l1() -> csr.Problem:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(30, 6))
    return csr.Problem(csr.Linear(X), csr.Hinge(X[:, 0] + 0.3 * rng.normal(size=30) > 0) + 0.8 * csr.L1())


def with_a_signal() -> csr.Problem:
    """Total variation of a signal: the weights are the scores."""
    signal = np.repeat([0.0, 2.0, 1.0], 8) + 0.2 * np.random.default_rng(10).normal(size=24)
    chain = csr.Graph.from_edges([(i, i + 1) for i in range(23)], n_nodes=24)
    return csr.Problem(csr.Linear(np.eye(24), intercept=False), csr.Squared(signal) + 0.5 * csr.FusedLasso(chain))


def with_an_image() -> csr.Problem:
    """Isotropic total variation of an image."""
    image = np.kron([[0.0, 1.0], [2.0, 0.0]], np.ones((3, 3))) + 0.2 * np.random.default_rng(11).normal(size=(6, 6))
    variation = csr.TotalVariation((6, 6), isotropic=True)
    return csr.Problem(csr.Linear(np.eye(36), intercept=False), csr.Squared(image.ravel()) + 0.3 * variation)


PROBLEMS: dict[str, Callable[[], csr.Problem]] = {
    "blocks of rows": with_blocks_of_rows,
    "scores in their blocks": with_scores_in_their_blocks,
    "hinges in their blocks": with_hinges_in_their_blocks,
    "atom of its own": with_an_atom_of_its_own,
    "disjoint groups": with_disjoint_groups,
    "hinges and l1": with_hinges_and_l1,
    "signal": with_a_signal,
    "image": with_an_image,
    "many rows": with_many_rows,
    "virtual nodes": with_virtual_nodes,
    "ridge": lambda: linear_problem(3, "Logistic", "ridge", True, False),
    "l1": lambda: linear_problem(3, "Logistic", "l1", True, True),
    "groups": lambda: linear_problem(3, "Logistic", "groups", True, False),
    "latent": lambda: linear_problem(3, "Logistic", "latent", True, False),
    "classes": lambda: linear_problem(3, "Multinomial", "l1", True, False),
    "multiclass hinge": lambda: linear_problem(3, "MulticlassHinge", "ridge", True, False),
    "kernel hinge": lambda: kernel_problem(1, "Hinge", True, 0, 1),
    "kernel logistic": lambda: kernel_problem(1, "Logistic", True, 0, 2),
    "kernel pairs": lambda: kernel_problem(1, "Squared", True, 3, 1),
    **METHODS,
}
TOL, MAX_ITER = 1e-5, 2000


def solved(problem: csr.Problem, solver: str) -> csr.Solution:
    with muted(csr.InaccurateWarning):
        return problem.solve(solver, tol=TOL, max_iter=MAX_ITER)


def equal(one: csr.Solution, other: csr.Solution) -> bool:
    """Bit for bit."""
    return np.array_equal(one.coef, other.coef) and np.array_equal(one.intercept, other.intercept)


def agree(one: csr.Solution, other: csr.Solution) -> bool:
    """Equal bit for bit, or both proved, and the proofs do not contradict each other."""
    if equal(one, other):
        return True
    bounds = (one.certificate.lower_bound, other.certificate.lower_bound)
    slack = 1e-12 * abs(one.objective)
    return (
        one.status == other.status == "optimal"
        and bounds[0] <= other.objective + slack
        and bounds[1] <= one.objective + slack
    )
