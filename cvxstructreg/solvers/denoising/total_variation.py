"""Total variation denoising: squared loss, X = I, and absolute differences over the edges of chains or grids.

The edges of each direction form paths (:mod:`~cvxstructreg.solvers.denoising.paths`). With u_o = K_o'q_o for the edges
of direction o, the dual problem is

    minimize  1/2 sum_i (sum_o u_oi - s_i y_i)^2 / s_i      over all |q_o| <= lam_o

and the minimum over one u_o, with the others fixed, is the exact solution of chains. One direction is solved in a
single step. Several are minimised in turn, with momentum that is dropped when the dual objective falls. A ridge changes
s and y. L1 of equal weights is a threshold after the last step if all s_i are equal (Friedman et al. 2007).

The weights are constant on regions at the optimum, and nearly so before. Their means over regions of nearly equal
weights have a lower objective (:mod:`~cvxstructreg.solvers.denoising.regions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.chains.chain_dual import ChainDual
from cvxstructreg.forms.chains.plain_chain import PlainChain, is_identity, plain_chain
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.denoising.paths import Paths, directions
from cvxstructreg.solvers.denoising.regions import Regions
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import Need, OneLoss
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: Rounds over all directions between two looks at the gap.
ROUNDS = 5
#: Looks after which there is an iterate although the gap is large: a few early ones, and every so many; the last look.
EARLY, SHOWN, MOST_LOOKS = (1, 3), 8, 4_000
#: Means over regions are tried if the gap is within so many times the tolerance: they reduce it 5 to 50 times.
NEAR = 50.0


@dataclass(frozen=True)
class Identity(Need):
    """X = I: the scores are the weights."""

    def __str__(self) -> str:
        return "X = I"

    def missing(self, problem: Problem) -> str | None:
        """Another design matrix, or an intercept that the penalty does not make superfluous."""
        if problem.given.kernel is not None or not is_identity(problem.given):
            return "only the identity as design matrix is supported"
        parts = problem.normal_form
        if problem.given.intercept and (parts.separable is not None or parts.weight_forms):
            return "an intercept is not supported beside L1 or quadratic terms; pass intercept=False"
        return None


@dataclass(frozen=True)
class SquaredLoss(Need):
    """A loss with constant curvature on every row."""

    def __str__(self) -> str:
        return "the squared loss on all rows"

    def missing(self, problem: Problem) -> str | None:
        """Another loss, missing rows, or rows of weight zero."""
        parts = problem.normal_form
        if plain_chain(parts) is not None:
            return None
        pieces = parts.score_pieces
        if len(pieces) != 1 or not isinstance(pieces[0].atom, Loss) or not pieces[0].atom.has_constant_curvature:
            return "only the squared loss is supported"
        if pieces[0].K is not None or not np.all(pieces[0].atom.sample_weight > 0):
            return "every row must have a target, with a positive sample weight"
        if parts.score_forms:
            return "quadratic terms of the scores are not supported"
        return None


@dataclass(frozen=True)
class Differences(Need):
    """One term of absolute differences over a chain or grid, and perhaps a ridge, and L1 of equal weights."""

    def __str__(self) -> str:
        return "absolute differences over a chain, grid or volume, with a ridge and L1 of equal weights"

    def missing(self, problem: Problem) -> str | None:
        """Other terms, or edges that are no paths."""
        parts = problem.normal_form
        if plain_chain(parts) is not None:
            return None
        piece = parts.weight_pieces[0] if len(parts.weight_pieces) == 1 else None
        absolute = piece is not None and piece.atom.can("separable") and not piece.atom.separable().bounded
        if piece is None or not absolute or not sp.issparse(piece.K) or _paths_of(piece) is None:
            return f"{self}: there is no other term, and each edge joins two weights a few fixed distances apart"
        if any(scaled.form.diagonal is None for scaled in parts.weight_forms):
            return "only a ridge is supported beside the differences"
        if np.any(np.ptp(parts.score_pieces[0].atom.hess_diag(np.zeros(parts.shape)), axis=1) > 0):
            return "only outputs of equal weights are supported"
        part = parts.separable
        if part is None:
            return None
        if part.bounded or np.ptp(part.weights) > 0 or np.ptp(_curvatures(parts)) > 0:
            return "L1 is supported only with equal weights, equal sample weights and no bounds"
        return None


def _paths_of(piece: Piece) -> list[Paths] | None:
    """The paths of the edges, kept with the piece."""
    if "_paths" not in piece.__dict__:
        object.__setattr__(piece, "_paths", directions(piece.K))
    found: list[Paths] | None = piece.__dict__["_paths"]
    return found


def _curvatures(parts: NormalForm) -> Array:
    """s_i of the loss and the ridge together, of shape (n, 1)."""
    piece, d = parts.score_pieces[0], parts.model.n_weights
    total: Array = piece.scale * piece.atom.hess_diag(np.zeros(parts.shape))[:, :1]
    for scaled in parts.weight_forms:
        assert scaled.form.diagonal is not None
        total = total + 2.0 * scaled.scale * np.broadcast_to(scaled.form.diagonal, (d,))[:, None]
    return total


class Denoising:
    """One problem: curvatures s, targets y with a ridge folded in, edges by direction, and dual points."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.parts = problem, problem.normal_form
        self.loss, self.edges = self.parts.score_pieces[0], self.parts.weight_pieces[0]
        self.s = np.ascontiguousarray(_curvatures(self.parts)[:, 0])
        self.inverse = 1.0 / self.s
        slope = self.loss.grad(np.zeros(self.parts.shape))
        self.y = -slope / self.s[:, None]
        found = _paths_of(self.edges)
        assert found is not None
        self.paths = found
        weights = self.edges.scale * np.broadcast_to(self.edges.atom.separable().weights, (self.edges.K.shape[0], 1))
        self.strengths = [paths.strengths(weights[:, 0]) for paths in self.paths]
        self.even = [self._even(paths, lam) for paths, lam in zip(self.paths, self.strengths, strict=True)]
        self.threshold = 0.0 if self.parts.separable is None else float(np.ravel(self.parts.separable.weights)[0])

    def _even(self, paths: Paths, lam: Array) -> float:
        """lam / s of the edges of a direction if that is the same for all, else -1."""
        largest = float(lam.max(initial=0.0))
        same = np.count_nonzero(lam == largest) >= len(lam) - len(paths.first)  # the last of a path has none
        return largest / float(self.s[0]) if same and np.ptp(self.s) == 0.0 else -1.0

    def variation(self, x: Array) -> float:
        """The penalty of the differences, for one output."""
        from cvxstructreg.solvers.denoising.compiled_chain import variation

        pairs = zip(self.paths, self.strengths, strict=True)
        return sum(variation(paths.offset, lam, x) for paths, lam in pairs)

    def value(self, column: int, x: Array) -> float:
        """The objective of one output without L1, apart from a constant."""
        return 0.5 * float(self.s @ (x - self.y[:, column]) ** 2) + self.variation(x)

    def iterate(self, weights: list[Array], flows: list[list[Array]], tol: float, last: bool) -> Iterate:
        """The point with its dual point: multipliers of the edges, and of the loss so that both are in balance."""
        from cvxstructreg.solvers.denoising.compiled_chain import flows as summed

        x = np.column_stack(weights)
        q = np.zeros((self.edges.K.shape[0], x.shape[1]))
        for column, parts in enumerate(flows):
            for paths, strengths, u in zip(self.paths, self.strengths, parts, strict=True):
                along = np.empty(len(u))
                summed(paths.offset, paths.edges, strengths, u, along)
                inner = paths.edges >= 0
                q[paths.edges[inner], column] = (along * paths.signs)[inner] / paths.sizes[inner]
        absorbed = self.edges.adjoint(q) + self.parts.quadratic_grad(x)
        if self.parts.separable is not None:
            x = np.sign(x) * np.maximum(np.abs(x) - self.threshold / self.s[:, None], 0.0)
            slope = self.loss.grad(x)
            absorbed = self.edges.adjoint(q) + self.parts.quadratic_grad(x)
            absorbed = absorbed + self.parts.separable.absorb(-slope - absorbed)
        dual = {self.loss.number: -absorbed, self.edges.number: q}
        b = np.zeros(x.shape[1])
        promising = None if len(self.paths) == 1 else self._gap(x, dual) <= tol * abs(self.problem.value_at(x, b))
        return Iterate(x, b, dual, exhausted=last, promising=promising)

    def _gap(self, x: Array, dual: dict[int, Array]) -> float:
        """The duality gap without the cost of round-off."""
        quadratic = self.parts.quadratic_value_and_grad(x)[0]
        value = self.problem.value_at(x, np.zeros(x.shape[1]))
        return value + self.loss.conj(dual[self.loss.number]) + quadratic


