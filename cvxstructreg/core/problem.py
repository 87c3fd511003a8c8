"""A problem combines a model and an objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxstructreg.core import describe
from cvxstructreg.core.checks import real_array
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Model
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.cvxpy_program import cvxpy_program, weights_of
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp

if TYPE_CHECKING:
    from cvxstructreg.core.solution import Solution


class Problem:
    """minimize over (theta, b)  sum_t scale_t * atom_t( map_t(theta, b) ).

    Parameters
    ----------
    model : Linear or Kernel
        The model that maps weights to scores.
    objective : sum of atoms
        For example ``Logistic(y) + 9.9 * FeatureNetwork(graph) + 0.1 * Ridge()``. A strength may be a ``cp.Parameter``;
        each call then uses its current value.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = csr.Linear(X, intercept=False)
    >>> problem = csr.Problem(model, csr.Squared([1.0, 2.0, 3.0]) + 0.5 * csr.L1())
    >>> solution = problem.solve()
    >>> solution.status, solution.coef.round(3).tolist()
    ('optimal', [0.833, 1.833])
    """

    def __init__(self, model: Model, objective: Any) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"the first argument must be a model such as Linear(X), got {type(model).__name__}")
        self.given = model
        self._stated = tuple(self._aligned(term).on_model(model) for term in Objective.of(objective).terms)
        self.n_outputs = self._count_outputs()
        for term in self._stated:
            self._check_sizes(term)
        self.feature_names = self._names(("weights",), "features")
        self.row_names = self._names(("scores", "values"), "examples")

    def _count_outputs(self) -> int:
        losses = [term.atom for term in self._stated if isinstance(term.atom, Loss)]
        if not losses:
            raise ValueError("the objective has no loss; add one, such as Logistic(y)")
        outputs = {loss.n_outputs for loss in losses}
        if len(outputs) > 1:
            raise ValueError(f"all losses must have the same number of outputs, got {sorted(outputs)}")
        return outputs.pop()

    def _aligned(self, term: Term) -> Term:
        """The term with the features of its graph or groups found by name, if both they and the data have names."""
        own, names = term.atom.row_names, self.given.feature_names
        if term.target != "weights" or own is None or own == names:
            return term
        if names is None:
            if term.atom.needs_names:
                raise ValueError(
                    f"{term.atom!r} has names of features, but the data have none; pass a data frame, or numbers"
                )
            return term
        unknown = set(own).difference(names)
        if unknown:
            raise ValueError(
                f"{term.atom!r} has the feature {min(unknown)!r}, which is no column of the data "
                f"({len(unknown)} of its {len(own)} names are unknown); remove it, or rename it"
            )
        return replace(term, atom=term.atom.aligned(names))

    def _check_sizes(self, term: Term) -> None:
        if isinstance(term.atom, Loss):
            n, rows = len(term.atom.y), term.atom.rows
            if rows is None and n != self.given.n_rows:
                raise ValueError(
                    f"{term.atom!r} has {n} labels for {self.given.n_rows} rows; "
                    "if only some rows are labelled, pass their numbers as rows="
                )
            if term.atom.ignores_constants and self.given.intercept:
                raise ValueError(
                    f"{term.atom!r} does not depend on an intercept; use a model without one, "
                    f"{type(self.given).__name__}(..., intercept=False)"
                )
            if rows is not None and rows.max() >= self.given.n_rows:
                raise ValueError(f"rows contains row {rows.max()}, but the model has {self.given.n_rows} rows")
        elif term.target in ("scores", "values"):
            term.atom.check_rows(self.given.n_rows, "examples")
        else:
            term.atom.check_rows(self.given.n_weights, "features")

    def _names(self, targets: tuple[str, ...], what: str) -> tuple[str, ...] | None:
        """The names of the features or examples in the terms; an error if two terms disagree."""
        of_data = self.given.feature_names if targets == ("weights",) else None
        known = of_data
        for term in self._stated:
            names = term.atom.row_names if term.target in targets else None
            if known is not None and names is not None and names != known:
                j = next(j for j, pair in enumerate(zip(known, names, strict=True)) if pair[0] != pair[1])
                raise ValueError(
                    f"{'two terms' if of_data is None else 'the data and a term'} have different names for the {what}: "
                    f"number {j} is {known[j]!r} and {names[j]!r}; reorder graphs and groups to match the data"
                )
            known = names if known is None else known
        return known

    @property
    def now(self) -> Problem:
        """The problem at the current values of the parameters in its strengths; itself if there are none."""
        if not self._has_parameters:
            return self
        terms = tuple(term.now() for term in self._stated)
        known = self.__dict__.get("_now")
        if known is None or [term.scale for term in terms] != [term.scale for term in known.terms]:
            known = self.__dict__["_now"] = Problem(self.given, Objective(terms))
        return known

    @cached_property
    def _has_parameters(self) -> bool:
        """Whether any strength is a parameter; asked several dozen times in a solve."""
        return any(term.has_parameters for term in self._stated)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the objective, at the current values of parameters."""
        return self.now._stated

    @property
    def model(self) -> Model:
        """The model that all solvers and certificates use: ``given``, the model passed to the constructor.

        The only exception is a Kernel model whose matrix is indefinite due to round-off. It is replaced by its repaired
        copy (:meth:`cvxstructreg.Kernel.convex`) if the objective contains the function norm.
        """
        return self.now._own_model

    @cached_property
    def _own_model(self) -> Model:
        return self.given.for_terms(self._stated)

    @property
    def normal_form(self) -> NormalForm:
        """The terms, sorted by their mathematical structure for solvers and certificates."""
        return self.now._own_form

    @cached_property
    def _own_form(self) -> NormalForm:
        return NormalForm(self)

    def shaped(self, coef: Any, intercept: Any = 0.0) -> tuple[Array, Array]:
        """Check ``(coef, intercept)`` and convert them to arrays of shape (d, k) and (k,)."""
        d, k = self.model.n_weights, self.n_outputs
        theta = np.array(real_array(coef, "coef"))
        if theta.shape not in {(d, k), (d,) if k == 1 else (d, k)}:
            raise ValueError(f"coef must have shape {(d,) if k == 1 else (d, k)}, got {theta.shape}")
        b = np.array(real_array(intercept, "intercept"))
        if b.size not in (1, k):
            raise ValueError(f"intercept must be {k} number(s), got shape {b.shape}")
        b = np.broadcast_to(b.reshape(-1), (k,)).copy()
        if not np.isfinite(theta).all() or not np.isfinite(b).all():
            raise ValueError("coef and intercept must be finite; they contain NaN or infinite values")
        if not self.model.intercept and b.any():
            raise ValueError("the model has intercept=False, but the intercept given is not zero")
        return theta.reshape(d, k), b

    def value(self, coef: Any, intercept: Any = 0.0) -> float:
        """The objective at given weights and intercept."""
        return self.value_at(*self.shaped(coef, intercept))

    def value_at(
        self,
        theta: Array,
        b: Array,
        scores: Array | None = None,
        quadratic: float | None = None,
        score_value: float | None = None,
    ) -> float:
        """The objective at arrays of shape (d, k) and (k,), without checks.

        If they are known, ``scores`` are the scores at this point, ``quadratic`` is the value of the quadratic terms on
        the weights, and ``score_value`` is the value of all terms on the scores.
        """
        parts = self.normal_form
        total = score_value
        if total is None:
            scores = self.model.scores(theta, b) if scores is None else scores
            total = sum(piece.value(scores) for piece in parts.score_pieces)
            total += sum(scaled.value(scores) for scaled in parts.score_forms)
        total += parts.quadratic_value(theta) if quadratic is None else quadratic
        if parts.function_norm is not None:
            h = self.model.scores(theta, np.zeros_like(b))  # not scores - b, which would lose digits if b is large
            total += parts.function_norm.value(theta, h)
            total += sum(scaled.value(h) for scaled in parts.function_forms)
        if parts.separable is not None:
            total += parts.separable.value(theta)
        # the value method of an atom may be more accurate than its split, so weight pieces use their atoms
        total += sum(piece.scale * piece.source.value(theta) for piece in parts.weight_pieces)
        return float(total)

    def to_cvxpy(self) -> cp.Problem:
        """An ordinary ``cp.Problem`` with the variables ``theta`` and, if there is an intercept, ``b``.

        Sum-to-zero machines with the norm as the only penalty have a variable ``v`` in place of ``theta``: coordinates
        with respect to the rows that the hinges use. :meth:`weights_of` returns the weights of a solved problem in both
        cases.
        """
        return cvxpy_program(self.now).program

    def weights_of(self, cvxpy_problem: cp.Problem) -> tuple[Array | float, Array | float]:
        """``(coef, intercept)`` of a solved problem from :meth:`to_cvxpy`.

        Examples
        --------
        >>> import cvxstructreg as csr
        >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([1.0, 2.0]) + csr.Ridge())
        >>> cvxpy_problem = problem.to_cvxpy()
        >>> optimum = cvxpy_problem.solve(solver="CLARABEL")
        >>> coef, intercept = problem.weights_of(cvxpy_problem)
        >>> coef.round(4).tolist(), intercept
        ([0.7143], 0.0)
        """
        theta, b = weights_of(self.now, cvxpy_problem)
        if theta is None:
            raise ValueError("the CVXPY problem has no weights; create it with to_cvxpy() and solve it first")
        return (theta[:, 0], float(b[0])) if self.n_outputs == 1 else (theta, b)

    def solve(
        self,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: Any = None,
        verbose: bool = False,
        **options: Any,
    ) -> Solution:
        """Minimise the objective. The solution has a certificate of its distance from the optimum.

        Parameters
        ----------
        solver : str
            "auto", or one of ``cvxstructreg.solvers.names()``; "cvxpy" is the reference.
        tol : float
            The certified relative gap to reach.
        max_iter, time_limit : optional
            Limits of the iterations and of the seconds. A solve that reaches a limit warns, with its certified gap.
        warm_start : Solution or (coef, intercept), optional
            The starting point. One that is worse than zero weights is left out, unless it solves the same model.
        verbose : bool
            Whether to print why the solver was taken, and its progress.
        **options
            Options of the solver, such as ``cvxpy_solver="SCS"``; ``callback``, a function that is called with each
            record of the history; ``checkpoint``, a file that the current point is written to, and that a later call
            for the same problem starts from; and ``max_passes``, a limit of the passes over data in blocks of rows.
            With ``polish=True``, a solution of ``solver="cvxpy"`` is solved again on its support and certified: its
            zeros are then exact.
        """
        return _entry()(self.now, solver, tol, max_iter, time_limit, warm_start, verbose, **options)

    def describe(self) -> str:
        """The exact objective with its conventions: which terms are sums, which are halved, what is not penalised."""
        return describe.as_text(self)

    def __repr__(self) -> str:
        return f"Problem({self.given!r}, {Objective(self._stated)!r})"

    def _repr_html_(self) -> str:
        return describe.as_html(self)


@cache
def _entry() -> Callable[..., Solution]:
    """The entry to all solvers, which import this module; a kept function takes less time than an import."""
    from cvxstructreg.solvers.driver import solve

    return solve
