"""The contracts of atoms and of solvers as checks, for third parties and for the tests of this package.

``expr`` is the definition of an atom; every other method is compared with it or with CVXPY. A broken clause
is an ``AssertionError`` that names the atom and the clause, also under ``python -O``.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.core.atom import CAPABILITIES, Array, Atom, conjugate, freeze, has_conjugate
from cvxstructreg.core.certificate import certify_point
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.quadratic_form import to_dense
from cvxstructreg.solvers.driver import InaccurateWarning
from cvxstructreg.solvers.reference import NAME as REFERENCE

STEPS = (0.3, 2.0)  # of the prox


def check_atom(atom: Atom, shape: tuple[int, int], rng: np.random.Generator | int | None = None) -> None:
    """Raise AssertionError unless all that the atom defines agrees with its ``expr``.

    Parameters
    ----------
    atom : Atom
        The function to check.
    shape : (int, int)
        The shape (m, k) of the arrays it acts on; keep it small, as CVXPY is asked many times.
    rng : numpy Generator or seed, optional
        Where the random points come from; the same ones each time by default.

    Examples
    --------
    >>> from cvxstructreg import Ridge
    >>> from cvxstructreg.testing import check_atom
    >>> check_atom(Ridge(), (3, 1))
    >>> class Careless(Ridge):
    ...     def grad(self, z):
    ...         return z
    >>> check_atom(Careless(), (3, 1))
    Traceback (most recent call last):
    ...
    AssertionError: Careless(): grad: it differs from the differences of value
    """
    check = _AtomCheck(atom, shape, np.random.default_rng(0 if rng is None else rng))
    check.definition()
    check.values()
    for name in CAPABILITIES:
        if atom.can(name) and hasattr(check, name):
            getattr(check, name)()
    if isinstance(atom, Loss):
        check.loss(atom)


def check_solver(name: str, problem: Problem, tol: float = 1e-6) -> None:
    """Raise AssertionError unless a solver reaches the optimum of the reference and proves it.

    Parameters
    ----------
    name : str
        One of ``cvxstructreg.solvers.names()``.
    problem : Problem
        A problem that the solver accepts and that has a duality gap or another bound of the optimum.
    tol : float
        The certified relative gap to reach.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> from cvxstructreg.testing import check_solver
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> problem = csr.Problem(csr.Linear(X), csr.Squared([1.0, 2.0, 4.0]) + 0.1 * csr.L1())
    >>> check_solver("fista", problem)
    """
    proofs = []
    for solver in (name, REFERENCE):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InaccurateWarning)  # the status says the same
            solution = problem.solve(solver=solver, tol=tol)
        who, told = f"solver {solver!r} on {problem!r}", f"it is {solution.status!r}: {solution.certificate}"
        _require(solution.status == "optimal", who, "status", told)
        certificate = certify_point(problem, *problem.shaped(solution.coef, solution.intercept), solution.dual)
        told = f"{solution.objective} is reported, {certificate.objective} is the value of the point"
        close = abs(certificate.objective - solution.objective) <= 1e-9 * (1.0 + abs(solution.objective))
        _require(close, who, "objective", told)
        told = f"computed anew it is {certificate}, the tolerance {tol:g}"
        _require(certificate.gap >= 0.0 and certificate.relative_gap <= 1.01 * tol, who, "certificate", told)
        proofs.append(certificate)
    told = f"objectives and gaps of it and the reference contradict each other: {proofs}"
    apart = abs(proofs[0].objective - proofs[1].objective) - 1e-12 * abs(proofs[1].objective)
    _require(apart <= proofs[0].gap + proofs[1].gap, f"solver {name!r} on {problem!r}", "reference", told)


def _require(holds: Any, who: str, clause: str, why: str) -> None:
    if not holds:
        raise AssertionError(f"{who}: {clause}: {why}")


class _AtomCheck:
    """One method for each clause of the contract, named like the capability if it is about one."""

    def __init__(self, atom: Atom, shape: tuple[int, int], rng: np.random.Generator) -> None:
        self.atom, self.shape, self.rng = atom, shape, rng
        self.points = [np.zeros(shape)] + [scale * self.normal() for scale in (0.1, 1.0, 10.0) * 2]

    def normal(self) -> Array:
        return self.rng.normal(size=self.shape)

    def require(self, holds: Any, clause: str, why: str) -> None:
        _require(holds, repr(self.atom), clause, why)

    def close(self, a: Any, b: Any, clause: str, why: str, tol: float = 1e-9) -> None:
        """Equal up to tol (absolute below 1, relative above); two infinite numbers of one sign are equal."""
        if np.ndim(a) == np.ndim(b) == 0 and a == b:
            return
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        size = 1.0 + max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
        holds = a.shape == b.shape and np.isfinite(size) and np.abs(a - b).max(initial=0.0) <= tol * size
        self.require(holds, clause, why)

    def call(self, name: str, *inputs: Any) -> Any:
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
        result = getattr(self.atom, name)(*given)
        self.require(all(map(np.array_equal, given, inputs)), name, "it modifies its input")
        expected = self.shape if name in ("grad", "hessp", "hess_diag", "prox") else ()
        self.require(np.shape(result) == expected, name, f"it returns shape {np.shape(result)}")
        usable = np.isfinite(result) if expected else not np.isnan(result)
        self.require(np.all(usable), name, "it returns NaN or, in an array, infinite values")
        return result if expected else float(result)

    def at(self, z: Array) -> float:
        return float(self.call("value", z))

    def definition(self) -> None:
        z = cp.Variable(self.shape if self.shape[1] > 1 else self.shape[0])
        for name, result in (("expr", self.atom.expr(cp.Variable(self.shape))), ("__call__", self.atom(z))):
            convex = isinstance(result, cp.Expression) and result.size == 1 and result.is_convex()
            self.require(convex, name, "it must give a scalar expression, convex by the rules of CVXPY")

    def values(self) -> None:
        inside = [self.atom.prox(self.normal(), step) for step in STEPS]  # also where bounds hold
        tol = 1e-6 if self.atom.expr(cp.Constant(self.points[0])).variables() else 1e-9
        for z in self.points + inside:
            expected = Atom.value(self.atom, z)
            self.require(expected >= -tol * (1.0 + abs(expected)), "expr", "it is negative at a point")
            self.close(self.at(z), expected, "value", "it differs from expr", tol)
            called = self.atom(z[:, 0] if self.shape[1] == 1 else z)
            self.close(called, expected, "__call__", "of an array it differs from expr", tol)
        for x, y in (self.points[1:3], self.points[3:5], self.points[5:7], inside):
            chord = 0.5 * (self.at(x) + self.at(y))
            below = self.at(0.5 * (x + y)) <= chord + tol * (1.0 + abs(chord))
            self.require(below, "value", "it is not convex: at a midpoint it is above the chord")

    def grad(self) -> None:
        for z in self.points:
            gradient, h = self.call("grad", z), 1e-5 * (1.0 + float(np.abs(z).max()))
            scale = 1.0 + float(np.abs(gradient).max()) + 1e-6 * self.at(z) / h
            for p in (self.normal(), self.normal(), self.normal()):
                slope, why = self.at(z + h * p) - self.at(z - h * p), "it differs from the differences of value"
                self.close(np.sum(gradient * p) / scale, 0.5 * slope / h / scale, "grad", why, 1e-5)

    def hessp(self, name: str = "hessp") -> None:
        checked = 0
        for z in self.points:
            p, h = self.normal(), 1e-6 * (1.0 + float(np.abs(z).max()))
            here, ahead, behind = (self.call("grad", z + step * p) for step in (0.0, h, -h))
            product = self.call(name, z, p) if name == "hessp" else self.call(name, z) * p
            scale = 1.0 + float(np.abs(here).max())
            if np.abs(ahead - 2.0 * here + behind).max() <= 1e-4 * h * scale:  # else there is a kink
                difference, why = (ahead - behind) / (2.0 * h), "it differs from the differences of grad"
                self.close(product / scale, difference / scale, name, why, 1e-5)
                checked += 1
        self.require(checked, name, "the gradient is differentiable at none of the points")

    def hess_diag(self) -> None:
        self.hessp("hess_diag")

    def lipschitz(self) -> None:
        bound, why = self.call("lipschitz"), "gradients move faster than this many times the distance"
        for number, x in enumerate(self.points):
            p = self.points[number - 1] - x
            for _ in range(30):  # after the first, power steps to the direction of largest curvature at x
                moved = self.call("grad", x + p) - self.call("grad", x)
                size = float(np.linalg.norm(moved))
                self.require(size <= bound * np.linalg.norm(p) * (1.0 + 1e-6) + 1e-9, "lipschitz", why)
                p = 1e-3 * moved / max(size, 1e-300)

    def prox(self) -> None:
        for step in STEPS:
            for v in (self.normal(), 5.0 * self.normal()):
                found = self.call("prox", v, step), Atom.prox(self.atom, v, step)
                costs = [step * Atom.value(self.atom, x) + 0.5 * float(np.sum((x - v) ** 2)) for x in found]
                cheap = costs[0] <= costs[1] + 1e-5 * (1.0 + abs(costs[1]))
                self.require(cheap, "prox", f"its objective {costs[0]} is above that of CVXPY, {costs[1]}")
                if not costs[0] < costs[1] < np.inf:  # else CVXPY is the less accurate one
                    self.close(*found, "prox", "it differs from the prox by CVXPY", 1e-5)

    def pairs(self) -> list[tuple[Array, Array]]:
        """Points z with a subgradient u of the atom there: z = prox(v, t), u = (v - z) / t."""
        points = [(scale * self.normal(), step) for step in STEPS for scale in (0.5, 1.0, 5.0)]
        shrink = 1.0 if self.atom.can("prox") else 1.0 - 1e-6  # CVXPY may miss the domain, which holds 0
        return [(z, shrink * (v - z) / t) for v, t in points for z in (self.atom.prox(v, t),)]

    def conj(self) -> None:
        name, pairs = "conj" if self.atom.can("conj") else "dual_norm", self.pairs()
        values = [(y, self.at(y)) for y in self.points + [z for z, _ in pairs]]
        for z, u in pairs:
            random = self.normal()
            if name == "dual_norm":  # into the dual ball, where the conjugate is 0
                u, random = ((1.0 - 1e-9) * x / max(1.0, self.call(name, x)) for x in (u, random))
            for other in (u, 0.5 * u, random):
                conj = self.call("conj", other) if name == "conj" else conjugate(self.atom, other)
                excess = max(float(np.sum(other * y)) - value - conj for y, value in values)
                why = f"conj(u) is smaller than <u, z> - f(z) for some z, by {excess:g}"
                self.require(not excess > 1e-6 * (1.0 + abs(conj)), name, why)
            why = "conj(u) + f(z) is not <u, z> at a subgradient u of z"
            self.close(conjugate(self.atom, u) + self.at(z), np.sum(u * z), name, why, 1e-5)

    def dual_norm(self) -> None:
        self.conj()
        for z, u in self.pairs():
            value, size = self.at(z), self.call("dual_norm", u)
            self.close(self.at(-2.0 * z), 2.0 * value, "dual_norm", "f(-2 z) is not 2 f(z)", 1e-6)
            why = f"it is {size} at a subgradient, where it must be at most 1, and 1 if f(z) > 0"
            self.require(size <= 1.0 + 1e-5 and (value <= 1e-5 or size >= 1.0 - 1e-5), "dual_norm", why)

    def split(self) -> None:
        outer, K = self.atom.split()
        for z in self.points:
            self.require(K.shape[1] <= len(z), "split", "K has too many columns")  # it may have fewer
            value, why = outer.value(np.asarray(K @ z[: K.shape[1]])), "outer(K z) differs from expr"
            self.close(value, Atom.value(self.atom, z), "split", why, 1e-6)

    def quadratic(self) -> None:
        form = self.atom.quadratic(self.shape[0])
        matrix = to_dense(form.matrix)
        psd = np.linalg.eigvalsh(matrix)[0] >= -1e-9 * (1.0 + np.abs(matrix).max())
        self.require(np.allclose(matrix, matrix.T) and psd, "quadratic", "the matrix is not symmetric psd")
        for z in self.points:
            product = form.apply(z)
            self.close(product, matrix @ z, "quadratic", "form.apply is not the product with the matrix")
            self.close(np.sum(z * product), form.value(z), "quadratic", "z'Mz is not form.value")
            self.close(form.value(z), Atom.value(self.atom, z), "quadratic", "it differs from expr", 1e-6)
            half = 0.5 * self.call("grad", z) if self.atom.can("grad") else product
            self.close(product, half, "quadratic", "form.apply is not half the gradient")

    def separable(self) -> None:
        part, why = self.atom.separable(), "its {} differs from that of the atom"
        tol = 1e-9 if self.atom.can("prox") else 1e-5
        for z in self.points:
            self.close(part.value(z), self.at(z), "separable", why.format("value"))
            for step in STEPS:
                x = self.atom.prox(z, step)
                self.close(part.prox(z, step), x, "separable", why.format("prox"), tol)
                u = (z - x) / step
                conj = self.call("conj", u) if self.atom.can("conj") else part.conj(u)
                self.close(part.conj(u), conj, "separable", why.format("conj"))

    def blocks(self) -> None:
        indptr, costs = self.atom.blocks()
        for z in self.points:
            norms = [np.linalg.norm(z[start:end]) for start, end in itertools.pairwise(indptr)]
            self.close(np.sum(costs * norms), self.at(z), "blocks", "the norms do not sum to value")

    def loss(self, atom: Loss) -> None:
        twice = copy.copy(atom)
        freeze(twice, sample_weight=2.0 * np.asarray(atom.sample_weight))
        for z in self.points:
            doubled, why = (twice.value(z), Atom.value(twice, z)), "twice the weights is not twice the value"
            self.close(doubled, [2.0 * self.at(z)] * 2, "sample_weight", why)
        duals = [u for _, u in self.pairs()] if has_conjugate(atom) else []
        if type(atom).dual_box is not Loss.dual_box:
            self.dual_box(atom, duals)
        for u, other in itertools.pairwise(duals):
            for target in (u.sum(axis=0), other.sum(axis=0), 0.5 * (u + other).sum(axis=0)):
                moved = atom.rebalance(u.copy(), target.copy())
                finite = moved is not None and np.isfinite(conjugate(atom, moved))
                self.require(finite, "rebalance", "no finite conjugate at sums that a dual point has")
                sums, why = np.asarray(moved).sum(axis=0), "the columns have other sums"
                self.close(sums, target, "rebalance", why, 1e-8)

    def dual_box(self, atom: Loss, duals: list[Array]) -> None:
        lower, upper = atom.dual_box()
        for u in duals:
            inside, why = np.clip(u + self.normal(), lower, upper), "the conjugate is infinite inside the box"
            self.require(np.isfinite(conjugate(atom, inside)), "dual_box", why)
            for bound, side in ((lower, -0.1), (upper, 0.1)):
                for entry in map(tuple, np.argwhere(np.isfinite(bound))):
                    outside, why = inside.copy(), "the conjugate is finite outside the box"
                    outside[entry] = bound[entry] + side
                    self.require(np.isinf(conjugate(atom, outside)), "dual_box", why)
