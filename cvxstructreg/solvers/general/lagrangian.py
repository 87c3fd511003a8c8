"""The augmented Lagrangian of all nonsmooth terms at once, as a smooth function of x = (theta, b).

    L(x) = smooth(x) + sum_t  max over p in B_t of  <p, z_t - o_t> - ||p - q_t||^2 / (2 sigma_t),     z_t = K_t x

Each nonsmooth term is a largest linear function over a set B_t (:mod:`~cvxstructreg.solvers.general.dual_sets`); the
maximum is attained at the projection p_t of q_t + sigma_t (z_t - o_t) onto B_t. The gradient of L is the sum of K_t'p_t
and the gradient of the smooth terms, and L has a generalised Hessian, so that Newton's method applies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.general.dual_sets import Balls, DualSet, Intervals


@dataclass(eq=False)
class RoughTerm:
    """A nonsmooth term: its set, its linear map, and the present q and sigma of the augmented Lagrangian."""

    piece: Piece | None  # None: absolute values or bounds of the weights
    dual_set: DualSet
    rows: Any  # the matrix of z = rows x: dense for terms of the scores, sparse for those of the weights
    of_scores: bool
    centred: bool  # whether z is centred over the outputs
    q: Array
    sigma: float = 1.0

    def forward(self, x: Array) -> Array:
        """Z = K x."""
        z = np.asarray(self.rows @ x)
        return centred(z) if self.centred else z

    def adjoint(self, p: Array) -> Array:
        """K'p."""
        return np.asarray(self.rows.T @ (centred(p) if self.centred else p))

    def argument(self, z: Array) -> Array:
        """What is projected: q + sigma (z - o)."""
        return self.q + self.sigma * (z - self.dual_set.offset)

    def multiplier(self, z: Array) -> Array:
        """The projection p."""
        return self.dual_set.project(self.argument(z))

    def complementarity(self, z: Array, p: Array) -> float:
        """f(z) - <p, z - o>, and |<p, z - o>| for bounds, which z may miss."""
        products, found = p * (z - self.dual_set.offset), self.dual_set.value(z)
        if isinstance(self.dual_set, Balls):
            return abs(found - float(products.sum()))
        finite = np.isfinite(self.dual_set.lower) & np.isfinite(self.dual_set.upper)
        return abs(found - float(products[finite].sum())) + float(np.abs(products[~finite]).sum())

    def dual(self, p: Array) -> Array:
        """The dual point of the piece that the multiplier stands for."""
        return centred(p) if self.centred else p


class AugmentedLagrangian:
    """The terms of a problem with few weights, dense."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.parts = problem, problem.normal_form
        model = problem.model
        X = model.design.toarray() if sp.issparse(model.design) else np.asarray(model.design)
        self.rows = np.column_stack([X, np.ones(len(X))]) if model.intercept else X
        self.n_weights, self.k, self.size = model.n_weights, problem.n_outputs, self.rows.shape[1]
        self.smooth = [SmoothTerm(piece, self.rows) for piece in self.parts.score_pieces if is_smooth(piece, self.k)]
        self.rough = self._rough_terms()
        self.quadratic = self._quadratic()
        # a typical score, the root mean square of each column, and its curvature if all rows had that at zero
        self.typical_score, self.lengths, self.capacity = 1.0, np.ones(self.size), np.ones(self.size)

    def _quadratic(self) -> Array:
        """Q with 1/2 x'Qx the quadratic terms of the weights and of the scores, the same for every output."""
        Q = np.zeros((self.size, self.size))
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
                rows = piece.forward(self.rows)
                dual_set = dual_set_of(piece, (len(rows), self.k))
                is_centred = piece.atom.can("centred_hinges")
                terms.append(RoughTerm(piece, dual_set, rows, True, is_centred, np.zeros((len(rows), self.k))))
        for piece in self.parts.weight_pieces:
            K = self._padded(piece.K)
            shape = (K.shape[0], self.k)
            terms.append(RoughTerm(piece, dual_set_of(piece, shape), K, False, False, np.zeros(shape)))
        for dual_set in _sets_of_separable(self.parts):
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

    def scale(self, x: Array) -> float:
        """What gaps are measured against at x."""
        return objective_scale(self.problem, self.problem.value_at(*self.inside(x)))

    def at(self, x: Array) -> State:
        """All that is known at a point."""
        return State(self, x)

    def slope(self, at: State, step: Step, s: float) -> float:
        """The derivative of L along the step, at s times it."""
        total = step.quadratic_slope + s * step.quadratic_curvature
        for term, z, dz in zip(self.smooth, at.smooth_scores, step.smooth_scores, strict=True):
            total += float(np.vdot(term.grad(z + s * dz), dz))
        for rough, z, dz in zip(self.rough, at.images, step.images, strict=True):
            total += float(np.vdot(rough.multiplier(z + s * dz), dz))
        return total


