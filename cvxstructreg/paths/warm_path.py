"""Solutions along decreasing strengths, each warm-started by the one before."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.checks import real_array
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.paths.largest_strength import lambda_max
from cvxstructreg.paths.strength import checked_terms, with_strength


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions for decreasing strengths.

    Attributes
    ----------
    strengths : array
        The factors by which the scales of the terms were multiplied, largest first.
    solutions : tuple of Solution
        One for each, with its certificate.
    """

    strengths: Array
    solutions: tuple[Solution, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.solutions)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.solutions)

    def __getitem__(self, number: int) -> Solution:
        return self.solutions[number]

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
        """Number of features with a weight that is not zero, for each point."""
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
    """Solve a problem for decreasing strengths of some of its terms, each point warm-started by the one before.

    Parameters
    ----------
    problem : Problem
        Its strengths count as 1: a point of the path multiplies the scales of ``terms`` by a strength.
    strengths : array, optional
        The factors; by default ``n_points`` from :func:`lambda_max` down to ``smallest`` times it, evenly on a
        logarithmic scale.
    terms : numbers of terms, optional
        The terms whose strength changes; by default all terms of the weights with a kink at zero.
    solver, tol, options
        As for :meth:`cvxstructreg.Problem.solve`, for every point.
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
    numbers = checked_terms(problem, terms)
    factors = _checked_strengths(problem, strengths, n_points, smallest, numbers)
    solutions: list[Solution] = []
    for factor in factors:
        start = solutions[-1] if solutions else None
        point = with_strength(problem, float(factor), numbers)
        solutions.append(point.solve(solver, tol=tol, warm_start=start, **options))
        if verbose:
            _show(len(solutions), len(factors), float(factor), solutions[-1])
    return Path(factors, tuple(solutions))


def _checked_strengths(
    problem: Problem, strengths: Any, n_points: int, smallest: float, numbers: tuple[int, ...]
) -> Array:
    if strengths is None:
        if n_points < 1:
            raise ValueError(f"n_points must be at least 1, got {n_points!r}")
        if not 0 < smallest < 1:
            raise ValueError(f"smallest must lie between 0 and 1, got {smallest!r}")
        largest = lambda_max(problem, numbers)
        if largest == 0.0:
            raise ValueError("all weights are zero at any strength: the loss does not ask for others; give strengths=")
        return largest * np.geomspace(1.0, smallest, n_points)
    factors = np.array(real_array(strengths, "strengths"))
    if factors.ndim != 1 or factors.size == 0 or not np.isfinite(factors).all() or (factors < 0).any():
        raise ValueError("strengths must be a list of finite nonnegative numbers")
    return np.sort(factors)[::-1]


def _show(count: int, total: int, strength: float, solution: Solution) -> None:
    nonzero, end = int(np.count_nonzero(solution.coef)), "\n" if count == total else ""
    line = f"\r{count}/{total}  strength {strength:.4g}  {nonzero} nonzero  gap {solution.certificate.error:.1e}   "
    print(line, end=end, file=sys.stderr, flush=True)
