"""The sum of singular values (Fazel 2002; Recht, Fazel and Parrilo 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class NuclearNorm(Atom):
    """sum_i s_i(W), the sum of the singular values of the d x k matrix of weights: W gets a low rank.

    Several outputs then share a few combinations of features. With ``shape=(p, q)``, the d = p q weights of each output
    form a p x q matrix themselves, as for data that are matrices (Zhou and Li 2014). The prox soft-thresholds the
    singular values (Cai, Candes and Shen 2010).

    Parameters
    ----------
    shape : (int, int), optional
        The matrix that the weights of one output form, row by row. By default the d x k matrix of all weights.

    Examples
    --------
    >>> round(NuclearNorm()([[3.0, 0.0], [0.0, -4.0]]), 9)
    7.0
    >>> round(NuclearNorm((2, 2))([3.0, 0.0, 0.0, -4.0]), 9)
    7.0
    """

    shape: Any = None

    formula: ClassVar[str] = "sum_i s_i(W), the singular values of the weights"
    convention: ClassVar[str] = "W is d x k, or p x q for each output; intercepts are not penalised"

    def __post_init__(self) -> None:
        if self.shape is None:
            return
        given = tuple(self.shape) if isinstance(self.shape, tuple | list) else (self.shape,)
        whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in given)
        if len(given) != 2 or not whole:
            raise ValueError(
                f"shape must be two positive integers (rows, columns), got {self.shape!r}; leave it out for the matrix "
                "of features by outputs"
            )
        object.__setattr__(self, "shape", (int(given[0]), int(given[1])))

    @property
    def size(self) -> int | None:
        """p q for weights that form a p x q matrix."""
        return None if self.shape is None else int(np.prod(self.shape))

    def _matrices(self, z: Array) -> Array:
        """The matrices of weights, stacked."""
        return z[None] if self.shape is None else np.asarray(z.T.reshape(-1, *self.shape))

    def _weights(self, matrices: Array) -> Array:
        """The inverse of :meth:`_matrices`."""
        return np.asarray(matrices[0] if self.shape is None else matrices.reshape(len(matrices), -1).T)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        if self.shape is None:
            return cp.normNuc(z)
        return cp.sum([cp.normNuc(cp.reshape(z[:, j], self.shape, order="C")) for j in range(z.shape[1])])

    def value(self, z: Array) -> float:
        """The sum of the singular values."""
        return float(np.linalg.svd(self._matrices(z), compute_uv=False).sum())

    def prox(self, v: Array, t: float) -> Array:
        """Soft thresholding of the singular values."""
        left, values, right = np.linalg.svd(self._matrices(v), full_matrices=False)
        return self._weights(left * np.maximum(values - t, 0.0)[:, None, :] @ right)

    def dual_norm(self, u: Array) -> float:
        """The largest singular value."""
        return float(np.linalg.svd(self._matrices(u), compute_uv=False).max(initial=0.0))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[NuclearNorm, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls(), (4, 3)), (cls(), (3, 1)), (cls((2, 3)), (6, 1)), (cls((2, 2)), (4, 2))]
