"""The problem of :mod:`group_newton` on a few features, by an augmented Lagrangian and semismooth Newton steps.

All other weights are zero, so each group is restricted to the chosen features. Groups that become equal are merged, and
their radii are added. For one output, a group of one feature is an L1 term. After the split v_g = w_g with multipliers
y_g, minimising over v gives

    min over (w, b)   loss(Xw + b) + w'Mw + sum_j lam_j |w_j| + sum_g Huber_g(w_g)

with Huber_g(w) = max over ||q|| <= c_g of <q, w> - ||q - y_g||^2 / (2 sigma_g). Then y_g is set to the projection of
y_g + sigma_g w_g on the ball of radius c_g. The minimiser satisfies the optimality conditions of the subproblem except
for the slack sum_g c_g ||w_g|| - <y_g, w_g> >= 0, which is the duality gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.groups.constant_curvature import WeightedGram
from cvxstructreg.solvers.groups.group_steps import Newton, OfScores, Point
from cvxstructreg.solvers.groups.single_precision import SingleMatrix

Ints = np.ndarray[Any, Any]

#: The largest number of multiplier steps.
MULTIPLIER_STEPS = 40
#: The accuracy of the gradient in the first multiplier step.
FIRST = 1e-1
#: The width tau of the Huber functions, sigma_g = c_g / tau, relative to the largest weight: at first, for targets of
#: at most FINE_TARGET (without compiled steps, where Newton steps cost more: NARROW_PLAIN), and at least.
WIDE, NARROW, NARROW_PLAIN, NARROWEST = 1e-2, 1e-4, 1e-3, 1e-7
FINE_TARGET = 1e-3
#: The same two if the pull is so strong that nearly all weights join at once.
WIDE_STRONG, NARROW_STRONG = 1.0, 1e-2
#: The largest weight is taken to be at least this part of a typical one.
LEAST_WEIGHT = 0.1


@dataclass(frozen=True, eq=False)
class Stack:
    """All groups of a problem on the flat weights, in the format of :mod:`compiled_groups`."""

    indptr: Ints
    indices: Ints
    radii: Array
    n_coordinates: int


class Restricted:
    """The groups restricted to the chosen coordinates; equal groups are merged and their multipliers y added.

    With ``join_singles``, a group with a single remaining coordinate is an L1 term, and is added to ``lam``.
    """

    def __init__(self, stack: Stack, chosen: Ints, q: Array, join_singles: bool) -> None:
        from cvxstructreg.forms import compiled_groups as compiled

        m = len(chosen)
        self.stack = (stack.indptr, stack.indices, stack.radii)
        self.position = np.full(stack.n_coordinates, -1, dtype=np.int32)
        self.position[chosen] = np.arange(m, dtype=np.int32)
        keys = np.random.default_rng(0).integers(2**64, size=m, dtype=np.uint64)
        self.lam = np.zeros(m)
        absolute = self.lam if join_singles else self.lam[:0]
        self.number, sizes = self._numbered(compiled.merge_groups, keys, absolute)
        self.indptr = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=self.indptr[1:])
        merged = compiled.gather_merged(*self.stack, self.position, self.number, self.indptr, q)
        self.indices, self.y, self.radii = merged
        self.indices.flags.writeable = False  # as in the stack: numba would compile again for a writable array

    def _numbered(self, merge: Callable[..., int], keys: Ints, absolute: Array) -> tuple[Ints, Ints]:
        """The numbers of the merged groups, small ones first, and their sizes.

        Loops over successive groups of equal size are twice as fast.
        """
        n_groups = len(self.stack[2])
        table = np.full(2 ** max(1, int(2 * n_groups).bit_length()), -1, dtype=np.int32)
        number, sizes = np.full(n_groups, -1, dtype=np.int32), np.empty(n_groups, dtype=np.int32)
        hashes = np.empty(n_groups, dtype=np.uint64)
        count = merge(*self.stack, self.position, keys, absolute, table, number, sizes, hashes)
        short = sizes[:count].max(initial=0) < 2**16  # sorting 16-bit numbers is ten times faster
        order = np.argsort(sizes[:count].astype(np.uint16) if short else sizes[:count], kind="stable")
        rank = np.empty(count, dtype=np.int32)
        rank[order] = np.arange(count, dtype=np.int32)
        kept = number >= 0
        number[kept] = rank[number[kept]]
        return number, sizes[order]

    def flat(self, sigma: Array) -> tuple[Ints, Ints, Array, Array, Array]:
        """The arrays in the order of the arguments of :mod:`compiled_huber`."""
        return self.indptr, self.indices, self.radii, sigma, self.y

    @cached_property
    def memory(self) -> tuple[Ints, Ints, Array, Array]:
        """Scratch space for the curvature of the norms."""
        return (
            np.empty_like(self.indptr), np.empty_like(self.indices), np.empty_like(self.y), np.empty_like(self.radii)
        )  # fmt: skip

    def distribute_multipliers(self, left: Array, lam: Array, q: Array) -> None:
        """Distribute the multipliers over the original groups, in ``q``, and subtract K'q from the pull ``left``.

        Groups of one coordinate absorb the part of the pull that exceeds ``lam``, the L1 strength.
        """
        from cvxstructreg.forms import compiled_groups as compiled

        chosen = np.flatnonzero(self.position >= 0)
        pull = left[chosen]
        compiled.add_adjoint(self.indices, self.y, pull, -1.0)
        beyond = np.clip(pull - np.clip(pull, -lam, lam), -self.lam, self.lam)
        shares = np.divide(beyond, self.lam, out=np.zeros_like(beyond), where=self.lam > 0)
        merged = (self.position, self.number, self.indptr, self.radii, self.y, shares)
        compiled.hand_back(*self.stack, *merged, q, left)


class ChosenRows:
    """Some rows of X', with all that is made from them."""

    def __init__(self, X: Design, features: Ints) -> None:
        self.features, every = features, len(features) == X.transposed.shape[0]
        self.Xt: Any = X.transposed if every else X.transposed[features]
        self.single = X.single if every or X.single is None else X.single.chosen(features)

    @cached_property
    def squares(self) -> Any:
        """X'.^2, for the diagonal of X'DX."""
        return _squares(self.Xt) if self.single is None else self.single.squares()


