"""The augmented Lagrangian of all nonsmooth terms at once, as a smooth function of x = (theta, b).

    L(x) = smooth(x) + sum_t  max over p in B_t of  <p, z_t - o_t> - ||p - q_t||^2 / (2 sigma_t),     z_t = K_t x

Each nonsmooth term is a largest linear function over a set B_t (:mod:`~cvxstructreg.solvers.general.dual_sets`); the
maximum is attained at the projection p_t of q_t + sigma_t (z_t - o_t) onto B_t. The gradient of L is the sum of K_t'p_t
and the gradient of the smooth terms, and L has a generalised Hessian, so that Newton's method applies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.general.dense_system import DenseSystem
from cvxstructreg.solvers.general.dual_sets import (
    Intervals,
    dual_set_of,
    sets_of_separable,
    without_offset,
)
from cvxstructreg.solvers.general.newton_matrix import (
    Hessians,
    add_rough,
)
from cvxstructreg.solvers.general.rough_term import RoughTerm
from cvxstructreg.solvers.general.row_system import applies, row_system
from cvxstructreg.solvers.general.smooth_terms import SmoothTerm, is_smooth

#: The images of a step are added to those of the point unless these are so many times the sum.
CANCELLED = 10.0
Images = tuple[list[Array], list[Array]]


class AugmentedLagrangian:
    """The terms of a problem with few weights, dense."""

    is_dense = True  # whether Newton matrices are dense
    single = False  # whether dense Newton matrices are in single precision, which is enough far from the solution

    def __init__(self, problem: Problem) -> None:
        self.problem, self.parts = problem, problem.normal_form
        self.rows = self._data()
        self.n_weights, self.k, self.size = problem.model.n_weights, problem.n_outputs, self.rows.shape[1]
        self.smooth = [
            SmoothTerm(piece, self._image(piece)) for piece in self.parts.score_pieces if is_smooth(piece, self.k)
        ]
        for piece in self.parts.weight_pieces:
            if is_smooth(piece, self.k):
                self.smooth.append(SmoothTerm(piece, self._weight_rows(piece), of_scores=False))
        self.rough = self._rough_terms()
        self.quadratic = self._quadratic()
        self._scale: tuple[Array, float] | None = None
        self.coupled = False  # whether quadratic terms couple many bounded weights
        # a typical score, the root mean square of each column, and its curvature if all rows had that at zero
        self.typical_score, self.lengths, self.capacity = 1.0, np.ones(self.size), np.ones(self.size)

    def _data(self) -> Any:
        """The rows of data, with a column of ones for an intercept."""
        model = self.problem.model
        X = model.design.toarray() if sp.issparse(model.design) else np.asarray(model.design)
        return np.column_stack([X, np.ones(len(X))]) if model.intercept else X

    def _image(self, piece: Piece) -> Any:
        """The rows of data that a term of the scores sees."""
        return piece.forward(self.rows)

    def _weight_rows(self, piece: Piece) -> Any:
        """The map of a smooth term of the weights."""
        return self._padded(piece.K).toarray()

    def _quadratic(self) -> Any:
        """Q with 1/2 x'Qx the quadratic terms of the weights and of the scores, the same for every output."""
        Q = np.zeros((self.size, self.size))
        if self.parts.weight_forms:
            dense = self.parts.dense_quadratic
            assert dense is not None
            Q[: self.n_weights, : self.n_weights] = 2.0 * dense
        for scaled in self.parts.score_forms:
            Q += self.rows.T @ scaled.grad(self.rows)
        return Q

    def _rough_terms(self) -> list[RoughTerm]:
        terms = []
        for piece in self.parts.score_pieces:
            if not is_smooth(piece, self.k):
                rows = self._image(piece)
                shape = (rows.shape[0], self.k)
                is_centred = without_offset(piece.atom).can("centred_hinges")
                terms.append(RoughTerm(piece, dual_set_of(piece, shape), rows, True, is_centred, np.zeros(shape)))
        for piece in self.parts.weight_pieces:
            if is_smooth(piece, self.k):
                continue
            K = self._padded(piece.K)
            shape = (K.shape[0], self.k)
            terms.append(RoughTerm(piece, dual_set_of(piece, shape), K, False, False, np.zeros(shape)))
        for dual_set in sets_of_separable(self.parts):
            K, shape = self._padded(None), (self.n_weights, self.k)
            terms.append(RoughTerm(None, dual_set, K, False, False, np.zeros(shape)))
        return terms

    def _padded(self, K: Any) -> Any:
        """A map of the weights as a sparse matrix of x, to which intercepts do not matter."""
        matrix = sp.eye_array(self.n_weights, format="csr") if K is None else K
        matrix = matrix.tocsr() if hasattr(matrix, "tocsr") else sp.csr_array(matrix)
        return sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], self.size))

    def joined(self, theta: Array, b: Array) -> Array:
        """x = (theta, b) of shape (size, k)."""
        return np.vstack([theta, b[None, :]]) if self.problem.model.intercept else theta

    def parted(self, x: Array) -> tuple[Array, Array]:
        """(theta, b) of x."""
        b = x[self.n_weights] if self.problem.model.intercept else np.zeros(self.k)
        return x[: self.n_weights].copy(), np.array(b, dtype=float)

    def inside(self, x: Array) -> tuple[Array, Array]:
        """(theta, b) of x, with the weights moved inside their bounds."""
        theta, b = self.parted(x)
        part = self.parts.separable
        return (theta if part is None else np.clip(theta, part.lower, part.upper)), b

    def scale(self, x: Array, scores: Array | None = None) -> float:
        """What gaps are measured against at x, with its scores if they are known; the last x is remembered."""
        if self._scale is None or self._scale[0] is not x:
            part = self.parts.separable
            known = scores if part is None or not part.bounded else None
            self._scale = x, objective_scale(self.problem, self.problem.value_at(*self.inside(x), scores=known))
        return self._scale[1]

    @cached_property
    def scored(self) -> int | None:
        """The number of the first rough term whose argument are the scores of all rows."""
        numbers = (number for number, term in enumerate(self.rough) if term.rows is self.rows and not term.centred)
        return next(numbers, None)

    def at(self, x: Array, images: Images | None = None) -> State:
        """All that is known at a point."""
        return State(self, x, images)

    def images(self, x: Array) -> Images:
        """The arguments of all smooth terms, and of all others."""
        return [np.asarray(term.rows @ x) for term in self.smooth], [term.forward(x) for term in self.rough]

    def quadratic_product(self, x: Array) -> Array:
        """Q x."""
        return np.asarray(self.quadratic @ x) if self.has_quadratic else np.zeros_like(x)

    def newton_matrix(self, state: State) -> tuple[Any, list[Hessians]]:
        """The system for a Newton step, and the Hessians of the rows of smooth terms."""
        if self.by_rows:
            system = row_system(self, state)
            if system is not None:
                return system, []
        return self.dense_system(state)

    @cached_property
    def by_rows(self) -> bool:
        """Whether Newton systems may have one unknown for each row at a kink."""
        return applies(self)

    def dense_system(self, state: State) -> tuple[DenseSystem, list[Hessians]]:
        """The generalised Hessian of L, output by output, as a system; and the Hessians of the rows of smooth terms."""
        D, k = self.size, self.k
        H = self.single_matrix if self.single else self.matrix  # the same memory for every step
        overwritten = self._overwrites
        if not overwritten:
            H[...] = 0.0
        if self.has_quadratic:
            for a in range(k):
                H[a, :, a, :] = self.quadratic
        rows = []
        for term, z in zip(self.smooth, state.smooth_scores, strict=True):
            rows.append(term.hessians(z))
            term.added_to(H, rows[-1])
        for number, (rough, u) in enumerate(zip(self.rough, state.arguments, strict=True)):
            add_rough(H, rough, u, number == 0 and overwritten)
        return DenseSystem(self, H.reshape(D * k, D * k)), rows

    @cached_property
    def _overwrites(self) -> bool:
        """Whether the Newton matrix starts as a multiple of the products of the rows at a kink."""
        if self.smooth or self.has_quadratic or self.k > 1 or not self.rough:
            return False
        return self.rough[0].of_scores and isinstance(self.rough[0].dual_set, Intervals)

    @cached_property
    def single_matrix(self) -> Array:
        """The same in single precision."""
        return np.zeros((self.k, self.size, self.k, self.size), dtype=np.float32)

    @cached_property
    def matrix(self) -> Array:
        """Memory for a Newton matrix: outputs, weights, outputs, weights."""
        return np.zeros((self.k, self.size, self.k, self.size))

    @cached_property
    def factor_memory(self) -> dict[type, Array]:
        """Where dense Newton matrices of each precision are factorised, one after the other."""
        return {kind: np.empty((self.k * self.size, self.k * self.size), kind) for kind in (np.float32, np.float64)}

    @cached_property
    def has_quadratic(self) -> bool:
        """Whether there are quadratic terms."""
        return bool(self.parts.weight_forms or self.parts.score_forms) and bool(np.any(self.quadratic))

    def slope(self, at: State, step: Step, s: float) -> float:
        """The derivative of L along the step, at s times it."""
        total = step.quadratic_slope + s * step.quadratic_curvature
        for term, z, dz in zip(self.smooth, at.smooth_scores, step.smooth_scores, strict=True):
            total += float(np.vdot(term.grad(z + s * dz), dz))
        with np.errstate(over="ignore"):
            if self.intervals:
                u, sigma_dz, dz, lower, upper = step.along_intervals
                total += float(np.dot(np.minimum(np.maximum(u + s * sigma_dz, lower), upper), dz))
            for number in self.balls:
                total += float(
                    np.vdot(
                        self.rough[number].multiplier(at.images[number] + s * step.images[number]), step.images[number]
                    )
                )
        return total

    @cached_property
    def intervals(self) -> list[int]:
        """The numbers of the rough terms whose sets are intervals."""
        return [number for number, term in enumerate(self.rough) if isinstance(term.dual_set, Intervals)]

    @cached_property
    def balls(self) -> list[int]:
        """The numbers of the other rough terms."""
        return [number for number, term in enumerate(self.rough) if not isinstance(term.dual_set, Intervals)]

    @cached_property
    def interval_ends(self) -> tuple[Array, Array]:
        """The ends of all intervals, one after the other."""
        sets = [self.rough[number].dual_set for number in self.intervals]
        shapes = [self.rough[number].q.shape for number in self.intervals]
        lower, upper = (
            np.concatenate(
                [np.broadcast_to(getattr(s, end), shape).reshape(-1) for s, shape in zip(sets, shapes, strict=True)]
            )
            for end in ("lower", "upper")
        )
        return lower, upper


