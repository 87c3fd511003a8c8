"""The interface of all changes of coordinates: the equivalent problem, and maps of points in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from cvxstructreg.numerics.arrays import Array

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: The attribute in which a problem caches its reductions. They hold no reference to the problem, because a reference
#: cycle would keep large data alive.
_KEPT = "_reductions"


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, intercepts, and dual points keyed by term number."""

    theta: Array
    b: Array
    dual: Mapping[int, Array] = field(default_factory=dict)


class Reduction:
    """An equivalent problem, and the maps of points in both directions.

    A subclass defines :meth:`make`, and overrides :meth:`lift` and :meth:`lower` if coordinates change.

    Attributes
    ----------
    problem : Problem
        The equivalent problem.
    """

    problem: Problem

    @classmethod
    def apply(cls, problem: Problem) -> Self | None:
        """The reduction of a problem, computed once and cached with the problem; None if nothing changes."""
        kept: dict[type, Any] = problem.__dict__.setdefault(_KEPT, {})
        if cls not in kept:
            kept.setdefault(cls, cls.make(problem))  # one reduction for all threads
        found: Self | None = kept[cls]
        return found

    @classmethod
    def settle(cls, problem: Problem) -> None:
        """Record that this reduction changes nothing in a problem."""
        problem.__dict__.setdefault(_KEPT, {})[cls] = None

    @classmethod
    def make(cls, problem: Problem) -> Self | None:
        """Compute the reduction of a problem; None if nothing changes."""
        raise NotImplementedError

    def lift(self, point: Point) -> Point:
        """Map a point of the equivalent problem to the given one."""
        return point

    def lower(self, point: Point) -> Point:
        """Map a point of the given problem to the equivalent one, for warm starts."""
        return point


class Chain(Reduction):
    """A sequence of reductions; an empty one leaves the problem unchanged."""

    def __init__(self, problem: Problem, steps: tuple[Reduction, ...]) -> None:
        self.steps = steps
        self.problem = self.steps[-1].problem if self.steps else problem

    def lift(self, point: Point) -> Point:
        """Apply ``lift`` of all reductions, the last one first."""
        for step in reversed(self.steps):
            point = step.lift(point)
        return point

    def lower(self, point: Point) -> Point:
        """Apply ``lower`` of all reductions, the first one first."""
        for step in self.steps:
            point = step.lower(point)
        return point


def reduced(problem: Problem, wanted: Sequence[type[Reduction]]) -> Chain:
    """The problem after all of the wanted reductions that change something; these are found once."""
    kept: dict[Any, Any] = problem.__dict__.setdefault(_KEPT, {})
    key = tuple(wanted)
    if key not in kept:
        kept.setdefault(key, _steps(problem, key))
    return Chain(problem, kept[key])


def _steps(problem: Problem, wanted: tuple[type[Reduction], ...]) -> tuple[Reduction, ...]:
    """Those of the reductions, one after the other, that change something."""
    steps: list[Reduction] = []
    current = problem
    for kind in wanted:
        step = kind.apply(current)
        if step is not None:
            steps.append(step)
            current = step.problem
    return tuple(steps)
