"""ADMM with adaptive penalty and over-relaxation, for any sum of terms f_t(K_t x) whose f_t have a prox.

    minimize  q(x) + sum_t f_t(Z_t)   subject to  Z_t = K_t x,     x = (unit theta, b)

Here q is the sum of all quadratic terms. The step in x solves one linear system, which is factorised once for each
value of rho. Each term has its own penalty rho_t = rho / ||K_t||^2. The unit, a power of two, gives weights and
intercepts the same scale. See Boyd et al. (2011), sections 3.4 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.forms.quadratic_form import to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import Need, Proxes
from cvxstructreg.solvers.sizes import NoLooseWeights
from cvxstructreg.solvers.solver import Solver

#: The linear system is factorised up to this many unknowns, and solved by conjugate gradients beyond.
FACTORISE = 3000
#: Accuracy and iteration limit of these conjugate gradients.
CG_TOL, CG_STEPS = 1e-10, 500
#: Iterations before the first change of rho, and between two changes at least.
ADAPT_EVERY = 10
#: rho changes only by more than this factor, since every change costs a factorisation.
LEAST_CHANGE = 3.0
#: One change of rho is at most this factor, in either direction.
MOST_CHANGE = 10.0


@dataclass(eq=False)
class _Block:
    """One term with its copy Z of K x, its scaled multiplier and its weight in the augmented Lagrangian."""

    prox: Callable[[Array, float], Array]
    K: Any  # on x = (theta, b)
    weight: float
    number: int | None  # the number of the term; None for the separable part
    copies_weights: bool
    Z: Array
    multiplier: Array

    def step(self, Kx: Array, rho: float, relaxation: float) -> tuple[float, float, float]:
        """Take the prox and multiplier steps; return the squared primal residual and the squared sizes of Kx and Z."""
        penalty = rho * self.weight
        relaxed = relaxation * Kx + (1.0 - relaxation) * self.Z
        self.Z = self.prox(relaxed + self.multiplier, 1.0 / penalty)
        self.multiplier = self.multiplier + relaxed - self.Z
        miss = float(np.sum((Kx - self.Z) ** 2))
        return self.weight * miss, self.weight * float(np.sum(Kx**2)), self.weight * float(np.sum(self.Z**2))


class _System:
    """(2 Q + rho sum_t weight_t K_t'K_t) x = rhs, with x of d + 1 rows."""

    def __init__(self, problem: Problem, blocks: list[_Block], size: int, unit: float) -> None:
        self.blocks, self.size = blocks, size
        self.dense = size <= FACTORISE
        parts, design = problem.normal_form, _with_intercept(problem, unit)
        self.forms = [(2.0 * form.scale / unit**2, form.form, None) for form in parts.weight_forms]
        self.forms += [(2.0 * form.scale, form.form, design) for form in parts.score_forms]
        if self.dense:
            self.quadratic = self._sum([(scale, *self._dense_form(form, A)) for scale, form, A in self.forms])
            self.gram = sum((block.weight * _dense_gram(block.K) for block in blocks), np.zeros((size, size)))

    def _dense_form(self, form: Any, design: Any) -> tuple[Array]:
        matrix = form.matrix
        if design is not None:
            return (to_dense(design.T @ (matrix @ design)),)
        padded = np.zeros((self.size, self.size))
        padded[: form.size, : form.size] = to_dense(matrix)
        return (padded,)

    def _sum(self, terms: list[tuple[float, Array]]) -> Array:
        return sum((scale * matrix for scale, matrix in terms), np.zeros((self.size, self.size)))

    def prepare(self, rho: float) -> Callable[[Array, Array], Array]:
        """A function of (right-hand side, start) that solves the system for this rho."""
        if self.dense:
            matrix = self.quadratic + rho * self.gram
            factor, shift = _factor(matrix)
            return lambda rhs, start: np.asarray(scipy.linalg.cho_solve(factor, rhs + shift * start))
        operator = spla.LinearOperator((self.size, self.size), matvec=lambda x: self._apply(x, rho), dtype=float)

        def solve(rhs: Array, start: Array) -> Array:
            def column(j: int) -> Array:
                found = spla.cg(
                    operator,
                    rhs[:, j],
                    x0=start[:, j],
                    rtol=CG_TOL,
                    maxiter=CG_STEPS,
                    callback=lambda _: deadline.check(),
                )
                return np.asarray(found[0])

            return np.column_stack([column(j) for j in range(rhs.shape[1])])

        return solve

    def _apply(self, x: Array, rho: float) -> Array:
        column = x.reshape(-1, 1)
        total = np.zeros_like(column)
        for scale, form, design in self.forms:
            if design is None:
                total[:-1] += scale * form.apply(column[:-1])
            else:
                total += scale * (design.T @ form.apply(design @ column))
        for block in self.blocks:
            total += rho * block.weight * (block.K.T @ (block.K @ column))
        return np.asarray(total.ravel())


def run(
    problem: Problem, start: Iterate, tol: float, rho: float | None = None, relaxation: float = 1.6, adapt: bool = True
) -> Iterator[Iterate]:
    """``rho`` is the initial penalty, chosen from the scale of the problem by default; ``adapt`` lets it change."""
    if not 0 < relaxation < 2:
        raise ValueError(f"relaxation must be between 0 and 2, got {relaxation}")
    unit = _weight_unit(problem)
    x = np.vstack([unit * start.theta, start.b])
    blocks = _blocks(problem, x, start.dual, unit)
    rho = _first_rho(problem, unit) if rho is None else float(rho)
    if rho <= 0:
        raise ValueError(f"rho must be positive, got {rho}")
    for block in blocks:
        block.multiplier = block.multiplier / (rho * block.weight)
    system = _System(problem, blocks, x.shape[0], unit)
    solve, count, next_change = system.prepare(rho), 0, ADAPT_EVERY
    while True:
        rhs = rho * sum(block.weight * (block.K.T @ (block.Z - block.multiplier)) for block in blocks)
        x = solve(np.asarray(rhs), x)
        before = [block.Z for block in blocks]
        sizes = np.array([block.step(np.asarray(block.K @ x), rho, relaxation) for block in blocks]).sum(axis=0)
        yield _iterate(problem, blocks, x, rho, unit)
        count += 1
        if adapt and count >= next_change:
            change = _balanced(blocks, before, sizes, rho)
            if change > LEAST_CHANGE or change < 1.0 / LEAST_CHANGE:
                rho *= change
                for block in blocks:
                    block.multiplier = block.multiplier / change
                solve = system.prepare(rho)
            next_change = count + max(ADAPT_EVERY, count // 2)  # less and less often, so that rho settles


def _balanced(blocks: list[_Block], before: list[Array], sizes: Array, rho: float) -> float:
    """The factor for rho that would make the relative primal and dual residuals equal."""
    moved = sum(block.K.T @ (block.weight * (block.Z - old)) for block, old in zip(blocks, before, strict=True))
    pulled = sum(block.K.T @ (block.weight * block.multiplier) for block in blocks)
    held = max(float(np.linalg.norm(block.K.T @ (block.weight * block.multiplier))) for block in blocks)
    primal = np.sqrt(sizes[0]) / max(np.sqrt(max(sizes[1], sizes[2])), 1e-300)
    dual = float(np.linalg.norm(moved)) / max(held, float(np.linalg.norm(pulled)), 1e-300)
    if not (primal > 0 and dual > 0):
        return 1.0
    return float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 1.0 / MOST_CHANGE, MOST_CHANGE))


