"""The quadratic model of a prox-Newton step over disjoint groups, minimised over some of them and the intercepts.

    g'Xd + 1/2 (Xd)'H(Xd) + 1/2 (w + d)'Q(w + d) + R(w + d)

Here g and H are the first and second derivatives of the loss with respect to the scores, and R is the sum of L1 terms
and group norms. The passes over the groups are in ``compiled_group_descent``, or without numba in
``plain_group_descent``.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.groups.disjoint_blocks import Blocks, Ints, ratio

#: Passes over the nonzero groups before a jump; limits of the conjugate gradient steps and of the halvings of a jump.
SETTLING, MOST_CG, HALVINGS = 2, 100, 6
#: A curvature below this part of the diagonal of the Hessian is round-off; steps along such directions diverge.
FLAT = float(np.finfo(float).eps)


class Given:
    """The data shared by all models of one problem, and scratch space."""

    def __init__(self, compiled: ModuleType, X: Any, Q: Any, blocks: Blocks, sizes: Array, squares: Array) -> None:
        self.compiled, self.X, self.blocks, self.squares = compiled, X, blocks, squares
        self.matrix, self.diagonal = Q, Q.diagonal()
        self.Q = (Q.data.astype(float), Q.indices.astype(np.uint32), Q.indptr.astype(np.int64))
        self.layout = (blocks.column, blocks.starts, blocks.radii, sizes, blocks.lam)
        k, slots = blocks.k, blocks.column.size
        self.curvature, self.centre = np.zeros(slots * k), np.zeros(slots * k * k)
        self.factors = np.ones(blocks.radii.size)


class BlockModel:
    """The model at a point over the chosen groups; ``w`` and ``Qw`` are its current minimiser."""

    def __init__(self, given: Given, chosen: Ints, hess: tuple[Array, Array, Array], g: Array, w: Array, Qw: Array):
        self.given, self.chosen, self.hess, self.k = given, chosen, hess, given.blocks.k
        self.start, self.w, self.Qw, self.r = w, w.copy(), Qw.copy(), by_rows(g).copy()
        self.total = g.sum(axis=0)
        self.passes, self.part = 0, given.blocks.part(chosen)
        given.factors = np.maximum(0.5 * given.factors, 1.0)
        least = 1e-10 * float(hess[0].max(initial=0.0)) * given.squares
        how = (given.X, given.layout, chosen, hess, self.k)
        given.compiled.curvatures(*how, given.diagonal, least, given.curvature, given.centre)

    def descend(self, chosen: Ints, tol: float, passes: int) -> float:
        """Passes over the groups until no step exceeds ``tol``; returns the largest step of the last pass."""
        given = self.given
        worst, done = given.compiled.descend(
            given.X, given.Q, given.layout, chosen, self.hess, self.k, given.curvature, given.centre, given.factors,
            self.total, self.r, self.w, self.Qw, tol, passes,
        )  # fmt: skip
        self.passes += done
        return float(worst)

    def minimise(self, tol: float, max_passes: int) -> None:
        """Repeat: a pass over all groups, a few passes over the nonzero groups, and a jump to their minimum."""
        while self.passes < max_passes and self.descend(self.chosen, tol, 1) > tol and not deadline.passed():
            moving = self.moving()
            if self.descend(moving, tol, SETTLING) > tol:
                self.jump(moving, 0.5 * tol)

    def moving(self) -> Ints:
        """The chosen groups that are nonzero or have no penalty."""
        part, flat = self.part
        free = (self.w[flat] != 0.0) | ((part.lam == 0.0) & (part.radii == 0.0)[part.group])
        return self.chosen[part.sums(free.astype(float)) > 0.0]

    def jump(self, chosen: Ints, tol: float) -> None:
        """A Newton step of all weights away from kinks, shortened so that signs stay and the model decreases."""
        surface = Surface(self, chosen)
        if surface.kept.any() and surface.error(surface.slope) > tol:
            self._take(surface, *surface.newton_step(tol))

    def _take(self, surface: Surface, p: Array, scores: Array) -> None:
        """Halve the step until the model decreases, then take it."""
        part, v, matrix = surface.part, surface.v, self.given.matrix
        kinked = (part.lam > 0.0) & (v * p < 0.0)
        t = min(1.0, float(np.min(-v[kinked] / p[kinked], initial=1.0)))
        bent, moved, Qp = self.bent(scores), surface.moved(p), np.zeros_like(self.w)
        if matrix.nnz:
            Qp = np.asarray(matrix @ surface.spread(p).reshape(-1, self.k)).ravel()
        along = float(surface.smooth @ p)
        second = float(np.vdot(scores, bent) - moved @ self.hess[2] @ moved + p @ Qp[surface.flat])
        before = part.value(v)
        for _ in range(HALVINGS):
            new = v + t * p
            # the weight that limits the step is zero up to round-off
            new[(part.lam > 0.0) & (np.abs(new) <= 1e-14 * np.abs(v))] = 0.0
            if t * along + 0.5 * t * t * second + part.value(new) < before:
                self.w[surface.flat] = new
                self.r += t * bent
                self.Qw += t * Qp
                self.total += t * moved
                return
            t *= 0.5

    def bent(self, scores: Array) -> Array:
        """H times scores."""
        direct, root, _ = self.hess
        if not len(root):
            return np.asarray(direct * scores)
        return np.asarray(direct * scores - root * np.sum(root * scores, axis=1, keepdims=True))

    def change(self) -> tuple[Array, Array]:
        """The change of the scores and of the intercepts from the point where the model was built."""
        given, shift, change = self.given, -(self.hess[2] @ self.total), np.zeros_like(self.r)
        given.compiled.add_columns(given.X, given.layout, self.chosen, self.w - self.start, self.k, change)
        return change.reshape(-1, self.k) + shift, shift


class Surface:
    """Slope and Hessian of the model on the weights away from kinks, where the model is smooth.

    The norm of a group has the Hessian c (I - u u') / ||w_g|| there, with u = w_g / ||w_g||.
    """

    def __init__(self, model: BlockModel, chosen: Ints) -> None:
        given, k = model.given, model.k
        self.model, self.chosen = model, chosen
        self.part, self.flat = given.blocks.part(chosen)
        part, flat = self.part, self.flat
        self.v = model.w[flat]
        # products with many columns at once are faster by BLAS than column by column
        self.columns = given.X[0][part.column] if given.X[0].ndim == 2 else None
        norms = part.norms(self.v)
        self.pull, self.unit = (
            ratio(part.radii, norms)[part.group],
            self.v * ratio(np.ones_like(norms), norms)[part.group],
        )
        self.centre = given.centre.reshape(-1, k)[flat]
        curvature = given.curvature[flat]
        self.kept = ((self.v != 0.0) | (part.lam == 0.0)) & (curvature > 0.0)
        self.kept &= (part.radii == 0.0)[part.group] | (norms > 0.0)[part.group]
        self.smooth = self._pulled(model.r, model.total) + model.Qw[flat]
        self.slope = np.where(self.kept, part.subgradient(self.v, self.smooth), 0.0)
        self.diagonal = np.where(self.kept, curvature + self.pull * np.maximum(1.0 - self.unit**2, 0.0), 1.0)
        self.held = np.where(self.kept, curvature + self.pull, 1.0)
        self.along = np.where(self.kept, self.unit / self.held, 0.0)
        self.gain = ratio(self.pull, np.maximum(1.0 - self.pull * part.sums(self.unit * self.along)[part.group], FLAT))

    def _pulled(self, r: Array, total: Array) -> Array:
        """X'r on these weights after minimising over the intercepts; ``total`` is the sum of r over the rows."""
        given, k, shift = self.model.given, self.model.k, self.centre @ (self.model.hess[2] @ total)
        if self.columns is not None:
            return np.asarray((self.columns @ r).ravel() - shift)
        found = np.empty_like(self.model.w)
        given.compiled.slopes(given.X, given.layout, self.chosen, r, k, found)
        return np.asarray(found[self.flat] - shift)

    def scores(self, p: Array, full: Array) -> Array:
        """X p; ``full`` is p in a flat array of all weights."""
        model, given = self.model, self.model.given
        if self.columns is not None:
            return np.asarray(self.columns.T @ p.reshape(-1, model.k)).reshape(model.r.shape)
        scores = np.zeros_like(model.r)
        given.compiled.add_columns(given.X, given.layout, self.chosen, full, model.k, scores)
        return scores

    def moved(self, p: Array) -> Array:
        """The change of the sum of r over the rows due to a step p."""
        return np.asarray(p @ self.centre)

    def spread(self, p: Array) -> Array:
        """p in a flat array of all weights."""
        full = np.zeros_like(self.model.w)
        full[self.flat] = p
        return full

    def error(self, residual: Array) -> float:
        """The largest residual of a group, relative to its size."""
        return float(np.max(self.part.norms(residual) / self.model.given.layout[3][self.chosen]))

    def product(self, p: Array) -> tuple[Array, Array]:
        """The Hessian times p, and X p."""
        model, given, full = self.model, self.model.given, self.spread(p)
        scores = self.scores(p, full)
        found = self._pulled(model.bent(scores), self.moved(p))
        if given.matrix.nnz:
            found += np.asarray(given.matrix @ full.reshape(-1, model.k)).ravel()[self.flat]
        found += self.pull * (p - self.unit * self.part.sums(self.unit * p)[self.part.group])
        return np.where(self.kept, found, 0.0), scores

    def preconditioned(self, residual: Array) -> Array:
        """The residual times the inverse of D + c (I - u u') / ||w_g|| in each group, D the diagonal of the losses.

        By the formula of Sherman and Morrison, with the diagonal matrix E = D + c / ||w_g||.
        """
        return residual / self.held + self.gain * self.part.sums(self.along * residual)[self.part.group] * self.along

    def newton_step(self, tol: float) -> tuple[Array, Array]:
        """The step p and X p, by conjugate gradients, preconditioned by the diagonal and the norms."""
        step, residual, scores = np.zeros_like(self.v), -self.slope, np.zeros_like(self.model.r)
        direction = self.preconditioned(residual)
        energy = float(residual @ direction)
        for _ in range(MOST_CG):
            product, image = self.product(direction)
            bend = float(direction @ product)
            if not bend > FLAT * float(direction @ (self.diagonal * direction)):
                break
            step += (energy / bend) * direction
            scores += (energy / bend) * image
            residual = residual - (energy / bend) * product
            if self.error(residual) <= tol or deadline.passed():
                break
            better = self.preconditioned(residual)
            before, energy = energy, float(residual @ better)
            direction = better + (energy / before) * direction
        return step, scores


def by_rows(scores: Array) -> Array:
    """An array of scores in the format of the compiled loops: one-dimensional for a single output."""
    return np.ascontiguousarray(scores[:, 0] if scores.shape[1] == 1 else scores)
