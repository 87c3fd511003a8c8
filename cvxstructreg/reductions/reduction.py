"""What every change of coordinates offers: the equivalent problem, and points carried there and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from cvxstructreg.numerics.arrays import Array

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: The name under which a problem keeps its reductions. They hold no reference to the problem, so that no cycle keeps
#: large data alive.
_KEPT = "_reductions"


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, intercepts, and dual points by the numbers of the terms."""

    theta: Array
    b: Array
    dual: Mapping[int, Array] = field(default_factory=dict)


class Reduction:
    """An equivalent problem, and the way there and back.

    A subclass defines :meth:`make`, and overrides :meth:`lift` and :meth:`lower` where coordinates change.

    Attributes
    ----------
    problem : Problem
        The equivalent problem.
    """

    problem: Problem

    @classmethod
    def apply(cls, problem: Problem) -> Self | None:
        """The reduction of a problem, made once and kept with it; None if there is nothing to change."""
        kept: dict[type, Any] = problem.__dict__.setdefault(_KEPT, {})
        if cls not in kept:
            kept[cls] = cls.make(problem)
        found: Self | None = kept[cls]
        return found

    @classmethod
    def settle(cls, problem: Problem) -> None:
        """State that this reduction has nothing to change in a problem."""
        problem.__dict__.setdefault(_KEPT, {})[cls] = None

    @classmethod
    def make(cls, problem: Problem) -> Self | None:
        """The reduction of a problem; None if there is nothing to change."""
        raise NotImplementedError

    def lift(self, point: Point) -> Point:
        """A point of the equivalent problem as a point of the given one."""
        return point

    def lower(self, point: Point) -> Point:
        """A point of the given problem as a point of the equivalent one, for warm starts."""
        return point


class Chain(Reduction):
    """Reductions one after the other; with none, the problem stays as it is."""

    def __init__(self, problem: Problem, steps: Sequence[Reduction]) -> None:
        self.steps = tuple(steps)
        self.problem = self.steps[-1].problem if self.steps else problem

    def lift(self, point: Point) -> Point:
        """Through all reductions, the last one first."""
        for step in reversed(self.steps):
            point = step.lift(point)
        return point

    def lower(self, point: Point) -> Point:
        """Through all reductions, the first one first."""
        for step in self.steps:
            point = step.lower(point)
        return point


def reduced(problem: Problem, wanted: Sequence[type[Reduction]]) -> Chain:
    """The problem after those of the wanted reductions that change something."""
    steps: list[Reduction] = []
    current = problem
    for kind in wanted:
        step = kind.apply(current)
        if step is not None:
            steps.append(step)
            current = step.problem
    return Chain(problem, steps)
