"""Pairs of examples that should be in different classes (Goldberg, Zhu and Wright 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom, freeze
from cvxstructreg.core.checks import real_number, weight_array
from cvxstructreg.forms.centred_hinge import CentredHinges
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.penalties.pairs.dead_zone import DeadZone, SquaredDeadZone
from cvxstructreg.penalties.ridge import Ridge
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class PairHinge(Atom):
    """sum_p c_p sum_j (Z_pj - (k-2)/(k-1) - margin)_+ of centred sums Z = F_s + F_t of two rows.

    A single column Z stands for (Z, -Z), and the function is (|Z_p| - margin)_+.

    Examples
    --------
    >>> import numpy as np
    >>> PairHinge(np.ones(2))([[1.0, -1.0, 0.0], [2.0, -1.0, -1.0]])
    2.0
    """

    weights: Any
    margin: float = 0.0

    power: ClassVar[int] = 1
    formula: ClassVar[str] = "sum_p c_p sum_j (Z_pj - (k-2)/(k-1) - margin)_+"

    def __post_init__(self) -> None:
        freeze(self, weights=np.asarray(self.weights, dtype=float), margin=float(self.margin))
        object.__setattr__(self, "_single", self._of_one_column())

    def _of_one_column(self) -> Atom:
        costs = self.weights if self.weights.size else None
        if self.margin:
            return (DeadZone if self.power == 1 else SquaredDeadZone)(self.weights, self.margin)
        return L1(costs) if self.power == 1 else Ridge(costs)

    @property
    def size(self) -> int | None:
        """Number of pairs."""
        return int(self.weights.size)

    def _function(self, k: int) -> Any:
        """The function of k columns: absolute values or squares for a single one, else hinges of centred rows."""
        if k == 1:
            return self.__dict__["_single"]
        tau = (k - 2) / (k - 1) + self.margin
        return CentredHinges(np.repeat(self.weights[:, None], k, axis=1), tau, self.power)

    def centred_hinges(self, k: int) -> CentredHinges:
        """Cost c_p for each of two or more classes, with the kink at (k-2)/(k-1) + margin."""
        if k < 2:
            raise ValueError("a single output has absolute values instead of centred hinges")
        hinges: CentredHinges = self._function(k)
        return hinges

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._function(z.shape[1]).expr(z)

    def value(self, z: Array) -> float:
        """The sum over pairs and classes."""
        return float(self._function(z.shape[1]).value(z))

    def prox(self, v: Array, t: float) -> Array:
        """Shrinkage for one column; else row by row with the multiplier of the sum."""
        return np.asarray(self._function(v.shape[1]).prox(v, t))

    def into_domain(self, u: Array) -> Array:
        """u clipped to |u| <= c for absolute values; u = 0 where c = 0 for squares; else as for centred hinges."""
        if u.shape[1] > 1:
            return np.asarray(self._function(u.shape[1]).into_domain(u))
        c = self.weights[:, None]
        return np.clip(u, -c, c) if self.power == 1 else np.where(c > 0, u, 0.0)

    def conj(self, u: Array) -> float:
        """Absolute values (|u| <= c), squares (u^2 / 4c), or hinges of centred rows."""
        return float(self._function(u.shape[1]).conj(u))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Any, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(np.array([1.0, 0.5])), (2, 1)),
            (cls(np.array([1.0, 2.0, 0.5])), (3, 3)),
            (cls(np.ones(2)), (2, 2)),
            (cls(np.array([1.0, 2.0]), 0.5), (2, 1)),
            (cls(np.array([1.0, 2.0]), 0.3), (2, 3)),
        ]


class PairSquaredHinge(PairHinge):
    """sum_p c_p sum_j ((Z_pj - (k-2)/(k-1) - margin)_+)^2 of centred sums Z of two rows.

    A single column Z stands for (Z, -Z), and the function is ((|Z_p| - margin)_+)^2.

    Examples
    --------
    >>> import numpy as np
    >>> PairSquaredHinge(np.ones(1))([[3.0]])
    9.0
    """

    power: ClassVar[int] = 2
    formula: ClassVar[str] = "sum_p c_p sum_j ((Z_pj - (k-2)/(k-1) - margin)_+)^2"

    def grad(self, z: Array) -> Array:
        """2 c times the excess, centred."""
        return np.asarray(self._function(z.shape[1]).grad(z))

    def hessp(self, z: Array, p: Array) -> Array:
        """2 c p on the entries above the kink (a generalised Hessian)."""
        return np.asarray(self._function(z.shape[1]).hessp(z, p))

    def lipschitz(self) -> float:
        """2 max c."""
        return 2.0 * float(np.max(self.weights, initial=0.0))


@dataclass(frozen=True, eq=False, repr=False)
class Dissimilarity(Atom):
    """sum_(s,t) c_st sum_j ((F_sj + F_tj - (k-2)/(k-1) - margin)_+)^power: the examples should not share a class.

    F are the scores centred over the k classes (the sum-to-zero coding). A single output f stands for the two classes
    (f, -f), and the penalty is ((|f_s + f_t| - margin)_+)^power: with a margin, sums near zero cost nothing (Goldberg,
    Zhu and Wright 2007).

    Parameters
    ----------
    pairs : array of shape (m, 2)
        Row indices of the model; each pair once, in either order.
    power : {1, 2}
        Hinge or squared hinge.
    weights : number or array of m nonnegative numbers, optional
        The c_st, ones by default.
    margin : float
        The dead zone: how far a sum may be beyond its limit at no cost.

    Examples
    --------
    >>> Dissimilarity([(0, 1)], power=2)([1.0, 2.0])
    9.0
    >>> Dissimilarity([(0, 1)], power=2, margin=0.5)([1.0, 2.0])
    6.25
    >>> round(Dissimilarity([(0, 1)])([[2.0, -1.0, -1.0], [2.0, -1.0, -1.0]]), 6)
    3.5
    """

    pairs: Any
    power: int = 1
    weights: Any = None
    margin: float = 0.0

    target: ClassVar[str] = "scores"
    formula: ClassVar[str] = "sum_(s,t) c_st sum_j ((F_sj + F_tj - (k-2)/(k-1) - margin)_+)^power"
    convention: ClassVar[str] = "summed over pairs, each once; scores centred over the k classes (F 1 = 0)"

    def __post_init__(self) -> None:
        if self.power not in (1, 2):
            raise ValueError(f"power must be 1 or 2, got {self.power!r}")
        pairs = _checked_pairs(self.pairs)
        weights = weight_array(self.weights, len(pairs), "pair")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("the weights of Dissimilarity must be finite and nonnegative")
        margin = real_number(self.margin, "margin")
        if not 0.0 <= margin < np.inf:
            raise ValueError(f"margin must be finite and at least 0, got {margin}; 0 is no dead zone")
        freeze(self, pairs=pairs, weights=weights, margin=margin)

    def check_rows(self, m: int, what: str) -> None:
        """Raise unless the model has all rows that the pairs name."""
        if len(self.pairs) and self.pairs.max() >= m:
            raise ValueError(f"a dissimilar pair names row {self.pairs.max()}, but the model has {m} {what}")

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless an array of this shape has all rows that the pairs name."""
        if len(self.pairs) and self.pairs.max() >= shape[0]:
            raise ValueError(f"a dissimilar pair names row {self.pairs.max()} of an array of shape {shape}")

    def split(self) -> tuple[PairHinge, Any]:
        """Hinges of the sums of two rows."""
        m = len(self.pairs)
        width = int(self.pairs.max()) + 1 if m else 1
        rows = np.repeat(np.arange(m), 2)
        sums = sp.csr_array((np.ones(2 * m), (rows, self.pairs.ravel())), shape=(m, width))
        return (PairHinge if self.power == 1 else PairSquaredHinge)(self.weights, self.margin), sums

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        outer, _ = self.split()
        return outer.expr(z[self.pairs[:, 0]] + z[self.pairs[:, 1]]) if len(self.pairs) else cp.Constant(0.0)

    def value(self, z: Array) -> float:
        """The sum over pairs and classes."""
        return self.split()[0].value(z[self.pairs[:, 0]] + z[self.pairs[:, 1]])

    def __repr__(self) -> str:
        margin = f", margin={self.margin:g}" if self.margin else ""
        return f"{type(self).__name__}({len(self.pairs)} pairs, power={self.power}{margin})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Dissimilarity, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls([(0, 1), (1, 3)]), (4, 1)),
            (cls([(0, 1), (1, 3)], power=2, weights=[1.0, 0.5]), (4, 1)),
            (cls([(0, 2), (1, 3)], weights=2.0), (4, 3)),
            (cls([(0, 2), (1, 3)], power=2), (4, 3)),
            (cls([(0, 1), (1, 3)], margin=0.5), (4, 1)),
            (cls([(0, 1), (1, 3)], power=2, margin=0.2), (4, 3)),
        ]


def _checked_pairs(pairs: Any) -> np.ndarray:
    try:
        array = np.asarray(pairs)
    except ValueError as error:
        raise ValueError("pairs must have two entries each; some have more or fewer") from error
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"pairs must have shape (m, 2), got {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"pairs must be integer row indices, got dtype {array.dtype}")
    if array.min() < 0:
        raise ValueError("pairs must be nonnegative row indices")
    same = np.flatnonzero(array[:, 0] == array[:, 1])
    if same.size:
        row = array[same[0], 0]
        raise ValueError(f"row {row} is paired with itself; drop the pair")
    ordered = np.sort(array, axis=1).astype(np.int64)
    unique, counts = np.unique(ordered, axis=0, return_counts=True)
    if (counts > 1).any():
        s, t = unique[counts > 1][0]
        raise ValueError(f"pair ({s}, {t}) is given more than once; pass it once, with the sum of its weights")
    return ordered
