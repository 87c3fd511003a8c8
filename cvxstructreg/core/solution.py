"""The result of a solve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array


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
    """

    n_iter: int
    time: float
    objective: float
    certificate: Certificate
    solver: str = ""
    switch: str = ""


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
        "max_iter", "time_limit", "interrupted" or "inaccurate".
    solver : str
        The solver that found this point. With ``solver="auto"``, other solvers may have run before or after.
    n_iter, time, history
        Iterations and seconds of all solvers, and a record of every certificate and of every change of solver.
    dual : dict
        Dual points, keyed by the number of the term in the objective.
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
    dual: dict[int, Array] = field(repr=False, default_factory=dict)

    @property
    def switches(self) -> tuple[Record, ...]:
        """The records of ``history`` where ``solver="auto"`` changed the solver, with the reasons."""
        return tuple(record for record in self.history if record.switch)

    @property
    def scores(self) -> Array:
        """The scores of all rows of the model, shape (n,) or (n, k)."""
        theta, b = self.problem.shaped(self.coef, self.intercept)
        scores = self.problem.model.scores(theta, b)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def named_weights(self) -> dict[str, Any]:
        """The nonzero weights by the name (or number) of their feature, largest first."""
        theta = self.problem.shaped(self.coef, self.intercept)[0]
        sizes = np.abs(theta).max(axis=1)
        names = self.problem.feature_names or tuple(map(str, range(len(theta))))
        order = [j for j in np.argsort(-sizes, kind="stable") if sizes[j] > 0]
        return {names[j]: float(theta[j, 0]) if theta.shape[1] == 1 else theta[j].copy() for j in order}

    def __repr__(self) -> str:
        size = f"{np.count_nonzero(self.coef)} of {self.coef.size} weights nonzero"
        return (
            f"Solution({self.status}: objective {self.objective:.6g}, {self.certificate}, {size}; "
            f"{self.solver}, {self.n_iter} iterations, {self.time:.3g} s)"
        )
