"""Formulas that a user gives for an expression: a penalty that has them, after a comparison with the expression."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.numerics.arrays import Array

#: The formulas that may be given.
GIVEN = ("prox", "conj", "dual_norm", "grad", "hessp", "lipschitz")
#: How far a given formula may be from the expression, relative to the numbers compared.
CLOSE = 1e-5


def with_formulas(atom: Any, given: dict[str, Any]) -> Atom:
    """The penalty with the given formulas in place of its own; raises if one of them differs from the expression."""
    if "hessp" in given and "grad" not in given:
        raise ValueError(f"{atom!r}: hessp needs grad as well")

    def method(name: str) -> Any:
        formula = given[name]
        if name == "lipschitz":
            return lambda self: float(formula() if callable(formula) else formula)
        if name == "hessp":
            return lambda self, z, p: np.asarray(formula(*_flat(z, p)), dtype=float).reshape(z.shape)
        if name == "prox":
            return lambda self, v, t: np.asarray(formula(*_flat(v), t), dtype=float).reshape(v.shape)
        if name == "grad":
            return lambda self, z: np.asarray(formula(*_flat(z)), dtype=float).reshape(z.shape)
        return lambda self, u: float(formula(*_flat(u)))

    kind = type("GivenPenalty", (type(atom),), {name: method(name) for name in given})
    made: Atom = object.__new__(kind)
    vars(made).update(vars(atom))
    _compare(made, atom, given)
    return made


def _flat(*arrays: Array) -> list[Array]:
    """Single columns as vectors, as the function of the expression has them."""
    return [z[:, 0] if z.shape[1] == 1 else z for z in arrays]


def _compare(made: Atom, atom: Any, given: dict[str, Any]) -> None:
    """Compare all given formulas at one random point, by the prox of the cone program."""
    rng = np.random.default_rng(0)
    v, t = rng.normal(size=atom.shape), 0.05
    x = atom.prox(v, t)
    if "prox" in given:
        costs = [t * atom.value(p) + 0.5 * float(np.sum((p - v) ** 2)) for p in (made.prox(v, t), x)]
        _require(costs[0] <= costs[1] + CLOSE * (1.0 + abs(costs[1])), made, "prox", *costs)
    u = (v - x) / t
    if "dual_norm" in given and atom.value(x) > CLOSE:
        _require(abs(made.dual_norm(u) - 1.0) <= CLOSE, made, "dual_norm", made.dual_norm(u), 1.0)
    if "conj" in given:
        inside = (1.0 - 1e-7) * u
        found, expected = made.conj(inside), float(np.sum(inside * x)) - atom.value(x)
        _require(abs(found - expected) <= CLOSE * (1.0 + abs(expected)), made, "conj", found, expected)
    if "grad" in given:
        p, h = rng.normal(size=atom.shape), 1e-5
        slope = (atom.value(v + h * p) - atom.value(v - h * p)) / (2.0 * h)
        found = float(np.sum(made.grad(v) * p))
        _require(abs(found - slope) <= CLOSE * (1.0 + abs(slope) + abs(atom.value(v))), made, "grad", found, slope)
    if "hessp" in given:
        p, h = rng.normal(size=atom.shape), 1e-5
        change = (made.grad(v + h * p) - made.grad(v - h * p)) / (2.0 * h)
        found_p = made.hessp(v, p)
        worst = float(np.abs(found_p - change).max())
        scale = 1.0 + float(np.abs(change).max()) + float(np.abs(made.grad(v)).max())
        _require(
            worst <= 10.0 * CLOSE * scale, made, "hessp", float(np.abs(found_p).max()), float(np.abs(change).max())
        )


def _require(holds: bool, atom: Atom, name: str, found: float, expected: float) -> None:
    if not holds:
        raise ValueError(
            f"{atom!r}: the given {name} differs from the expression: got {found:.9g}, expected {expected:.9g}; "
            "correct it, or leave it out"
        )
