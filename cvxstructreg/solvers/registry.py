"""The solvers, in the order in which ``solver="auto"`` tries them. CVXPY accepts every problem and comes last."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache

from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers import reference
from cvxstructreg.solvers.denoising import banded_differences, block_variation, total_variation
from cvxstructreg.solvers.first_order import admm, proximal_gradient
from cvxstructreg.solvers.general import dual_newton, interior_point, semismooth_newton
from cvxstructreg.solvers.groups import group_descent, group_newton, sentence_admm
from cvxstructreg.solvers.kernels import augmented_lagrangian, kernel_cg, warped_kernel
from cvxstructreg.solvers.kinds import kind_of
from cvxstructreg.solvers.lasso import irls, working_set
from cvxstructreg.solvers.multiclass import douglas_rachford, hinge_newton
from cvxstructreg.solvers.nested import nested_multipliers, split_newton
from cvxstructreg.solvers.row_blocks import (
    gram_columns,
    gram_newton,
    in_memory,
    kept_fista,
    kept_multipliers,
    kept_newton,
    working_columns,
)
from cvxstructreg.solvers.sizes import NoLooseWeights
from cvxstructreg.solvers.smooth import lbfgs, truncated_newton
from cvxstructreg.solvers.solver import Solver

#: The solver that ``auto`` falls back to.
REFERENCE = reference.SOLVER

_OWN: tuple[Solver, ...] = (
    in_memory.SOLVER,
    gram_newton.SOLVER,
    kept_multipliers.SOLVER,
    working_columns.SOLVER,
    gram_columns.SOLVER,
    kept_newton.SOLVER,
    kept_fista.SOLVER,
    total_variation.SOLVER,
    banded_differences.SOLVER,
    block_variation.SOLVER,
    hinge_newton.SOLVER,
    douglas_rachford.SOLVER,
    kernel_cg.SOLVER,
    warped_kernel.SOLVER,
    augmented_lagrangian.SOLVER,
    truncated_newton.SOLVER,
    working_set.SOLVER,
    group_descent.SOLVER,
    group_newton.SOLVER,
    interior_point.SOLVER,
    semismooth_newton.SOLVER,
    lbfgs.SOLVER,
    irls.SOLVER,
    proximal_gradient.SOLVER,
    nested_multipliers.SOLVER,
    dual_newton.SOLVER,
    semismooth_newton.MATRIX_FREE,
    admm.SOLVER,
    split_newton.SOLVER,
    sentence_admm.SOLVER,
    REFERENCE,
)
_BY_PASSES = tuple(solver for solver in _OWN if solver.by_passes)
_solvers = _OWN  # always replaced by a new tuple, so that other threads see a consistent list


@dataclass(frozen=True)
class Choice:
    """A solver for a problem, and why it was taken, in words."""

    solver: Solver
    reason: str


def solvers() -> tuple[Solver, ...]:
    """All solvers, in order."""
    return _solvers


def names() -> tuple[str, ...]:
    """The names of all solvers, in order.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> csr.solvers.names()[-1]
    'cvxpy'
    """
    return tuple(solver.name for solver in _solvers)


def register(solver: Solver, before: str = REFERENCE.name) -> AbstractContextManager[Solver]:
    """Add a solver, for use by ``problem.solve(solver.name)``, ``verify`` and ``auto``.

    Parameters
    ----------
    solver : Solver
        The solver; its name must not be in use.
    before : str
        The solver before which ``auto`` tries the new one. By default the new solver comes after all solvers of the
        library and before CVXPY, so that ``auto`` uses it only if no other fast solver accepts the problem.

    Returns
    -------
    context manager
        In a ``with`` statement, it removes the solver at the end of the block. Otherwise the solver stays registered
        until :func:`unregister` is called.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> def stay(problem, start, tol):
    ...     yield start
    >>> with csr.solvers.register(csr.solvers.Solver("stay", stay)):
    ...     "stay" in csr.solvers.names()
    True
    >>> "stay" in csr.solvers.names()
    False
    """
    global _solvers
    if not isinstance(solver, Solver):
        raise TypeError(f"register takes a Solver, got {type(solver).__name__}; wrap a function as Solver(name, run)")
    if not isinstance(solver.name, str) or not solver.name or solver.name == "auto":
        raise ValueError(f"a solver needs a name other than 'auto', got {solver.name!r}")
    taken = {name for known in _solvers for name in (known.name, *known.aliases)}
    clash = sorted(taken & {solver.name, *solver.aliases})
    if clash:
        raise ValueError(f"solver {clash[0]!r} already exists; choose another name, or unregister({clash[0]!r})")
    if not callable(solver.run) or len(inspect.signature(solver.run).parameters) < 3:
        raise TypeError(f"run of solver {solver.name!r} must be a function (problem, start, tol, **options)")
    at = names().index(named(before).name)
    _solvers = (*_solvers[:at], solver, *_solvers[at:])
    return _registered(solver)


@contextmanager
def _registered(solver: Solver) -> Iterator[Solver]:
    try:
        yield solver
    finally:
        if solver in _solvers:
            unregister(solver)


def unregister(solver: Solver | str) -> None:
    """Remove a registered solver. Solvers of the library cannot be removed.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> csr.solvers.unregister("newton")
    Traceback (most recent call last):
        ...
    ValueError: solver 'newton' belongs to the library and cannot be removed
    """
    global _solvers
    known = named(solver) if isinstance(solver, str) else solver
    if known in _OWN:
        raise ValueError(f"solver {known.name!r} belongs to the library and cannot be removed")
    if known not in _solvers:
        raise ValueError(f"{known!r} is not registered")
    _solvers = tuple(other for other in _solvers if other is not known)


def accepting(problem: Problem) -> tuple[Solver, ...]:
    """The solvers that accept the problem, in the order in which ``auto`` tries them.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> csr.solvers.accepting(problem)[0].name
    'working_set'
    """
    return tuple(solver for solver in _solvers if solver.accepts(problem))


def refusals(problem: Problem) -> dict[str, str]:
    """The solvers that do not accept the problem, each with the reason.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> csr.solvers.refusals(problem)["newton"]
    'L1 and bounds have no gradient; only quadratic and smooth terms on the weights are supported'
    """
    answers = {solver.name: solver.refusal(problem) for solver in _solvers}
    return {name: answer.reason for name, answer in answers.items() if answer is not None}


def named(name: str) -> Solver:
    """The solver with this name; former names are recognised."""
    for solver in _solvers:
        if name == solver.name:
            return solver
        if name in solver.aliases:
            warnings.warn(f"solver {name!r} is now called {solver.name!r}", FutureWarning, stacklevel=5)
            return solver
    close = difflib.get_close_matches(str(name), ("auto", *names()), n=1)
    hint = f"did you mean {close[0]!r}? Choose from" if close else "choose from"
    raise ValueError(f"there is no solver {name!r}; {hint} 'auto', {', '.join(map(repr, names()))}")


def choose(problem: Problem, name: str) -> Solver:
    """The solver with this name; for "auto", the solver that is expected to be the fastest."""
    return choice(problem, name).solver


def choice(problem: Problem, name: str) -> Choice:
    """The solver with this name, or the one that "auto" takes, with the reason."""
    if name == "auto":
        return _automatic(problem)
    solver = named(name)
    answer = solver.refusal(problem)
    if answer is not None:
        others = ", ".join(repr(other.name) for other in accepting(problem))
        raise ValueError(f"solver {name!r} does not accept this problem: {answer.reason}. These do: {others}")
    return Choice(solver, f"{solver.name} was asked for by name")


@lru_cache(maxsize=8)
def _of_kind(solvers: tuple[Solver, ...], kind: str) -> tuple[Solver, ...]:
    """Those of the solvers that accept problems with models of this kind."""
    return tuple(solver for solver in solvers if kind in solver.kinds)


def _yields(solver: Solver, problem: Problem) -> bool:
    """Whether a solver is expected to be slower than the reference."""
    return any(isinstance(need, NoLooseWeights) and need.missing(problem) for need in solver.fastest_if)


def _automatic(problem: Problem) -> Choice:
    """The first solver that accepts the problem, unless a later fast one is expected to be faster."""
    refused = ""
    slower: list[tuple[Solver, str]] = []
    for solver in _of_kind(_solvers, kind_of(problem.given)):
        answer = solver.refusal(problem)
        if answer is not None:
            refused = refused if solver.by_passes else f"{solver.name} before it does not: {answer.reason}"
            continue
        if slower and (solver.baseline or (solver is REFERENCE and not all(_yields(s, problem) for s, _ in slower))):
            continue
        doubt = solver.slower(problem)
        if doubt is None:
            words = [
                f"{solver.name} is the first solver, in order of expected speed, that accepts the problem",
                refused,
            ]
            words += [f"{other.name} accepts it but is expected to be slower: {why}" for other, why in slower]
            return Choice(solver, "; ".join(word for word in words if word))
        slower.append((solver, doubt.reason))
    if slower:
        return Choice(slower[0][0], f"{slower[0][0].name} is the only fast solver that accepts the problem")
    reasons = "; ".join(f"{solver.name}: {refusals(problem)[solver.name]}" for solver in _BY_PASSES)
    raise ValueError(f"no solver accepts this problem with data in blocks of rows ({reasons})")
