"""Penalties by formulas of their own, for tests that need methods which do not use each other."""

import numpy as np

import cvxstructreg as csr


class ClosedForms(csr.L1):
    """L1 without use of its separable part."""

    def value(self, z):
        return float(np.sum(self.weights[:, None] * np.abs(z)))

    def prox(self, v, t):
        return np.sign(v) * np.maximum(np.abs(v) - t * self.weights[:, None], 0.0)

    def conj(self, u):
        return 0.0 if np.all(np.abs(u) <= self.weights[:, None] * (1.0 + 1e-12)) else np.inf

    def dual_norm(self, u):
        return float(np.max(np.abs(u) / self.weights[:, None]))


class ClosedSquares(csr.Ridge):
    """Ridge without use of its quadratic form."""

    @property
    def costs(self):
        return 1.0 if self.weights is None else self.weights[:, None]

    def value(self, z):
        return float(np.sum(self.costs * z**2))

    def grad(self, z):
        return 2.0 * self.costs * z

    def hessp(self, z, p):
        return 2.0 * self.costs * p

    def prox(self, v, t):
        return v / (1.0 + 2.0 * t * self.costs)

    def conj(self, u):
        return float(np.sum(u**2 / (4.0 * self.costs)))