class Design:
    """The matrix X in the formats that the steps need."""

    def __init__(self, parts: NormalForm) -> None:
        design, self._parts = parts.model.design, parts
        self.rows_apart = not parts.score_forms and all(
            piece.atom.can("hess_diag") and isinstance(piece.atom, Loss) for piece in parts.score_pieces
        )
        diagonal = all(scaled.form.diagonal is not None for scaled in parts.weight_forms)
        self.compiled = sp.issparse(design) and parts.n_outputs == 1 and self.rows_apart and diagonal
        self._design = design
        self._last_rows: ChosenRows | None = None
        if self.compiled:
            self._view = design.T  # a view by columns without a copy; kept because creating it takes time
            columns = design.indices.view(np.uint32) if design.indices.dtype == np.int32 else design.indices
            self._csr = design.indptr.astype(np.int64), columns.astype(np.uint32, copy=False), design.data

    @cached_property
    def intercept_unit(self) -> float:
        """The norm of the column of the intercept, relative to the largest column of X; scales its gradient."""
        largest = float(self._parts.column_norms.max())
        return float(np.sqrt(self._parts.model.n_rows)) / largest if largest > 0.0 else 1.0

    @cached_property
    def transposed(self) -> Any:
        """X'; for dense X a view of its columns, which the model keeps."""
        return self._design.T.tocsr() if sp.issparse(self._design) else self._parts.model.columns.T

    @cached_property
    def single(self) -> SingleMatrix | None:
        """X' for rough products, if X is dense."""
        return None if sp.issparse(self._design) else SingleMatrix.of(self.transposed)

    @cached_property
    def gram(self) -> WeightedGram | None:
        """X'diag(h) X for rough products, if X is dense and losses are sums over rows; one output gains too little."""
        several = self.rows_apart and self._parts.n_outputs > 1
        return WeightedGram(self.transposed) if several and self.single is not None else None

    def chosen_rows(self, features: Ints) -> ChosenRows:
        """The rows of X' of some features; those of the last features are kept."""
        if self._last_rows is None or not np.array_equal(self._last_rows.features, features):
            self._last_rows = None  # free the memory first
            self._last_rows = ChosenRows(self, features)
        return self._last_rows

    def pull(self, slope: Array) -> Array:
        """X'slope."""
        return np.asarray((self._view if self.compiled else self.transposed) @ slope)

    def chosen_columns(self, position: Ints) -> tuple[Ints, Ints, Array]:
        """The columns with a position (>= 0), in CSR format."""
        from cvxstructreg.solvers.groups import compiled_group_newton as compiled

        rows, columns, values = self._csr
        memory = np.empty(len(rows), dtype=np.int64), np.empty(len(columns), dtype=np.uint32), np.empty(len(values))
        found: tuple[Ints, Ints, Array] = compiled.chosen_columns(*self._csr, position, *memory)
        return found


