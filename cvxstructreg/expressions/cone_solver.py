"""Clarabel on one compiled program whose linear and quadratic costs change: the only file that calls it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.expressions.cones import Cones
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

#: The tightest accuracy that works for almost all programs; the certificate does not rely on it.
ACCURACY = 1e-10
#: What the solver reports of a program with a solution, and of one whose objective is unbounded.
SOLVED = ("Solved", "AlmostSolved")
UNBOUNDED = ("DualInfeasible", "AlmostDualInfeasible")


@dataclass(frozen=True, eq=False)
class Answer:
    """The point v, the multipliers y of the constraints, and whether the program was solved or is unbounded."""

    v: Array
    y: Array
    status: str

    @property
    def solved(self) -> bool:
        """Whether a solution was found, perhaps with less accuracy."""
        return self.status in SOLVED and bool(np.isfinite(self.v).all() and np.isfinite(self.y).all())

    @property
    def unbounded(self) -> bool:
        """Whether the objective has no lower bound."""
        return self.status in UNBOUNDED


class ConeSolver:
    """min over v of q'v + 1/2 v'(Q + extra)v subject to b - A v in K, for changing q and Q on the same entries.

    ``weights`` are added to the diagonal of Q at the positions of x. Solvers are kept in a pool: a thread takes an idle
    one or makes its own, and returns it when done.
    """

    def __init__(self, program: ConeProgram, with_diagonal: bool, accuracy: float = ACCURACY) -> None:
        self.program, self.with_diagonal, self.accuracy = program, with_diagonal, accuracy
        n = program.n_variables
        upper = sp.triu(program.P, format="csc")
        if with_diagonal:
            marks = sp.csc_array((np.ones(program.size), (program.at, program.at)), shape=(n, n))
            pattern = sp.csc_array(abs(upper) + marks)
            pattern.sort_indices()
            columns = np.repeat(np.arange(n), np.diff(pattern.indptr))
            places = {(int(i), int(j)): k for k, (i, j) in enumerate(zip(pattern.indices, columns, strict=True))}
            given = sp.coo_array(upper)
            self.base = np.zeros(pattern.nnz)
            for i, j, value in zip(given.row, given.col, given.data, strict=True):
                self.base[places[int(i), int(j)]] += value
            self.diagonal = np.array([places[int(i), int(i)] for i in program.at], dtype=np.int64)
            self.pattern = pattern
        else:
            self.pattern, self.base = upper, upper.data
        self.idle: deque[Any] = deque()

    def __getstate__(self) -> dict[str, Any]:
        return {"program": self.program, "with_diagonal": self.with_diagonal, "accuracy": self.accuracy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def solve(self, q: Array, factor: float = 1.0, weight: float = 0.0, b: Array | None = None) -> Answer:
        """Solve with Q = factor * P and ``weight`` on its diagonal; ``b`` replaces the right-hand side."""
        import clarabel

        deadline.check()
        data = factor * self.base
        if self.with_diagonal:
            data[self.diagonal] += weight
        Q = sp.csc_matrix((data, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)
        right = self.program.b if b is None else b
        try:
            solver = self.idle.pop()
            solver.update(P=Q, q=q, b=right)
        except IndexError:
            A, cones = sp.csc_matrix(self.program.A), clarabel_cones(self.program.cones)
            solver = clarabel.DefaultSolver(Q, q, A, right, cones, _settings(self.accuracy))
        found = solver.solve()
        self.idle.append(solver)
        return Answer(np.array(found.x, dtype=float), np.array(found.z, dtype=float), str(found.status))


def _settings(accuracy: float) -> Any:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.presolve_enable = settings.chordal_decomposition_enable = False  # updates of the data need all rows
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    return settings


def clarabel_cones(cones: Cones) -> list[Any]:
    """The cones as objects of Clarabel."""
    import clarabel

    made: list[Any] = [clarabel.ZeroConeT(cones.zero)] if cones.zero else []
    made += [clarabel.NonnegativeConeT(cones.nonneg)] if cones.nonneg else []
    made += [clarabel.SecondOrderConeT(n) for n in cones.soc]
    made += [clarabel.PSDTriangleConeT(n) for n in cones.psd]
    made += [clarabel.ExponentialConeT() for _ in range(cones.exp)]
    made += [clarabel.PowerConeT(alpha) for alpha in cones.p3d]
    return made + [clarabel.GenPowerConeT(list(alphas), 1) for alphas in cones.pnd]