class State:
    """A point x with the images, multipliers and gradients of all terms; images may be known."""

    def __init__(self, function: AugmentedLagrangian, x: Array, images: Images | None = None) -> None:
        self.x, self.function = x, function
        self.smooth_scores, self.images = images or function.images(x)
        self.arguments = [term.argument(z) for term, z in zip(function.rough, self.images, strict=True)]
        self.multipliers = [term.dual_set.project(u) for term, u in zip(function.rough, self.arguments, strict=True)]
        self.quadratic_grad = function.quadratic_product(x)
        self.smooth_grads = [term.grad(z) for term, z in zip(function.smooth, self.smooth_scores, strict=True)]

    @property
    def scores(self) -> Array | None:
        """The scores of all rows, if some term has them as its argument."""
        number = self.function.scored
        return None if number is None else self.images[number]

    def gradient(self) -> Array:
        """The gradient of L."""
        total = self.quadratic_grad.copy()
        for term, u in zip(self.function.smooth, self.smooth_grads, strict=True):
            total += term.rows.T @ u
        for rough, p in zip(self.function.rough, self.multipliers, strict=True):
            total += rough.adjoint(p)
        return total

    def complementarity(self) -> float:
        """What the multipliers miss of f(z): zero at a solution."""
        triples = zip(self.function.rough, self.images, self.multipliers, strict=True)
        return sum(term.complementarity(z, p) for term, z, p in triples)