def _factor(matrix: Array) -> tuple[Any, float]:
    """The Cholesky factor of matrix + shift I, and the part of the shift that acts as a proximal term.

    Round-off may make eigenvalues slightly negative. If the whole shift were a proximal term around the last point,
    weights would grow a little along these directions in every iteration. So a tenth of the shift is a plain ridge,
    which outweighs the round-off.
    """
    shift = 1e-12 * (float(np.trace(matrix)) / len(matrix) or 1.0) + 1e-14 * float(np.trace(matrix))
    while True:
        shifted = matrix.copy()
        np.einsum("ii->i", shifted)[:] += shift
        try:
            return scipy.linalg.cho_factor(shifted, overwrite_a=True), 0.9 * shift
        except np.linalg.LinAlgError:
            shift *= 10.0


def _weight_unit(problem: Problem) -> float:
    """The factor of the weights in x that makes the largest column of X about as long as that of the intercept."""
    return power_of_two(float(problem.normal_form.column_norms.max()) / np.sqrt(problem.model.n_rows))


def _first_rho(problem: Problem, unit: float) -> float:
    """The ratio of dual to primal scale: the gradient at zero over weights of size one."""
    parts = problem.normal_form
    strengths = [piece.scale * _typical_cost(piece.atom) for piece in parts.score_pieces]
    strengths += [piece.scale / unit for piece in parts.weight_pieces]
    if parts.separable is not None:
        strengths.append(float(np.max(parts.separable.weights)) / unit)
    return float(np.median([s for s in strengths if s > 0] or [1.0]))


