"""Douglas-Rachford splitting for centred hinges: the multiclass support vector machine with dissimilar pairs.

    v <- v + 1.8 (F - Z),   Z = prox of the hinges at v,   F = K A + q b' = prox of the norm at 2 Z - v

One small matrix is factorised for the step in F; all classes share it. Anderson acceleration shortens the way, a Newton
step on the hinges at their kinks (``hinge_polish``) ends it, and only rows whose hinges are reached take part
(``hinge_bounds``).
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

#: Steps between two looks at the gap; over-relaxation; sigma at first, in units of 1 / (median diagonal of K).
LOOK, RELAXATION, SIGMA = 10, 1.8, 5.0
#: Newton steps are tried from this gap on, when they cost less than this part of the steps since the last try.
POLISH_BELOW, POLISH_SHARE, POLISH_STEPS = 1e-3, 0.3, 6
#: Multiplications that fit into the time a step takes whatever its size.
OVERHEAD = 1e6
#: Up to this part of new rows, the inverse is bordered and not made anew.
FEW = 0.1
#: How often sigma may become smaller by a factor of ten where round-off has made a kernel indefinite.
WEAKER = 20
#: So many looks without any progress of the gap end the run.
PATIENCE = 1000


def run(
    problem: Problem, start: Iterate, tol: float, sigma: float | None = None, memory: int = 8, polish: bool = True
) -> Iterator[Iterate]:
    """``sigma`` is the first step size of the dual (chosen by scale if not given), ``memory`` Anderson's."""
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
        """Multipliers over scores, as the kernel has it, but no more than costs over margins, 1 / (k - 1)."""
        diagonal = float(np.median(self.K_all[self.W, np.arange(len(self.W))]))
        most = self.most_sigma()
        return SIGMA / diagonal if diagonal * most > SIGMA else most

    def _enter(self) -> None:
        """Prepare everything for a new set of working rows."""
        self.K = np.ascontiguousarray(self.K_all[self.W])
        self.new_bounds()
        self.Z, self.V = np.empty_like(self.v), np.empty_like(self.v)

    def _factorise(self) -> None:
        """The inverse of K + I / sigma."""
        m = len(self.W)
        for _ in range(WEAKER):
            shifted = self.K.T.copy()  # symmetric, and transposed in the order that LAPACK takes
            shifted[np.diag_indices(m)] += 1.0 / self.sigma
            factor, failed = scipy.linalg.lapack.dpotrf(shifted.T, overwrite_a=True, lower=1)
            if not failed or not self.geometry.is_warped:
                break
            self.sigma *= 0.1  # a strong graph may cost the kernel more digits than there are
        if failed:
            values, unit = scipy.linalg.eigvalsh(self.K), self.geometry.unit
            raise not_psd(unit * float(values[0]), unit * float(values[-1]))
        self.inverse = scipy.linalg.lapack.dpotri(factor, overwrite_c=True, lower=1)[0].T
        self.compiled.mirror(self.inverse)
        self.spent += m**3
        self._prepare()

    def _border(self, count: int) -> bool:
        """The same from the inverse without the last ``count`` rows; False if that does not work."""
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
        """N with A = N V for the V of all classes, and the weights that give b."""
        self.N, q = self.inverse, self.bounds.q
        if q is not None:
            Nq = self.N @ q
            self.N = self.N - np.outer(Nq, Nq) / (q @ Nq)
            self.to_b = Nq / (q @ Nq)
        self.anderson = Anderson(self.v.size, self.memory)

    def steps(self) -> Iterator[Iterate]:
        """The iterates, for ever."""
        best, idle, count = np.inf, 0, 0
        while True:
            self._step()
            count += 1
            if count % LOOK == 0 or count == 1:
                self._look(idle > 0)
                idle = 0 if self.bounds.gap < 0.99 * best else idle + 1
                best = min(best, self.bounds.gap)
                if idle > PATIENCE:
                    yield Iterate(self.iterate.theta, self.iterate.b, self.iterate.dual, exhausted=True)
                    return
                if count in (20, 50, 100, 200, 400, 800, 1600):
                    self._balance_sigma()
            yield self.iterate
            self.v = self.anderson.next(self.v.ravel(), self.residual.ravel()).reshape(self.v.shape)

    def _step(self) -> None:
        """Z, A and F at v, and the residual of the iteration."""
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

    def _look(self, idle: bool) -> None:
        """Bounds from the present point; a Newton step and the other rows, when it is time for them."""
        bounds, b = self.bounds, self._b()
        bounds.offer_primal(self.A, b, self.F, max(0.0, float(np.vdot(self.A, self.F))))
        bounds.offer(self.sigma * (self.v - self.Z), b, self.K)
        if idle and bounds.q is not None:
            self._move_intercepts(b)
        if self.polish and bounds.gap < min(POLISH_BELOW, 0.3 * self.tried_at) and bounds.gap > 1e-3 * self.tol:
            self._try_newton()
        self.look_outside_if_due()

    def _move_intercepts(self, b: Array) -> None:
        """The best intercepts for the present A; cheap rows alone would pull them there by c / sigma in a step."""
        q = self.bounds.q
        assert q is not None
        before = self.bounds.best
        best = self.bounds.offer_best_intercepts(self.A, centred(self.F - np.outer(q, b)))
        if best is not None and self.bounds.best is not before:
            self.v = self.v + np.outer(q, best - b)
            self.anderson.reset()
            self._step()

    def _try_newton(self) -> None:
        """Newton steps while they make the gap smaller."""
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
        """Another sigma if primal and dual residuals, each relative to its size, are far apart."""
        U = self.sigma * (self.v - self.Z)
        scores = self.F if self.bounds.q is None else self.F - np.outer(self.bounds.q, self._b())
        sizes = float(np.linalg.norm(self.A)), float(np.linalg.norm(scores))
        # the residuals are ||F - Z|| and sigma ||F - Z||
        change = float(np.clip(np.sqrt(sizes[0] / (self.sigma * sizes[1])), 0.1, 10.0)) if min(sizes) > 0 else 1.0
        if not 1.0 / 3.0 < change < 3.0:
            self.v = self.Z + U / (change * self.sigma)
            self.sigma *= change
            self._factorise()
            self._step()


SOLVER = Solver("douglas_rachford", run, NEEDS, coordinates=AS_GIVEN, aliases=("splitting",))
