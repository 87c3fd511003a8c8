"""The result of a solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.cards import bars, card

#: The HTML form shows so many weights, and says what a status means.
MOST_SHOWN = 8
MEANINGS = {
    "optimal": "the relative gap is proved to be within the tolerance",
    "stationary": "no bound is known; the optimality conditions hold within the tolerance",
    "no_minimiser": "the objective decreases forever along some direction",
    "inaccurate": "the tolerance was not proved",
}


@dataclass(frozen=True)
class Record:
    """One entry of the history of a solve.

    Attributes
    ----------
    n_iter, time : int, float
        Iterations of all solvers and seconds so far.
    objective, certificate
        The objective and the certificate of the current point.
    solver : str
        The solver that is running.
    switch : str
        If ``solver`` has just taken over from another one: the reason. Empty in all other records.
    compiling : float
        The seconds of ``time`` that were spent on compilation.
    n_passes : int
        Passes over data in blocks of rows so far.
    """

    n_iter: int
    time: float
    objective: float
    certificate: Certificate
    solver: str = ""
    switch: str = ""
    compiling: float = 0.0
    n_passes: int = 0


@dataclass(frozen=True, eq=False)
class Solution:
    """The weights and the intercept, with a proof of their accuracy.

    Attributes
    ----------
    coef : array of shape (d,) or (d, k)
        The weights theta: ``X @ coef + intercept`` are the scores.
    intercept : float or array of k
        Zero for a model without intercept.
    objective : float
        The objective at this point, recomputed from the weights.
    certificate : Certificate
        The certificate, recomputed from this point and ``dual``.
    status : str
        "optimal" (certified relative gap within ``tol``), "stationary" (only the optimality conditions could be
        checked, and they hold within ``tol``), "no_minimiser" (the objective decreases forever along some direction),
        "max_iter", "max_passes", "time_limit", "interrupted" or "inaccurate".
    solver : str
        The solver that found this point. With ``solver="auto"``, other solvers may have run before or after.
    n_iter, time, history
        Iterations and seconds of all solvers, and a record of every certificate and of every change of solver.
    dual : mapping
        Dual points, keyed by the number of the term in the objective. Those of long chains with X = I are computed when
        they are first read.
    n_passes : int
        Passes over data in blocks of rows (:class:`cvxstructreg.RowBlocks`), 0 for data in memory.
    solver_choice : str
        Why the first solver was taken, and why others took over from it.
    reason : str
        Why the last solver fell short of the tolerance; for "no_minimiser", the features of the direction along which
        the objective decreases.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> solution = problem.solve()
    >>> solution.status, solution.coef.round(2).tolist(), solution.certificate.relative_gap <= 1e-6
    ('optimal', [1.0], True)
    >>> solution.solver_choice.split("; ")[0]
    'working_set is the first solver, in order of expected speed, that accepts the problem'
    """

    problem: Problem = field(repr=False)
    coef: Array
    intercept: Any
    objective: float
    certificate: Certificate
    status: str
    solver: str
    n_iter: int
    time: float
    history: tuple[Record, ...] = field(repr=False, default=())
    dual: Mapping[int, Array] = field(repr=False, default_factory=dict)
    n_passes: int = 0
    solver_choice: str = ""
    reason: str = ""

    @property
    def switches(self) -> tuple[Record, ...]:
        """The records of ``history`` where ``solver="auto"`` changed the solver, with the reasons."""
        return tuple(record for record in self.history if record.switch)

    @property
    def compiling(self) -> float:
        """The seconds of ``time`` that were spent on compilation: the first solve in a process compiles its loops."""
        return self.history[-1].compiling if self.history else 0.0

    @property
    def scores(self) -> Array:
        """The scores of all rows of the model, shape (n,) or (n, k)."""
        theta, b = self.problem.shaped(self.coef, self.intercept)
        scores = self.problem.model.scores(theta, b)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def without_proof(self) -> Solution:
        """The same solution without the dual point of its certificate, to save memory."""
        return replace(self, certificate=replace(self.certificate, dual=None))

    def named_weights(self) -> dict[str, Any]:
        """The nonzero weights by the name (or number) of their feature, largest first."""
        theta = self.problem.shaped(self.coef, self.intercept)[0]
        sizes = np.abs(theta).max(axis=1)
        names = self.problem.feature_names or tuple(map(str, range(len(theta))))
        order = [j for j in np.argsort(-sizes, kind="stable") if sizes[j] > 0]
        return {names[j]: float(theta[j, 0]) if theta.shape[1] == 1 else theta[j].copy() for j in order}

    def _repr_html_(self) -> str:
        shown = list(self.named_weights().items())
        norms = [(name, float(w) if np.ndim(w) == 0 else float(np.linalg.norm(w))) for name, w in shown[:MOST_SHOWN]]
        compiled = f", {self.compiling:.2g} of them to compile" if self.compiling > 0.005 else ""
        rows = [
            ("status", f"{self.status}: {MEANINGS.get(self.status, 'the solve ended early')}"),
            ("objective", f"{self.objective:.9g}"),
            ("certificate", str(self.certificate)),
            ("solver", f"{self.solver}, {self.n_iter} iterations, {self.time:.3g} seconds{compiled}"),
            ("weights", f"{np.count_nonzero(self.coef)} of {self.coef.size} nonzero"),
        ]
        left = len(shown) - len(norms)
        note = f"and {left} more: solution.named_weights()" if left else ""
        return card("Solution", rows, bars(norms), note=note)

    def __repr__(self) -> str:
        size = f"{np.count_nonzero(self.coef)} of {self.coef.size} weights nonzero"
        passes = f"{self.n_passes} passes, " if self.n_passes else ""
        return (
            f"Solution({self.status}: objective {self.objective:.6g}, {self.certificate}, {size}; "
            f"{self.solver}, {self.n_iter} iterations, {passes}{self.time:.3g} s)"
        )
