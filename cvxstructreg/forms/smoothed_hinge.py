"""The hinge loss, smoothed around a dual point."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.monotone_root import increasing_root

#: Multipliers outside their bounds by this part are inside up to round-off.
OUTSIDE = 1e-12
#: Multipliers are balanced if they sum to this part of the weights of all rows.
FINE = 1e-14


class SmoothedHinge(Loss):
    """sum_i max over 0 <= a_i <= s_i of  a_i (1 - y_i f_i) - (a_i - c_i)^2 / (2 sigma).

    This is the augmented Lagrangian of the hinge loss: if the centre c is the optimal dual point, the minimiser is that
    of the hinge loss for every sigma. The centre and sigma may be changed between solves.
    """

    top: Array  # the s_i as a column

    def __init__(self, y: Array, s: Array, rows: Any) -> None:
        super().__init__(y=y, rows=rows, sample_weight=s)
        object.__setattr__(self, "top", np.asarray(s, dtype=float)[:, None])
        self.recentre(0.5 * self.__dict__["top"], 1.0)

    def _encode(self, y: Any) -> Array:
        return np.asarray(y, dtype=float).reshape(-1, 1)

    def recentre(self, centre: Array, sigma: float) -> None:
        """Smooth around another dual point."""
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "sigma", sigma)

    def shortfall(self, z: Array) -> Array:
        """1 - y_i f_i: by how much the margins are below 1; negative above."""
        return 1.0 - self.y * z

    def multipliers(self, z: Array) -> Array:
        """The a_i: -y a is the gradient."""
        state = self.__dict__
        return np.clip(state["centre"] + state["sigma"] * self.shortfall(z), 0.0, state["top"])

    def dual(self, a: Array) -> Array:
        """The dual point of the hinge loss that the multipliers stand for: -y a."""
        return np.asarray(-self.y * a)

    def centre_of(self, u: Array) -> Array:
        """The multipliers of a dual point of the hinge loss."""
        return np.clip(-self.y * u, 0.0, self.__dict__["top"])

    def balancing_shift(self, z: Array) -> float:
        """The b that minimises the loss at z + b. Newton steps fail where all rows lack curvature."""
        state = self.__dict__
        widths = (state["top"] + np.abs(state["centre"])) / state["sigma"]
        ends = np.concatenate([-widths, widths]) + np.tile(self.y - z, (2, 1))  # beyond these no multiplier changes
        total = float(np.sum(state["top"]))

        def imbalance(b: Array) -> tuple[Array, Array]:
            return np.array([-np.sum(self.y * self.multipliers(z + b))]), np.array([np.sum(self.hess_diag(z + b))])

        low, high = np.array([ends.min()]), np.array([ends.max()])
        return float(
            increasing_root(imbalance, low, high, np.clip(np.zeros(1), low, high), np.array([FINE * total]))[0]
        )

    def value(self, z: Array) -> float:
        """The maximum over a."""
        a, state = self.multipliers(z), self.__dict__
        return float(np.sum(a * self.shortfall(z)) - np.sum((a - state["centre"]) ** 2) / (2.0 * state["sigma"]))

    def grad(self, z: Array) -> Array:
        """-y a."""
        return -self.y * self.multipliers(z)

    def hess_diag(self, z: Array) -> Array:
        """sigma where a is strictly inside its bounds, else 0."""
        a, state = self.multipliers(z), self.__dict__
        return np.asarray(state["sigma"] * ((a > 0) & (a < state["top"])), dtype=float)

    def hessp(self, z: Array, p: Array) -> Array:
        """hess_diag * p."""
        return self.hess_diag(z) * p

    def conj(self, u: Array) -> float:
        """sum_i (a - c)^2 / (2 sigma) - a with a = -y u in [0, s], else infinite."""
        a, state = -self.y * u, self.__dict__
        if np.any(a < -OUTSIDE * state["top"]) or np.any(a > (1.0 + OUTSIDE) * state["top"]):
            return np.inf
        return float(np.sum((a - state["centre"]) ** 2) / (2.0 * state["sigma"]) - np.sum(a))

    def dual_box(self) -> tuple[Array, Array]:
        """-y u in [0, s]."""
        ends = -self.y * self.__dict__["top"]
        return np.minimum(ends, 0.0), np.maximum(ends, 0.0)

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """False: where the centre is not zero, the smoothed hinge may be negative."""
        return False

    def lipschitz(self) -> float:
        """sigma."""
        return float(self.__dict__["sigma"])
