"""Solutions for decreasing strengths, each warm-started from the previous one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from cvxstructreg.core.checks import real_array
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.paths.path_start import largest_strength
from cvxstructreg.paths.strength import checked_terms, with_strength
from cvxstructreg.runtime.cards import card, table
from cvxstructreg.runtime.short_repr import short_repr

#: The HTML form shows so many points.
MOST_SHOWN = 8

#: Solves a problem, with the solution of the previous one as a warm start.
Solve = Callable[[Problem, Solution | None], Solution]


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions for decreasing strengths.

    Attributes
    ----------
    strengths : array
        The factors by which the scales of the terms were multiplied, largest first.
    solutions : tuple of Solution
        One solution for each strength, with its certificate; only the last one keeps its dual point.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> path = csr.path(problem, n_points=3)
    >>> len(path), path.n_selected.tolist()
    (3, [0, 1, 1])
    """

    strengths: Array
    solutions: tuple[Solution, ...] = field(repr=False)

    __repr__ = short_repr

    def _repr_html_(self) -> str:
        chosen = np.unique(np.linspace(0, len(self) - 1, min(len(self), MOST_SHOWN)).round().astype(int))
        head = ("strength", "selected", "objective", "relative gap", "status")
        rows = [
            (
                f"{self.strengths[i]:.4g}",
                self.n_selected[i],
                f"{found.objective:.6g}",
                f"{self.gaps[i]:.1e}",
                found.status,
            )
            for i, found in ((int(i), self.solutions[i]) for i in chosen)
        ]
        left = len(self) - len(rows)
        note = f"{left} of {len(self)} points not shown; plots.coefficient_path(path) draws the weights" if left else ""
        return card(f"Path of {len(self)} strengths, {self.time:.3g} seconds", (), table(head, rows, left=0), note=note)

    def without_proofs(self) -> Path:
        """The same path without the dual points of its certificates, to save memory."""
        return replace(self, solutions=tuple(solution.without_proof() for solution in self.solutions))

    def __len__(self) -> int:
        return len(self.solutions)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.solutions)

    def __getitem__(self, number: int) -> Solution:
        return self.solutions[number]

    @classmethod
    def along(
        cls, problem: Problem, factors: Array, numbers: tuple[int, ...], solve: Solve, verbose: bool = False
    ) -> Path:
        """Solve a problem with the terms of these indices multiplied by each of the factors in turn."""
        solutions: list[Solution] = []
        for factor, solution in zip(factors, follow(problem, factors, numbers, solve), strict=True):
            if solutions:  # dual points are large, and only the next point needs one
                solutions[-1] = replace(solutions[-1], dual={}).without_proof()
            solutions.append(solution)
            if verbose:
                _show(len(solutions), len(factors), float(factor), solution)
        return cls(factors, tuple(solutions))

    @property
    def coefs(self) -> Array:
        """The weights of all points, shape (points, d) or (points, d, k)."""
        return np.stack([solution.coef for solution in self.solutions])

    @property
    def intercepts(self) -> Array:
        """The intercepts of all points."""
        return np.stack([np.asarray(solution.intercept, dtype=float) for solution in self.solutions])

    @property
    def n_selected(self) -> Array:
        """Number of features with a nonzero weight, for each point."""
        coefs = self.coefs.reshape(len(self), self.solutions[0].coef.shape[0], -1)
        return np.asarray(np.count_nonzero(np.abs(coefs).max(axis=2), axis=1))

    @property
    def gaps(self) -> Array:
        """The certified relative gaps."""
        return np.array([solution.certificate.relative_gap for solution in self.solutions])

    @property
    def time(self) -> float:
        """Seconds for all points."""
        return float(sum(solution.time for solution in self.solutions))


def path(
    problem: Problem,
    strengths: Any = None,
    n_points: int = 50,
    smallest: float = 0.01,
    terms: Iterable[int] | None = None,
    solver: str = "auto",
    tol: float = 1e-6,
    verbose: bool = False,
    **options: Any,
) -> Path:
    """Solve a problem for decreasing strengths of some of its terms, each point warm-started from the previous one.

    Parameters
    ----------
    problem : Problem
        At each point of the path, the scales of ``terms`` are multiplied by a strength.
    strengths : array, optional
        The factors; by default ``n_points`` from the largest one down to ``smallest`` times it, evenly spaced on a
        logarithmic scale. The largest one is :func:`lambda_max` for norms and smooth losses. For norms of differences,
        or losses with kinks, it is a strength at which the norms are zero; weights that they do not see, such as equal
        weights, are not. For all other terms, it leaves a hundredth of the step to the minimum of the loss.
    terms : indices of terms, optional
        The terms to scale; by default all terms on the weights that are not differentiable at zero.
    solver, tol, options
        As in :meth:`cvxstructreg.Problem.solve`, for every point.
    verbose : bool
        Whether to show a progress line.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 2.0, 3.0]
    >>> problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + csr.L1())
    >>> points = path(problem, n_points=3, smallest=0.1)
    >>> points.n_selected.tolist(), points.strengths.round(2).tolist()
    ([0, 2, 2], [7.0, 2.21, 0.7])
    """
    problem = problem.now
    numbers = checked_terms(problem, terms)
    factors = common_strengths([problem], strengths, n_points, smallest, numbers)

    def solve(point: Problem, start: Solution | None) -> Solution:
        return point.solve(solver, tol=tol, warm_start=start, **options)

    return Path.along(problem, factors, numbers, solve, verbose)


