"""Shared code of the checks of an atom: random points, checked calls, and error messages with numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.numerics.arrays import Array

#: Step sizes at which the prox is compared with CVXPY.
STEPS = (0.3, 2.0)
#: The methods that return an array of the shape of their argument; ``hess_rows`` returns two such arrays.
ARRAYS = ("grad", "hessp", "hess_diag", "hess_bound", "prox", "into_domain")


def require(holds: Any, who: str, clause: str, why: str) -> None:
    """Raise AssertionError unless the clause holds."""
    if not holds:
        raise AssertionError(f"{who}: {clause}: {why}")


class Probe:
    """An atom and the points at which it is checked."""

    def __init__(self, atom: Atom, shape: tuple[int, int], rng: np.random.Generator) -> None:
        self.atom, self.shape, self.rng = atom, shape, rng
        self.points = [np.zeros(shape)] + [scale * self.normal() for scale in (0.1, 1.0, 10.0) * 2]

    def normal(self) -> Array:
        """Return a random array of the shape of the argument."""
        return self.rng.normal(size=self.shape)

    def require(self, holds: Any, clause: str, why: str, **points: Array) -> None:
        """Raise AssertionError, with the points, unless the clause holds."""
        require(holds, repr(self.atom), clause, why if holds else why + where(points))

    def close(
        self,
        found: Any,
        expected: Any,
        clause: str,
        why: str,
        tol: float = 1e-9,
        floor: float = 1.0,
        **points: Array,
    ) -> None:
        """Raise unless equal up to tol * (floor + the largest number); infinities of the same sign are equal."""
        if np.ndim(found) == np.ndim(expected) == 0 and found == expected:
            return
        a, b = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
        size = floor + max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
        holds = a.shape == b.shape and np.isfinite(size) and np.abs(a - b).max(initial=0.0) <= tol * size
        self.require(holds, clause, why if holds else f"{why}: {_difference(a, b)}", **points)

    def call(self, name: str, *inputs: Any) -> Any:
        """Return the result of a method, after checking its shape, for NaN, and that the inputs did not change."""
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
        result = getattr(self.atom, name)(*given)
        points = {f"argument {i + 1}": x for i, x in enumerate(inputs) if isinstance(x, np.ndarray)}
        unchanged = all(np.array_equal(a, b) for a, b in zip(given, inputs, strict=True) if isinstance(b, np.ndarray))
        self.require(unchanged, name, "modifies its input", **points)
        if name == "hess_rows":
            pair = isinstance(result, tuple) and len(result) == 2
            self.require(pair, name, f"must return two arrays (D, R), got {type(result).__name__}", **points)
            return tuple(self.checked(name, part, self.shape, **points) for part in result)
        if name == "derivatives":
            three = isinstance(result, tuple) and len(result) == 3
            self.require(three, name, f"must return a number and two arrays, got {type(result).__name__}", **points)
            shapes: tuple[tuple[int, ...], ...] = (), self.shape, self.shape
            return tuple(self.checked(name, part, shape, **points) for part, shape in zip(result, shapes, strict=True))
        return self.checked(name, result, self.shape if name in ARRAYS else (), **points)

    def checked(self, name: str, result: Any, shape: tuple[int, ...], **points: Array) -> Any:
        """Return the result after checking its shape and for NaN; numbers may be infinite, arrays may not."""
        why = f"returns shape {np.shape(result)}, expected {shape}"
        self.require(np.shape(result) == shape, name, why, **points)
        usable = np.isfinite(result) if shape else not np.isnan(result)
        self.require(np.all(usable), name, "returns NaN or, in an array, infinite values", **points)
        return result if shape else float(result)

    def at(self, z: Array) -> float:
        """Return f(z)."""
        return float(self.call("value", z))

    def pairs(self, exact: bool = True) -> list[tuple[Array, Array]]:
        """Return points z with a subgradient u of the atom: z = prox(v, t), u = (v - z) / t.

        If ``exact``, a u that round-off moved out of the domain of the conjugate is moved back into it.
        """
        points = [(scale * self.normal(), step) for step in STEPS for scale in (0.5, 1.0, 5.0)]
        shrink = 1.0 if self.atom.can("prox") else 1.0 - 1e-6  # CVXPY may leave the domain, which contains 0
        found = [(z, shrink * (v - z) / t) for v, t in points for z in (self.call("prox", v, t),)]
        return [(z, u if self._in_domain(u) else self.atom.into_domain(u)) for z, u in found] if exact else found

    def _in_domain(self, u: Array) -> bool:
        if self.atom.can("conj"):
            return bool(self.call("conj", u) < np.inf)
        return not self.atom.can("dual_norm") or bool(self.call("dual_norm", u) <= 1.0)


def _difference(found: Array, expected: Array) -> str:
    """Return a text with the two numbers, or with the entries of two arrays that differ most."""
    if found.shape != expected.shape:
        return f"got shape {found.shape}, expected {expected.shape}"
    if not found.ndim:
        return f"got {found:.9g}, expected {expected:.9g}"
    with np.errstate(invalid="ignore"):
        distance = np.abs(found - expected)
    entry = tuple(map(int, np.unravel_index(np.argmax(np.where(np.isnan(distance), np.inf, distance)), found.shape)))
    return f"entry {entry} is {found[entry]:.9g}, expected {expected[entry]:.9g}"


def where(points: dict[str, Array]) -> str:
    """Return the points with their names, for a message."""
    shown = []
    for name, x in points.items():
        text = np.array2string(np.asarray(x), precision=6, separator=", ", threshold=40)
        shown.append(f"{name.replace('_', ' ')} = {' '.join(text.split())}")
    return f" (at {', '.join(shown)})" if shown else ""