class Subproblem:
    """The problem in which all weights except those of the chosen features are zero."""

    def __init__(self, parts: NormalForm, X: Design, features: Ints, lam: Array, norms: Restricted) -> None:
        self.parts, self.features, self.norms = parts, features, norms
        self.lam = lam + norms.lam
        self.intercept, self.k = parts.model.intercept, parts.n_outputs
        self.rows_apart, self.compiled = X.rows_apart, X.compiled
        self.intercept_unit = X.intercept_unit
        if X.compiled:
            self.columns = X.chosen_columns(norms.position)
        else:
            self.rows = X.chosen_rows(features)
            self.Xt, self.single, self.gram = self.rows.Xt, self.rows.single, X.gram
            self.X = self.Xt.T

    def embedded(self, w: Array) -> Array:
        """The weights of all features, d x k."""
        theta = np.zeros(self.parts.shape)
        theta[self.features] = w.reshape(-1, self.k)
        return theta

    def scores(self, w: Array, b: Array) -> Array:
        """Xw + b."""
        if self.compiled:
            from cvxstructreg.solvers.groups import compiled_group_newton as compiled

            return np.asarray(compiled.scores(*self.columns, w, b[0]))[:, None]
        return np.asarray(self.X @ w.reshape(-1, self.k)) + b

    def pull(self, slope: Array) -> Array:
        """X'slope, flat."""
        if self.compiled:
            from cvxstructreg.solvers.groups import compiled_group_newton as compiled

            out = np.zeros(len(self.features))
            compiled.add_pull(*self.columns, slope[:, 0], out)
            return out
        return np.asarray(self.Xt @ slope).ravel()

    def loss(self, scores: Array) -> float:
        """The sum of all terms on the scores."""
        total = sum(piece.value(scores) for piece in self.parts.score_pieces)
        return float(total + sum(form.value(scores) for form in self.parts.score_forms))

    @cached_property
    def column_memory(self) -> tuple[Ints, Ints, Array]:
        """Scratch space for the columns of free weights."""
        starts, places, kept = self.columns
        return np.empty_like(starts), np.empty_like(places), np.empty_like(kept)

    @cached_property
    def ridge(self) -> Array:
        """Twice the coefficients of the diagonal quadratic terms."""
        total = np.zeros(len(self.features))
        for scaled in self.parts.weight_forms:
            if scaled.form.diagonal is not None:
                total += 2.0 * scaled.scale * scaled.form.diagonal[self.features]
        return np.repeat(total, self.k)

    def quadratic_grad(self, w: Array) -> Array:
        """2Mw on the chosen features."""
        if not self.parts.weight_forms:
            return np.zeros_like(w)
        total = self.ridge * w
        for scaled in self.parts.weight_forms:
            if scaled.form.diagonal is None:
                total = total + scaled.grad(self.embedded(w))[self.features].ravel()
        return total

    @cached_property
    def quadratic_diagonal(self) -> Array:
        """An upper bound on the diagonal of 2M for preconditioning: eliminated variables would make it smaller."""
        total = self.ridge.copy()
        for scaled in self.parts.weight_forms:
            form = scaled.form
            if form.diagonal is None:
                entries = form.matrix.diagonal() if form.factor is None else _squares(form.factor).sum(axis=0)
                total += np.repeat(2.0 * scaled.scale * np.asarray(entries).ravel()[self.features], self.k)
        return total

    def score_curvature(self, scores: Array) -> Array:
        """The diagonal of the Hessian with respect to the scores, which is the whole Hessian if ``rows_apart``."""
        if self.rows_apart:
            return self.parts.smooth_score_hessp(scores, np.ones_like(scores))
        pieces = self.parts.score_pieces
        if not self.parts.score_forms and all(piece.atom.can("hess_bound") for piece in pieces):
            return sum(
                (piece.adjoint(piece.scale * piece.atom.hess_bound(piece.forward(scores))) for piece in pieces),
                np.zeros_like(scores),
            )
        columns = [column_curvature(self.parts, scores, c) for c in range(self.k)]
        return np.maximum(np.column_stack(columns), 0.0)


def column_curvature(parts: NormalForm, scores: Array, output: int) -> Array:
    """The diagonal of the Hessian with respect to the scores of one output.

    If a loss couples rows, products with alternating signs estimate it: constants may have no curvature at all.
    """
    unit = np.zeros_like(scores)
    unit[:, output] = 1.0
    if any(isinstance(piece.atom, Loss) and piece.atom.couples_rows for piece in parts.score_pieces):
        unit[1::2] *= -1.0
    return np.asarray(unit[:, output] * parts.smooth_score_hessp(scores, unit)[:, output])


