"""Total variation of signals, images and volumes (Rudin, Osher and Fatemi 1992)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.chains.plain_chain import chain_differences
from cvxstructreg.graphs.conversion import is_graph_like
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.composed import differences
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class TotalVariation(Atom):
    """sum_p ||(Dw)_p||_2 over the cells p of a grid, with (Dw)_p the differences to the next cell of each dimension.

    The weights become constant on a few regions. The isotropic norm above does not prefer borders along the axes. The
    anisotropic one is the sum of all absolute differences, sum_p ||(Dw)_p||_1. In one dimension both are the sum of
    absolute differences of each output; in more dimensions, the isotropic norm joins all outputs of a cell.
    Isotropic and anisotropic total variation: Rudin, Osher and Fatemi (1992), Chambolle (2004).

    Parameters
    ----------
    shape : int or tuple of int
        ``d`` or ``(d,)`` for a signal, ``(rows, columns)`` for an image, ``(a, b, c)`` for a volume, and so on. The
        weights are the cells in C order, as in ``image.ravel()``.
    isotropic : bool
        Whether the differences of a cell form one Euclidean norm.

    Examples
    --------
    >>> TotalVariation(4)([0.0, 0.0, 1.0, 3.0])
    3.0
    >>> image = [[0.0, 0.0], [4.0, 3.0]]
    >>> TotalVariation((2, 2))(np.ravel(image))
    8.0
    >>> TotalVariation((2, 2), isotropic=False)(np.ravel(image))
    8.0
    >>> TotalVariation((2, 2))([0.0, 3.0, 4.0, 0.0]), TotalVariation((2, 2), isotropic=False)([0.0, 3.0, 4.0, 0.0])
    (12.0, 14.0)
    """

    shape: Any
    isotropic: bool = True

    formula: ClassVar[str] = "sum_p ||(Dw)_p||, (Dw)_p the differences of cell p to the next cell of each dimension"
    convention: ClassVar[str] = (
        "cells in C order, no difference beyond the border; isotropic: all outputs of a cell at once"
    )

    def __post_init__(self) -> None:
        if is_graph_like(self.shape):
            kind = type(self.shape).__name__
            raise TypeError(f"TotalVariation needs the shape of a grid, got a {kind}; use FusedLasso(graph)")
        if not isinstance(self.isotropic, bool | np.bool_):
            raise TypeError(f"isotropic must be True or False, got {self.isotropic!r}")
        given = self.shape if isinstance(self.shape, tuple | list) else (self.shape,)
        for n in given:
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
                raise ValueError(
                    f"shape must be positive integers, got {self.shape!r}; pass d for a signal, (rows, columns) for "
                    "an image or (a, b, c) for a volume"
                )
        shape = tuple(int(n) for n in given)
        if max(shape, default=1) < 2:
            raise ValueError(f"a grid of shape {shape} has no neighbours; pass a shape with two or more cells")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "isotropic", bool(self.isotropic))
        object.__setattr__(self, "_parts", self._split())

    def _split(self) -> tuple[Atom, Any]:
        sides = [n for n in self.shape if n > 1]  # the others have no neighbours
        if len(sides) == 1:
            return L1(), chain_differences(sides[0])
        D = differences(tuple(sides))
        if self.isotropic and len(sides) > 1:
            return BlockNorms.of_sizes([len(sides)] * D.shape[1]), D
        inside = np.flatnonzero(np.diff(D.indptr))
        return L1(), sp.csr_array(D[inside])

    @property
    def size(self) -> int | None:
        """Number of cells."""
        return int(np.prod(self.shape))

    def split(self) -> tuple[Atom, Any]:
        """Block norms, or L1 if anisotropic, of the differences."""
        parts: tuple[Atom, Any] = self.__dict__["_parts"]
        return parts

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        outer, D = self.split()
        return outer.expr(D @ z)

    def value(self, z: Array) -> float:
        """The sum over cells."""
        outer, D = self.split()
        return outer.value(D @ z)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape}, isotropic={self.isotropic})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[TotalVariation, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(4), (4, 2)),
            (cls((2, 3)), (6, 1)),
            (cls((2, 2), isotropic=False), (4, 2)),
            (cls((2, 1, 3)), (6, 1)),
            (cls((2, 2, 2)), (8, 1)),
        ]
