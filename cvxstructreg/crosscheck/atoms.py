"""Check the closed forms of each atom of a problem against its textbook value.

A solver with a wrong prox or gradient often stops without a certificate, so the error stays hidden. The checks here
detect such a formula by its definition: a prox is a minimiser, a gradient is the limit of differences, and a conjugate
satisfies f(z) + f*(u) >= <u, z>.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cvxstructreg as csr
from cvxstructreg.core.atom import conjugate, has_conjugate
from cvxstructreg.crosscheck.recipe import Recipe, outputs_of
from cvxstructreg.crosscheck.terms.usual import RESIDUAL
from cvxstructreg.crosscheck.textbook.matrices import Array
from cvxstructreg.crosscheck.textbook.regression import EPS
from cvxstructreg.crosscheck.textbook.value import UNITS, term_value

#: Tolerance for the value of a prox (which may be iterative), relative to the value at its starting point.
PROX = 1e-4
#: Tolerance for f(x) + f*(u) = <u, x> at a subgradient u, which inherits the error of the prox; and for the inequality.
EQUALITY, INEQUALITY = 1e-3, 1e-9
#: Tolerance for differences, their step sizes, and the round-off of a value.
DIFFERENCE, STEPS, ROUND_OFF = 1e-3, (1e-5, 1e-7), 1e-12
#: Tolerance for f(w) = outer(K w).
SPLIT = 1e-10
#: Values below this fraction of their magnitude count as zero.
ZERO = 1e-9
#: A norm that is itself a minimum needs a cone solver for each value: only this share of them is checked.
LATENT = 0.2
Function = Callable[[Array], float]


def wrong_atoms(problem: csr.Problem, recipe: Recipe, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Yield the name of each wrong formula, and what is wrong with it."""
    for term, given in zip(problem.terms, recipe["terms"], strict=True):
        atom = term.atom
        if given["kind"] == "RKHSNorm" or (given["kind"] == "LatentGroupLasso" and rng.random() > LATENT):
            continue
        m = _rows(problem, given)
        z = rng.normal(size=(m, outputs_of(recipe)))
        if given["kind"] in RESIDUAL:
            z = z + np.array(given["y"]).reshape(z.shape)
        name = type(atom).__name__

        def f(x: Array, given: dict[str, Any] = given) -> float:
            return term_value(given, x).high

        if not np.isfinite(f(z)):
            z = atom.prox(z, 1.0)
        checks = {"prox": _prox, "grad": _grad, "split": _split}
        for capability, wrong in checks.items():
            if atom.can(capability):
                size = float(term_value(given, z).magnitude)
                yield from ((f"{name}.{capability}", text) for text in wrong(atom, f, z, size, rng))


def _rows(problem: csr.Problem, given: dict[str, Any]) -> int:
    if given["on"] == "rows":
        return len(given["y"])
    return problem.model.n_rows if given["on"] in ("scores", "function") else problem.model.n_weights


def _prox(atom: Any, f: Function, z: Array, size: float, rng: np.random.Generator) -> Iterator[str]:
    """Check that t f(x) + 1/2 ||x - v||^2 is lower at x = prox(v) than nearby, and (v - x) / t is a subgradient."""
    v, start = z, f(z)
    t = float(0.5 * np.sum(v**2) / start) if start > ZERO * size else 1.0

    def cost(x: Array) -> float:
        return t * f(x) + 0.5 * float(np.sum((x - v) ** 2))

    x = atom.prox(v, t)
    found, scale = cost(x), max(cost(v), 0.5 * float(np.sum(v**2)))
    others = [x + step * (v - x) for step in (-0.1, 0.02, 0.1, 0.5)] + [np.zeros_like(v)]
    others += [x + 0.03 * np.abs(v).max() * rng.normal(size=v.shape) for _ in range(2)]
    best = min(cost(other) for other in others)
    if not found <= best + PROX * scale:
        yield f"prox at t = {t:.3g}: {float(found)!r}, but {float(best)!r} nearby"
    if has_conjugate(atom) and start > ZERO * size:
        yield from _conjugate(atom, f, x, (v - x) / t, z, UNITS * EPS * size)


def _conjugate(atom: Any, f: Function, x: Array, u: Array, z: Array, noise: float) -> Iterator[str]:
    """Check that f(z) + f*(u) >= <u, z>, with equality for a subgradient u at z; ``noise`` is the round-off of f."""
    size = float(np.sum(np.abs(u) * (np.abs(x) + np.abs(z)))) + abs(f(x)) + abs(f(z))
    inside = (1.0 - 1e-6) * u  # round-off may have moved u out of the domain
    excess = f(x) + conjugate(atom, inside) - float(np.sum(inside * x))
    if EQUALITY * size < excess < np.inf:  # infinite if u is still outside
        yield f"f(x) + f*(u) exceeds <u, x> by {excess:.3g} (of {size:.3g}) for a subgradient u"
    for factor in (1.0, 1.5, -0.7):
        for point in (x, z, 3.0 * x):
            product = float(np.sum(factor * u * point))
            total = f(point) + conjugate(atom, factor * u)
            slack = INEQUALITY * (float(np.sum(np.abs(u * point))) + abs(f(point)) + size) + noise
            if total < product - slack:
                yield f"f(z) + f*(u) = {float(total)!r} is below <u, z> = {product!r}"
                return


def _grad(atom: Any, f: Function, z: Array, size: float, rng: np.random.Generator) -> Iterator[str]:
    """Check that f(z + p) - f(z - p) is 2 <grad, p> for small p."""
    gradient = atom.grad(z)
    noise = ROUND_OFF * size / float(np.abs(z).max())
    for step in STEPS:
        # in double precision z + p would be rounded
        p = step * np.asarray(rng.normal(size=z.shape), dtype=np.longdouble)
        change, expected = f(z + p) - f(z - p), 2.0 * float(np.sum(gradient * p))
        scale = 2.0 * float(np.sum(np.abs(gradient * p)))
        if abs(change - expected) <= DIFFERENCE * scale + noise * step:
            return  # a kink can spoil one step size, but not all
    yield f"2 <grad, p> = {expected!r}, but the difference of values is {float(change)!r}"


def _split(atom: Any, f: Function, z: Array, size: float, rng: np.random.Generator) -> Iterator[str]:
    """Check that f(w) = outer(K w)."""
    outer, K = atom.split()
    value, expected = outer.value(np.asarray(K @ z[: K.shape[1]])), f(z)
    if abs(value - expected) > SPLIT * max(abs(value), abs(expected)):
        yield f"outer(K w) = {value!r}, but f(w) = {float(expected)!r}"
