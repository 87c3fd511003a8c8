"""The solvers, in the order in which ``solver="auto"`` asks them; CVXPY accepts everything and is the last."""

from __future__ import annotations

from types import ModuleType

from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers import reference
from cvxstructreg.solvers.general import admm, proximal_gradient
from cvxstructreg.solvers.groups import group_descent, group_newton, sentence_admm
from cvxstructreg.solvers.iterate import Refusal
from cvxstructreg.solvers.kernels import augmented_lagrangian, kernel_cg, warped_kernel
from cvxstructreg.solvers.lasso import irls, working_set
from cvxstructreg.solvers.multiclass import douglas_rachford, hinge_newton
from cvxstructreg.solvers.smooth import lbfgs, truncated_newton

SOLVERS: tuple[ModuleType, ...] = (
    hinge_newton,
    douglas_rachford,
    kernel_cg,
    warped_kernel,
    augmented_lagrangian,
    truncated_newton,
    working_set,
    group_descent,
    group_newton,
    lbfgs,
    irls,
    proximal_gradient,
    admm,
    sentence_admm,
    reference,
)

#: The last resort of ``auto``, and the methods of papers that others are compared with: these come after it.
REFERENCE = reference
BASELINES = frozenset({lbfgs.NAME, irls.NAME, sentence_admm.NAME})


def names() -> tuple[str, ...]:
    """The names of all solvers, in order."""
    return tuple(solver.NAME for solver in SOLVERS)


def accepting(problem: Problem) -> tuple[ModuleType, ...]:
    """The solvers that accept the problem, in order."""
    return tuple(solver for solver in SOLVERS if solver.accepts(problem) is None)


def refusals(problem: Problem) -> dict[str, str]:
    """Why each of the other solvers does not, in words."""
    answers = {solver.NAME: solver.accepts(problem) for solver in SOLVERS}
    return {name: answer.reason for name, answer in answers.items() if isinstance(answer, Refusal)}


def choose(problem: Problem, name: str) -> ModuleType:
    """The solver of that name, or the first that accepts the problem for "auto"."""
    if name == "auto":
        return next(solver for solver in SOLVERS if solver.accepts(problem) is None)
    for solver in SOLVERS:
        if name == solver.NAME:
            answer = solver.accepts(problem)
            if answer is not None:
                others = ", ".join(repr(other.NAME) for other in accepting(problem))
                raise ValueError(f"solver {name!r} does not accept this problem: {answer.reason}. These do: {others}")
            return solver
    raise ValueError(f"there is no solver {name!r}; choose from 'auto', {', '.join(map(repr, names()))}")
