"""Douglas-Rachford splitting for centred hinges: the multiclass support vector machine with dissimilar pairs.

    v <- v + 1.8 (F - Z),   Z = prox of the hinges at v,   F = K A + q b' = prox of the norm at 2 Z - v

The step in F takes one factorisation of a small matrix, which all classes share. Anderson acceleration speeds up the
iteration, and Newton steps on the hinges at their kinks (``hinge_polish``) finish it. Only rows with positive hinges
are used (``hinge_bounds``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.semidefinite import not_psd
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.multiclass import hinge_polish
from cvxstructreg.solvers.multiclass.anderson import Anderson
from cvxstructreg.solvers.multiclass.hinge_bounds import Point
from cvxstructreg.solvers.multiclass.hinge_rows import NEEDS, HingeRows, geometry
from cvxstructreg.solvers.multiclass.working_rows import WorkingRows
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: Steps between two updates of the gap, and the over-relaxation.
CHECK_EVERY, RELAXATION = 10, 1.8
#: The first sigma, in units of 1 / (median diagonal of K), and the steps after which it is adapted.
SIGMA, ADAPT_AT = 5.0, (20, 50, 100, 200, 400, 800, 1600)
#: sigma changes by at most MOST_CHANGE at a time, and only if by more than LEAST_CHANGE.
MOST_CHANGE, LEAST_CHANGE = 10.0, 3.0
#: Newton steps are tried below this gap, at most POLISH_STEPS at a time, if they cost less than the part POLISH_SHARE
#: of the steps since the last try.
POLISH_BELOW, POLISH_SHARE, POLISH_STEPS = 1e-3, 0.3, 6
#: The fixed cost of a step, in multiplications.
OVERHEAD = 1e6
#: If at most this part of the rows is new, the inverse is extended by bordering rather than recomputed.
FEW = 0.1
#: How often sigma may be reduced by a factor of ten if round-off has made the kernel indefinite.
WEAKER = 20
#: The solver stops after this many updates without progress; progress is a gap below PROGRESS times the best one.
PATIENCE, PROGRESS = 1000, 0.99


def run(
    problem: Problem, start: Iterate, tol: float, sigma: float | None = None, memory: int = 8, polish: bool = True
) -> Iterator[Iterate]:
    """``sigma`` is the first step size of the dual, by default from the scale of the problem.

    ``memory`` is that of Anderson acceleration, and ``polish`` allows Newton steps.
    """
    if sigma is not None and not sigma > 0:
        raise ValueError(f"sigma must be positive, got {sigma!r}")
    if memory < 0:
        raise ValueError(f"memory must be at least 0, got {memory!r}")
    yield from _Run(problem, start, tol, sigma, memory, polish).steps()


class _Run(WorkingRows):
    """The state of one run on its working rows W."""

    def __init__(
        self, problem: Problem, start: Iterate, tol: float, sigma: float | None, memory: int, polish: bool
    ) -> None:
        rows = HingeRows.of(problem)
        self.geometry = geometry(problem, rows)
        super().__init__(problem, rows, self.geometry, start, tol)
        self.memory, self.polish = memory, polish
        self.K_all = self.geometry.columns(self.W)
        self.sigma = sigma or self._first_sigma()
        self.v = (self.Z_start + self.U_start / self.sigma)[self.W]
        self.spent, self.tried_at = 0.0, np.inf
        self._enter()
        self._factorise()

    def _first_sigma(self) -> float:
        """The ratio of multipliers to scores from the kernel, but at most :meth:`most_sigma`."""
        diagonal = float(np.median(self.K_all[self.W, np.arange(len(self.W))]))
        most = self.most_sigma()
        return SIGMA / diagonal if diagonal * most > SIGMA else most

    def _enter(self) -> None:
        """Set up the arrays of the current working rows."""
        self.K = np.ascontiguousarray(self.K_all[self.W])
        self.new_bounds()
        self.Z, self.V = np.empty_like(self.v), np.empty_like(self.v)

    def _factorise(self) -> None:
        """The inverse of K + I / sigma."""
        m = len(self.W)
        for _ in range(WEAKER):
            shifted = self.K.T.copy()  # symmetric; the transposed copy is in the order that LAPACK expects
            shifted[np.diag_indices(m)] += 1.0 / self.sigma
            factor, failed = scipy.linalg.lapack.dpotrf(shifted.T, overwrite_a=True, lower=1)
            if not failed or not self.geometry.is_warped:
                break
            self.sigma *= 0.1  # round-off amplified by a strong graph may have made K indefinite
        if failed:
            values, unit = scipy.linalg.eigvalsh(self.K), self.geometry.unit
            raise not_psd(unit * float(values[0]), unit * float(values[-1]))
        self.inverse = scipy.linalg.lapack.dpotri(factor, overwrite_c=True, lower=1)[0].T
        self.compiled.mirror(self.inverse)
        self.spent += m**3
        self._prepare()

    def _border(self, count: int) -> bool:
        """Extend the inverse by the last ``count`` rows; return False if that fails."""
        old = len(self.W) - count
        B, corner = self.K[:old, old:], self.K[old:, old:] + np.eye(count) / self.sigma
        solved = self.inverse @ B
        factor, failed = scipy.linalg.lapack.dpotrf(corner - B.T @ solved)
        if failed:
            return False
        schur = scipy.linalg.cho_solve((factor, False), np.eye(count))
        side = -solved @ schur
        self.inverse = np.block([[self.inverse - side @ solved.T, side], [side.T, schur]])
        self._prepare()
        return True

    def _prepare(self) -> None:
        """Compute N with A = N V for all classes, and the vector that gives b; restart Anderson acceleration."""
        self.N, q = self.inverse, self.bounds.q
        if q is not None:
            Nq = self.N @ q
            self.N = self.N - np.outer(Nq, Nq) / (q @ Nq)
            self.to_b = Nq / (q @ Nq)
        self.anderson = Anderson(self.v.size, self.memory)

    def steps(self) -> Iterator[Iterate]:
        """The iterates, until there is no more progress."""
        best, idle, count = np.inf, 0, 0
        while True:
            self._step()
            count += 1
            if count % CHECK_EVERY == 0 or count == 1:
                self._update_bounds(idle > 0)
                idle = 0 if self.bounds.gap < PROGRESS * best else idle + 1
                best = min(best, self.bounds.gap)
                if idle > PATIENCE:
                    yield Iterate(self.iterate.theta, self.iterate.b, self.iterate.dual, exhausted=True)
                    return
                if count in ADAPT_AT:
                    self._balance_sigma()
            yield self.iterate
            self.v = self.anderson.next(self.v.ravel(), self.residual.ravel()).reshape(self.v.shape)

    def _step(self) -> None:
        """Compute Z, A and F at v, and the residual of the iteration."""
        bounds = self.bounds
        self.compiled.reflect(self.v, bounds.costs, bounds.tau, bounds.squared, 1.0 / self.sigma, self.Z, self.V)
        self.A = self.N @ self.V
        self.F = self.V - self.A / self.sigma
        self.spent += float(self.V.size) * len(self.W) + OVERHEAD
        self.residual = RELAXATION * (self.F - self.Z)

    def _b(self) -> Array:
        if self.bounds.q is None:
            return np.zeros(self.v.shape[1])
        b = self.to_b @ self.V
        return np.asarray(b - b.mean())

    def _update_bounds(self, idle: bool) -> None:
        """Update the bounds by the current point; take Newton steps and check the other rows if these are due."""
        bounds, b = self.bounds, self._b()
        bounds.offer_primal(self.A, b, self.F, max(0.0, float(np.vdot(self.A, self.F))))
        bounds.offer(self.sigma * (self.v - self.Z), b, self.K)
        if idle and bounds.q is not None:
            self._move_intercepts(b)
        if self.polish and bounds.gap < min(POLISH_BELOW, 0.3 * self.tried_at) and bounds.gap > 1e-3 * self.tol:
            self._try_newton()
        self.check_other_rows_if_due()

    def _move_intercepts(self, b: Array) -> None:
        """Set the best intercepts for the current A; plain steps would move them by only c / sigma at a time."""
        q = self.bounds.q
        assert q is not None
        before = self.bounds.best
        best = self.bounds.offer_best_intercepts(self.A, centred(self.F - np.outer(q, b)))
        if best is not None and self.bounds.best is not before:
            self.v = self.v + np.outer(q, best - b)
            self.anderson.reset()
            self._step()

    def _try_newton(self) -> None:
        """Take Newton steps while they are cheap enough, and keep them if they reduce the gap."""
        v, before = self.v, self.bounds.gap
        for _ in range(POLISH_STEPS):
            free, compliance, fixed = hinge_polish.zones(self.bounds, v, self.sigma)
            cost = hinge_polish.work(free)
            if cost > POLISH_SHARE * self.spent:
                return
            self.spent -= cost
            found = hinge_polish.polished(self.bounds, self.K, free, compliance, fixed)
            if found is None:
                break
            U, b = found
            F = -(self.K @ centred(U))
            if self.bounds.q is not None:
                F += np.outer(self.bounds.q, b)
            self.bounds.offer(U, b, self.K)
            v = F + U / self.sigma
            if self.bounds.gap <= 1e-3 * self.tol:
                break
        self.tried_at = self.bounds.gap
        if self.bounds.gap < 0.1 * before:
            self.v = v
            self.anderson.reset()
            self._step()

    def _all_scores(self, best: Point) -> Array:
        Z = self.K_all @ best.A
        return Z if self.q is None else Z + np.outer(self.q, best.b)

    def _weights(self, best: Point) -> tuple[Array, Array]:
        return self.geometry.lift(self.W, best.A, best.b)

    def _exchange(self, staying: np.ndarray, entering: np.ndarray, Z: Array) -> None:
        shrunk = len(staying) < len(self.W)
        if shrunk:
            self.W, self.K_all, self.v = self.W[staying], self.K_all[:, staying], self.v[staying]
        if entering.size:
            self.W = np.concatenate([self.W, entering])
            self.K_all = np.hstack([self.K_all, self.geometry.columns(entering)])
            self.v = np.vstack([self.v, Z[entering]])
        self.tried_at = np.inf
        self._enter()
        if not (not shrunk and len(entering) <= FEW * len(self.W) and self._border(len(entering))):
            self._factorise()
        self._step()

    def _balance_sigma(self) -> None:
        """Change sigma if the relative primal and dual residuals differ a lot."""
        U = self.sigma * (self.v - self.Z)
        scores = self.F if self.bounds.q is None else self.F - np.outer(self.bounds.q, self._b())
        sizes = float(np.linalg.norm(self.A)), float(np.linalg.norm(scores))
        # the residuals are ||F - Z|| and sigma ||F - Z||
        ratio = np.sqrt(sizes[0] / (self.sigma * sizes[1])) if min(sizes) > 0 else 1.0
        change = float(np.clip(ratio, 1.0 / MOST_CHANGE, MOST_CHANGE))
        if not 1.0 / LEAST_CHANGE < change < LEAST_CHANGE:
            self.v = self.Z + U / (change * self.sigma)
            self.sigma *= change
            self._factorise()
            self._step()


SOLVER = Solver("douglas_rachford", run, NEEDS, coordinates=AS_GIVEN, aliases=("splitting",))
