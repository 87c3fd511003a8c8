"""How the latent group norm distributes a vector among overlapping groups.

The norm and its prox are the same convex problem, with one share s_g >= 0 for each group:

    minimize  1/2 sum_j a_j / (eps + sum of s_g over the groups of j) + 1/2 sum_g r_g^2 s_g,      a_j = ||v_j||^2

With eps = 0 and r_g = c_g the minimum is the norm of v: group g gets the part s_g v_j / sum s of feature j (Jacob,
Obozinski and Vert 2009). With eps = 1 and r_g = t c_g the point u_j = v_j / (1 + sum s) is the projection of v onto the
dual ball of radius t, and v - u is the prox (Villa, Rosasco, Mosci and Verri 2014).

Once the groups with a positive share are known, Newton steps on ||u_g|| = r_g for these groups find the shares to full
accuracy. The equations are solved in the form r_g / ||u_g|| = 1, which is linear for a group without shared features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

#: Relative accuracy of the optimality conditions, and of the two bounds of the norm.
ACCURACY, TIGHT = 1e-11, 1e-11
#: The part of TIGHT that features of negligible cost may add to the norm.
NEGLIGIBLE = 0.1
#: Maximum numbers of changes of the set of groups, and of Newton steps for each set.
ROUNDS, NEWTON_STEPS = 10, 10
#: Alternations between parts and shares, and those after which Newton steps are tried, without tiny shares.
MOST_ALTERNATIONS, NEWTON_AT, NO_SHARE = 2_000, (8, 20, 50, 100, 200, 400, 800, 1600), 1e-6
#: A share that a Newton step makes negative is reduced to this part, if a feature has no other share.
SHRUNK = 0.1
#: Up to DENSE entries the matrix of groups and features is dense; Newton is tried for up to MOST_GROUPS groups.
DENSE, MOST_GROUPS = 100_000, 2_000


class LatentShares:
    """The groups as a 0/1 matrix, and their weights c_g."""

    def __init__(self, indptr: Array, indices: Array, weights: Array, n_features: int) -> None:
        shape = (len(weights), n_features)
        B = sp.csr_array((np.ones(len(indices)), np.asarray(indices), np.asarray(indptr)), shape=shape)
        self.weights = np.asarray(weights)
        self.tractable = bool(np.all(self.weights > 0)) and len(self.weights) <= MOST_GROUPS
        self.B: Any = B.toarray() if shape[0] * shape[1] <= DENSE else B
        self.covered = np.bincount(indices, minlength=n_features) > 0
        self.cheapest = np.full(n_features, np.inf)  # the smallest positive weight of the groups of each feature
        owners = np.repeat(self.weights, np.diff(np.asarray(indptr, dtype=int)))
        np.minimum.at(self.cheapest, np.asarray(indices, dtype=int)[owners > 0], owners[owners > 0])
        self.cheapest[np.isinf(self.cheapest)] = 0.0

    def prox_from(self, v: Array, t: float, norms: Array) -> Array | None:
        """The prox, from approximate norms of its parts; None if these are too inaccurate."""
        search = self._prox_search(v, t, norms)
        return None if search is None else (1.0 - 1.0 / search.sums)[:, None] * v

    def norm(self, z: Array) -> float:
        """The norm of z, never too low, by alternating between the parts and the shares, with Newton steps at times.

        Shares s give the parts s_g u_g with u_j = z_j / sum s, and parts give the shares s_g = ||v_g|| / c_g. Each step
        decreases the cost of the parts; the bound from u ends the search. Groups of weight zero get no part. Features
        whose cost is negligible are left to their cheapest group: tiny shares would make the Newton steps fail.
        """
        kept = self.weights > 0
        B, weights, a = self.B[kept], self.weights[kept], _squares(z, self.covered)
        costs = np.sqrt(a) * self.cheapest  # each is at most the norm
        negligible = costs <= NEGLIGIBLE * TIGHT * float(costs.max()) / len(a)
        a[negligible] = 0.0
        search = _Search(B, a, weights, 0.0)
        s, best = np.sqrt(B @ a) / weights, np.inf
        for count in range(1, MOST_ALTERNATIONS + 1):
            search.look(s)
            upper, lower = search.bounds()
            best = min(best, upper)
            if best - lower <= TIGHT * best or deadline.passed():
                break
            if count in NEWTON_AT and np.count_nonzero(s) <= MOST_GROUPS:
                trial = _Search(B, a, weights, 0.0)
                trial.rounds(trial.without_tiny(s, NO_SHARE * best))
                upper, lower = trial.bounds()
                best = min(best, upper)
                if best - lower <= TIGHT * best:
                    break
            s = s * (search.norms / weights)
        return best + float(np.sum(costs[negligible]))

    def _prox_search(self, v: Array, t: float, norms: Array) -> _Search | None:
        if not self.tractable:
            return None
        radii = t * self.weights
        search = _Search(self.B, _squares(v, self.covered), radii, 1.0)
        return search if search.rounds(norms / radii) else None


def _squares(v: Array, covered: NDArray[np.bool_]) -> Array:
    """||v_j||^2 for the features that are in a group, else 0."""
    return np.where(covered, np.einsum("ij,ij->i", v, v), 0.0)


class _Search:
    """The current shares s, eps plus their sums for each feature, ||u_g||, and the error of the conditions."""

    def __init__(self, B: Any, a: Array, r: Array, eps: float) -> None:
        self.B, self.a, self.r, self.eps = B, a, r, eps
        self.needed = a > 0

    def look(self, s: Array) -> None:
        """Compute all quantities for these shares; norms are infinite for groups with a feature that has no share."""
        self.s, self.sums = s, self.eps + self.B.T @ s
        bare = self.needed & ~(self.sums > 0.0)
        self.inverse = np.divide(1.0, self.sums, out=np.zeros_like(self.sums), where=self.needed & ~bare)
        self.norms = np.sqrt(self.B @ (self.a * self.inverse**2))
        if bare.any():
            self.norms[self.B @ bare.astype(float) > 0.0] = np.inf
        off = self.norms / self.r - 1.0
        self.error = float(np.max(np.where(s > 0.0, np.abs(off), off), initial=0.0))

    def without_tiny(self, s: Array, least: float) -> Array:
        """The shares of at least this cost, and those of groups with a feature that has no other share."""
        return self._held(np.where(s * self.r > least, s, 0.0), s)

    def _held(self, s: Array, other: Array) -> Array:
        """The shares s, and other shares for the groups with a feature that has none in s."""
        bare = self.needed & ~(self.B.T @ s > 0.0)
        return np.where(self.B @ bare.astype(float) > 0.0, other, s) if bare.any() else s

    def rounds(self, s: Array) -> bool:
        """Newton steps on the groups that have or need a share; returns whether the optimality conditions then hold."""
        self.look(s)
        for _ in range(ROUNDS):
            if self.error <= ACCURACY:
                return True
            if deadline.passed() or not self._solve((self.s > 0.0) | (self.norms > self.r * (1.0 + ACCURACY))):
                return False
        return self.error <= ACCURACY

    def _solve(self, chosen: NDArray[np.bool_]) -> bool:
        """Solve ||u_g|| = r_g for these groups; drop groups whose share would be negative. False if Newton fails."""
        for _ in range(NEWTON_STEPS):
            if not np.isfinite(self.norms).all():
                return False
            s = np.zeros_like(self.s)
            s[chosen] = np.maximum(self.s[chosen] + self._step(chosen), 0.0)
            if not np.isfinite(s).all():
                return False
            self.look(self._held(s, SHRUNK * self.s))
            chosen = self.s > 0.0
            if float(np.max(np.abs(self.norms[chosen] / self.r[chosen] - 1.0), initial=0.0)) <= 0.1 * ACCURACY:
                break
        return True

    def _step(self, chosen: NDArray[np.bool_]) -> Array:
        """The Newton step of r_g / ||u_g|| = 1."""
        B, norms, r = self.B[chosen], self.norms[chosen], self.r[chosen]
        matrix = (B * (self.a * self.inverse**3)[None, :]) @ B.T
        matrix = matrix.toarray() if sp.issparse(matrix) else matrix
        diagonal = np.diagonal(matrix).copy()
        scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        matrix = scale[:, None] * matrix * scale[None, :]
        matrix[np.diag_indices_from(matrix)] = 1.0 + 1e-14
        try:
            return np.asarray(scale * np.linalg.solve(matrix, scale * norms**2 * (norms / r - 1.0)))
        except np.linalg.LinAlgError:
            return np.full(len(r), np.nan)

    def bounds(self) -> tuple[float, float]:
        """For eps = 0: the cost of the parts s_g u_g, and the lower bound from u scaled into the dual ball."""
        largest = float(np.max(self.norms / self.r, initial=0.0))
        if not np.isfinite(largest):
            return np.inf, 0.0
        return float(self.r @ (self.s * self.norms)), float(self.a @ self.inverse) / max(1.0, largest)
