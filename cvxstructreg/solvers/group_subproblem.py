"""The problem of :mod:`group_newton` on a few features, by an augmented Lagrangian and semismooth Newton steps.

With all other weights at zero a group is what is left of it: groups that become equal are one group of the sum of their
radii, and (for one output) groups of one feature are absolute values. After the split v_g = w_g with multipliers y_g,
minimising over v leaves

    min over (w, b)   loss(Xw + b) + w'Mw + sum_j lam_j |w_j| + sum_g Huber_g(w_g)

with Huber_g(w) = max over ||q|| <= c_g of <q, w> - ||q - y_g||^2 / (2 sigma_g), and then y_g <- projection of
y_g + sigma_g w_g on the ball of radius c_g. Its minimiser satisfies the optimality conditions of the whole problem but
for the slack sum_g c_g ||w_g|| - <y_g, w_g> >= 0, which is the duality gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Array
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.normal_form import NormalForm

Ints = np.ndarray[Any, Any]

#: Newton steps for one set of multipliers, conjugate gradient steps for one Newton step, multiplier steps.
NEWTON_STEPS, CG_STEPS, MULTIPLIER_STEPS = 20, 150, 40
#: Lengths that a line search tries; the multiples of the diagonal that may be added to a Hessian.
LENGTHS, LEAST_DAMPING, MOST_DAMPING = 12, 1e-10, 1e8
#: The width tau of the Huber functions, sigma_g = c_g / tau, relative to the largest weight: first,
#: when it gets serious, and least.
WIDE, NARROW, NARROWEST = 1e-2, 1e-4, 1e-7


@dataclass(frozen=True, eq=False)
class Stack:
    """All groups of a problem as in :mod:`kernels_groups`, on the flat weights."""

    indptr: Ints
    indices: Ints
    radii: Array
    n_coordinates: int


class Restricted:
    """What is left of the groups on the chosen coordinates, with multipliers y summed up from those of the groups."""

    def __init__(self, stack: Stack, chosen: Ints, q: Array, join_singles: bool) -> None:
        from cvxstructreg.core import kernels_groups as kernels

        m = len(chosen)
        position = np.full(stack.n_coordinates, -1, dtype=np.int64)
        position[chosen] = np.arange(m)
        sizes = kernels.restricted_sizes(stack.indptr, stack.indices, position)
        sizes[stack.radii == 0] = 0
        groups = np.flatnonzero(sizes)
        sizes = sizes[groups]
        keys = np.random.default_rng(0).integers(2**64, size=m, dtype=np.uint64)
        self.entries, places, hashes = kernels.restricted_entries(
            stack.indptr, stack.indices, position, groups, keys, int(sizes.sum())
        )
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        starts = np.cumsum(sizes) - sizes
        self.indptr = np.concatenate([[0], np.cumsum(sizes[first])])
        # where each entry went: the start of its group, moved to the start of the group that stands for all equal ones
        self.target = np.arange(len(places)) + np.repeat(self.indptr[inverse] - starts, sizes)
        self.n_entries = int(self.indptr[-1])
        self.indices = np.empty(self.n_entries, dtype=np.uint32)
        self.indices[self.target] = places
        self.radii = np.bincount(inverse, stack.radii[groups], minlength=len(first))
        # the share of a group in the multiplier of all groups equal to it
        self.shares = np.repeat(stack.radii[groups] / self.radii[inverse], sizes)
        self.y = np.bincount(self.target, q[self.entries], minlength=self.n_entries)
        self.lam = np.zeros(m)
        self.single = np.zeros(self.n_entries, dtype=bool)
        self.single_place = self.indices[:0]
        if join_singles:
            self._make_singles_absolute()

    def _make_singles_absolute(self) -> None:
        """A group of a single coordinate is c_g |w_j|."""
        sizes = np.diff(self.indptr)
        kept = sizes > 1
        self.single = np.repeat(~kept, sizes)
        self.single_place = self.indices[self.single]
        self.lam[self.single_place] = self.radii[~kept]
        self.indptr = np.concatenate([[0], np.cumsum(sizes[kept])])
        self.indices, self.y, self.radii = self.indices[~self.single], self.y[~self.single], self.radii[kept]

    def hand_back(self, left: Array, lam: Array, q: Array) -> None:
        """Share the multipliers out among the groups, in ``q``; ``left`` is the pull that the multipliers do not take.

        Groups of one coordinate take what is more than ``lam``, the absolute values' own share.
        """
        y = np.empty(self.n_entries)
        y[~self.single] = self.y
        beyond = np.clip(left - np.clip(left, -lam, lam), -self.lam, self.lam)
        y[self.single] = beyond[self.single_place]
        q[self.entries] = self.shares * y[self.target]


class Subproblem:
    """The problem with all weights zero but those of the chosen features."""

    def __init__(self, parts: NormalForm, Xt: Any, features: Ints, lam: Array, norms: Restricted) -> None:
        self.parts, self.features, self.norms = parts, features, norms
        self.Xt = Xt[features]
        self.X = self.Xt.T
        self.lam = lam + norms.lam
        self.intercept, self.k = parts.model.intercept, parts.n_outputs
        self.rows_apart = not parts.score_forms and all(
            piece.atom.can("hess_diag") and isinstance(piece.atom, Loss) for piece in parts.score_pieces
        )

    def embedded(self, w: Array) -> Array:
        """The weights of all features, d x k."""
        theta = np.zeros(self.parts.shape)
        theta[self.features] = w.reshape(-1, self.k)
        return theta

    def scores(self, w: Array, b: Array) -> Array:
        """Xw + b."""
        return np.asarray(self.X @ w.reshape(-1, self.k)) + b

    def pull(self, slope: Array) -> Array:
        """X'slope, flat."""
        return np.asarray(self.Xt @ slope).ravel()

    def loss(self, scores: Array) -> float:
        """All terms of the scores."""
        total = sum(piece.value(scores) for piece in self.parts.score_pieces)
        return float(total + sum(form.value(scores) for form in self.parts.score_forms))

    @cached_property
    def _ridge(self) -> Array:
        """The diagonal quadratic terms: twice their coefficients."""
        total = np.zeros(len(self.features))
        for scaled in self.parts.weight_forms:
            if scaled.form.diagonal is not None:
                total += 2.0 * scaled.scale * scaled.form.diagonal[self.features]
        return np.repeat(total, self.k)

    def quadratic_grad(self, w: Array) -> Array:
        """2Mw on the chosen features."""
        if not self.parts.weight_forms:
            return np.zeros_like(w)
        total = self._ridge * w
        for scaled in self.parts.weight_forms:
            if scaled.form.diagonal is None:
                total = total + scaled.grad(self.embedded(w))[self.features].ravel()
        return total

    @cached_property
    def quadratic_diagonal(self) -> Array:
        """The diagonal of 2M, for the preconditioner: without elimination, which only makes it smaller."""
        total = self._ridge.copy()
        for scaled in self.parts.weight_forms:
            form = scaled.form
            if form.diagonal is None:
                entries = form.matrix.diagonal() if form.factor is None else _squares(form.factor).sum(axis=0)
                total += np.repeat(2.0 * scaled.scale * np.asarray(entries).ravel()[self.features], self.k)
        return total

    @cached_property
    def squares(self) -> Any:
        """X'.^2, for the diagonal of X'DX."""
        return _squares(self.Xt)

    def score_curvature(self, scores: Array) -> Array:
        """The diagonal of the Hessian by the scores: all of the Hessian where rows and outputs are apart."""
        if self.rows_apart:
            return self.parts.smooth_score_hessp(scores, np.ones_like(scores))
        columns = []
        for c in range(self.k):
            unit = np.zeros_like(scores)
            unit[:, c] = 1.0
            columns.append(np.maximum(self.parts.smooth_score_hessp(scores, unit)[:, c], 0.0))
        return np.column_stack(columns)


