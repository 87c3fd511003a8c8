"""Weights from any source: arrays in the usual shapes, fitted estimators, solutions, CVXPY variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.cvx import PlainProblem, from_cvxpy
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp, is_expression


@dataclass(frozen=True, eq=False)
class GivenWeights:
    """Weights of shape (d, k) and intercepts of shape (k,), with the dual points of a solution."""

    theta: Array
    b: Array
    dual: Mapping[int, Array] = field(default_factory=dict)


def checked_problem(problem: Any, function: str) -> Problem:
    """Return the problem, recognised if it is a plain CVXPY problem; raise a TypeError for anything else."""
    if isinstance(problem, Problem):
        return problem.now
    write = (
        "state the objective with atoms, problem = csr.Problem(csr.Linear(X), csr.Squared(y) + lam * csr.L1()), "
        f"and call csr.{function}(problem, ...)"
    )
    if isinstance(problem, cp.Problem):
        return from_cvxpy(problem)
    raise TypeError(f"{function} needs a csr.Problem as its first argument, got {type(problem).__name__}; {write}")


def given_weights(problem: Problem, coef: Any, intercept: Any = None) -> GivenWeights:
    """Return weights and intercepts in the shapes of the library.

    ``coef`` is an array of shape (d,), (d, k), (1, d) or (k, d), a pair ``(coef, intercept)``, a fitted estimator with
    ``coef_`` (or ``dual_coef_`` for a kernel model), a :class:`~cvxstructreg.Solution`, or CVXPY expressions with
    values. An ``intercept`` that is not None replaces that of an estimator or a solution.
    """
    if isinstance(problem, PlainProblem):
        values = _of_variables(problem, coef, intercept)
        if values is not None:
            return GivenWeights(*problem.shaped(*problem.weights_at(values)))
    if coef is None:
        raise TypeError("weights are needed; only those of a CVXPY problem may be left out")
    dual: Mapping[int, Array] = {}
    own: Any = 0.0
    if isinstance(coef, Solution):
        coef, own, dual = coef.coef, coef.intercept, coef.dual
    elif is_estimator(coef):
        coef, own = _of_estimator(problem, coef)
    elif _is_pair(coef):
        coef, own = coef
    theta = _oriented(problem, _value_of(coef, "coef"))
    b = own if intercept is None else _value_of(intercept, "intercept")
    return GivenWeights(*problem.shaped(theta, np.ravel(_value_of(b, "intercept"))), dual)


def _of_variables(problem: PlainProblem, coef: Any, intercept: Any) -> dict[Any, Any] | None:
    """Return the values of the variables of a CVXPY problem; None if the weights are given in another form.

    ``coef`` is None for the current values, a dict from variables to values, a variable, the value of the only
    variable, or a tuple of values in the order of the variables.
    """
    variables = problem.layout.variables
    if coef is None or isinstance(coef, cp.Variable):
        return {variable: variable.value for variable in variables}
    if isinstance(coef, Mapping):
        unknown = [key for key in coef if not any(key is variable for variable in variables)]
        if unknown:
            raise ValueError(f"{unknown[0]} is no variable of the problem, which has {[v.name() for v in variables]}")
        return {variable: coef.get(variable, variable.value) for variable in variables}
    if isinstance(coef, Solution) or is_estimator(coef):
        return None
    parts = coef if isinstance(coef, tuple) else (coef,) if intercept is None else (coef, intercept)
    if len(parts) != len(variables):
        return None
    values = [np.asarray(_value_of(part, "the value"), dtype=float) for part in parts]
    fits = all(value.shape == variable.shape for value, variable in zip(values, variables, strict=True))
    return dict(zip(variables, values, strict=True)) if fits else None


def is_estimator(given: Any) -> bool:
    """Whether the object is an estimator in the manner of scikit-learn."""
    return not isinstance(given, type) and (hasattr(given, "coef_") or hasattr(given, "fit"))


def _is_pair(given: Any) -> bool:
    """Whether the object is (coef, intercept) rather than a vector of two weights."""
    return isinstance(given, tuple) and len(given) == 2 and np.ndim(_value_of(given[0], "coef")) >= 1


def _value_of(given: Any, name: str) -> Any:
    if not is_expression(given):
        return given
    if given.value is None:
        raise ValueError(f"{name} is the CVXPY expression {given}, which has no value; solve its problem first")
    return given.value


def _oriented(problem: Problem, coef: Any) -> Any:
    """Transpose weights of shape (k, d), the shape of scikit-learn, unless they also have the shape (d, k)."""
    shape, wanted = np.shape(coef), (problem.model.n_weights, problem.n_outputs)
    return np.asarray(coef).T if len(shape) == 2 and shape != wanted and shape == wanted[::-1] else coef


def _of_estimator(problem: Problem, estimator: Any) -> tuple[Any, Any]:
    """Return the weights as (d, k) and the intercept of a fitted estimator."""
    name = type(estimator).__name__
    if hasattr(estimator, "best_estimator_"):  # GridSearchCV and similar
        return _of_estimator(problem, estimator.best_estimator_)
    if hasattr(estimator, "steps"):
        raise TypeError(
            f"{name} has weights for the columns that its steps produce; pass its last step, model[-1], with a problem "
            "on model[:-1].transform(X)"
        )
    if hasattr(estimator, "solution_") and isinstance(estimator.solution_, Solution):
        return estimator.solution_.coef, estimator.solution_.intercept
    if problem.given.kernel is not None and hasattr(estimator, "dual_coef_"):
        coef = _kernel_weights(problem, estimator)
    elif hasattr(estimator, "coef_"):
        coef = estimator.coef_
        coef = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef)
        coef = coef.T if coef.ndim == 2 else coef
    else:
        raise TypeError(f"{name} has no coef_; call fit first, or pass its weights as an array")
    return coef, getattr(estimator, "intercept_", 0.0)


def _kernel_weights(problem: Problem, estimator: Any) -> Any:
    """Return the weights of all rows from those of the support vectors."""
    found = np.asarray(getattr(estimator.dual_coef_, "toarray", lambda: estimator.dual_coef_)())
    if not hasattr(estimator, "support_"):
        return found
    if found.ndim != 2 or len(found) != 1:
        raise TypeError(
            f"{type(estimator).__name__} has one machine for each pair of classes; only two classes have weights that "
            "solve a single problem"
        )
    theta = np.zeros(problem.model.n_weights)
    theta[estimator.support_] = found[0]
    return theta