class SmoothTerm:
    """A smooth loss: gradient and Hessian, row by row."""

    def __init__(self, piece: Piece, rows: Array) -> None:
        self.piece, self.rows = piece, piece.forward(rows)
        self._last: tuple[Array, Array] | None = None  # the last Hessians of the rows, and of x

    def grad(self, z: Array) -> Array:
        """The gradient by z."""
        return self.piece.grad(z)

    def hessians(self, z: Array) -> Array:
        """The Hessian of each row: (m, 1) for one output, else (m, k, k)."""
        return self.piece.scale * row_hessians(self.piece, z)

    def added_to(self, H: Array, hessians: Array) -> None:
        """Add rows'h rows, which is kept as long as the Hessians of the rows do not change (squared loss)."""
        if self._last is None or not np.array_equal(self._last[0], hessians):
            matrix = np.zeros_like(H)
            add_row_hessians(matrix, self.rows, hessians)
            self._last = hessians, matrix
        H += self._last[1]


class State:
    """A point x with the images, multipliers and gradients of all terms."""

    def __init__(self, function: AugmentedLagrangian, x: Array) -> None:
        self.x, self.function = x, function
        self.smooth_scores = [np.asarray(term.rows @ x) for term in function.smooth]
        self.images = [term.forward(x) for term in function.rough]
        self.arguments = [term.argument(z) for term, z in zip(function.rough, self.images, strict=True)]
        self.multipliers = [term.dual_set.project(u) for term, u in zip(function.rough, self.arguments, strict=True)]
        self.quadratic_grad = function.quadratic @ x
        self.smooth_grads = [term.grad(z) for term, z in zip(function.smooth, self.smooth_scores, strict=True)]

    def gradient(self) -> Array:
        """The gradient of L."""
        total = self.quadratic_grad.copy()
        for term, u in zip(self.function.smooth, self.smooth_grads, strict=True):
            total += term.rows.T @ u
        for rough, p in zip(self.function.rough, self.multipliers, strict=True):
            total += rough.adjoint(p)
        return total

    def hessian(self) -> tuple[Array, list[Array]]:
        """The generalised Hessian of L as a matrix of (size k) rows, and the Hessians of the rows of smooth terms."""
        D, k = self.function.size, self.function.k
        H = np.zeros((D, k, D, k))
        for a in range(k):
            H[:, a, :, a] = self.function.quadratic
        rows = []
        for term, z in zip(self.function.smooth, self.smooth_scores, strict=True):
            rows.append(term.hessians(z))
            term.added_to(H, rows[-1])
        for rough, u in zip(self.function.rough, self.arguments, strict=True):
            _add_rough(H, rough, u)
        return H.reshape(D * k, D * k), rows

    def complementarity(self) -> float:
        """What the multipliers miss of f(z): zero at a solution."""
        triples = zip(self.function.rough, self.images, self.multipliers, strict=True)
        return sum(term.complementarity(z, p) for term, z, p in triples)


class Step:
    """A direction dx with its images."""

    def __init__(self, at: State, dx: Array) -> None:
        function = at.function
        self.dx = dx
        self.smooth_scores = [np.asarray(term.rows @ dx) for term in function.smooth]
        self.images = [term.forward(dx) for term in function.rough]
        product = function.quadratic @ dx
        self.quadratic_slope = float(np.vdot(at.quadratic_grad, dx))
        self.quadratic_curvature = float(np.vdot(dx, product))


def is_smooth(piece: Piece, k: int) -> bool:
    """Whether the piece has a gradient and a Hessian for each row of k scores."""
    atom = piece.atom
    by_row = atom.can("hess_diag") or atom.can("hess_rows") or (atom.can("centred_hinges") and k > 1)
    return atom.can("grad") and by_row


def has_dual_set(piece: Piece, k: int) -> bool:
    """Whether the piece is a largest linear function over intervals or balls, for k outputs."""
    atom = piece.atom
    if atom.can("centred_hinges"):
        return k > 1 and not atom.can("grad")
    absolute = atom.can("separable") and not atom.separable().bounded  # bounds after a map are not supported
    return absolute or atom.can("hinges") or atom.can("blocks")


def dual_set_of(piece: Piece, shape: tuple[int, int]) -> DualSet:
    """The set of a nonsmooth piece whose argument has the given shape."""
    atom, scale = piece.atom, piece.scale
    if atom.can("blocks"):
        indptr, weights = atom.blocks()
        return Balls(np.asarray(indptr), scale * np.asarray(weights), shape)
    if atom.can("hinges"):
        y, s = atom.hinges()
        y, ends = y[:, None], (-scale * y * s)[:, None]
        return Intervals(np.minimum(ends, 0.0), np.maximum(ends, 0.0), y)
    if atom.can("centred_hinges"):
        hinges = atom.centred_hinges(shape[1])
        costs = scale * hinges.costs
        return Intervals(np.zeros(costs.shape), costs, np.full(costs.shape, hinges.tau))
    weights = scale * np.broadcast_to(atom.separable().weights, shape)
    return Intervals(-weights, weights, np.zeros(shape))


