"""Decomposition for box programs with many rows: steps on one or two rows at a time, compiled or by libsvm."""

from __future__ import annotations

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.solvers.kernels.box_qp import BoxProgram

#: The largest number of steps for each accuracy, per row.
STEPS_PER_ROW = 1000
#: From this many rows on, the shrinking of libsvm pays off.
LIBSVM_ROWS = 1500
#: libsvm stores kernels in single precision, and may not terminate at a higher accuracy.
LIBSVM_ACCURACY = 1e-3
#: The largest number of libsvm iterations, per row, and the size of its cache in megabytes.
LIBSVM_STEPS_PER_ROW, LIBSVM_CACHE = 100, 1000


class Decomposition:
    """The state of decomposition on a program; a further run with a higher accuracy continues from it.

    With a free intercept, pairs of rows are moved (by libsvm if there are many). Without an intercept, single rows are
    moved. A penalised intercept (s > 0) is made part of the kernel, so that the steps are those without an intercept.
    """

    def __init__(self, program: BoxProgram) -> None:
        self.program = program
        self.tied = program.g is not None and program.s == 0
        self.by_libsvm = self.tied and len(program.C) >= LIBSVM_ROWS
        K = program.K
        if program.g is not None and program.s > 0:
            shift = program.y * program.g
            K = K + np.outer(shift, shift) / program.s
        self.K = np.ascontiguousarray(K)
        self.a = np.zeros(len(program.C))
        self.slope: Array | None = np.full(len(program.C), -1.0)

    def run(self, eps: float) -> tuple[Array, float]:
        """(a, b) that satisfies the optimality conditions within eps."""
        if self.by_libsvm and eps >= LIBSVM_ACCURACY:
            self.a, b = self._libsvm(eps)
            self.slope = None
            return self.a.copy(), b
        from cvxstructreg.solvers.kernels import compiled_smo

        if self.slope is None:
            self.slope = self._slope()
        program, limit = self.program, STEPS_PER_ROW * len(self.a)
        C = np.ascontiguousarray(program.C)
        if self.tied:
            compiled_smo.pairs(self.K, C, program.y, self.a, self.slope, eps, limit)
        else:
            compiled_smo.singles(self.K, C, program.y, self.a, self.slope, eps, limit)
        self.slope = self._slope()  # recomputed, before round-off accumulates
        return self.a.copy(), self._intercept()

    def _slope(self) -> Array:
        return np.asarray(self.program.y * (self.K @ (self.program.y * self.a)) - 1.0)

    def _libsvm(self, eps: float) -> tuple[Array, float]:
        from sklearn import config_context
        from sklearn.svm import SVC

        class Machine(SVC):
            def _warn_from_fit_status(self) -> None:
                """Do not warn of early termination: the following steps continue from there."""

        program, top = self.program, float(self.program.C.max())
        unit = power_of_two(float(self.K.diagonal().max()))  # libsvm has absolute tolerances and single precision
        limit = LIBSVM_STEPS_PER_ROW * len(program.C)
        machine = Machine(C=top * unit, kernel="precomputed", tol=eps, cache_size=LIBSVM_CACHE, max_iter=limit)
        with config_context(assume_finite=True):  # affects only this thread
            machine.fit(self.K if unit == 1.0 else self.K / unit, program.y, sample_weight=program.C / top)
        a = np.zeros(len(program.C))
        a[machine.support_] = np.abs(machine.dual_coef_[0]) / unit
        return np.minimum(a, program.C), float(machine.intercept_[0])

    def _intercept(self) -> float:
        program = self.program
        if program.g is None:
            return 0.0
        if program.s > 0:
            return float(program.g @ self.a) / program.s
        assert self.slope is not None
        wanted = -program.y * self.slope
        free = (self.a > 0) & (self.a < program.C)
        if free.any():
            return float(wanted[free].mean())
        up = np.where(program.y > 0, self.a < program.C, self.a > 0)
        down = np.where(program.y > 0, self.a > 0, self.a < program.C)
        return 0.5 * float(wanted[up].max() + wanted[down].min())
