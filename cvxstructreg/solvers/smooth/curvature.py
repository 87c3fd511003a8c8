"""The Hessian of the second-order solvers, with the intercepts minimised out.

    H = X' phi''(F) X + 2 M,   reduced by the Schur complement of the intercepts

For every direction of the weights, the intercepts move such that the gradient with respect to them stays zero: "the
intercepts follow". The remaining systems are in the weights alone. They are better conditioned, since a constant column
no longer competes with the intercept. The linearised derivative of the losses sums to zero over the rows, as a dual
point must.
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

#: Centring reduces a diagonal entry to no less than this part of it; anything smaller would be round-off.
LEAST_CENTRED = 1e-6


class Curvature:
    """The Hessian at a point; with ``ahead``, each row has its largest curvature at the score and at score +- ahead."""

    def __init__(self, objective: SmoothObjective, at: State, ahead: float = 0.0) -> None:
        self.objective, self.theta = objective, at.theta
        self.of_scores = ScoreCurvature(objective.parts, at.scores)
        self.rows = self.of_scores.diagonal()
        for shift in (ahead, -ahead) if ahead and objective.rowwise else ():
            self.rows = np.maximum(self.rows, ScoreCurvature(objective.parts, at.scores + shift).diagonal())

    @cached_property
    def _inverse_of_constants(self) -> Array:
        """The pseudo-inverse of 1'phi''(F) 1, the curvature along constant scores; zero without intercepts."""
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
        """The change of the intercepts that cancels the gradient ``slope_b`` with respect to them."""
        return -slope_b @ self._inverse_of_constants

    def gradient(self, at: State) -> tuple[Array, Array]:
        """The gradient with respect to the weights after the intercepts follow, and to the intercepts before that."""
        slope = self.objective.parts.smooth_score_grad(at.scores)
        slope_b = slope.sum(axis=0)
        if self.objective.intercept:
            slope += self.bent(np.broadcast_to(self.following(slope_b), slope.shape))
        return self.objective.pull(slope) + self.objective.weight_grad(at), slope_b

    def step(self, theta: Array, slope_b: Array) -> State:
        """The direction with these weights and the intercepts that follow, with its images."""
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
        """c such that c'v is the intercept that follows, if v are coordinates in which ``centre`` is pulled_centre."""
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
        """A product with the diagonal of phi''. With several outputs, it is used only for preconditioning."""
        if not self.in_single_precision:
            return product.times(self.rows)
        unit = power_of_two(float(self.rows.max()))
        return np.asarray(unit * product.times((self.rows / unit).astype(np.float32)).astype(float))

    def _rows_like(self, dtype: Any) -> Array:
        """The diagonal of phi'' in the given precision."""
        return self.rows if dtype == np.float64 else self._single_rows

    @cached_property
    def _single_rows(self) -> Any:
        return self.rows.astype(np.float32)

    @property
    def in_single_precision(self) -> bool:
        """Whether single-precision products are available and cheaper: for large dense data, or several outputs."""
        objective = self.objective
        if objective.dense is not None or objective.penalty.any:
            return objective.has_single
        return objective.shape[1] > 1 and objective.forward.compiled is not None and objective.within_single

    def diagonal(self) -> tuple[Array, Array]:
        """The diagonal of the Hessian in weights and intercepts, with phi'' replaced by its diagonal."""
        return self._of_data + 2.0 * self.objective.quadratic.diagonal[:, None] + self._of_penalty, self._total

    @cached_property
    def _of_penalty(self) -> Array | float:
        """The diagonal of h''(theta), as far as it is known."""
        return self.objective.penalty.diagonal(self.theta) if self.objective.penalty.any else 0.0

    @cached_property
    def centred_data(self) -> Array:
        """The diagonal of X'phi''X after the intercepts follow, possibly approximate.

        For dense or small data, the diagonal at the first point is rescaled. It is used only for preconditioning, and a
        pass over the squares of X at each point would be too expensive.
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
        """The (approximate) diagonal of the Hessian after the intercepts follow; ``without`` omits pivoted rows."""
        quadratic = self.objective.quadratic
        fixed = quadratic.diagonal if without is None else quadratic.rest_diagonal
        return self.centred_data + 2.0 * fixed[:, None] + self._of_penalty

    def times(self, p: Array, without: PivotedRows | None = None) -> Array:
        """The Hessian times p; ``without`` omits these pivoted rows of the quadratic part."""
        out = self.times_data(p)
        if without is None:
            self.objective.quadratic.add(p, 2.0, out)
        else:
            self.objective.quadratic.add_rest(p, 2.0, out)
        if self.objective.penalty.any:
            out += self.objective.penalty.hessp(self.theta, p)
        return out

    def times_data(self, p: Array) -> Array:
        """X'phi''X p, where the intercepts follow."""
        objective = self.objective
        if objective.compiled is not None:
            out = np.zeros_like(p)
            objective.compiled.add_gram(self.rows, p, float(self._centring @ p[:, 0]), out)
            return out
        if objective.dense is not None:
            return objective.dense.gram(self._rows_like(p.dtype), p, float(self._centring @ p[:, 0]))
        if objective.blocks is not None:
            return np.asarray(objective.blocks.bent_pull(self.rows, p, float(self._centring @ p[:, 0])))
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
