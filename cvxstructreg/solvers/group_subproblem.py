"""The problem of :mod:`group_newton` on a few features, by an augmented Lagrangian and semismooth Newton steps.

With all other weights at zero a group is what is left of it: groups that become equal are one group of the sum of their
radii, and (for one output) groups of one feature are absolute values. After the split v_g = w_g with multipliers y_g,
minimising over v leaves

    min over (w, b)   loss(Xw + b) + w'Mw + sum_j lam_j |w_j| + sum_g Huber_g(w_g)

with Huber_g(w) = max over ||q|| <= c_g of <q, w> - ||q - y_g||^2 / (2 sigma_g), and then y_g <- projection of
y_g + sigma_g w_g on the ball of radius c_g. Its minimiser satisfies the optimality conditions of the whole problem but for the
slack sum_g c_g ||w_g|| - <y_g, w_g> >= 0, which is the duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Array
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.normal_form import NormalForm

#: Newton steps for one set of multipliers, conjugate gradient steps for one Newton step, multiplier steps.
NEWTON_STEPS, CG_STEPS, MULTIPLIER_STEPS = 30, 150, 40
#: The width tau of the Huber functions, sigma_g = c_g / tau, relative to the largest weight: first and least.
WIDEST, NARROWEST = 0.1, 1e-3


@dataclass(frozen=True, eq=False)
class Stack:
    """All groups of a problem, flat: see :mod:`kernels_groups`."""

    indptr: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    radii: Array

    @property
    def sizes(self) -> np.ndarray[Any, Any]:
        """Number of entries of each group."""
        return np.diff(self.indptr)


class Restricted:
    """What is left of the groups on the chosen features, with the multipliers summed up from those of the groups."""

    def __init__(self, stack: Stack, chosen: np.ndarray[Any, Any], n_features: int, q: Array) -> None:
        from cvxstructreg.solvers import kernels_groups as kernels

        self.stack, m = stack, len(chosen)
        position = np.full(n_features, -1, dtype=np.int64)
        position[chosen] = np.arange(m)
        sizes = kernels.restricted_sizes(stack.indptr, stack.indices, position)
        self.groups = np.flatnonzero(sizes)
        sizes = sizes[self.groups]
        self.entries, places = kernels.restricted_entries(
            stack.indptr, stack.indices, position, self.groups, int(sizes.sum())
        )
        first, inverse = _equal_groups(sizes, places, m)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.indptr = np.concatenate([[0], np.cumsum(sizes[first])])
        within = np.arange(len(places)) - np.repeat(starts[:-1], sizes)
        self.target = np.repeat(self.indptr[inverse], sizes) + within
        self.indices = np.empty(int(self.indptr[-1]), dtype=np.uint32)
        self.indices[self.target] = places
        self.radii = np.bincount(inverse, stack.radii[self.groups], minlength=len(first))
        # the share of a group in the multiplier of all groups equal to it
        shares = stack.radii[self.groups] / np.where(self.radii > 0, self.radii, 1.0)[inverse]
        self.shares = np.repeat(shares, sizes)[:, None]
        self.y = np.column_stack([np.bincount(self.target, column, minlength=len(self.indices)) for column in q[self.entries].T])
        self.lam = np.zeros((m, q.shape[1]))
        self.single = np.zeros(0, dtype=np.int64)
        if q.shape[1] == 1:
            self._make_singles_absolute()

    def _make_singles_absolute(self) -> None:
        sizes = np.diff(self.indptr)
        kept = sizes > 1
        entry_kept = np.repeat(kept, sizes)
        self.single = np.flatnonzero(~entry_kept)  # entries before renumbering
        self.single_feature = self.indices[self.single]
        self.lam[self.single_feature, 0] = self.radii[~kept]
        self._entry_kept, self._n_entries = entry_kept, len(self.indices)
        self.indptr = np.concatenate([[0], np.cumsum(sizes[kept])])
        self.indices, self.y = self.indices[entry_kept], np.ascontiguousarray(self.y[entry_kept])
        self.radii = self.radii[kept]

    def hand_back(self, left: Array, lam: Array, q: Array) -> None:
        """Share the multipliers out among the groups, in ``q``; ``left`` is what the pieces and absolute values take.

        Groups of one feature take what is more than ``lam``, the absolute values' own share.
        """
        y = self.y
        if len(self.single):
            y = np.empty((self._n_entries, 1))
            y[self._entry_kept] = self.y
            beyond = left - np.clip(left, -lam, lam)
            y[self.single] = np.clip(beyond, -self.lam, self.lam)[self.single_feature]
        q[self.entries] = self.shares * y[self.target]


def _equal_groups(sizes: Any, places: Any, m: int) -> tuple[Any, Any]:
    """The first of each class of equal groups, and the class of each group, by a 64-bit hash."""
    if not len(sizes):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    within = (np.arange(len(places)) - np.repeat(starts, sizes)).astype(np.uint64)
    words = np.random.default_rng(0).integers(2**64, size=m, dtype=np.uint64)
    # the place inside the group counts too: equal groups must list their features in the same order
    hashes = np.add.reduceat(words[places] * (2 * within + 1), starts)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    return first, inverse


class Subproblem:
    """The problem with all weights zero but the chosen."""

    def __init__(self, parts: NormalForm, Xt: Any, chosen: np.ndarray[Any, Any], lam: Array, norms: Restricted) -> None:
        self.parts, self.chosen, self.norms = parts, chosen, norms
        self.Xt = Xt[chosen]
        self.own_lam = lam
        self.lam = lam + norms.lam
        self.intercept = parts.model.intercept
        self.k = parts.n_outputs
        self.rows_apart = (
            self.k == 1 and not parts.score_forms and all(isinstance(p.atom, Loss) for p in parts.score_pieces)
        )

    def embedded(self, w: Array) -> Array:
        """The weights of all features."""
        theta = np.zeros(self.parts.shape)
        theta[self.chosen] = w
        return theta

    def scores(self, w: Array, b: Array) -> Array:
        """Xw + b."""
        return np.asarray(self.Xt.T @ w) + b

    def loss(self, scores: Array) -> float:
        """All terms of the scores."""
        total = sum(piece.value(scores) for piece in self.parts.score_pieces)
        return float(total + sum(form.value(scores) for form in self.parts.score_forms))

    @cached_property
    def _ridge(self) -> Array:
        """The diagonal quadratic terms, twice their coefficients."""
        total = np.zeros(len(self.chosen))
        for scaled in self.parts.weight_forms:
            if scaled.form.diagonal is not None:
                total += 2.0 * scaled.scale * scaled.form.diagonal[self.chosen]
        return total[:, None]

    def quadratic_grad(self, w: Array) -> Array:
        """2Mw on the chosen features."""
        total = self._ridge * w
        others = [scaled for scaled in self.parts.weight_forms if scaled.form.diagonal is None]
        if others:
            theta = self.embedded(w)
            total = total + sum(scaled.grad(theta)[self.chosen] for scaled in others)
        return total

    @cached_property
    def quadratic_diagonal(self) -> Array:
        """The diagonal of 2M, or the like, for the preconditioner."""
        total = self._ridge[:, 0].copy()
        for scaled in self.parts.weight_forms:
            form = scaled.form
            if form.diagonal is None:
                factor = form.factor if form.factor is not None else None
                if factor is not None:
                    squares = factor.multiply(factor) if sp.issparse(factor) else factor * factor
                    entries = np.asarray(squares.sum(axis=0)).ravel()
                else:
                    entries = form.matrix.diagonal()
                total += 2.0 * scaled.scale * entries[self.chosen]
        return total[:, None]

    @cached_property
    def squares(self) -> Any:
        """X'.^2, for the diagonal of X'DX."""
        return self.Xt.multiply(self.Xt).tocsr() if sp.issparse(self.Xt) else self.Xt**2

    def score_curvature(self, scores: Array) -> Array:
        """The diagonal of the Hessian by the scores: all of it where rows are apart."""
        columns = []
        for c in range(self.k):
            unit = np.zeros_like(scores)
            unit[:, c] = 1.0
            columns.append(self.parts.smooth_score_hessp(scores, unit)[:, c])
        return np.column_stack(columns)


@dataclass(eq=False)
class _Point:
    """Weights, and the value and gradient of the smooth terms there."""

    w: Array
    b: Array
    scores: Array
    value: float  # with the absolute values
    grad: Array
    grad_b: Array


class Newton:
    """Orthant-wise Newton-CG steps on one subproblem at fixed multipliers."""

    def __init__(self, sub: Subproblem, sigma: Array) -> None:
        from cvxstructreg.solvers import kernels_groups as kernels

        self.sub, self.sigma, self.kernels = sub, sigma, kernels
        norms = sub.norms
        self.groups = (norms.indptr, norms.indices)
        self.huber = (norms.indptr, norms.indices, norms.radii, sigma, norms.y)

    def at(self, w: Array, b: Array) -> _Point:
        """The point with its value and gradient."""
        sub = self.sub
        scores = sub.scores(w, b)
        slope = sub.parts.smooth_score_grad(scores)
        quadratic = sub.quadratic_grad(w)
        grad = np.asarray(sub.Xt @ slope) + quadratic
        value = sub.loss(scores) + 0.5 * float(np.sum(quadratic * w)) + float(np.sum(sub.lam * np.abs(w)))
        value += self.kernels.huber(*self.huber, w, grad)
        grad_b = slope.sum(axis=0) if sub.intercept else np.zeros(sub.k)
        return _Point(w, b, scores, value, grad, grad_b)

    def pseudo_gradient(self, point: _Point) -> Array:
        """The subgradient of least norm, with the absolute values."""
        lam, g, w = self.sub.lam, point.grad, point.w
        at_zero = np.sign(g) * np.maximum(np.abs(g) - lam, 0.0)
        return np.where(w != 0, g + lam * np.sign(w), at_zero)

    def solve(self, w: Array, b: Array, scale: Array, tol: float) -> tuple[_Point, float]:
        """Steps until |pseudo-gradient_j| <= tol * scale_j; the point and what was reached."""
        point = self.at(w, b)
        for _ in range(NEWTON_STEPS):
            slope = self.pseudo_gradient(point)
            error = float(np.max(np.abs(slope) / scale, initial=0.0))
            error = max(error, float(np.max(np.abs(point.grad_b), initial=0.0)) / float(scale.max()))
            if error <= tol:
                break
            step, step_b = self.direction(point, slope, min(0.1, np.sqrt(error)))
            moved = self.search(point, slope, step, step_b)
            if moved is None:
                break
            point = moved
        return point, error

    def direction(self, point: _Point, slope: Array, accuracy: float) -> tuple[Array, Array]:
        """Conjugate gradients with diagonal preconditioner for H p = -slope on the free weights and intercepts."""
        sub, kernels = self.sub, self.kernels
        free = (point.w != 0) | (slope != 0)
        curvature = sub.score_curvature(point.scores)
        inside = np.zeros_like(point.w)
        h, a = kernels.huber_curvature(*self.huber, point.w, inside)
        diagonal = inside + sub.quadratic_diagonal + np.asarray(sub.squares @ curvature)
        kernels.add_curvature_diagonal(*self.groups, h, a, diagonal)
        floor = 1e-10 * float(diagonal.max(initial=0.0)) + 1e-300
        diagonal = np.where(free, diagonal + floor, 1.0)
        diagonal_b = curvature.sum(axis=0) + 1e-10 * float(np.abs(curvature).sum()) + 1e-300

        def product(p: Array, p_b: Array) -> tuple[Array, Array]:
            s = np.asarray(sub.Xt.T @ p) + p_b
            s = curvature * s if sub.rows_apart else sub.parts.smooth_score_hessp(point.scores, s)
            out = np.asarray(sub.Xt @ s) + inside * p + floor * p
            if sub.parts.weight_forms:
                out += sub.quadratic_grad(p)
            kernels.add_curvature(*self.groups, h, a, p, out)
            out_b = s.sum(axis=0) + 1e-10 * diagonal_b * p_b if sub.intercept else np.zeros(sub.k)
            return np.where(free, out, 0.0), out_b

        r, r_b = np.where(free, -slope, 0.0), -point.grad_b
        x, x_b = np.zeros_like(r), np.zeros_like(r_b)
        z, z_b = r / diagonal, r_b / diagonal_b
        p, p_b = z, z_b
        rho = first = float(np.sum(r * z) + np.sum(r_b * z_b))
        for _ in range(CG_STEPS):
            Hp, Hp_b = product(p, p_b)
            bend = float(np.sum(p * Hp) + np.sum(p_b * Hp_b))
            if bend <= 0:
                break
            t = rho / bend
            x, x_b, r, r_b = x + t * p, x_b + t * p_b, r - t * Hp, r_b - t * Hp_b
            z, z_b = r / diagonal, r_b / diagonal_b
            rho, last = float(np.sum(r * z) + np.sum(r_b * z_b)), rho
            if rho <= accuracy**2 * first:
                break
            p, p_b = z + (rho / last) * p, z_b + (rho / last) * p_b
        if not x.any() and not x_b.any():
            return np.where(free, -slope, 0.0) / diagonal, -point.grad_b / diagonal_b
        return x, x_b

    def search(self, point: _Point, slope: Array, step: Array, step_b: Array) -> _Point | None:
        """The first of the steps 1, 1/2, 1/4 ... that lowers the value enough; weights stop at a change of sign."""
        orthant = np.where(point.w != 0, np.sign(point.w), -np.sign(slope))
        length = 1.0
        for _ in range(30):
            w = point.w + length * step
            w = np.where((self.sub.lam > 0) & (w * orthant <= 0), 0.0, w)
            b = point.b + length * step_b
            trial = self.at(w, b)
            gain = float(np.sum(slope * (w - point.w)) + np.sum(point.grad_b * (b - point.b)))
            if trial.value <= point.value + 1e-4 * min(gain, 0.0) + 1e-14 * abs(point.value):
                return trial
            length *= 0.5
        return None


@dataclass(eq=False)
class Widths:
    """The width tau of the Huber functions, kept from one subproblem to the next."""

    relative: float = WIDEST
    size: float = 1.0


def minimise(
    sub: Subproblem, w: Array, b: Array, scale: Array, target: float, widths: Widths
) -> tuple[Array, Array, np.ndarray[Any, Any], float]:
    """Multiplier steps until the duality gap is about ``target`` (absolute); w, b, features at zero, the slack left.

    ``scale`` are the sizes that the gradient is compared with, one for each weight. The multipliers in ``sub.norms``
    change in place.
    """
    from cvxstructreg.solvers import kernels_groups as kernels

    norms = sub.norms
    last, tol = np.inf, 1e-2
    outside = np.ones(len(norms.radii), dtype=np.uint8)
    slack = 0.0
    for _ in range(MULTIPLIER_STEPS):
        largest = float(np.abs(w).max(initial=0.0))
        if largest > 0:
            widths.size = largest
        sigma = np.maximum(norms.radii, 1e-300) / (widths.relative * widths.size)
        newton = Newton(sub, sigma)
        value = max(newton.at(w, b).value, 1e-300)
        finest = 0.2 * target / value
        point, error = newton.solve(w, b, scale, max(tol, finest))
        w, b = point.w, point.b
        slack, outside = kernels.multipliers(norms.indptr, norms.indices, norms.radii, sigma, norms.y, w)
        if slack <= 0.3 * target and error <= 2 * finest:
            break
        tol = min(tol, 0.1 * slack / value)
        if slack > 0.1 * last:
            widths.relative = max(widths.relative * 0.1, NARROWEST)
        last = slack
    zero = np.zeros(len(sub.chosen), dtype=bool)
    zero[norms.indices[np.repeat(outside == 0, np.diff(norms.indptr))]] = True
    return w, b, zero, slack
