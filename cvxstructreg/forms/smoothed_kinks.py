"""Losses with kinks, smoothed around multipliers of the rows; the multipliers may be elsewhere, with blocks of rows.

A loss with kinks is a sum over entries of largest linear functions, of the scores or of their centred rows:

    f(z) = sum_i max over l_i <= r_i <= u_i of  r_i (z_i - o_i)

Its smoothed twin subtracts (r_i - c_i)^2 / (2 sigma) inside the maximum. If the centre c is optimal, so is the
minimiser of the smoothed problem, for every sigma (the method of multipliers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.numerics.arrays import Array

#: Multipliers outside their intervals by this part of them are inside up to round-off.
OUTSIDE = 1e-12
#: The curvature that a model gets from rows at an end of their interval, as a part of sigma: without it, a step would
#: be endless where all rows are there.
FLAT = 1e-4


def has_kinks(loss: Any) -> bool:
    """Whether a loss is such a sum, of the scores or of their centred rows."""
    return isinstance(loss, Loss) and not loss.can("grad") and _kind(loss) != ""


def _kind(loss: Loss) -> str:
    if loss.can("kinks"):
        return "kinks"
    plain = loss.without_offset
    return "hinges" if plain.can("centred_hinges") and plain.centred_hinges(plain.n_outputs).power == 1 else ""


class SmoothedRows:
    """Some rows of a loss with kinks, smoothed around their multipliers."""

    def __init__(self, loss: Loss, sigma: float) -> None:
        self.y, self.sigma = loss.y, sigma
        self.lower: Array
        self.upper: Array
        self.at: Any
        self.is_centred = not loss.can("kinks")
        if not self.is_centred:
            self.lower, self.upper, self.at = loss.kinks()
        else:
            hinges = loss.without_offset.centred_hinges(loss.n_outputs)
            self.lower, self.upper, self.at = np.zeros_like(hinges.costs), hinges.costs, hinges.tau
            if loss.offset is not None:
                self.at = self.at - centred(loss.offset)
        self.centre = np.clip(0.0, self.lower, self.upper)

    def recentred(self, centre: Array, sigma: float) -> SmoothedRows:
        """The same rows around other multipliers."""
        other = object.__new__(SmoothedRows)
        other.__dict__.update(self.__dict__, centre=np.clip(centre, self.lower, self.upper), sigma=sigma)
        return other

    def __len__(self) -> int:
        return len(self.y)

    @property
    def offset(self) -> Any:
        """What is subtracted from the scores: the kinks."""
        return self.at

    def _seen(self, z: Array) -> Array:
        """What the kinks are functions of: the scores, or their centred rows."""
        return centred(z) if self.is_centred else z

    def _argument(self, z: Array) -> Array:
        return np.asarray(self.centre + self.sigma * (self._seen(z) - self.at))

    def _inside(self, z: Array) -> Any:
        v = self._argument(z)
        return (v > self.lower) & (v < self.upper)

    def multipliers(self, z: Array, change: Array | None = None) -> Array:
        """The r that attain the maximum; with ``change``, minus their derivative along it."""
        r = np.clip(self._argument(z), self.lower, self.upper)
        return r if change is None else r - self.sigma * self._inside(z) * self._seen(change)

    def value(self, z: Array) -> float:
        """The maximum over r."""
        r = self.multipliers(z)
        return float(np.sum(r * (self._seen(z) - self.at)) - np.sum((r - self.centre) ** 2) / (2.0 * self.sigma))

    def grad(self, z: Array) -> Array:
        """The multipliers, centred if the kinks see centred rows."""
        return self._seen(self.multipliers(z))

    def hessp(self, z: Array, p: Array) -> Array:
        """Sigma times p where multipliers are inside their intervals."""
        return self._seen(self.sigma * self._inside(z) * self._seen(p))

    def hess_diag(self, z: Array) -> Array:
        """For kinks of the scores: sigma inside the intervals, and a small part of it at their ends."""
        return np.asarray(self.sigma * np.where(self._inside(z), 1.0, FLAT * (self.upper > self.lower)))

    def misfit(self, z: Array) -> float:
        """f(z) - <r, z - o>, which is not negative; with the optimal multipliers it is zero."""
        g = self._seen(z) - self.at
        return float(np.sum(np.maximum(self.lower * g, self.upper * g) - self.multipliers(z) * g))

    def cost(self, r: Array, smoothed: bool) -> float:
        """The conjugate at the dual point of multipliers r, of the loss or of its smoothed twin."""
        slack = OUTSIDE * (self.upper - self.lower)
        if np.any(r < self.lower - slack) or np.any(r > self.upper + slack):
            return np.inf
        bent = float(np.sum((r - self.centre) ** 2)) / (2.0 * self.sigma) if smoothed else 0.0
        return float(np.sum(r * self.at)) + bent

    def spread(self, z: Array) -> tuple[float, float]:
        """The sums of the widths of the intervals, and of the distances from the kinks of rows that count."""
        width = self.upper - self.lower
        return float(width.sum()), float(np.sum(np.abs(self._seen(z) - self.at) * (width > 0.0)))


class SmoothedKinks(Loss):
    """The smoothed twin of a loss with kinks whose rows are elsewhere; ``rows_elsewhere`` is set by its solver.

    Its values and derivatives are sums over the :class:`SmoothedRows` there. Methods of this class only say what the
    loss can do.
    """

    def __init__(self, base: Loss) -> None:
        object.__setattr__(self, "_base", base)
        object.__setattr__(self, "rows_elsewhere", None)
        super().__init__(y=base.y, sample_weight=base.sample_weight)

    def _encode(self, y: Any) -> Array:
        return np.asarray(y, dtype=float)

    @property
    def n_outputs(self) -> int:
        """The outputs of the loss."""
        return int(self.__dict__["_base"].n_outputs)

    def _elsewhere(self, *arguments: Any) -> Any:
        raise TypeError("the rows of this loss are with the blocks of the data")

    def value(self, z: Array) -> float:
        """The maximum over r."""
        return float(self._elsewhere(z))

    def grad(self, z: Array) -> Array:
        """The multipliers."""
        return np.asarray(self._elsewhere(z))

    def hessp(self, z: Array, p: Array) -> Array:
        """Sigma times p inside the intervals."""
        return np.asarray(self._elsewhere(z, p))

    def hess_diag(self, z: Array) -> Array:
        """Sigma inside the intervals."""
        return np.asarray(self._elsewhere(z))

    def conj(self, u: Array) -> float:
        """The conjugate."""
        return float(self._elsewhere(u))

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """False: the smoothed loss may be negative."""
        return False