def _squares(matrix: Any) -> Any:
    return matrix.multiply(matrix).tocsr() if sp.issparse(matrix) else matrix**2


@dataclass(eq=False)
class _Point:
    """Weights, and the value and gradient there."""

    w: Array
    b: Array
    scores: Array
    value: float
    grad: Array  # without the absolute values
    grad_b: Array


class Newton:
    """Orthant-wise Newton-CG steps on one subproblem at fixed multipliers."""

    def __init__(self, sub: Subproblem, sigma: Array) -> None:
        from cvxstructreg.core import kernels_groups as kernels

        self.sub, self.kernels = sub, kernels
        norms = sub.norms
        self.huber = (norms.indptr, norms.indices, norms.radii, sigma, norms.y)
        self.damping = LEAST_DAMPING

    def at(self, w: Array, b: Array) -> _Point:
        """The point with its value and gradient."""
        sub = self.sub
        scores = sub.scores(w, b)
        slope = sub.parts.smooth_score_grad(scores)
        quadratic = sub.quadratic_grad(w)
        grad = sub.pull(slope) + quadratic
        value = sub.loss(scores) + 0.5 * float(quadratic @ w) + float(sub.lam @ np.abs(w))
        value += self.kernels.huber(*self.huber, w, grad)
        return _Point(w, b, scores, value, grad, slope.sum(axis=0) if sub.intercept else np.zeros(sub.k))

    def pseudo_gradient(self, point: _Point) -> Array:
        """The subgradient of least norm, with the absolute values."""
        lam, g, w = self.sub.lam, point.grad, point.w
        at_zero = np.sign(g) * np.maximum(np.abs(g) - lam, 0.0)
        return np.where(w != 0, g + lam * np.sign(w), at_zero)

    def solve(self, w: Array, b: Array, scale: Array, tol: float) -> tuple[_Point, float]:
        """Steps until |pseudo-gradient_j| <= tol * scale_j; the point, and what was reached."""
        point, error = self.at(w, b), np.inf
        for _ in range(NEWTON_STEPS):
            slope = self.pseudo_gradient(point)
            error = float(np.max(np.abs(slope) / scale, initial=0.0))
            error = max(error, float(np.max(np.abs(point.grad_b))) / float(scale.max()))
            if error <= tol:
                break
            step = self.direction(point, slope, min(0.1, np.sqrt(error)))
            moved, length = self.search(point, slope, *step)
            # where a loss is flat or weights stop at zero, the model may be poor: add a multiple of its diagonal
            self.damping = self.damping / 10 if length > 0.5 else max(1e-4, 10 * self.damping)
            if self.damping > MOST_DAMPING:
                break
            self.damping = max(self.damping, LEAST_DAMPING)
            point = moved
        return point, error

    def direction(self, point: _Point, slope: Array, accuracy: float) -> tuple[Array, Array]:
        """Conjugate gradients with diagonal preconditioner for H p = -slope on the free weights and intercepts."""
        sub, kernels = self.sub, self.kernels
        free = (point.w != 0) | (slope != 0)
        curvature = sub.score_curvature(point.scores)
        identity = np.zeros_like(point.w)
        rest = kernels.huber_curvature(*self.huber, point.w, free.view(np.uint8), identity)
        diagonal = identity + sub.quadratic_diagonal + np.asarray(sub.squares @ curvature).ravel()
        kernels.subtract_squares(*rest, diagonal)
        floor = 1e-10 * float(diagonal.max(initial=0.0)) + 1e-300
        added = self.damping * np.maximum(diagonal, 0.0) + floor
        added_b = self.damping * curvature.sum(axis=0) + floor
        identity += added
        m = len(free)
        diagonal = np.concatenate([np.where(free, diagonal + added, 1.0), curvature.sum(axis=0) + added_b])

        def product(p: Array) -> Array:
            s = sub.scores(p[:m], p[m:])
            s = curvature * s if sub.rows_apart else sub.parts.smooth_score_hessp(point.scores, s)
            out = sub.pull(s) + identity * p[:m]
            if sub.parts.weight_forms:
                out += sub.quadratic_grad(p[:m])
            kernels.subtract_products(*rest, p[:m], out)
            out[~free] = 0.0
            return np.concatenate([out, s.sum(axis=0) + added_b * p[m:] if sub.intercept else np.zeros(sub.k)])

        downhill = -np.concatenate([np.where(free, slope, 0.0), point.grad_b])
        step = conjugate_gradients(product, downhill, diagonal, accuracy)
        return step[:m], step[m:]

    def search(self, point: _Point, slope: Array, step: Array, step_b: Array) -> tuple[_Point, float]:
        """The first of the lengths 1, 1/2, 1/4 ... that lowers the value enough; weights stop at a change of sign."""
        orthant = np.where(point.w != 0, np.sign(point.w), -np.sign(slope))
        length = 1.0
        for _ in range(LENGTHS):
            w = point.w + length * step
            w[(self.sub.lam > 0) & (w * orthant <= 0)] = 0.0
            b = point.b + length * step_b
            trial = self.at(w, b)
            gain = float(slope @ (w - point.w) + point.grad_b @ (b - point.b))
            if trial.value <= point.value + 1e-4 * min(gain, 0.0) + 1e-14 * abs(point.value):
                return trial, length
            length *= 0.5
        return point, 0.0