def follow(problem: Problem, factors: Array, numbers: tuple[int, ...], solve: Solve) -> Iterator[Solution]:
    """Yield the solutions one by one; ``solve`` gets a problem and a warm start (a solution, or None).

    The warm start is the previous solution, with weights extrapolated from the last two solutions.
    """
    blocks = problem.given.row_blocks
    with nullcontext() if blocks is None else blocks.held():  # blocks that fit into memory are collected once
        yield from _followed(problem, factors, numbers, solve)


def _followed(problem: Problem, factors: Array, numbers: tuple[int, ...], solve: Solve) -> Iterator[Solution]:
    bounded = any(term.is_constraint for term in problem.terms)  # extrapolated weights may violate bounds
    start: Solution | None = None
    before: Solution | None = None
    for number, factor in enumerate(factors):
        found = solve(with_strength(problem, float(factor), numbers), start)
        yield found
        ahead = 0.0 if bounded else _step_ratio(factors[max(0, number - 1) : number + 2])
        helped = start is before or _distance(found, start) < _distance(found, before)
        start = _extrapolated(before, found, ahead) if before is not None and helped and ahead > 0 else found
        before = found


def _step_ratio(strengths: Array) -> float:
    """Return the ratio of the last to the first of two steps on the logarithmic scale; 0 if it is undefined."""
    if len(strengths) < 3 or strengths[-1] <= 0 or strengths[0] == strengths[1]:
        return 0.0
    return float(np.log(strengths[1] / strengths[2]) / np.log(strengths[0] / strengths[1]))


def _distance(one: Solution, other: Solution | None) -> float:
    return np.inf if other is None else float(np.linalg.norm(one.coef - other.coef))


def _extrapolated(before: Solution, found: Solution, ahead: float) -> Solution:
    """Extrapolate the weights linearly in the logarithm of the strength; zeros stay zero and signs do not change."""
    coef = found.coef + ahead * (found.coef - before.coef)
    coef = np.where(coef * found.coef > 0, coef, 0.0)
    return replace(found, coef=coef, intercept=found.intercept + ahead * (found.intercept - before.intercept))


def common_strengths(
    problems: Sequence[Problem],
    strengths: Any,
    n_points: int,
    smallest: float,
    numbers: tuple[int, ...],
    fallback: float | None = None,
) -> Array:
    """Return ``strengths`` checked and sorted; by default, start at the largest strength that any problem needs.

    ``fallback`` is the largest strength if all weights are zero at any strength; without it, that case is an error.
    """
    if strengths is None:
        if isinstance(n_points, bool) or not isinstance(n_points, Integral) or n_points < 1:
            raise ValueError(f"n_points must be an integer of at least 1, got {n_points!r}")
        if not isinstance(smallest, Real) or not 0 < smallest < 1:
            raise ValueError(f"smallest must lie between 0 and 1, got {smallest!r}")
        largest = max(largest_strength(problem, numbers) for problem in problems)
        if largest == 0.0 and fallback is not None:
            largest = fallback
        if largest == 0.0:
            raise ValueError("all weights are zero at any strength, because the loss is minimal there; give strengths=")
        return largest * np.geomspace(1.0, smallest, n_points)
    factors = np.array(real_array(strengths, "strengths"))
    if factors.ndim != 1 or factors.size == 0 or not np.isfinite(factors).all() or (factors < 0).any():
        raise ValueError("strengths must be a nonempty one-dimensional list of finite nonnegative numbers")
    return np.sort(factors)[::-1]


def _show(count: int, total: int, strength: float, solution: Solution) -> None:
    nonzero, end = int(np.count_nonzero(solution.coef)), "\n" if count == total else ""
    line = f"\r{count}/{total}  strength {strength:.4g}  {nonzero} nonzero  gap {solution.certificate.error:.1e}   "
    print(line, end=end, file=sys.stderr, flush=True)
