"""The multiclass hinge, smoothed around a dual point, in k - 1 coordinates: for the method of multipliers.

    sum_ij max over 0 <= r_ij <= c_ij of  r_ij ((Z Q')_ij - tau) - (r_ij - a_ij)^2 / (2 sigma)

The columns of Q (k x (k - 1)) are an orthonormal basis of the scores that sum to zero over the classes. The centred
scores are Z Q', so that k - 1 outputs are enough. Norms of groups of whole rows, ridges and graphs have the same value
for weights W and W Q'. In two coordinates every Hessian of a row is diag(h) - r r', as group solvers need it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.centred_hinge import CentredHinges, centred, multipliers
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.needs import GroupNorms

#: In two coordinates, the Hessian of a row is diag(h) - r r'.
MOST_CLASSES = 3
#: Multipliers outside their bounds by this part are inside up to round-off.
OUTSIDE = 1e-12
#: Newton steps for the intercepts, the part of the largest curvature that is added, and the shortest step.
STEPS, ADDED, SHORTEST = 30, 1e-6, 1e-6
#: Intercepts are balanced if the multipliers sum to this part of all costs.
FINE = 1e-12


def refusal(problem: Problem) -> str | None:
    """Why the loss has no such twin; None if it has one."""
    k, piece = problem.n_outputs, problem.normal_form.score_pieces[0]
    if k > MOST_CLASSES:
        return f"hinges of at most {MOST_CLASSES} classes are supported, and there are {k}"
    hinges = piece.atom.centred_hinges(k) if piece.atom.can("centred_hinges") else None
    if hinges is None or hinges.power != 1 or not np.all(np.any(hinges.costs == 0.0, axis=1)):
        return "only hinges of several classes that cost nothing in the own class are supported"
    if problem.normal_form.separable is not None:
        return "L1 and bounds are not supported with several classes"
    return GroupNorms().missing(problem)


def zero_sums(k: int) -> Array:
    """An orthonormal basis of the vectors that sum to zero: k x (k - 1).

    Examples
    --------
    >>> zero_sums(2).round(3).tolist()
    [[0.707], [-0.707]]
    """
    Q = np.zeros((k, k - 1))
    for j in range(1, k):
        Q[:j, j - 1], Q[j, j - 1] = 1.0, -float(j)
        Q[:, j - 1] /= np.sqrt(j * (j + 1.0))
    return Q


class SmoothedCentredHinge(Loss):
    """The smoothed loss of Z with k - 1 columns. The centre a and sigma may be changed between solves."""

    def __init__(self, hinges: CentredHinges, rows: Any) -> None:
        object.__setattr__(self, "given", hinges)
        object.__setattr__(self, "columns", zero_sums(hinges.costs.shape[1]))
        super().__init__(y=np.arange(len(hinges.costs)), rows=rows)
        self.recentre(0.5 * hinges.costs, 1.0)

    def _encode(self, y: Any) -> Array:
        return np.asarray(y, dtype=float).reshape(-1, 1)

    @property
    def n_outputs(self) -> int:
        """One less than the number of classes."""
        return int(self.__dict__["columns"].shape[1])

    @property
    def basis(self) -> Array:
        """Q."""
        return np.asarray(self.__dict__["columns"])

    @property
    def top(self) -> Array:
        """The costs c."""
        return np.asarray(self.__dict__["given"].costs)

    def recentre(self, centre: Array, sigma: float) -> None:
        """Smooth around another dual point."""
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "sigma", sigma)

    def shortfall(self, z: Array) -> Array:
        """By how much the centred scores are above the kink; negative below."""
        return np.asarray(z @ self.__dict__["columns"].T - self.__dict__["given"].tau)

    def multipliers(self, z: Array) -> Array:
        """The r_ij: the gradient is r Q."""
        state = self.__dict__
        return np.clip(state["centre"] + state["sigma"] * self.shortfall(z), 0.0, self.top)

    def dual(self, r: Array) -> Array:
        """The dual point of the multiclass hinge that the multipliers stand for: r, centred."""
        return centred(r)

    def centre_of(self, u: Array) -> Array:
        """The multipliers of a dual point of the multiclass hinge."""
        return np.clip(multipliers(u, self.top), 0.0, self.top)

    def value(self, z: Array) -> float:
        """The maximum over r."""
        r, state = self.multipliers(z), self.__dict__
        return float(np.sum(r * self.shortfall(z)) - np.sum((r - state["centre"]) ** 2) / (2.0 * state["sigma"]))

    def grad(self, z: Array) -> Array:
        """R Q."""
        return np.asarray(self.multipliers(z) @ self.__dict__["columns"])

    def _bends(self, z: Array) -> Array:
        """sigma where r is strictly inside its bounds, else 0."""
        r = self.multipliers(z)
        return np.asarray(self.__dict__["sigma"] * ((r > 0) & (r < self.top)), dtype=float)

    def hessp(self, z: Array, p: Array) -> Array:
        """Q' diag(h) Q p for each row."""
        Q = self.__dict__["columns"]
        return np.asarray((self._bends(z) * (p @ Q.T)) @ Q)

    def hess_rows(self, z: Array) -> tuple[Array, Array]:
        """Q' diag(h) Q = diag(direct) - root root', for at most two coordinates."""
        h, Q = self._bends(z), self.__dict__["columns"]
        direct = h @ Q**2
        if Q.shape[1] == 1:
            return direct, np.zeros_like(direct)
        beside = h @ (Q[:, 0] * Q[:, 1])
        length = np.sqrt(np.abs(beside))
        return direct + np.abs(beside)[:, None], np.column_stack([length, -np.sign(beside) * length])

    def conj(self, u: Array) -> float:
        """sum_ij tau r + (r - a)^2 / (2 sigma), r in [0, c] with r Q = u and r = 0 where the costs are zero."""
        state = self.__dict__
        r = multipliers(u @ state["columns"].T, self.top)
        if np.any(r < -OUTSIDE * self.top.max()) or np.any(r > self.top + OUTSIDE * self.top.max()):
            return np.inf
        return float(state["given"].tau * r.sum() + np.sum((r - state["centre"]) ** 2) / (2.0 * state["sigma"]))

    def balancing_shift(self, z: Array) -> Array:
        """The b that minimises the loss at z + b, nearly: Newton steps, also where few rows have curvature."""
        Q, b, total = self.__dict__["columns"], np.zeros(self.n_outputs), float(self.top.sum())
        value = self.value(z)
        for _ in range(STEPS):
            slope = self.grad(z + b).sum(axis=0)
            if np.max(np.abs(slope)) <= FINE * total:
                break
            H = Q.T @ (self._bends(z + b).sum(axis=0)[:, None] * Q)
            step = -np.linalg.solve(H + ADDED * self.__dict__["sigma"] * len(z) * np.eye(len(b)), slope)
            t = 1.0
            while not (new := self.value(z + b + t * step)) < value and t > SHORTEST:
                t *= 0.5
            if not new < value:
                break
            b, value = b + t * step, new
        return b

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """False: where the centre is not zero, the smoothed loss may be negative."""
        return False

    def lipschitz(self) -> float:
        """sigma."""
        return float(self.__dict__["sigma"])