class Step:
    """A direction dx with its images."""

    def __init__(self, at: State, dx: Array) -> None:
        function = at.function
        self.dx, self.at = dx, at
        self.smooth_scores, self.images = function.images(dx)
        product = function.quadratic_product(dx)
        self.quadratic_slope = float(np.vdot(at.quadratic_grad, dx))
        self.quadratic_curvature = float(np.vdot(dx, product))

    @property
    def scores(self) -> Array | None:
        """The change of the scores of all rows, if some term has them as its argument."""
        number = self.at.function.scored
        return None if number is None else self.images[number]

    def images_ahead(self, s: float) -> Images | None:
        """The images of the point s times the step ahead, by sums; None where that would cost digits."""
        at, known = self.at, []
        for before, change in ((at.smooth_scores, self.smooth_scores), (at.images, self.images)):
            known.append([z + s * dz for z, dz in zip(before, change, strict=True)])
            for z, ahead in zip(before, known[-1], strict=True):
                if np.max(np.abs(z), initial=0.0) > CANCELLED * np.max(np.abs(ahead), initial=0.0):
                    return None
        return known[0], known[1]

    def moved(self, s: float) -> State:
        """The point s times the step ahead."""
        return self.at.function.at(self.at.x + s * self.dx, self.images_ahead(s))

    @cached_property
    def along_intervals(self) -> tuple[Array, Array, Array, Array, Array]:
        """Of all terms with intervals, flat: the arguments, their changes, the images, and the ends."""
        numbers, rough = self.at.function.intervals, self.at.function.rough
        u = np.concatenate([self.at.arguments[number].reshape(-1) for number in numbers])
        dz = np.concatenate([self.images[number].reshape(-1) for number in numbers])
        with np.errstate(over="ignore"):
            scaled = np.concatenate([rough[number].sigma * self.images[number].reshape(-1) for number in numbers])
        return u, scaled, dz, *self.at.function.interval_ends
