"""Problems: a model and an objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxstructreg.core import describe
from cvxstructreg.core.checks import real_array
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Kernel, Linear, Model
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.forms import joint_quadratic
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_penalty import MatrixPenalty
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions import sum_to_zero_program
from cvxstructreg.runtime.lazy import cached_property

if TYPE_CHECKING:
    from cvxstructreg.core.solution import Solution


class Problem:
    """minimize over (theta, b)  sum_t scale_t * atom_t( map_t(theta, b) ).

    Parameters
    ----------
    model : Linear or Kernel
        How weights become scores.
    objective : sum of atoms
        Such as ``Logistic(y) + 9.9 * FeatureNetwork(graph) + 0.1 * Ridge()``.

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
            raise TypeError(f"the first argument is a model such as Linear(X), got {type(model).__name__}")
        self.given = model
        self.terms: tuple[Term, ...] = Objective.of(objective).terms
        self.n_outputs = self._count_outputs()
        for term in self.terms:
            self._check_sizes(term)
        self.feature_names = self._names(("weights",), "features")
        self.row_names = self._names(("scores", "values"), "examples")

    def _count_outputs(self) -> int:
        losses = [term.atom for term in self.terms if isinstance(term.atom, Loss)]
        if not losses:
            raise ValueError("the objective has no loss: add one, such as Logistic(y), or there is nothing to fit")
        outputs = {loss.n_outputs for loss in losses}
        if len(outputs) > 1:
            raise ValueError(f"the losses need different numbers of outputs: {sorted(outputs)}")
        return outputs.pop()

    def _check_sizes(self, term: Term) -> None:
        if isinstance(term.atom, Loss):
            n, rows = len(term.atom.y), term.atom.rows
            if rows is None and n != self.given.n_rows:
                raise ValueError(
                    f"{term.atom!r} has {n} labels for {self.given.n_rows} rows; "
                    "if only some rows are labelled, say which with rows="
                )
            if rows is not None and rows.max() >= self.given.n_rows:
                raise ValueError(f"rows names row {rows.max()}, but the model has {self.given.n_rows} rows")
        elif term.target in ("scores", "values"):
            term.atom.check_rows(self.given.n_rows, "examples")
        else:
            term.atom.check_rows(self.given.n_weights, "features")

    def _names(self, targets: tuple[str, ...], what: str) -> tuple[str, ...] | None:
        """The names that the terms give to features or examples; an error if two terms do not mean the same ones."""
        known: tuple[str, ...] | None = None
        for term in self.terms:
            names = term.atom.row_names if term.target in targets else None
            if known is not None and names is not None and names != known:
                j = next(j for j, pair in enumerate(zip(known, names, strict=True)) if pair[0] != pair[1])
                raise ValueError(
                    f"two terms name the {what} differently: number {j} is {known[j]!r} and {names[j]!r}; "
                    f"bring graphs and groups into the order of the data"
                )
            known = names if known is None else known
        return known

    @cached_property
    def model(self) -> Model:
        """The model that is used by every solver and certificate: ``given``, the one that was passed.

        Only a Kernel model whose matrix round-off has made indefinite is replaced by its repaired copy
        (:meth:`cvxstructreg.Kernel.convex`), if the objective has the function norm.
        """
        has_norm = any(term.target == "function" and term.scale > 0 for term in self.terms)
        return self.given.convex() if isinstance(self.given, Kernel) and has_norm else self.given

    @cached_property
    def normal_form(self) -> NormalForm:
        """The terms sorted by what solvers can use."""
        return NormalForm(self)

    def shaped(self, coef: Any, intercept: Any = 0.0) -> tuple[Array, Array]:
        """``(coef, intercept)`` as arrays of shape (d, k) and (k,), checked."""
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

    def value_at(self, theta: Array, b: Array, scores: Array | None = None, quadratic: float | None = None) -> float:
        """The objective at arrays of shape (d, k) and (k,), unchecked.

        ``scores`` and the quadratic terms of the weights there, if they are known.
        """
        parts = self.normal_form
        scores = self.model.scores(theta, b) if scores is None else scores
        total = sum(piece.value(scores) for piece in parts.score_pieces)
        total += sum(scaled.value(scores) for scaled in parts.score_forms)
        total += parts.quadratic_value(theta) if quadratic is None else quadratic
        if parts.rkhs:
            h = self.model.scores(theta, np.zeros_like(b))  # not scores - b: a large b would cost digits
            total += parts.rkhs * max(0.0, float(np.sum(theta * h)))
            total += sum(scaled.value(h) for scaled in parts.function_forms)
        if parts.separable is not None:
            total += parts.separable.value(theta)
        # a term's own value may know better than its split, so weight pieces go by their atoms
        total += sum(piece.scale * self.terms[piece.number].atom.value(theta) for piece in parts.weight_pieces)
        return float(total)

    def linear(self) -> Problem:
        """The same problem with a Linear model, which is what first-order solvers work on.

        A Kernel model whose weights meet no term but the function norm is the linear model on a factor G of gram, with
        the same objective; weights v there are ``model.lift(v)`` here. Otherwise gram itself is the design matrix.
        """
        if not isinstance(self.model, Kernel):
            return self
        return self._linear

    @cached_property
    def _linear(self) -> Problem:
        assert isinstance(self.model, Kernel)
        if self.has_factor_coordinates:
            factor = self.model.factor()
            none = Term(MatrixPenalty(np.eye(factor.shape[1])), 0.0, "weights")
            # a term of strength zero stands for the number of weights that there were
            terms = [none if term.target == "weights" and term.scale == 0 else term for term in self.terms]
            return Problem(Linear(factor, self.model.intercept), Objective(tuple(terms)))
        gram = self.model.design
        norm = MatrixPenalty(gram)
        terms = [Term(norm, term.scale, "weights") if term.target == "function" else term for term in self.terms]
        return Problem(Linear(gram, self.model.intercept), Objective(tuple(terms)))

    @property
    def has_factor_coordinates(self) -> bool:
        """Whether :meth:`linear` changes coordinates."""
        return isinstance(self.model, Kernel) and self.normal_form.rkhs > 0

    def to_cvxpy(self) -> cp.Problem:
        """An ordinary ``cp.Problem`` with the variables ``theta`` and, if there is an intercept, ``b``.

        Sum-to-zero machines whose weights nothing but their norm holds have ``v`` in place of ``theta``, coordinates of
        the rows that their hinges look at. :meth:`weights_of` gives the weights of a solved problem in either case.
        """
        return self.cvxpy_parts()[0]

    def weights_of(self, cvxpy_problem: cp.Problem) -> tuple[Array | float, Array | float]:
        """``(coef, intercept)`` of a solved problem that :meth:`to_cvxpy` has made.

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
        values = {variable.name(): variable.value for variable in cvxpy_problem.variables()}
        if values.get("v" if self._coordinates is not None else "theta") is None:
            raise ValueError("the CVXPY problem has no weights yet: make it by to_cvxpy() and solve it first")
        theta = values["theta"] if self._coordinates is None else self._coordinates.T @ values["v"]
        b = np.ravel(values["b"]) if self.model.intercept else np.zeros(self.n_outputs)
        return (theta[:, 0], float(b[0])) if self.n_outputs == 1 else (theta, b)

    @cached_property
    def _coordinates(self) -> sum_to_zero_program.Coordinates | None:
        return sum_to_zero_program.coordinates(self)

    @property
    def has_few_coordinates(self) -> bool:
        """Whether CVXPY is given coordinates of the rows that count, in place of all weights."""
        return self._coordinates is not None

    def cvxpy_parts(self, copies: bool = False) -> tuple[cp.Problem, cp.Expression, cp.Variable | None, dict[int, Any]]:
        """The CVXPY problem, its weights and intercept, and the constraints whose multipliers are dual points.

        ``copies`` gives every piece a variable of its own, ``Z == K x``; hinges of centred scores have one anyway.
        """
        if self._coordinates is not None:
            problem, v, b, links = sum_to_zero_program.program(self, self._coordinates)
            return problem, self._coordinates.T @ v, b, links
        k, zero_sums, links = self.n_outputs, sum_to_zero_program.sums_to_zero(self), {}
        theta = cp.Variable((self.model.n_weights, k), name="theta")
        b = cp.Variable((1, k), name="b") if self.model.intercept else None

        def argument(term: Term, K: Any) -> cp.Expression:
            """K times what the term acts on, as a matrix times theta: rows that K leaves out are not compiled."""
            if term.target not in ("rows", "scores", "values"):
                return theta if K is None else K @ theta
            values = (self.model.design if K is None else K @ self.model.design) @ theta
            if b is None or term.target == "values":
                return values
            ones = np.ones((self.model.n_rows, 1))
            return values + (ones if K is None else K @ ones) @ b

        joint = joint_quadratic.numbers(self)
        copied = {piece.number: piece for piece in self.normal_form.pieces if copies or zero_sums}
        expressions = joint_quadratic.joint_form(self, theta, b)
        for number, term in enumerate(self.terms):
            if number in copied:
                piece = copied[number]
                z = argument(term, piece.K)
                if not z.size:
                    continue
                copy = cp.Variable(z.shape)
                links[number] = z == copy
                atom = piece.atom
                value = atom.centred_hinges(k).expr_of_zero_sums(copy) if zero_sums else atom.expr(copy)
                expressions.append(term.scale * value)
            elif number not in joint and (term.scale > 0 or term.is_constraint):
                picked = term.atom.rows if isinstance(term.atom, Loss) else None
                K = None if picked is None else sp.eye_array(self.model.n_rows, format="csr")[picked]
                expressions.append(self._expression(term, argument(term, K)))
        constraints = [*links.values(), *(sum_to_zero_program.zero_sums(theta, b) if zero_sums else ())]
        return cp.Problem(cp.Minimize(cp.sum(expressions)), constraints), theta, b, links

    def _expression(self, term: Term, x: cp.Expression) -> cp.Expression:
        expression = term.atom.expr(x)
        return expression if term.is_constraint else term.scale * expression

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
        """Minimise the objective; the solution carries a certificate of its distance from the optimum.

        Parameters
        ----------
        solver : str
            "auto", or one of ``cvxstructreg.solvers.names()``; "cvxpy" is the reference.
        tol : float
            The certified relative gap to reach.
        max_iter, time_limit : optional
            Stop after so many iterations or seconds, with a warning and the honest gap.
        warm_start : Solution or (coef, intercept), optional
            Where to start.
        verbose : bool
            Whether to print progress.
        **options
            Options of the solver, such as ``cvxpy_solver="SCS"``; and ``callback``, called with each record of the
            history.
        """
        from cvxstructreg.solvers.driver import solve

        return solve(self, solver, tol, max_iter, time_limit, warm_start, verbose, **options)

    def describe(self) -> str:
        """The exact objective with its conventions: what is summed, what is halved, what is not penalised."""
        return describe.as_text(self)

    def __repr__(self) -> str:
        return f"Problem({self.given!r}, {Objective(self.terms)!r})"

    def _repr_html_(self) -> str:
        return describe.as_html(self)