def _squares(matrix: Any) -> Any:
    return matrix.multiply(matrix).tocsr() if sp.issparse(matrix) else matrix**2


@dataclass(eq=False)
class Widths:
    """The width tau of the Huber functions, which is kept from one subproblem to the next.

    ``size`` is the typical size of a weight, and ``relative`` is the width relative to the largest weight.
    """

    size: float
    relative: float = WIDE
    narrow: float = NARROW_PLAIN

    def set_strong(self) -> None:
        """Start nearly as ridge regression, and become narrow later."""
        self.relative, self.narrow = WIDE_STRONG, NARROW_STRONG

    def absolute(self, w: Array) -> float:
        """The width for weights about as large as w."""
        return self.relative * max(float(np.abs(w).max(initial=0.0)), LEAST_WEIGHT * self.size)


def minimise(
    sub: Subproblem, w: Array, b: Array, scale: Array, target: float, objective: float, widths: Widths, ease: float
) -> tuple[Array, Array, Array]:
    """Multiplier steps until the duality gap is about ``target * objective``; returns w, b, and w with exact zeros.

    The copy v_g of a group inside its ball is zero. At the optimum, so are the weights of the group.

    The gradient is measured relative to ``scale``, one number for each weight, and may be ``ease`` times as large as
    ``target`` if the caller repairs the dual point. The multipliers in ``sub.norms`` are updated in place.
    """
    from cvxstructreg.solvers.groups import compiled_huber as compiled

    norms, tol, known = sub.norms, FIRST, None
    zero = np.zeros(len(w), dtype=np.uint8)
    least, enough = NARROWEST, min(ease * target, 1.0)
    if target <= FINE_TARGET:
        widths.relative = min(widths.relative, NARROW if sub.compiled else widths.narrow)
    for _ in range(MULTIPLIER_STEPS):
        sigma = norms.radii / widths.absolute(w)
        asked = max(tol, 0.5 * enough)
        newton = Newton(sub, sigma, scale)
        point = newton.solve(lower_start(newton, w, b, zero, known), asked)
        if asked > 0.5 * enough and newton.error(point) <= asked:
            slack = compiled.multipliers(*norms.flat(sigma), point.w, zero, False) / objective
            if slack <= 0.1 * target:  # these multipliers are good enough
                asked = 0.5 * enough
                point = newton.solve(point, asked)
        w, b, known, error = point.w, point.b, point.of_scores, newton.error(point)
        zero[:] = 0
        slack = compiled.multipliers(*norms.flat(sigma), w, zero, True) / objective
        if (slack <= 0.3 * target and error <= enough) or deadline.passed():
            break
        if error > asked:  # the Huber functions are too narrow for Newton's method
            least = widths.relative = min(10.0 * widths.relative, 1.0)
        elif slack > 0.2 * target:  # the slack is roughly proportional to the width
            widths.relative = max(max(0.05, 0.2 * target / slack) * widths.relative, least)
        tol = min(tol, max(0.1 * slack, 0.25 * enough))
    return w, b, rounded(sub, point, zero, scale, enough)


def lower_start(newton: Newton, w: Array, b: Array, zero: Ints, known: OfScores | None = None) -> Point:
    """The point, or that with zeros in place of the marked weights if its value is lower.

    They are small, but no longer beside a narrower Huber function. Sparse X seldom gains from this.
    """
    point = newton.steps.at(w, b) if known is None else newton.steps.at(w, b, known)
    if newton.sub.compiled or not zero.any():
        return point
    other = newton.steps.at(np.where(zero != 0, 0.0, w), b)
    return other if other.value < point.value else point


def rounded(sub: Subproblem, point: Point, zero: Ints, scale: Array, allowed: float) -> Array:
    """The weights with those marked in ``zero`` set to zero: all of them, or as many as leave the gradient small.

    The gradient, from which the dual point is built, may change by ``allowed`` relative to ``scale``.
    """
    w, b = point.w, point.b
    marked = (zero != 0) & (w != 0)
    if not marked.any():
        return w
    largest = float(np.abs(w[marked]).max())
    slope, quadratic = sub.parts.smooth_score_grad(point.scores), sub.quadratic_grad(w)
    for part in (1.0, 0.1, 0.01, 0.001):
        trial = np.where(marked & (np.abs(w) <= part * largest), 0.0, w)
        change = sub.pull(sub.parts.smooth_score_grad(sub.scores(trial, b)) - slope)
        change += sub.quadratic_grad(trial) - quadratic
        if np.all(np.abs(change) <= allowed * scale):
            return trial
    return w
