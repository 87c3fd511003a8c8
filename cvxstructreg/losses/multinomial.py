"""The multinomial logistic loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlog1py, xlogy

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.loss import Loss, encode_multiclass
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Multinomial(Loss):
    """sum_i s_i (logsumexp(F_i) - F_i,y_i): a sum over rows, not averaged.

    Parameters
    ----------
    y : array of n labels
        Any values; column j of F belongs to the j-th of ``classes``.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.
    classes : sequence, optional
        The order of the columns of F; the sorted labels by default.

    Examples
    --------
    >>> round(Multinomial(["a", "b", "c"])([[0, 0, 0]] * 3), 4)
    3.2958
    """

    classes: Any = None

    attains_infimum: ClassVar[bool] = False
    has_slow_prox: ClassVar[bool] = True
    formula: ClassVar[str] = "sum_i s_i (log sum_j exp(F_ij) - F_i,y_i)"
    convention: ClassVar[str] = "summed over rows (not averaged), one column of F for each class"

    def _encode(self, y: Any) -> Array:
        numbers, classes = encode_multiclass(y, self.classes)
        freeze(self, classes=classes)
        return np.eye(len(classes))[numbers]

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = np.ravel(self.weight_column.T @ self.y)
        absent = [name for name, weight in zip(self.classes, weights, strict=True) if weight == 0]
        if absent:
            raise ValueError(
                f"classes {absent} have no example of positive weight; drop them, or the intercept would diverge"
            )

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def _own(self) -> tuple[Any, Any]:
        """The places of the own classes in an array of scores."""
        return np.arange(len(self.y)), self.y.argmax(axis=1)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._weighted_sum(cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(self.y, z), axis=1))

    def _weighted_sum(self, terms: cp.Expression) -> cp.Expression:
        return cp.sum(cp.multiply(self.sample_weight, terms))

    def value(self, z: Array) -> float:
        """-sum s log p_y."""
        return float(self.sample_weight @ self._row_losses(z))

    def _row_losses(self, z: Array) -> Array:
        """logsumexp(F_i) - F_i,y_i for each row: log(1 + sum of exp(F_ij - F_i,y_i) over the other classes j)."""
        largest = z.max(axis=1)
        others = z - largest[:, None]
        np.exp(others, out=others)
        others[self._own] = 0.0
        behind = largest - z[self._own]
        return np.asarray(behind + np.log1p(others.sum(axis=1) + np.expm1(-behind)))

    def grad(self, z: Array) -> Array:
        """s (p - onehot(y)); for the own class minus the sum of the others, as p - 1 would lose the digits of 1 - p."""
        p = softmax(z)
        p[self._own] = 0.0
        p[self._own] = -p.sum(axis=1)
        p *= self.weight_column
        return p

    def hessp(self, z: Array, p: Array) -> Array:
        """s (diag(q) - q q') p, row by row."""
        q = softmax(z)
        return self.weight_column * (q * p - q * np.sum(q * p, axis=1, keepdims=True))

    def hess_rows(self, z: Array) -> tuple[Array, Array]:
        """(s q, sqrt(s) q): the Hessian of row i is s (diag(q) - q q')."""
        q = softmax(z)
        return self.weight_column * q, np.sqrt(self.weight_column) * q

    def lipschitz(self) -> float:
        """max s / 2: the largest eigenvalue of diag(q) - qq' is at most 1/2."""
        return float(np.max(self.sample_weight)) / 2.0

    def prox(self, v: Array, t: float) -> Array:
        """A damped Newton method for each row; diag(1 + sq) - s qq' is inverted by Sherman-Morrison."""
        s = t * self.weight_column
        x = v - s * (softmax(v) - self.y) / (1.0 + s)

        def energy(x: Array) -> Array:
            return np.asarray(s[:, 0] * self._row_losses(x) + 0.5 * np.sum((x - v) ** 2, axis=1))

        for _ in range(50):
            q = softmax(x)
            gradient = s * (q - self.y) + x - v
            if np.abs(gradient).max() <= 1e-14 * (1.0 + np.abs(v).max() + s.max()):
                break
            inverse = 1.0 / (1.0 + s * q)
            left, right = inverse * gradient, inverse * q
            curvature = np.sum(right, axis=1, keepdims=True)  # 1 - s sum q^2 / (1 + sq), without cancellation
            step = left + s * right * np.sum(q * left, axis=1, keepdims=True) / curvature
            slope, length, before = np.sum(gradient * step, axis=1), np.ones(len(v)), energy(x)
            for _ in range(30):
                slack = 1e-12 * (1.0 + np.abs(before))
                too_far = energy(x - length[:, None] * step) > before - 0.1 * length * slope + slack
                if not too_far.any():
                    break
                length[too_far] *= 0.5
            x = x - length[:, None] * step
        return x

    def _probabilities(self, u: Array) -> Array:
        return self.y + self._over_weights(u)

    def _over_weights(self, u: Array) -> Array:
        """u / s, zero for rows of weight zero."""
        s = self.weight_column
        return np.where(s > 0, u / np.where(s > 0, s, 1.0), 0.0)

    def conj(self, u: Array) -> float:
        """sum s p log p with p = onehot(y) + u / s on the simplex."""
        p = self._probabilities(u)
        off_simplex = (p < -1e-12).any() or np.any(np.abs(p.sum(axis=1) - 1.0) > 1e-10)
        if off_simplex or np.any(u[self.sample_weight == 0]):
            return np.inf
        p = np.maximum(p, 0.0)
        # the own class has p = 1 + u / s; log(p) would lose digits for small u
        logs = np.where(self.y > 0, xlog1py(p, np.clip(self._over_weights(u), -1.0, 0.0)), xlogy(p, p))
        return float(np.sum(self.weight_column * logs))

    def constants(self) -> list[Array]:
        """The logarithms of the class frequencies."""
        return [np.log(np.ravel(self.weight_column.T @ self.y) / float(np.sum(self.sample_weight)))]

    def into_domain(self, u: Array) -> Array:
        """u with its probabilities made nonnegative and scaled to sum to one; zero where none can be scaled."""
        p = np.maximum(self._probabilities(u), 0.0)
        total = p.sum(axis=1, keepdims=True)
        scalable = (total > 0) & (total < np.inf)
        return self.weight_column * np.where(scalable, p / np.where(scalable, total, 1.0) - self.y, 0.0)

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """True: logsumexp(F_i) is at least every entry of its row, which the sign rules of CVXPY do not detect."""
        return True

    def rebalance(self, u: Array, target: Array) -> Array | None:
        """Scale the probabilities to p_ij e^(b_j), normalised, so that the columns sum to ``target``: Newton in b."""
        p = np.maximum(self._probabilities(u), 0.0)
        wanted = target + self.weight_column.T @ self.y
        with np.errstate(divide="ignore"):
            logs = np.log(p)
        b, total = np.zeros(self.n_outputs), float(self.weight_column.sum())
        for _ in range(50):
            q = softmax(logs + b)
            miss = np.ravel(self.weight_column.T @ q - wanted)
            if np.abs(miss).max() <= 1e-14 * total:
                return self.weight_column * (q - self.y)
            hessian = np.diag(np.ravel(self.weight_column.T @ q)) - (self.weight_column * q).T @ q
            b = b - np.clip(np.linalg.lstsq(hessian, miss, rcond=1e-12)[0], -2.0, 2.0)
        return None

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Multinomial, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls([0, 2, 1, 0]), (4, 3)),
            (cls(["b", "a", "b"], sample_weight=[2.0, 1.0, 0.0], classes=("b", "a")), (3, 2)),
            (cls([0, 2, 1], offset=rng.normal(size=(3, 3))), (3, 3)),
        ]


def softmax(z: Array) -> Array:
    """exp(z_ij) / sum_j exp(z_ij) for each row i."""
    q = z - z.max(axis=1, keepdims=True)
    np.exp(q, out=q)
    q /= q.sum(axis=1, keepdims=True)
    return q
