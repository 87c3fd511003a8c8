"""Newton systems with few rows at a kink: as many unknowns as such rows and active blocks, instead of weights.

For one piecewise linear loss beside absolute values and block norms of single weights, the Newton matrix is

    H = D - V V' + sigma A'A        D diagonal, V one column for each active block, A the rows at a kink

With y = sigma A dx and t = V'dw, the weights are dw = D^-1 (r - A'y + V t), and y, t and the intercept remain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.general.dense_system import LONG, TINY, DenseSystem
from cvxstructreg.solvers.general.dual_sets import Balls, Intervals
from cvxstructreg.solvers.general.newton_products import is_plain

if TYPE_CHECKING:
    from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian, State
    from cvxstructreg.solvers.general.rough_term import RoughTerm

#: The most rows at a kink and active blocks, in parts of the weights; and the least number of weights. The most
#: of both together where dense matrices are in single precision, which costs half.
FEW_ROWS, FEW_BLOCKS, LEAST_WEIGHTS = 0.35, 0.5, 50
FEW_SINGLE = 0.35
#: A step whose residual is larger than this part of the right side is found by the dense matrix.
RESIDUAL = 1e-9


def applies(function: AugmentedLagrangian) -> bool:
    """Whether the only score term is a piecewise linear loss, and the others act on single weights or their blocks."""
    if function.k > 1 or function.smooth or function.has_quadratic or function.n_weights < LEAST_WEIGHTS:
        return False
    of_scores = [term for term in function.rough if term.of_scores]
    others = [term for term in function.rough if not term.of_scores]
    one = len(of_scores) == 1 and isinstance(of_scores[0].dual_set, Intervals) and not of_scores[0].centred
    return one and all(is_plain(term.rows) for term in others)


def row_system(function: AugmentedLagrangian, state: State) -> RowSystem | None:
    """The system by rows at a kink; None if these and the active blocks are not few."""
    (number,) = (number for number, term in enumerate(function.rough) if term.of_scores)
    active = function.rough[number].dual_set.slopes(state.arguments[number])[0][:, 0] > 0
    if np.count_nonzero(active) > FEW_ROWS * function.n_weights:
        return None
    system = RowSystem(function, state, function.rough[number], active)
    if function.single and len(system.rows) + len(system.V) > FEW_SINGLE * function.n_weights:
        return None
    return system if len(system.V) <= FEW_BLOCKS * function.n_weights else None


class RowSystem:
    """H dx = right, by the rows at a kink."""

    def __init__(self, function: AugmentedLagrangian, state: State, loss: RoughTerm, active: NDArray[np.bool_]) -> None:
        self.function, self.state, d = function, state, function.n_weights
        self.sigma, self.rows = loss.sigma, loss.rows[active]
        self.dense: DenseSystem | None = None
        self.diagonal, columns = np.zeros(d), [np.zeros((0, d))]
        for term, u in zip(function.rough, state.arguments, strict=True):
            if term.of_scores:
                continue
            slopes, units = term.dual_set.slopes(u)
            weights = term.sigma * slopes[:, 0] * term.rows.data**2
            self.diagonal += np.bincount(term.rows.indices, weights, minlength=d)[:d]
            if isinstance(term.dual_set, Balls) and units is not None:
                columns.append(_blocks(term, term.dual_set, units[:, 0], d))
        self.V = np.concatenate(columns)  # the columns of V, as rows

    def direction(self, right: Array, typical: float) -> Array:
        """H^-1 right; by the dense matrix if that is not accurate, or longer than LONG times the typical score."""
        if self._factored():
            dx = self.solve(right)
            lengths = self.function.lengths[:, None]
            accurate = np.max(np.abs(self.product(dx) - right)) <= RESIDUAL * np.max(np.abs(right))
            if accurate and float(np.max(np.abs(dx) * lengths)) <= LONG * typical:
                return dx
        self.dense = self.function.dense_system(self.state)[0]
        return self.dense.direction(right, typical)

    def _factored(self) -> bool:
        d = self.function.n_weights
        if not np.all(self.diagonal > 0.0):
            return False
        lifted = self.diagonal + TINY * (self.diagonal + self.function.capacity[:d])
        self.inverse = 1.0 / lifted
        A, root = self.rows[:, :d], np.sqrt(self.inverse)
        scaled, roots = A * root, self.V * root
        S = scaled @ scaled.T
        S[np.diag_indices(len(S))] += 1.0 / self.sigma
        self.S, failed = dpotrf(S.T, lower=1, clean=0, overwrite_a=1) if len(S) else (S, 0)
        if failed:
            return False
        self.C = roots @ scaled.T  # blocks x rows; the last row stands for the intercept
        bend = np.eye(len(roots)) - roots @ roots.T
        if self.function.size > d:
            self.C = np.vstack([self.C, np.ones(len(A))])
            bend = np.pad(bend, (0, 1))
            bend[-1, -1] = TINY * self.function.capacity[-1]
        self.solved = self._rows_solved(self.C.T)
        self.N: Array
        self.N, failed = dpotrf(bend + self.C @ self.solved, lower=1, clean=0) if len(bend) else (bend, 0)
        return not failed

    def _rows_solved(self, right: Array) -> Array:
        """S^-1 right."""
        return np.asarray(dpotrs(self.S, right, lower=1)[0]) if len(right) and right.size else np.zeros(right.shape)

    def solve(self, right: Array) -> Array:
        """H^-1 right by the last factors."""
        if self.dense is not None:
            return self.dense.solve(right)
        d = self.function.n_weights
        r, A = right[:d, 0], self.rows[:, :d]
        y = self._rows_solved(A @ (self.inverse * r))
        target = np.concatenate([self.V @ (self.inverse * r), right[d:, 0]]) - self.C @ y
        t = np.asarray(dpotrs(self.N, target, lower=1)[0]) if len(target) else target
        y = y + self.solved @ t
        dw = self.inverse * (r - A.T @ y + self.V.T @ t[: len(self.V)])
        return np.concatenate([dw, t[len(self.V) :]])[:, None]

    def product(self, dx: Array) -> Array:
        """H dx, without the regularisation."""
        d = self.function.n_weights
        out = np.asarray(self.rows.T @ (self.sigma * (self.rows @ dx)))
        out[:d, 0] += self.diagonal * dx[:d, 0] - self.V.T @ (self.V @ dx[:d, 0])
        return out


def _blocks(term: RoughTerm, balls: Balls, units: Array, d: int) -> Array:
    """The columns of V for the blocks of a term that are active."""
    used = np.zeros(len(balls.radii), dtype=bool)
    used[balls.owner[units != 0.0]] = True
    number, chosen = np.cumsum(used) - 1, used[balls.owner]
    values = np.sqrt(term.sigma) * (term.rows.data * units)[chosen]
    places = number[balls.owner[chosen]] * d + term.rows.indices[chosen]
    return np.asarray(np.bincount(places, values, minlength=int(used.sum()) * d), dtype=float).reshape(-1, d)