def conjugate_gradients(product: Callable[[Array], Array], r: Array, diagonal: Array, accuracy: float) -> Array:
    """x with H x = r to a relative accuracy, in the norm of the preconditioner."""
    x, z = np.zeros_like(r), r / diagonal
    p, rho = z, float(r @ z)
    first = rho
    for _ in range(CG_STEPS):
        Hp = product(p)
        bend = float(p @ Hp)
        if bend <= 0:
            break
        x, r = x + (rho / bend) * p, r - (rho / bend) * Hp
        z = r / diagonal
        rho, last = float(r @ z), rho
        if rho <= accuracy**2 * first:
            break
        p = z + (rho / last) * p
    return x if x.any() else r / diagonal


@dataclass(eq=False)
class Widths:
    """The width tau of the Huber functions, kept from one subproblem to the next.

    ``size`` is the typical size of a weight, of which ``relative`` is a part.
    """

    size: float
    relative: float = WIDE

    def absolute(self, w: Array) -> float:
        """The width for weights about as large as w."""
        return self.relative * max(float(np.abs(w).max(initial=0.0)), 1e-2 * self.size)


def minimise(
    sub: Subproblem, w: Array, b: Array, scale: Array, target: float, objective: float, widths: Widths
) -> tuple[Array, Array, Ints]:
    """Multiplier steps until the duality gap is about ``target * objective``: w, b, and which weights are zero.

    ``scale`` are the sizes that the gradient is compared with, one for each weight. The multipliers in ``sub.norms``
    change in place.
    """
    from cvxstructreg.core import kernels_groups as kernels

    norms, last, tol = sub.norms, np.inf, 1e-2
    zero = np.zeros(len(w), dtype=np.uint8)
    least = NARROWEST
    if target < 1e-3:
        widths.relative = min(widths.relative, NARROW)
    for _ in range(MULTIPLIER_STEPS):
        sigma = norms.radii / widths.absolute(w)
        asked = max(tol, 0.2 * target)
        point, error = Newton(sub, sigma).solve(w, b, scale, asked)
        w, b = point.w, point.b
        zero[:] = 0
        slack = kernels.multipliers(norms.indptr, norms.indices, norms.radii, sigma, norms.y, w, zero) / objective
        if slack <= 0.3 * target and error <= 0.4 * target:
            break
        if error > asked:  # too near to the kinks of the norms for Newton's method
            least = widths.relative = min(10.0 * widths.relative, 1.0)
        elif slack > 0.1 * last:
            widths.relative = max(0.1 * widths.relative, least)
        tol, last = min(tol, max(0.1 * slack, 0.1 * target)), slack
    return w, b, zero
