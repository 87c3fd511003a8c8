"""The transposed and the absolute matrix of blocks of rows, for products only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks import kernels


class Transposed:
    """X', or |X|'."""

    __array_ufunc__ = None

    def __init__(
        self, base: Any, product: Callable[[Array], Array], squared: Callable[[Array], Array] | None = None
    ) -> None:
        self.base, self._product, self._squared = base, product, squared
        self.shape = base.shape[::-1]

    @property
    def T(self) -> Any:  # noqa: N802
        """The matrix itself."""
        return self.base

    def __matmul__(self, u: Any) -> Array:
        u = np.asarray(u, dtype=float)
        return self._product(u[:, None])[:, 0] if u.ndim == 1 else self._product(u)

    def __pow__(self, power: int) -> Transposed:
        """The squares of the entries."""
        if power != 2 or self._squared is None:
            raise ValueError(f"only the squares of the entries are available, got power {power}")
        return Transposed(self.base, self._squared)


class Absolute:
    """|X|."""

    __array_ufunc__ = None

    def __init__(self, base: Any, stacked: Callable[..., Array], summed: Callable[..., Array]) -> None:
        self.base, self.shape = base, base.shape
        self._stacked, self._summed = stacked, summed

    @property
    def T(self) -> Transposed:  # noqa: N802
        """|X|'."""
        return Transposed(self.base, lambda u: self._summed(kernels.absolute_pull, u))

    def __matmul__(self, theta: Any) -> Array:
        theta = np.asarray(theta, dtype=float)
        if theta.ndim == 1:
            return self._stacked(kernels.absolute_times, theta[:, None])[:, 0]
        return self._stacked(kernels.absolute_times, theta)
