"""Small problems with terms of no known form: one solve of their cone program, proved by its multipliers.

CVXPY compiles and solves the problem as it stands. The objective at the returned values, and the lower bound that the
multipliers prove, make the certificate. No prox or conjugate of single terms is needed, so that this is hardly slower
than ``prob.solve()``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate, from_multipliers
from cvxstructreg.cvx.left_over import FEASIBLE
from cvxstructreg.cvx.parts import Parts
from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.expressions.cone_solver import ACCURACY
from cvxstructreg.expressions.exact_powers import approximates, with_exact_powers
from cvxstructreg.expressions.proved_minimum import ConeMultipliers, proved_minimum
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.runtime.quiet_problem import QuietProblem

#: Numbers in the data up to which a problem with terms of no known form is given to CVXPY first.
SMALL = 50_000
#: The same for a problem with auxiliary variables inside atoms of this library.
TINY = 2_000
#: The accuracy that Clarabel is asked for.
ACCURATE = {name: ACCURACY for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}


@dataclass(frozen=True, eq=False)
class Answer:
    """What CVXPY found: its status, the values of the variables and the multipliers by ids, and the certificate."""

    status: str
    values: dict[int, Any]
    duals: dict[int, Any]
    n_iter: int = 0
    certificate: Certificate | None = None


def is_small(parts: Parts) -> bool:
    """Whether CVXPY should solve the problem first, which needs constraints that are exact.

    The problem is small and has terms or constraints of no known form, or it is tiny and has auxiliary variables, whose
    values would be another cone program.
    """
    auxiliary = len(parts.prob.variables()) > len(parts.layout.variables)
    limit = SMALL if not parts.left.is_empty else TINY if auxiliary else 0
    if not limit or parts.prob.size_metrics.num_scalar_data > limit:
        return False
    return not any(approximates(constraint) for constraint in parts.prob.constraints)


def answer_of(parts: Parts) -> Answer:
    """Solve the problem by CVXPY and try to prove the solution; the variables keep its values."""
    prob = QuietProblem(with_exact_powers(parts.prob.objective), parts.prob.constraints)
    try:
        data, chain, inverse = prob.get_problem_data(cp.CLARABEL, ignore_dpp=True, solver_opts=ACCURATE)
        raw = chain.solve_via_data(prob, data, solver_opts=ACCURATE)
        found = chain.invert(raw, inverse)
    except (cp.SolverError, cp.DCPError, ValueError):
        return Answer(cp.SOLVER_ERROR, {}, {})
    if found.status not in cp.settings.SOLUTION_PRESENT:
        return Answer(found.status, {}, {})
    values = _near_bounds(parts, found.primal_vars)
    program = ConeProgram.of_data(data, inverse, np.zeros(0, dtype=int))
    proof = proved_minimum(program, np.array(raw.x, dtype=float), np.array(raw.z, dtype=float))
    certificate = None if proof is None else _certified(parts, values, proof)
    return Answer(found.status, values, found.dual_vars, int(raw.iterations), certificate)


def _near_bounds(parts: Parts, given: dict[int, Any]) -> dict[int, Any]:
    """The values, with violations of bounds by round-off removed."""
    x: Array = parts.bounds.near(parts.layout.vector(given))
    return given | parts.layout.values(x)


def _certified(parts: Parts, values: dict[int, Any], proof: ConeMultipliers) -> Certificate | None:
    """The certificate of the values; None if they violate a bound or a constraint."""
    x = parts.layout.vector(values)
    if np.any((x < parts.bounds.lower) | (x > parts.bounds.upper)):
        return None
    for variable in parts.prob.variables():
        variable.save_value(values[variable.id])
    if any(np.any(constraint.violation() > FEASIBLE) for constraint in parts.prob.constraints):
        return None
    objective = parts.sign * float(parts.prob.objective.value)
    return from_multipliers(objective, proof.value, proof, parts.pieces.constant) if np.isfinite(objective) else None
