"""A direct solver for kernels with graphs: compute the warped kernel of the labelled rows, then solve a small problem.

One factorisation of I + M gram, with one right-hand side for each label, eliminates the graph and the unlabelled rows.
The remaining problem has one unknown for each label. For the hinge loss it is a box-constrained quadratic program; for
a smooth loss it takes a few Newton steps.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.kernels.box_qp import BoxProgram
from cvxstructreg.solvers.kernels.reduced_kernel import NEEDS as REDUCIBLE
from cvxstructreg.solvers.kernels.reduced_kernel import ReducedKernel
from cvxstructreg.solvers.needs import ScoresCan
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

LACKS = "neither hinges nor second derivatives row by row"
#: What this solver requires of a problem.
NEEDS = (
    *REDUCIBLE,
    ScoresCan(
        (("hinges",), ("grad", "hess_diag", "lipschitz")), "hinges, or with second derivatives row by row", LACKS
    ),
)


#: The interior point method solves the quadratic program up to INTERIOR_ROWS labels if no compiled code is used, and up
#: to INTERIOR_ROWS_TIED labels if a graph determines the intercept. The program may then be so ill-conditioned that
#: decomposition is slow.
INTERIOR_ROWS, INTERIOR_ROWS_TIED = 300, 2000
#: The relative residual of the warped kernel is RESIDUAL times the tolerance and at most MOST_RESIDUAL. If that is not
#: enough, it is made as small as possible. The scores have these errors times the kernel.
RESIDUAL, MOST_RESIDUAL = 1e-2, 1e-8
#: The largest number of corrections of a solution for a single-precision kernel; each gains the digits of single
#: precision.
CORRECTIONS = 3
#: From this many examples on, compiled code makes up for the time of loading the compiler.
COMPILE_FROM = 500
#: The part of the tolerance that the small problem may use.
GOAL = 0.3
#: Accuracies of the interior point method, relative to the tolerance, and of decomposition, tried in order.
INTERIOR_ACCURACIES = (0.05, 1e-3, 1e-6)
DECOMPOSITION_ACCURACIES = (1e-3, 1e-5, 1e-7, 1e-9)
#: For smooth losses: the largest number of Newton steps, and the smallest step size of the line search.
MAX_NEWTON, SHORTEST = 200, 1e-8


def run(problem: Problem, start: Iterate, tol: float) -> Generator[Iterate, None, None]:
    """This solver has no options."""
    hinge = problem.normal_form.score_pieces[0].atom.can("hinges")
    reduced = ReducedKernel(problem, min(MOST_RESIDUAL, RESIDUAL * tol), rough=hinge)
    yield from _points_of(problem, reduced, tol)
    if reduced.is_rough:
        yield from _points_of(problem, ReducedKernel(problem), tol)


def _points_of(problem: Problem, reduced: ReducedKernel, tol: float) -> Iterator[Iterate]:
    piece = reduced.piece
    steps: Any = _hinge if piece.atom.can("hinges") else _smooth
    for theta, b, u in steps(problem, reduced, tol):
        yield Iterate(theta, b, {} if u is None else {piece.number: u}, promising=True)
    yield Iterate(theta, b, {} if u is None else {piece.number: u}, exhausted=not reduced.is_rough)


def _hinge(problem: Problem, reduced: ReducedKernel, tol: float) -> Iterator[tuple[Array, Array, Array]]:
    """Points of increasing accuracy, with their dual points."""
    y, weights = reduced.piece.atom.hinges()
    C = reduced.piece.scale * weights / reduced.norm.curvature
    g = y * reduced.u if reduced.intercept else None
    is_psd = not reduced.operator.is_zero  # indefiniteness is then round-off, which strong graphs amplify
    counted = np.flatnonzero(C > 0)  # rows of weight zero have a = 0
    if counted.size < C.size:
        K = reduced.Q[np.ix_(counted, counted)]
        program = BoxProgram(K, y[counted], C[counted], None if g is None else g[counted], reduced.s, is_psd)
    else:
        program = BoxProgram(reduced.Q, y, C, g, reduced.s, is_psd)
    # objectives of the program are 2 lam1 times smaller than those of the problem
    goal = GOAL * tol * objective_scale(problem, 0.0) / reduced.norm.curvature
    compiled = reduced.n >= COMPILE_FROM or "cvxstructreg.solvers.kernels.compiled_smo" in sys.modules

    def lifted(inner: Array, b: float) -> tuple[Array, Array, Array]:
        """The weights, the intercept, and the coefficients of the labelled rows."""
        a = np.zeros_like(C)
        a[counted] = y[counted] * inner
        theta, intercept = reduced.expand(a, b)
        return theta, intercept, a

    for inner, b in _points(program, compiled, tol, goal):
        theta, intercept, a = lifted(inner, b)
        for _ in range(CORRECTIONS if reduced.rough else 0):
            image = (y * reduced.image(problem.model.scores(theta, np.zeros(1))[:, 0], b))[counted]
            if program.gap(inner, b, image) <= goal:
                break
            program.offset = image - program.times(inner)
            inner, b = program.polish(inner, b, goal)
            theta, intercept, a = lifted(inner, b)
        yield theta, intercept, -reduced.norm.grad(a[:, None])


def _points(program: BoxProgram, compiled: bool, tol: float, goal: float) -> Iterator[tuple[Array, float]]:
    if len(program.C) <= (INTERIOR_ROWS_TIED if program.s > 0 else 0 if compiled else INTERIOR_ROWS):
        for accuracy in INTERIOR_ACCURACIES:
            a, b = program.interior_point(accuracy * tol)
            yield (a, b) if program.gap(a, b) <= goal else program.polish(a, b, goal)
        return
    from cvxstructreg.solvers.kernels.box_qp_by_rows import Decomposition

    steps = Decomposition(program)
    for accuracy in DECOMPOSITION_ACCURACIES:
        a, b = steps.run(accuracy)
        yield program.polish(a, b, goal)


def _smooth(problem: Problem, reduced: ReducedKernel, tol: float) -> Iterator[tuple[Array, Array, None]]:
    """Damped Newton steps on loss(Q a + u b) + lam1 (a'Qa + s b^2)."""
    piece, Q, u, s, norm = reduced.piece, reduced.Q, reduced.u, reduced.s, reduced.norm
    atom, scale, count = piece.atom, piece.scale, len(reduced.u)
    a, b, free = np.zeros(count), 0.0, reduced.intercept

    def value(a: Array, b: float) -> float:
        image = Q @ a
        scores = image + u * b
        return scale * atom.value(scores[:, None]) + norm.value(a, image) + norm.scale * s * b * b

    current = value(a, b)
    for _ in range(MAX_NEWTON):
        scores = (Q @ a + u * b)[:, None]
        slope = scale * atom.grad(scores)[:, 0]
        curved = scale * atom.hess_diag(scores)[:, 0]
        left, left_b = slope + norm.grad(a), float(u @ slope) + norm.curvature * s * b
        error = norm.conj(float(left @ (Q @ left)))
        if error <= GOAL * tol * objective_scale(problem, current):
            yield *reduced.expand(a, b), None
        system = np.zeros((count + free, count + free))
        system[:count, :count] = curved[:, None] * Q
        system[np.arange(count), np.arange(count)] += norm.curvature
        right = -left
        if free:
            system[:count, count] = curved * u
            system[count, :count] = (curved * u) @ Q
            least = 1e-12 * (float(curved.max()) or scale * atom.lipschitz())
            system[count, count] = max(float(curved @ u**2) + norm.curvature * s, least)
            right = np.append(right, -left_b)
        try:
            step = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:  # the limit of double precision; the certificate measures the accuracy
            break
        da, db, length = step[:count], float(step[count]) if free else 0.0, 1.0
        reached = value(a + da, b + db)
        while not reached < current and length > SHORTEST:
            length *= 0.5
            reached = value(a + length * da, b + length * db)
        if not reached < current or deadline.passed():
            break
        a, b, current = a + length * da, b + length * db, reached
    yield *reduced.expand(a, b), None


SOLVER = Solver("warped_kernel", run, NEEDS, coordinates=AS_GIVEN, aliases=("warped",))