def _typical_cost(atom: Atom) -> float:
    """The mean sample weight of a loss, rounded to a power of two; 1 for other terms."""
    return power_of_two(float(np.mean(atom.sample_weight))) if isinstance(atom, Loss) else 1.0


def _with_intercept(problem: Problem, unit: float) -> Any:
    """[A / unit, 1], or [A / unit, 0] if there is no intercept, so that b has no effect."""
    design, n = problem.model.design, problem.model.n_rows
    design = design if unit == 1.0 else design / unit
    column = np.full((n, 1), 1.0 if problem.model.intercept else 0.0)
    return sp.csr_array(sp.hstack([design, column])) if sp.issparse(design) else np.hstack([design, column])


def _dense_gram(K: Any) -> Array:
    return to_dense(K.T @ K)


def _blocks(problem: Problem, x: Array, dual: Mapping[int, Array], unit: float) -> list[_Block]:
    parts, design = problem.normal_form, _with_intercept(problem, unit)
    d = problem.model.n_weights
    pick = sp.eye_array(d, d + 1, format="csr") / unit
    blocks = []
    for piece in parts.pieces:
        on_scores = piece in parts.score_pieces
        base = design if on_scores else pick
        K = base if piece.K is None else piece.K @ base
        u = dual.get(piece.number)
        K, copies_weights = sp.csr_array(K) if sp.issparse(K) else K, piece.K is None and not on_scores
        blocks.append(_block(_scaled_prox(piece), K, piece.number, copies_weights, x, u))
    if parts.separable is not None:
        blocks.append(_block(parts.separable.prox, pick, None, True, x, None))
    return blocks


def _scaled_prox(piece: Piece) -> Callable[[Array, float], Array]:
    return lambda v, t: piece.atom.prox(v, t * piece.scale)


def _block(
    prox: Callable[[Array, float], Array], K: Any, number: int | None, copies_weights: bool, x: Array, u: Array | None
) -> _Block:
    squares = float(np.max(np.asarray((K.multiply(K) if sp.issparse(K) else K * K).sum(axis=0)), initial=0.0))
    Z = np.asarray(K @ x)
    multiplier = np.zeros_like(Z) if u is None else np.array(u)
    return _Block(prox, K, 1.0 / (squares or 1.0), number, copies_weights, Z, multiplier)


def _iterate(problem: Problem, blocks: list[_Block], x: Array, rho: float, unit: float) -> Iterate:
    """The iterate: the copy of the weights with bounds and exact zeros, if there is one, and multipliers as duals."""
    theta, b = x[:-1] / unit, x[-1] if problem.model.intercept else np.zeros(x.shape[1])
    for block in blocks:
        if block.copies_weights:
            theta = block.Z
    dual = {block.number: rho * block.weight * block.multiplier for block in blocks if block.number is not None}
    return Iterate(theta, b, dual)


@dataclass(frozen=True)
class QuickProxes(Need):
    """No loss has a prox that takes Newton steps for several scores at once."""

    def __str__(self) -> str:
        return "losses with a quick prox"

    def missing(self, problem: Problem) -> str | None:
        """Name the first loss with a slow one."""
        atoms = (piece.atom for piece in problem.normal_form.score_pieces)
        slow = next((atom for atom in atoms if isinstance(atom, Loss) and atom.has_slow_prox), None)
        return None if slow is None else f"the prox of {slow!r} takes many steps"


SOLVER = Solver(
    "admm", run, (Proxes(),), rough_zeros=True, cheap_steps=True, fastest_if=(QuickProxes(), NoLooseWeights())
)
