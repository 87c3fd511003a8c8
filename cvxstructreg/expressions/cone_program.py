"""A CVXPY expression, compiled once to a cone program:

    f(x) = min over a of   c'v + 1/2 v'Pv + constant    subject to   b - A v in K,      v = (x, a)

This is the only file that reads the compiled data of CVXPY.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.expressions.cones import Cones
from cvxstructreg.expressions.exact_powers import with_exact_powers
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp

#: Variables up to which dense matrices are made.
MOST_DENSE = 1500
#: Squared singular values that count as zero, relative to the largest, and lengths of vectors that do not.
NULL, VISIBLE = 1e-13, 1e-6


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """The data of the program, with ``at`` the positions of x, by columns, in v."""

    P: Any
    c: Array
    A: Any
    b: Array
    constant: float
    cones: Cones
    at: Any

    @classmethod
    def compiled(cls, expression: cp.Expression, x: cp.Variable) -> ConeProgram:
        """The program of a convex scalar expression of the variable x."""
        problem = cp.Problem(cp.Minimize(with_exact_powers(expression)))
        data, _, inverse = problem.get_problem_data(cp.CLARABEL)
        start = data["param_prob"].var_id_to_col[x.id]
        found = cls.of_data(data, inverse, np.arange(start, start + x.size))
        if found.cones.n_rows != found.A.shape[0]:
            raise ValueError(
                f"FromExpression: CVXPY compiles {str(expression)[:80]} to {found.A.shape[0]} rows of cones with "
                f"{found.cones.n_rows}; write a semidefinite constraint S >> 0 in an indicator as cp.lambda_min(S) >= 0"
            )
        return found

    @classmethod
    def of_data(cls, data: Any, inverse: Any, at: Any) -> ConeProgram:
        """The program that CVXPY compiled for Clarabel, from its data and inverse data."""
        c = np.asarray(data["c"], dtype=float)
        n = c.size
        P = sp.csc_array(data["P"]) if data.get("P") is not None else sp.csc_array((n, n))
        A = sp.csc_array(data["A"]) if data["A"].shape[0] else sp.csc_array((0, n))
        constant = float(inverse[-1][cp.settings.OFFSET])
        return cls((P + P.T) / 2.0, c, A, np.asarray(data["b"], dtype=float), constant, Cones.of(data["dims"]), at)

    @property
    def size(self) -> int:
        """Number of entries of x."""
        return int(self.at.size)

    @property
    def n_variables(self) -> int:
        """Number of entries of v."""
        return int(self.c.size)

    @cached_property
    def others(self) -> Any:
        """The positions of the auxiliary variables a in v."""
        return np.setdiff1d(np.arange(self.n_variables), self.at)

    @property
    def is_homogeneous(self) -> bool:
        """Whether f(t x) = t f(x) for t > 0 can be read off: no right-hand side, no squares, no constant."""
        return not self.b.any() and not self.P.nnz and self.constant == 0.0

    @cached_property
    def flat(self) -> Array:
        """An orthonormal basis (d x q) of the directions of x along which f does not change; none if too large."""
        if self.n_variables > MOST_DENSE:
            return np.zeros((self.size, 0))
        rows = sp.vstack([self.A, self.P, sp.csr_array(self.c[None, :])]).toarray()
        sizes = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
        rows = rows / np.where(sizes > 0.0, sizes, 1.0)
        values, vectors = np.linalg.eigh(rows.T @ rows)
        null = vectors[self.at][:, values <= NULL * values[-1]]
        left, lengths, _ = np.linalg.svd(null, full_matrices=False)
        return np.asarray(left[:, lengths > VISIBLE])
