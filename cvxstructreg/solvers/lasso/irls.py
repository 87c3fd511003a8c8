"""Iteratively reweighted least squares with full cyclic coordinate descent: the published Laplacian elastic net solver.

Fei, Quanz and Huan (2010), "Regularization and feature selection for networked features", Algorithm 1. At the current
point the loss is replaced by weighted least squares with weights h_i and working response z_i - g_i / h_i. Passes over
all coordinates minimise it, with the closed form of their Lemma 3.1 for each coordinate:

    w_j  <-  soft( sum_i h_i x_ij r_i^(j) - 2 sum_(k != j) M_jk w_k,  c_j )  /  ( sum_i h_i x_ij^2 + 2 M_jj )

Here r^(j) is the residual of the working response without feature j. The intercept is always at its minimum, so the
sums are centred. Unlike in the paper, a step is halved until the objective decreases, because plain reweighting may
diverge. This solver is for teaching and for cross-checks; "working_set" is faster.
"""

from __future__ import annotations

from collections.abc import Iterator

from cvxstructreg.core.problem import Problem
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.lasso.quadratic_model import QuadraticModel
from cvxstructreg.solvers.lasso.working_set import NEEDS, State
from cvxstructreg.solvers.needs import L1OrBounds
from cvxstructreg.solvers.solver import Solver


def run(problem: Problem, start: Iterate, tol: float, max_passes: int = 100) -> Iterator[Iterate]:
    """At most ``max_passes`` passes over the coordinates for each reweighting."""
    state = State(problem, start, tol)
    while True:
        state.evaluate(0.0)
        yield state.iterate()
        if not reweight(state, 0.1 * state.worst, max_passes):
            yield state.iterate(exhausted=True)
            return


def reweight(state: State, tol: float, max_passes: int) -> bool:
    """Solve one weighted least squares problem by cyclic coordinate descent; return whether the point has moved."""
    model = QuadraticModel(state.given, state.all, state.h, state.g, state.w, state.Qw)
    while model.passes < max_passes and model.descend(state.all, tol, 1)[0] > tol and not deadline.passed():
        pass  # one pass per call, because compiled code cannot be interrupted
    return state.backtrack(model)


UNBOUNDED = tuple(L1OrBounds(bounds=False) if need == L1OrBounds() else need for need in NEEDS)
SOLVER = Solver("irls", run, UNBOUNDED, baseline=True)
