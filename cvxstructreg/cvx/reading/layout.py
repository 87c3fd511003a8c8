"""The weights of a problem: the entries of all its variables, by columns, one variable after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.cvx.reading.affine import Affine
from cvxstructreg.cvx.reading.maps import Picks, ScaledRows, joined, matrix
from cvxstructreg.cvx.reading.refusal import UnrecognisedError
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: Attributes of variables that become bounds.
BOUNDING = {"nonneg", "nonpos", "bounds", "pos", "neg"}


class Layout:
    """Where the entries of each variable are in the vector of all entries."""

    def __init__(self, variables: list[Any]) -> None:
        for variable in variables:
            given = {key for key, value in variable.attributes.items() if _is_given(value)}
            if given - BOUNDING:
                raise UnrecognisedError(
                    f"the variable {variable.name()} is declared {sorted(given - BOUNDING)[0]}, which is not supported"
                )
        self.variables = variables
        ends = np.cumsum([variable.size for variable in variables], dtype=int)
        self.first = {variable.id: int(end) - variable.size for variable, end in zip(variables, ends, strict=True)}
        self.size = int(ends[-1]) if variables else 0

    def matrix(self, affine: Affine) -> Any:
        """The map of an affine expression as one matrix with a column for each entry of a variable."""
        return joined([self.block(affine, variable) for variable in self.variables])

    def block(self, affine: Affine, variable: cp.Variable) -> Any:
        """The columns of one variable, as a map."""
        part = affine.parts.get(variable.id)
        if part is None:
            return sp.csr_array((affine.size, variable.size))
        return part if isinstance(part, ScaledRows) else matrix(part)

    def rows(self, affines: list[Affine]) -> sp.csr_array:
        """The maps on top of each other, sparse; fast for thousands of slices of variables."""
        if all(len(a.parts) == 1 and isinstance(next(iter(a.parts.values())), Picks) for a in affines):
            picks = [next(iter(a.parts.items())) for a in affines]
            at = np.concatenate([self.first[v] + m.at for v, m in picks])
            coef = np.concatenate([m.factors for _, m in picks])
            return sp.csr_array((coef, at, np.arange(len(at) + 1)), shape=(len(at), self.size))
        blocks = [sp.csr_array(self.matrix(affine)) for affine in affines]
        return sp.csr_array(sp.vstack(blocks, format="csr"))

    def values(self, vector: Array) -> dict[int, Array]:
        """The values of the variables, by their ids, in their shapes."""
        return {
            v.id: vector[self.first[v.id] : self.first[v.id] + v.size].reshape(v.shape, order="F")
            for v in self.variables
        }

    def vector(self, values: dict[int, Any]) -> Array:
        """The vector of all entries from the values of the variables."""
        return np.concatenate([np.asarray(values[v.id], float).ravel(order="F") for v in self.variables])


def _is_given(value: Any) -> bool:
    return value is not None and value is not False
