"""The objective as written: a sum of scaled atoms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from cvxstructreg.core.atom import Atom


@dataclass(frozen=True, eq=False)
class Term:
    """``scale * atom( map(theta, b) )``: the strength lives here and never in the atom."""

    atom: Atom
    scale: float
    target: str

    __array_ufunc__ = None  # as for atoms

    def __post_init__(self) -> None:
        if isinstance(self.scale, bool) or not isinstance(self.scale, Real):
            raise TypeError(f"a strength must be a real number, got {type(self.scale).__name__}")
        scale = float(self.scale)
        if not math.isfinite(scale) or scale < 0:
            name = type(self.atom).__name__
            raise ValueError(f"the strength of {name} must be finite and at least 0 to stay convex, got {scale}")
        object.__setattr__(self, "scale", scale)

    @property
    def is_constraint(self) -> bool:
        """Whether the term is nothing but bounds, whose strength does not matter."""
        return self.atom.can("separable") and not np.any(self.atom.separable().weights)

    def __rmul__(self, scale: float) -> Term:
        return replace(self, scale=self.scale * Term(self.atom, scale, self.target).scale)

    __mul__ = __rmul__

    def __add__(self, other: Any) -> Objective:
        return Objective.of(self) + other

    def __radd__(self, other: Any) -> Objective:
        return Objective.of(self) if other == 0 else Objective.of(other) + self

    def __repr__(self) -> str:
        moved = {"scores": ".on_scores()", "values": ".on_function()"}
        name = repr(self.atom) + (moved.get(self.target, "") if self.target != type(self.atom).target else "")
        return name if self.scale == 1 else f"{self.scale:g} * {name}"


@dataclass(frozen=True, eq=False)
class Objective:
    """A sum of terms, made by adding atoms: ``Logistic(y) + 0.1 * Ridge()``."""

    terms: tuple[Term, ...]

    __array_ufunc__ = None  # as for atoms

    @classmethod
    def of(cls, item: Any) -> Objective:
        """An objective from an atom, a term or an objective."""
        if isinstance(item, Objective):
            return item
        if isinstance(item, Term):
            return cls((item,))
        if isinstance(item, Atom):
            return cls((Term(item, 1.0, item.target),))
        raise TypeError(
            f"an objective is a sum of atoms such as Logistic(y) + 0.1 * Ridge(); got {type(item).__name__}"
        )

    def __add__(self, other: Any) -> Objective:
        return Objective(self.terms + Objective.of(other).terms)

    def __radd__(self, other: Any) -> Objective:
        return self if other == 0 else Objective.of(other) + self

    def __rmul__(self, scale: float) -> Objective:
        return Objective(tuple(scale * term for term in self.terms))

    __mul__ = __rmul__

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))
