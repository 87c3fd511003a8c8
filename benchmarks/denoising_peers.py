"""Peers for total variation with X = I, where they are installed.

``prox_tv`` (Barbero and Sra 2018) solves chains exactly, and images and volumes by iterations over their directions.
``condat_tv`` solves chains exactly. ``denoise_tv_bregman`` of scikit-image minimises the same objective of images by
split Bregman iterations. Iterations are doubled until our bound proves the gap, one run takes ``PATIENCE`` seconds, or
doubling leaves more than ``STALLED`` of the gap; the time is that of the last run. The "gap" of a peer is that of *its*
weights above our lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from measure import Result

import cvxstructreg as csr

#: CPU seconds of one run after which iterations are not doubled any more.
PATIENCE = 15.0
#: The part of the gap that is no progress.
STALLED = 0.97
#: A peer takes an array, a strength and a number of iterations, or 0 if it is exact.
Peer = Callable[[np.ndarray, float, int], np.ndarray]


def peers(dimensions: int) -> Iterator[tuple[str, Peer, bool]]:
    """The installed peers for arrays of so many dimensions: a name, a function, and whether it is exact."""
    if find_spec("prox_tv") is not None:
        prox_tv = import_module("prox_tv")
        if dimensions == 1:
            yield "prox_tv tv1_1d", lambda y, lam, _: prox_tv.tv1_1d(y, lam), True
        else:
            yield "prox_tv tvgen", _by_prox_tv, False
    if find_spec("condat_tv") is not None and dimensions == 1:
        condat_tv = import_module("condat_tv")
        yield "condat_tv", lambda y, lam, _: condat_tv.tv_denoise(y, lam), True
    if find_spec("skimage") is not None and dimensions == 2:
        yield "scikit-image bregman", _by_bregman, False


def _by_prox_tv(y: np.ndarray, lam: float, iterations: int) -> np.ndarray:
    import prox_tv

    axes = range(1, y.ndim + 1)
    strengths, norms = [lam] * y.ndim, [1] * y.ndim
    return np.asarray(prox_tv.tvgen(y, strengths, list(axes), norms, n_threads=1, max_iters=iterations))


def _by_bregman(y: np.ndarray, lam: float, iterations: int) -> np.ndarray:
    from skimage.restoration import denoise_tv_bregman

    found: Any = denoise_tv_bregman(y, weight=1.0 / lam, max_num_iter=iterations, eps=0.0, isotropic=False)
    return np.asarray(found, dtype=float)


def compared(
    section: str, work: str, y: np.ndarray, lam: float, problem: csr.Problem, bound: float, tol: float
) -> Iterator[Result]:
    """A line for each installed peer."""
    for name, run, exact in peers(y.ndim):
        run(y[tuple(slice(0, 8) for _ in y.shape)].copy(), lam, 2)  # loads its code
        iterations, last = 0 if exact else 20, np.inf
        while True:
            began = time.process_time()
            x = run(y, lam, iterations)
            seconds = time.process_time() - began
            value = problem.value_at(x.reshape(-1, 1), np.zeros(1))
            gap = (value - bound) / abs(value)
            if exact or gap <= tol or seconds > PATIENCE or gap > STALLED * last:
                break
            iterations, last = 2 * iterations, gap
        shown = name if exact else f"{name}, {iterations} iterations"
        yield Result(section, work, shown, seconds, seconds, gap)