def _sets_of_separable(parts: NormalForm) -> list[DualSet]:
    """Absolute values and bounds of the weights as intervals."""
    part, shape = parts.separable, parts.shape
    if part is None:
        return []
    sets: list[DualSet] = []
    zero = np.zeros(shape)
    weights = np.broadcast_to(part.weights, shape).astype(float)
    if weights.any():
        sets.append(Intervals(-weights, weights, zero))
    for bound, sign in ((part.lower, -1.0), (part.upper, 1.0)):
        bound = np.broadcast_to(bound, shape)
        held = np.isfinite(bound)
        if held.any():  # max over p >= 0 of p (w - upper), and over p <= 0 of p (w - lower)
            ends = np.where(held, sign * np.inf, 0.0)
            sets.append(Intervals(np.minimum(ends, 0.0), np.maximum(ends, 0.0), np.where(held, bound, 0.0)))
    return sets


def row_hessians(piece: Piece, z: Array) -> Array:
    """The Hessians of a smooth loss by rows: (m, 1) for one output, else (m, k, k)."""
    atom, k = piece.atom, z.shape[1]
    if atom.can("hess_diag"):
        diagonal = atom.hess_diag(z)
        return diagonal if k == 1 else diagonal[:, :, None] * np.eye(k)
    if atom.can("hess_rows"):
        diagonal, root = atom.hess_rows(z)
        return diagonal[:, :, None] * np.eye(k) - root[:, :, None] * root[:, None, :]
    hinges = atom.centred_hinges(k)
    return centred_blocks(2.0 * hinges.costs * np.heaviside(centred(z) - hinges.tau, 0.5))


def centred_blocks(diagonal: Array) -> Array:
    """C diag(d) C for each row d, with C = I - 11'/k."""
    k = diagonal.shape[1]
    C = np.eye(k) - 1.0 / k
    return np.asarray(np.einsum("ab,ib,bc->iac", C, diagonal, C, optimize=True))


def add_row_hessians(H: Array, rows: Array, hessians: Array) -> None:
    """H[:, a, :, b] += rows'diag(h_ab) rows."""
    if hessians.ndim == 2:
        used = np.flatnonzero(hessians[:, 0])
        roots = rows[used] * np.sqrt(hessians[used])
        H[:, 0, :, 0] += roots.T @ roots
        return
    k = hessians.shape[1]
    for a in range(k):
        for b in range(a + 1):
            weights = hessians[:, a, b]
            used = np.flatnonzero(weights)
            block = (rows[used] * weights[used, None]).T @ rows[used]
            H[:, a, :, b] += block
            if a != b:
                H[:, b, :, a] += block.T


def _add_rough(H: Array, term: RoughTerm, argument: Array) -> None:
    """Add sigma K'JK, J the derivative of the projection."""
    diagonal, units = term.dual_set.slopes(argument)
    diagonal = term.sigma * diagonal
    if term.of_scores:
        if term.centred:
            add_row_hessians(H, term.rows, centred_blocks(diagonal))
        else:
            add_row_hessians(H, term.rows, diagonal if H.shape[1] == 1 else diagonal[:, :, None] * np.eye(H.shape[1]))
        return
    D, k = H.shape[:2]
    K = term.rows
    plain = K.nnz == K.shape[0] and bool(np.all(np.diff(K.indptr) == 1))  # one weight for each row
    for a in range(k):
        if plain:
            np.add.at(H, (K.indices, a, K.indices, a), diagonal[:, a] * K.data**2)
        else:
            used = np.flatnonzero(diagonal[:, a])
            part = K[used]
            product = (part.T @ part.multiply(diagonal[used, a][:, None])).tocoo()
            H[product.row, a, product.col, a] += product.data
    if units is not None and units.any():
        assert isinstance(term.dual_set, Balls)
        roots = np.sqrt(term.sigma) * units
        blocks = np.flatnonzero(np.bincount(term.dual_set.owner, roots.any(axis=1), len(term.dual_set.radii)))
        position = np.full(len(term.dual_set.radii), -1)
        position[blocks] = np.arange(blocks.size)
        inside = np.flatnonzero(position[term.dual_set.owner] >= 0)
        where = position[term.dual_set.owner[inside]]
        U = np.zeros((D, k, blocks.size))
        part = K[inside].T.tocsr()
        for a in range(k):
            spread = sp.csr_array(
                (roots[inside, a], where, np.arange(inside.size + 1)), shape=(inside.size, blocks.size)
            )
            U[:, a, :] = (part @ spread).toarray()
        flat = U.reshape(D * k, -1)
        H -= (flat @ flat.T).reshape(H.shape)


LineFunction = Callable[[float], float]