class Rounds:
    """Rounds over all directions for one output: the dual points u of the directions, and the weights x."""

    def __init__(self, function: Denoising, column: int) -> None:
        self.function, self.column = function, column
        self.y = np.ascontiguousarray(function.y[:, column])
        count = len(function.paths)
        self.flows, self.ahead, self.moved = (np.zeros((count, len(self.y))) for _ in range(3))
        self.x, self.rest = np.empty_like(self.y), self.y.copy()  # rest: y minus the sum of ahead / s
        self.size, self.bound = 1.0, -np.inf
        self.regions = Regions(function, self.y)
        self.best, self.gap, self.scale = self.x, np.inf, 0.0

    def step(self) -> None:
        """One minimisation over each direction, from the points ``ahead``, which are then moved on."""
        from cvxstructreg.solvers.denoising.compiled_chain import advance, denoise_direction, dual_value

        function = self.function
        self.x, self.rest = self.rest, self.x
        edges = zip(function.paths, function.strengths, function.even, self.ahead, self.moved, strict=True)
        for paths, lam, even, old, new in edges:
            shape = paths.offset, paths.first, paths.lengths
            denoise_direction(*shape, lam, even, function.s, function.inverse, old, new, self.x)
        if len(function.paths) == 1:  # the minimiser
            self.flows = self.moved
            return
        bound = float(dual_value(self.x, self.y, function.s))
        if bound < self.bound:
            self.size = 1.0
        following = 0.5 * (1.0 + float(np.sqrt(1.0 + 4.0 * self.size**2)))
        factor = (self.size - 1.0) / following
        advance(factor, self.moved, self.flows, self.ahead, self.y, function.inverse, self.rest)
        self.size, self.bound = following, bound

    def look(self, tol: float) -> bool:
        """Whether the gap is within the tolerance, at the weights or at their means over regions."""
        value = self.function.value(self.column, self.x)
        self.best, self.gap, self.scale = self.x, value - self.bound, tol * abs(value)
        if self.scale < self.gap <= NEAR * self.scale:
            means, value = self.regions.means(self.x)
            if value - self.bound < self.gap:
                self.best, self.gap = means, value - self.bound
        return self.gap <= self.scale


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Minimise over the edges of one direction after the other."""
    chain = plain_chain(problem.normal_form)
    if chain is not None:
        yield _solved(problem, chain)
        return
    function = Denoising(problem)
    outputs = [Rounds(function, column) for column in range(problem.n_outputs)]
    several = len(function.paths) > 1
    for count in range(1, MOST_LOOKS + 1):
        for _ in range(ROUNDS if several else 1):
            for rounds in outputs:
                deadline.check()
                rounds.step()
        near = [rounds.look(tol) if several else True for rounds in outputs]
        last = not several or count == MOST_LOOKS
        if all(near) or last or count % SHOWN == 0 or count in EARLY:
            weights = [rounds.best if several else rounds.x for rounds in outputs]
            yield function.iterate(weights, [list(rounds.flows) for rounds in outputs], tol, last)


def _solved(problem: Problem, chain: PlainChain) -> Iterate:
    """The minimiser of a long chain, with its dual point."""
    from cvxstructreg.forms.chains.compiled_identity import all_equal
    from cvxstructreg.solvers.denoising.compiled_chain import denoise_row
    from cvxstructreg.solvers.denoising.compiled_parts import denoise_long_chain

    n = len(chain.y)
    even = float(chain.lam[0] / chain.s[0]) if chain.s.size == chain.lam.size == 1 else -1.0
    x = np.empty((n, 1))
    if all_equal(chain.y):
        x[:] = chain.y[0]
    elif _is_flat(chain, null_point(problem).objective):
        x[:] = chain.mean()[0]
    elif even < 0.0 or not denoise_long_chain(chain.y, even, x[:, 0]):
        s, lam = np.broadcast_to(chain.s, (n,)).copy(), np.broadcast_to(chain.lam, (n - 1,)).copy()
        denoise_row(chain.y, -1.0, s, lam, x[:, 0])
    loss, edges = problem.normal_form.pieces
    return Iterate(x, np.zeros(1), ChainDual(chain, x, loss.number, edges.number), exhausted=True)


def _is_flat(chain: PlainChain, spread: float) -> bool:
    """Whether the best constant is known to be the minimiser, from the objective there: the ``spread`` of y.

    Sums of s (y - mean) from the start are at most (2 spread sum s)^(1/2). Multipliers far above them would lose y.
    """
    weight = len(chain.y) * float(chain.s[0]) if chain.s.size == 1 else float(chain.s.sum())
    return bool(float(chain.lam.min()) > 1.01 * (2.0 * spread * weight) ** 0.5)


NEEDS = (Identity(), SquaredLoss(), OneLoss(), Differences())
SOLVER = Solver("total_variation", run, NEEDS, AS_GIVEN, ignores_start=True)
