"""The Hessian of the second-order solvers, with the intercepts minimised out.

    H = X' phi''(F) X + 2 M,   less what the intercepts can take of it

For every direction of the weights the intercepts follow so that the gradient by them stays zero. What is left are
systems in the weights alone, better conditioned (a constant column no longer competes with the intercept), and the
derivative of the losses by the scores, linearised along a solution, is in balance as a dual point has to be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.smooth.matrix_products import Product
from cvxstructreg.solvers.smooth.preconditioners import PivotedRows
from cvxstructreg.solvers.smooth.score_curvature import ScoreCurvature
from cvxstructreg.solvers.smooth.smooth_objective import SmoothObjective, State

#: What centring leaves of a diagonal entry is at least this part of it: less would be round-off.
LEAST_CENTRED = 1e-6


class Curvature:
    """The Hessian at a point; for sums over rows with their largest curvature ``ahead`` of the scores either way."""

    def __init__(self, objective: SmoothObjective, at: State, ahead: float = 0.0) -> None:
        self.objective = objective
        self.of_scores = ScoreCurvature(objective.parts, at.scores)
        self.rows = self.of_scores.diagonal()
        for shift in (ahead, -ahead) if ahead and objective.rowwise else ():
            self.rows = np.maximum(self.rows, ScoreCurvature(objective.parts, at.scores + shift).diagonal())

    @cached_property
    def _inverse_of_constants(self) -> Array:
        """The pseudo-inverse of the curvature between constant scores, zero without intercepts."""
        k = self.objective.shape[1]
        if not self.objective.intercept:
            return np.zeros((k, k))
        constants = self._total[:, None] if self.objective.rowwise else self.of_scores.between_constants()
        if k == 1:
            return np.divide(1.0, constants, out=np.zeros((1, 1)), where=constants > np.finfo(float).tiny)
        return np.asarray(np.linalg.pinv(constants, rcond=1e-12, hermitian=True), dtype=float)

    @cached_property
    def _total(self) -> Array:
        return np.asarray(self.rows.sum(axis=0))

    def bent(self, scores: Array) -> Array:
        """phi''(F) times scores."""
        return self.rows * scores if self.objective.rowwise else self.of_scores.times(scores)

    def following(self, slope_b: Array) -> Array:
        """The intercepts that take a gradient by them away."""
        return -slope_b @ self._inverse_of_constants

    def gradient(self, at: State) -> tuple[Array, Array]:
        """The gradient by the weights, the intercepts following, and that by the intercepts at the point itself."""
        slope = self.objective.parts.smooth_score_grad(at.scores)
        slope_b = slope.sum(axis=0)
        if self.objective.intercept:
            slope += self.bent(np.broadcast_to(self.following(slope_b), slope.shape))
        return self.objective.pull(slope) + 2.0 * at.pulled, slope_b

    def step(self, theta: Array, slope_b: Array) -> State:
        """The direction of these weights, the intercepts following, with its images."""
        direction = self.objective.state(theta, np.zeros(theta.shape[1]))
        if not self.objective.intercept:
            return direction
        b = self.following(slope_b + self.bent(direction.scores).sum(axis=0))
        return State(theta, b, direction.scores + b, direction.pulled)

    @cached_property
    def centre(self) -> Array:
        """X' times the diagonal of phi''."""
        dense = self.objective.dense
        if dense is not None and self.in_single_precision:
            return dense.pull(self.rows, single=True)
        return self._pulled(self.objective.adjoint)

    def centring(self, pulled_centre: Array) -> Array:
        """c with c'v the intercept that follows the weights whose product with ``centre`` is pulled_centre'v."""
        return -pulled_centre[:, 0] * self._inverse_of_constants[0, 0]

    @cached_property
    def _centring(self) -> Array:
        return self.centring(self.centre)

    @cached_property
    def _of_data(self) -> Array:
        if self.objective.has_nearly_diagonal:
            return self.objective.data_diagonal(self.rows)
        return self._pulled(self.objective.squares)

    def _pulled(self, product: Product) -> Array:
        """A product with the diagonal of phi''; with several outputs it only makes a preconditioner."""
        if not self.in_single_precision:
            return product.times(self.rows)
        unit = power_of_two(float(self.rows.max()))
        return np.asarray(unit * product.times((self.rows / unit).astype(np.float32)).astype(float))

    def _rows_like(self, dtype: Any) -> Array:
        """The diagonal of phi'' in a precision."""
        return self.rows if dtype == np.float64 else self._single_rows

    @cached_property
    def _single_rows(self) -> Any:
        return self.rows.astype(np.float32)

    @property
    def in_single_precision(self) -> bool:
        """Whether products in single precision are offered, and cheaper: for large dense data, or several outputs."""
        objective = self.objective
        if objective.dense is not None:
            return objective.has_single
        return objective.shape[1] > 1 and objective.forward.compiled is not None and objective.within_single

    def diagonal(self) -> tuple[Array, Array]:
        """Its diagonal with the intercepts as further variables, up to entries off the diagonal of phi''."""
        return self._of_data + 2.0 * self.objective.quadratic.diagonal[:, None], self._total

    @cached_property
    def centred_data(self) -> Array:
        """The diagonal of the part of the data, the intercepts following, or nearly so.

        Of dense or few data it is that of the first point in proportion: it makes a preconditioner, for which a pass
        over the squares of X at each point would be dear.
        """
        objective, total = self.objective, float(self._total.sum())
        if not objective.has_nearly_diagonal or objective.wants_diagonal or not total > 0:
            return self._centred
        if objective.first_diagonal is None:
            objective.first_diagonal = self._centred / total
        return total * objective.first_diagonal

    @property
    def _centred(self) -> Array:
        of_data = self._of_data
        if not self.objective.intercept:
            return of_data
        taken = np.divide(self.centre**2, self._total, out=np.zeros_like(of_data), where=self._total > 0)
        return np.maximum(of_data - taken, LEAST_CENTRED * of_data)

    def centred_diagonal(self, without: PivotedRows | None = None) -> Array:
        """Its diagonal with the intercepts following, or nearly so; without those rows of the quadratic part."""
        quadratic = self.objective.quadratic
        fixed = quadratic.diagonal if without is None else quadratic.rest_diagonal
        return self.centred_data + 2.0 * fixed[:, None]

    def times(self, p: Array, without: PivotedRows | None = None) -> Array:
        """The Hessian times p; without those rows of the quadratic part."""
        out = self.times_data(p)
        if without is None:
            self.objective.quadratic.add(p, 2.0, out)
        else:
            self.objective.quadratic.add_rest(p, 2.0, out)
        return out

    def times_data(self, p: Array) -> Array:
        """X'phi''X p, the intercepts following."""
        objective = self.objective
        if objective.compiled is not None:
            out = np.zeros_like(p)
            objective.compiled.add_gram(self.rows, p, float(self._centring @ p[:, 0]), out)
            return out
        if objective.dense is not None:
            return objective.dense.gram(self._rows_like(p.dtype), p, float(self._centring @ p[:, 0]))
        scores = objective.forward.times(p)
        if objective.rowwise:
            scores += float(self._centring @ p[:, 0])
            scores *= self.rows
            return objective.adjoint.times(scores)
        bent = self.bent(scores)
        if objective.intercept:
            b = self.following(bent.sum(axis=0, dtype=float))
            bent = self.bent(scores + b.astype(p.dtype))
        return objective.adjoint.times(bent)
