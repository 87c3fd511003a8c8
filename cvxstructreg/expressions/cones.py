"""The cones of a compiled program, in the order of Clarabel: lengths, and membership in the dual cones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array


@dataclass(frozen=True)
class Cones:
    """Products of zero, nonnegative, second-order, semidefinite, exponential and power cones."""

    zero: int
    nonneg: int
    soc: tuple[int, ...]
    psd: tuple[int, ...]
    exp: int
    p3d: tuple[float, ...]
    pnd: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, dims: Any) -> Cones:
        """From the cone dimensions of CVXPY."""
        powers = tuple(tuple(map(float, alphas)) for alphas in dims.pnd)
        parts = tuple(map(int, dims.soc)), tuple(map(int, dims.psd)), int(dims.exp), tuple(map(float, dims.p3d))
        return cls(int(dims.zero), int(dims.nonneg), *parts, powers)

    def blocks(self) -> Iterator[tuple[str, Any, slice]]:
        """(kind, parameter, rows) of each cone; the zero and the nonnegative cones are one block each."""
        start = 0
        sizes: list[tuple[str, Any, int]] = [("zero", None, self.zero), ("nonneg", None, self.nonneg)]
        sizes += [("soc", None, n) for n in self.soc]
        sizes += [("psd", n, n * (n + 1) // 2) for n in self.psd]
        sizes += [("exp", None, 3)] * self.exp
        sizes += [("power", (alpha, 1.0 - alpha), 3) for alpha in self.p3d]
        sizes += [("power", alphas, len(alphas) + 1) for alphas in self.pnd]
        for kind, parameter, n in sizes:
            yield kind, parameter, slice(start, start + n)
            start += n

    @property
    def n_rows(self) -> int:
        """Number of rows of all cones."""
        return max((rows.stop for _, _, rows in self.blocks()), default=0)

    def dual_interior(self) -> Array:
        """A point inside the dual cones; zero for the zero cone, whose dual is the whole space."""
        y = np.zeros(self.n_rows)
        for kind, n, rows in self.blocks():
            y[rows] = _dual_interior(kind, n, rows.stop - rows.start)
        return y

    def dual_contains(self, y: Array) -> bool:
        """Whether y is in the dual cone, exactly as computed: no tolerance."""
        return all(_dual_contains(kind, parameter, y[rows]) for kind, parameter, rows in self.blocks())


def _dual_interior(kind: str, n: Any, length: int) -> Any:
    if kind in ("zero", "nonneg"):
        return float(kind == "nonneg")
    if kind == "soc":
        return np.eye(1, length)[0]
    if kind == "psd":  # the identity, as the upper triangle by columns
        column, row = np.tril_indices(n)
        return (column == row).astype(float)
    if kind == "exp":
        return np.array([-1.0, 0.0, 1.0])
    return np.append(np.ones(length - 1), 0.0)


def _dual_contains(kind: str, parameter: Any, y: Array) -> bool:
    if kind == "zero":
        return True  # its dual is the whole space
    if kind == "nonneg":
        return bool(y.min(initial=0.0) >= 0.0)
    if kind == "soc":
        return bool(y[0] >= np.linalg.norm(y[1:]))
    if kind == "psd":
        return bool(np.linalg.eigvalsh(_matrix(y, parameter))[0] >= 0.0)
    if kind == "exp":  # -u exp(v / u) <= e w with u < 0, or u = 0 and v, w >= 0
        u, v, w = map(float, y)
        if u == 0.0:
            return v >= 0.0 and w >= 0.0
        return u < 0.0 < w and np.log(-u) + v / u <= 1.0 + np.log(w)
    if np.any(y[:-1] < 0.0):
        return False
    alphas = np.array(parameter)
    with np.errstate(divide="ignore"):
        size = float(alphas @ np.log(y[:-1] / alphas))
    return bool(y[-1] == 0.0 or np.log(abs(y[-1])) <= size)


def _matrix(y: Array, n: int) -> Array:
    """The symmetric matrix with the scaled upper triangle y, stored by columns."""
    matrix = np.zeros((n, n))
    column, row = np.tril_indices(n)
    matrix[row, column] = matrix[column, row] = np.where(row == column, y, y / np.sqrt(2.0))
    return matrix
