"""Fitted models without their training data: small pickles, and the way back to ``solution_``."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution

#: Data whose objective differs by more than this part from that of ``fit`` are not the data of ``fit``.
SAME = 1e-7
REMEDIES = {
    "solution_": "attach_data(X, y) with the data of fit brings it back",
    "path_": "path(X, y) with the data of fit computes it again",
}


class SmallPickles(BaseEstimator):
    """An estimator whose pickle has no training data; copies keep them, and :meth:`attach_data` brings them back."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle: without training data, and without dual points, as long as the data."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("path_", None)
        if "certificate_" in state:
            state["certificate_"] = replace(state["certificate_"], dual=None)
        if "solution_" in state:
            found = state.pop("solution_")
            state["_stored"] = [_stored(solution) for solution in (found if isinstance(found, tuple) else (found,))]
        return state

    def __copy__(self) -> Self:
        """Return a copy that shares everything, the training data too."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that shares nothing, with the training data."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say how to get back what a pickle leaves out."""
            kind = type(self).__name__
            if name in REMEDIES and "_stored" in self.__dict__:
                raise AttributeError(
                    f"this {kind} was pickled without its training data, which {name} contains; {REMEDIES[name]}"
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def attach_data(self, X: Any, y: Any, **fit_arguments: Any) -> Self:
        """Rebuild ``solution_`` of a model that was pickled, which leaves out the training data; nothing is solved.

        Parameters
        ----------
        X, y, fit_arguments
            What was given to ``fit``. The objective of the stored weights on these data must be that of ``fit``.

        Examples
        --------
        >>> import pickle
        >>> from cvxstructreg.estimators import LaplacianElasticNetRegressor
        >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 2.0, 3.0]
        >>> model = pickle.loads(pickle.dumps(LaplacianElasticNetRegressor(lam1=0.1).fit(X, y)))
        >>> hasattr(model, "solution_"), model.attach_data(X, y).solution_.status
        (False, 'optimal')
        """
        check_is_fitted(self)
        if "_stored" in self.__dict__:
            twin: Any = copy(self)
            twin._to_recall = list(self.__dict__["_stored"])
            self.solution_: Any = twin.fit(X, y, **fit_arguments).solution_
            del self.__dict__["_stored"]
        return self

    @property
    def _recalls(self) -> bool:
        """Whether ``fit`` takes its solutions from a pickle instead of solving."""
        return "_to_recall" in self.__dict__

    def _recalled(self, problem: Problem) -> Solution:
        """The next stored solution, as a solution of this problem."""
        solution = Solution(problem=problem, **self.__dict__["_to_recall"].pop(0))
        try:
            value = problem.value_at(*problem.shaped(solution.coef, solution.intercept))
        except ValueError as error:
            raise ValueError(f"these are not the data of fit: {error}") from error
        if not abs(value - solution.objective) <= SAME * max(abs(value), abs(solution.objective)):
            raise ValueError(
                f"these are not the data of fit: the objective of the weights was {solution.objective:.6g} there, and "
                f"is {value:.6g} here; pass the same X and y, and all that fit was given, such as sample_weight="
            )
        return solution


def _stored(solution: Solution) -> dict[str, Any]:
    """The fields of a solution that do not grow with the number of rows."""
    bare = replace(solution.without_proof(), dual={})
    return {field.name: getattr(bare, field.name) for field in fields(bare) if field.name != "problem"}
