"""The separable part of an objective: weighted absolute values and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.short_repr import short_repr

#: The bounds of weights without bounds.
UNBOUNDED = np.array(-np.inf), np.array(np.inf)


@dataclass(frozen=True, eq=False)
class Separable:
    """S(w) = sum_j c_j |w_j|  subject to  lower <= w <= upper. All three broadcast to the shape of w."""

    weights: Array
    lower: Array
    upper: Array

    __repr__ = short_repr

    @classmethod
    def l1(cls, weights: Array) -> Separable:
        """Absolute values without bounds."""
        return cls(weights, *UNBOUNDED)

    @classmethod
    def bounds(cls, lower: Array, upper: Array) -> Separable:
        """Bounds without absolute values."""
        return cls(np.array(0.0), lower, upper)

    def scaled(self, scale: float) -> Separable:
        """``scale * S``; the bounds do not change."""
        return Separable(scale * self.weights, self.lower, self.upper)

    def __add__(self, other: Separable) -> Separable:
        lower, upper = np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper)
        if np.any(lower > upper):
            raise ValueError("the bounds of two terms exclude each other: no weight satisfies both")
        return Separable(self.weights + other.weights, lower, upper)

    @cached_property
    def bounded(self) -> bool:
        """Whether any weight has a finite bound."""
        if self.lower is UNBOUNDED[0] and self.upper is UNBOUNDED[1]:
            return False
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @property
    def is_weighted(self) -> bool:
        """Whether any absolute value has a strength other than zero."""
        return bool(self.weights != 0.0) if np.ndim(self.weights) == 0 else bool(self.weights.any())

    def weights_at(self, where: Any, shape: tuple[int, ...]) -> Array:
        """The strengths at these places of an array of this shape; one number if all are equal."""
        return self.weights if np.ndim(self.weights) == 0 else np.broadcast_to(self.weights, shape)[where]

    def value(self, w: Array) -> float:
        """S(w), infinite if w is outside the bounds by more than round-off, which computed scores may be."""
        if self.bounded:
            finite = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (self.lower, self.upper)]
            slack = 1e-12 * np.maximum(np.abs(w), np.maximum(*finite)) + 1e-15 * np.abs(w).max(initial=0.0)
            if np.any(w < self.lower - slack) or np.any(w > self.upper + slack):
                return np.inf
        return float((self.weights * np.abs(w)).sum())

    def prox(self, v: Array, t: float | Array) -> Array:
        """Soft thresholding, then clipping to the bounds: exact, one coordinate at a time."""
        return np.clip(np.sign(v) * np.maximum(np.abs(v) - t * self.weights, 0.0), self.lower, self.upper)

    def absorb(self, u: Array) -> Array:
        """The projection of u onto the domain of S*: the conjugate is finite where ``absorb(u) == u``."""
        if not self.bounded:
            return np.clip(u, -self.weights, self.weights)
        lowest = np.where(np.isneginf(self.lower), -self.weights, -np.inf)
        highest = np.where(np.isposinf(self.upper), self.weights, np.inf)
        return np.clip(u, lowest, highest)

    def conj(self, u: Array) -> float:
        """S*(u) = sum_j max over w_j in its interval of u_j w_j - c_j |w_j|, for u in the domain."""
        outside = np.abs(u - self.absorb(u)) > 1e-12 * np.abs(u)
        if outside.any():
            return np.inf
        if not self.bounded:
            return 0.0
        best = np.full(u.shape, -np.inf)
        # concave in w_j with a kink at 0: the maximum is at an end of the interval or at the kink
        for end in (self.lower, self.upper, np.clip(0.0, self.lower, self.upper)):
            w = np.broadcast_to(np.where(np.isfinite(end), end, 0.0), u.shape)
            usable = np.broadcast_to(np.isfinite(end), u.shape)
            best = np.where(usable, np.maximum(best, u * w - self.weights * np.abs(w)), best)
        return float(best.sum())
