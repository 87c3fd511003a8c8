"""The contracts of atoms and of solvers as checks, for third parties and for the tests of this package.

``expr`` is the definition of an atom; every other method is compared with it or with CVXPY. A broken clause is an
``AssertionError`` that names the atom and the clause, also under ``python -O``.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.core.atom import Array, Atom, conjugate, freeze, has_conjugate
from cvxstructreg.core.certificate import certify_point
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.driver import InaccurateWarning
from cvxstructreg.solvers.reference import NAME as REFERENCE

#: Two prox steps, and the sizes of the random points.
STEPS = (0.3, 2.0)
SCALES = (0.1, 1.0, 10.0)


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
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxstructreg.core.atom import Atom
    >>> from cvxstructreg.testing import check_atom
    >>> class Cubes(Atom):
    ...     def expr(self, z):
    ...         return cp.sum(cp.power(cp.abs(z), 3))
    ...     def grad(self, z):
    ...         return 3 * z * np.abs(z)
    >>> check_atom(Cubes(), (3, 1))

    >>> class Careless(Cubes):
    ...     def grad(self, z):
    ...         return 3 * z**2
    >>> check_atom(Careless(), (3, 1))
    Traceback (most recent call last):
    ...
    AssertionError: Careless(): grad: it differs from the central differences of value
    """
    check = _AtomCheck(atom, shape, np.random.default_rng(0 if rng is None else rng))
    check.definition()
    check.values()
    for name in ("grad", "hessp", "lipschitz", "split", "quadratic", "separable"):
        if atom.can(name):
            getattr(check, name)()
    if atom.can("prox"):
        check.prox()
    if has_conjugate(atom):
        check.fenchel_young()
    if atom.can("dual_norm"):
        check.dual_norm()
    if isinstance(atom, Loss):
        check.loss()


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
    gaps, objectives = [], []
    for solver in (name, REFERENCE):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InaccurateWarning)  # the status says the same
            solution = problem.solve(solver=solver, tol=tol)
        who = f"solver {solver!r} on {problem!r}"
        _require(solution.status == "optimal", who, "status", f"it is {solution.status!r}: {solution.certificate}")
        theta, b = problem.shaped(solution.coef, solution.intercept)
        certificate = certify_point(problem, theta, b, solution.dual)
        close = 1e-9 * (1.0 + abs(solution.objective))
        told = f"{solution.objective} is reported, {certificate.objective} is the value of the point"
        _require(abs(certificate.objective - solution.objective) <= close, who, "objective", told)
        told = f"computed anew it is {certificate}, the tolerance {tol:g}"
        _require(certificate.gap >= 0.0, who, "certificate", told)
        _require(certificate.relative_gap <= 1.01 * tol, who, "certificate", told)
        gaps.append(certificate.gap)
        objectives.append(certificate.objective)
    apart = abs(objectives[0] - objectives[1])
    told = f"the objectives {objectives[0]} and {objectives[1]} differ by more than the gaps {gaps[0]} and {gaps[1]}"
    _require(apart <= sum(gaps) + 1e-12 * abs(objectives[1]), f"solver {name!r} on {problem!r}", "reference", told)


def _require(holds: Any, who: str, clause: str, why: str) -> None:
    if not holds:
        raise AssertionError(f"{who}: {clause}: {why}")


