"""A quadratic function plus terms with a prox, minimised by ADMM: the model problem of a proximal Newton method.

    minimize over x    c'x + 1/2 x'Hx + sum_t f_t(K_t x)

All terms are small and dense. The copies Z_t of K_t x, their multipliers and rho are kept from one quadratic function
to the next, which then starts close to its solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.quadratic_form import squared_columns, to_dense
from cvxstructreg.forms.separable import Separable
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import SolverFailedError

#: Over-relaxation.
RELAXATION = 1.6
#: Iterations before the first change of rho; it changes by more than LEAST_CHANGE and by at most MOST_CHANGE.
ADAPT_EVERY, LEAST_CHANGE, MOST_CHANGE = 10, 2.0, 10.0
#: The shift of the diagonal that makes a singular system solvable, relative to its mean.
SHIFT = 1e-12


@dataclass(eq=False)
class Copy:
    """One term f = scale * atom with its copy Z of K x and its multiplier p, a subgradient of f at Z."""

    atom: Atom | Separable
    scale: float
    K: Any  # None picks the weights, the first rows of x
    number: int | None  # the number of the term; None for the separable part
    Z: Array
    multiplier: Array

    def __post_init__(self) -> None:
        squares = 1.0 if self.K is None else float(np.max(squared_columns(self.K), initial=0.0))
        self.weight = 1.0 / (squares or 1.0)

    def forward(self, x: Array) -> Array:
        """K x."""
        return x[: len(self.Z)] if self.K is None else np.asarray(self.K @ x)

    def adjoint(self, u: Array, size: int) -> Array:
        """K'u."""
        if self.K is not None:
            return np.asarray(self.K.T @ u)
        out = np.zeros((size, u.shape[1]))
        out[: len(u)] = u
        return out

    def gram(self, size: int) -> Array:
        """K'K."""
        if self.K is not None:
            return to_dense(self.K.T @ self.K)
        return np.diag((np.arange(size) < len(self.Z)).astype(float))

    def times_picked(self, size: int) -> Array | None:
        """How often K picks each entry of x, as a column; None if K does more than that."""
        gram = self.gram(size)
        times = np.diag(gram)
        return times[:, None] if np.array_equal(gram, np.diag(times)) else None

    def step(self, Kx: Array, rho: float) -> tuple[float, Array]:
        """Take the prox and multiplier steps; return the squared distance of Z from K x, and the change of Z."""
        penalty = rho * self.weight
        relaxed = RELAXATION * Kx + (1.0 - RELAXATION) * self.Z
        v = relaxed + self.multiplier / penalty
        Z = self.atom.prox(v, self.scale / penalty)
        self.multiplier, change, self.Z = penalty * (v - Z), Z - self.Z, Z
        return self.weight * float(np.sum((Kx - Z) ** 2)), change


class Splitting:
    """The terms with a prox, and ADMM for them beside a quadratic function."""

    def __init__(self, copies: list[Copy], size: int, k: int) -> None:
        self.copies, self.size, self.k = copies, size, k
        gram = sum((copy.weight * copy.gram(size) for copy in copies), np.zeros((size, size)))
        self.gram = np.kron(np.eye(k), gram)
        self.rho: float | None = None

    def minimise(self, H: Array, c: Array, x: Array, accuracy: float, most: int) -> Array:
        """x (size, k) with relative residuals of at most ``accuracy``; H has the columns of x one after the other."""
        if self.rho is None:
            self.rho = float(np.trace(H)) / (float(np.trace(self.gram)) or 1.0) or 1.0
        solve, next_change = self._factor(H, self.rho), ADAPT_EVERY
        for count in range(1, most + 1):
            deadline.check()
            pulls = (copy.weight * self.rho * copy.Z - copy.multiplier for copy in self.copies)
            pulled = sum(copy.adjoint(u, self.size) for copy, u in zip(self.copies, pulls, strict=True))
            x = solve(pulled - c, x)
            with np.errstate(over="ignore", invalid="ignore"):
                primal, dual = self._step(x, c)
            if not np.isfinite(primal + dual):
                raise SolverFailedError("the copies of the weights diverge")
            if max(primal, dual) <= accuracy:
                break
            if count >= next_change:
                change = float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 1.0 / MOST_CHANGE, MOST_CHANGE))
                if not 1.0 / LEAST_CHANGE <= change <= LEAST_CHANGE:
                    self.rho *= change
                    solve = self._factor(H, self.rho)
                next_change = count + max(ADAPT_EVERY, count // 3)  # less and less often, so that rho settles
        return x

    def _step(self, x: Array, c: Array) -> tuple[float, float]:
        """The steps of all terms; the relative primal and dual residuals."""
        assert self.rho is not None
        missed, size, moved, held = 0.0, 0.0, np.zeros_like(x), float(np.linalg.norm(c))
        for copy in self.copies:
            Kx = copy.forward(x)
            miss, change = copy.step(Kx, self.rho)
            missed += miss
            size += copy.weight * max(float(np.sum(Kx**2)), float(np.sum(copy.Z**2)))
            moved += self.rho * copy.weight * copy.adjoint(change, self.size)
            held = max(held, float(np.linalg.norm(copy.adjoint(copy.multiplier, self.size))))
        return float(np.sqrt(missed / max(size, 1e-300))), float(np.linalg.norm(moved)) / max(held, 1e-300)

    def _factor(self, H: Array, rho: float) -> Any:
        """A function of (right-hand side, last x) that solves (H + rho sum_t weight_t K_t'K_t) x = rhs.

        A shift of a singular matrix is a proximal term around the last x, apart from a tenth of it.
        """
        matrix = H + rho * self.gram
        shift = SHIFT * (float(np.trace(matrix)) / len(matrix) or 1.0)
        while True:
            shifted = matrix.copy()
            np.einsum("ii->i", shifted)[:] += shift
            factor, failed = scipy.linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1)
            if not failed:
                break
            shift *= 10.0

        def solve(rhs: Array, last: Array) -> Array:
            flat = (rhs + 0.9 * shift * last).T.reshape(-1)
            return np.asarray(scipy.linalg.lapack.dpotrs(factor, flat, lower=1)[0]).reshape(self.k, self.size).T

        return solve

    def value(self, x: Array) -> float:
        """sum_t f_t(K_t x)."""
        return sum(copy.scale * copy.atom.value(copy.forward(x)) for copy in self.copies)


def copy_of(atom: Atom | Separable, scale: float, K: Any, number: int | None, x: Array, n_weights: int) -> Copy:
    """The copy of a term that belongs to x, with a multiplier of zero."""
    Z = x[:n_weights].copy() if K is None else np.asarray(K @ x)
    return Copy(atom, scale, K, number, Z, np.zeros_like(Z))