class _AtomCheck:
    """One method for each clause of the contract."""

    def __init__(self, atom: Atom, shape: tuple[int, int], rng: np.random.Generator) -> None:
        self.atom, self.shape, self.rng = atom, shape, rng
        self.points = [scale * self.normal() for scale in SCALES for _ in range(2)] + [np.zeros(shape)]

    def normal(self) -> Array:
        return self.rng.normal(size=self.shape)

    def require(self, holds: Any, clause: str, why: str) -> None:
        _require(holds, repr(self.atom), clause, why)

    def close(self, a: Any, b: Any, clause: str, why: str, tol: float = 1e-9) -> None:
        """Equal up to tol (absolute below 1, relative above); two infinite values of one sign are equal."""
        if np.ndim(a) == np.ndim(b) == 0 and a == b:
            return
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        size = 1.0 + max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
        holds = a.shape == b.shape and np.isfinite(size) and float(np.abs(a - b).max(initial=0.0)) <= tol * size
        self.require(holds, clause, why)

    def call(self, name: str, *inputs: Any) -> Any:
        """A method of the atom on copies of the inputs, which it must leave alone; arrays come back in shape."""
        given = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
        result = getattr(self.atom, name)(*given)
        same = all(np.array_equal(x, y) for x, y in zip(given, inputs, strict=True))
        self.require(same, name, "it modifies its input")
        if name in ("grad", "hessp", "prox"):
            told = f"it returns shape {np.shape(result)} for inputs of shape {self.shape}"
            self.require(isinstance(result, np.ndarray) and result.shape == self.shape, name, told)
            self.require(np.isfinite(result).all(), name, "it returns values that are not finite")
        else:
            number = np.ndim(result) == 0 and not np.isnan(result)
            self.require(number, name, f"it must return a number, not {result!r}")
        return result

    def value(self, z: Array) -> float:
        return float(self.call("value", z))

    def definition(self) -> None:
        variable = cp.Variable(self.shape)
        expressions = {"expr": self.atom.expr(variable), "__call__": self.atom(variable)}
        if self.shape[1] == 1:
            expressions["__call__"] = self.atom(cp.Variable(self.shape[0]))
        for name, expression in expressions.items():
            is_scalar = isinstance(expression, cp.Expression) and expression.size == 1
            self.require(is_scalar, name, "it must give a scalar CVXPY expression")
            self.require(expression.is_convex(), name, "it is not convex by the rules of CVXPY")

    def values(self) -> None:
        inside = [self.atom.prox(self.normal(), step) for step in STEPS]  # also where bounds hold
        tol = 1e-6 if self.atom.expr(cp.Constant(self.points[0])).variables() else 1e-9
        for z in self.points + inside:
            expected = Atom.value(self.atom, z)
            self.require(expected >= -tol * (1.0 + abs(expected)), "expr", "it is negative at a point")
            self.close(self.value(z), expected, "value", "it differs from expr", tol)
            self.close(self.atom(z), expected, "__call__", "of an array it differs from expr", tol)
            if self.shape[1] == 1:
                self.close(self.atom(z[:, 0]), expected, "__call__", "of a vector it differs from expr", tol)
        for x, y in [(self.points[2], self.points[3]), (self.points[4], self.points[5]), tuple(inside)]:
            ends = 0.5 * (self.value(x) + self.value(y))
            holds = self.value(0.5 * (x + y)) <= ends + tol * (1.0 + abs(ends))
            self.require(holds, "value", "it is not convex: the value at a midpoint is above the chord")

    def grad(self) -> None:
        for z in self.points:
            gradient, h = self.call("grad", z), 1e-5 * (1.0 + float(np.abs(z).max()))
            for _ in range(3):
                p = self.normal()
                difference = (self.value(z + h * p) - self.value(z - h * p)) / (2.0 * h)
                scale = 1.0 + float(np.abs(gradient).max()) + 1e-6 * self.value(z) / h
                slope = float(np.sum(gradient * p))
                why = "it differs from the central differences of value"
                self.close(slope / scale, difference / scale, "grad", why, 1e-5)

    def hessp(self) -> None:
        checked = 0
        for z in self.points:
            p, h = self.normal(), 1e-6 * (1.0 + float(np.abs(z).max()))
            here, ahead, behind = (self.call("grad", z + step * p) for step in (0.0, h, -h))
            product, scale = self.call("hessp", z, p), 1.0 + float(np.abs(here).max())
            if np.abs(ahead - 2.0 * here + behind).max() > 1e-4 * h * scale:
                continue  # the gradient has a kink here
            checked += 1
            difference, why = (ahead - behind) / (2.0 * h), "it differs from the central differences of grad"
            self.close(product / scale, difference / scale, "hessp", why, 1e-5)
        self.require(checked, "hessp", "the gradient is differentiable at none of the points")

    def lipschitz(self) -> None:
        bound = float(self.call("lipschitz"))
        why = f"gradients move faster than {bound:g} times the distance"
        for number, x in enumerate(self.points):
            p, h = self.points[number - 1] - x, 1.0
            for _ in range(30):  # after the first, power steps to the direction of largest curvature at x
                moved = self.call("grad", x + h * p) - self.call("grad", x)
                limit = bound * h * float(np.linalg.norm(p))
                self.require(np.linalg.norm(moved) <= limit * (1.0 + 1e-6) + 1e-9, "lipschitz", why)
                if not moved.any():
                    break
                p, h = moved / np.linalg.norm(moved), 1e-3

    def prox(self) -> None:
        for step in STEPS:
            for scale in (1.0, 5.0):
                v = scale * self.normal()
                x, reference = self.call("prox", v, step), Atom.prox(self.atom, v, step)
                self.close(x, reference, "prox", "it differs from the prox by CVXPY", 1e-5)
                costs = [step * Atom.value(self.atom, y) + 0.5 * float(np.sum((y - v) ** 2)) for y in (x, reference)]
                why = f"its objective {costs[0]} is above that of CVXPY, {costs[1]}"
                self.require(costs[0] <= costs[1] + 1e-5 * (1.0 + abs(costs[1])), "prox", why)

    def pairs(self) -> list[tuple[Array, Array]]:
        """Points z with a subgradient u of the atom there: z = prox(v, t), u = (v - z) / t."""
        found = []
        for step in STEPS:
            for scale in (0.5, 1.0, 5.0):
                v = scale * self.normal()
                z = self.atom.prox(v, step)
                # a prox by CVXPY is only nearly on the boundary of the domain; 0 is in it, as the atom is nonnegative
                found.append((z, (v - z) / step * (1.0 if self.atom.can("prox") else 1.0 - 1e-6)))
        return found

    def conj(self, u: Array) -> float:
        return float(self.call("conj", u)) if self.atom.can("conj") else conjugate(self.atom, u)

    def fenchel_young(self) -> None:
        name, pairs = "conj" if self.atom.can("conj") else "dual_norm", self.pairs()
        for z, u in pairs:
            inner = float(np.sum(u * z))
            value, conj = self.value(z), self.conj(u if name == "conj" else u / (1.0 + 1e-6))
            why = f"conj(u) + f(z) = {conj + value} is not <u, z> = {inner} at a subgradient u of z"
            self.close(conj + value, inner, name, why, 1e-5)
            for other in (u, 0.5 * u, self.normal()):
                conj = self.conj(other)
                for y in self.points + [z for z, _ in pairs]:
                    excess = float(np.sum(other * y)) - self.value(y) - conj
                    why = f"conj(u) is smaller than <u, z> - f(z) for some z, by {excess:g}"
                    self.require(not excess > 1e-6 * (1.0 + abs(conj)), name, why)

    def dual_norm(self) -> None:
        for z, u in self.pairs():
            value, size = self.value(z), float(self.call("dual_norm", u))
            for a in (-2.0, 0.0, 0.5):
                self.close(self.value(a * z), abs(a) * value, "dual_norm", "f(a z) is not |a| f(z): f is no norm", 1e-6)
            why = f"it is {size} at a subgradient, where it must be at most 1, and 1 if f(z) > 0"
            self.require(size <= 1.0 + 1e-5 and (value <= 1e-5 or size >= 1.0 - 1e-5), "dual_norm", why)
            for other in (u, self.normal()):
                size = float(self.call("dual_norm", other))
                self.close(self.call("dual_norm", -2.0 * other), 2.0 * size, "dual_norm", "it is no norm", 1e-9)
                holds = np.isinf(size) or float(np.sum(other * z)) <= size * value + 1e-6 * (1.0 + value)
                self.require(holds, "dual_norm", "<u, z> is larger than dual_norm(u) f(z)")

    def split(self) -> None:
        outer, K = self.atom.split()
        self.require(isinstance(outer, Atom), "split", "it must return an atom and a matrix")
        self.require(K.shape[1] <= self.shape[0], "split", f"the map has {K.shape[1]} columns for {self.shape[0]} rows")
        for z in self.points:
            inside = np.asarray(K @ z[: K.shape[1]])  # a map may leave out the last rows
            self.close(outer.value(inside), Atom.value(self.atom, z), "split", "outer(K z) differs from expr", 1e-6)

    def quadratic(self) -> None:
        form = self.atom.quadratic(self.shape[0])
        matrix = np.asarray(form.matrix.toarray() if hasattr(form.matrix, "toarray") else form.matrix)
        square = matrix.shape == (self.shape[0],) * 2
        self.require(square, "quadratic", f"the matrix has shape {matrix.shape} for {self.shape[0]} rows")
        self.close(matrix, matrix.T, "quadratic", "the matrix is not symmetric")
        lowest = float(np.linalg.eigvalsh(matrix)[0])
        self.require(lowest >= -1e-9 * (1.0 + np.abs(matrix).max()), "quadratic", "the matrix is not psd")
        for z in self.points:
            self.close(form.value(z), Atom.value(self.atom, z), "quadratic", "form.value differs from expr", 1e-6)
            self.close(form.apply(z), matrix @ z, "quadratic", "form.apply is not the product with the matrix", 1e-9)
            self.close(float(np.sum(z * form.apply(z))), form.value(z), "quadratic", "z'Mz is not form.value", 1e-9)
            if self.atom.can("grad"):
                half = 0.5 * self.call("grad", z)
                self.close(form.apply(z), half, "quadratic", "form.apply is not half the gradient", 1e-9)

    def separable(self) -> None:
        part = self.atom.separable()
        for z in self.points:
            self.close(part.value(z), self.value(z), "separable", "its value differs from that of the atom")
            for step in STEPS:
                x = self.atom.prox(z, step)
                tol = 1e-9 if self.atom.can("prox") else 1e-5
                self.close(part.prox(z, step), x, "separable", "its prox differs from that of the atom", tol)
                if self.atom.can("conj"):
                    u = (z - x) / step
                    self.close(part.conj(u), self.conj(u), "separable", "its conj differs from that of the atom")

    def loss(self) -> None:
        atom = self.atom
        if not isinstance(atom, Loss):
            return
        twice = copy.copy(atom)
        freeze(twice, sample_weight=2.0 * np.asarray(atom.sample_weight))
        for z in self.points:
            why = "doubling all weights does not double the value"
            self.close(twice.value(z), 2.0 * self.value(z), "sample_weight", why)
            self.close(Atom.value(twice, z), 2.0 * Atom.value(atom, z), "sample_weight", why)
        if not has_conjugate(atom):
            return
        duals = [u for _, u in self.pairs()]
        for u, other in zip(duals, duals[1:], strict=False):
            for target in (u.sum(axis=0), other.sum(axis=0), 0.5 * (u + other).sum(axis=0)):
                moved = atom.rebalance(u.copy(), target.copy())
                self.require(moved is not None, "rebalance", "it finds no point for sums that a dual point has")
                moved = np.asarray(moved)
                self.require(moved.shape == self.shape, "rebalance", f"it returns shape {moved.shape}")
                self.close(moved.sum(axis=0), target, "rebalance", "its columns have other sums", 1e-8)
                self.require(np.isfinite(conjugate(atom, moved)), "rebalance", "its conjugate is infinite")
        if type(atom).dual_box is not Loss.dual_box:
            self.dual_box(atom, duals)

    def dual_box(self, atom: Loss, duals: list[Array]) -> None:
        lower, upper = atom.dual_box()
        for u in duals:
            inside = np.all(u >= lower - 1e-9) and np.all(u <= upper + 1e-9)
            self.require(inside, "dual_box", "a subgradient is outside the box")
            random = np.clip(u + self.normal(), lower, upper)
            self.require(np.isfinite(conjugate(atom, random)), "dual_box", "the conjugate is infinite inside the box")
            for bound, side in ((lower, -0.1), (upper, 0.1)):
                for i, j in np.argwhere(np.isfinite(bound)):
                    outside = random.copy()
                    outside[i, j] = bound[i, j] + side
                    infinite = np.isinf(conjugate(atom, outside))
                    self.require(infinite, "dual_box", "the conjugate is finite outside the box")
