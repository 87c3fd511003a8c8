"""Losses beyond classification, against skglm and glum at equal certified gaps, and against CVXPY: three sections.

``losses``: an L1 term, or for several tasks a norm for each row of the weights, at 0.05 lambda_max and without
intercept, which not all datafits of skglm have; for glum also half L1 and half ridge, and ridge alone. Every library
gets its preferred format, and stops by its own rule at the loosest of several tolerances for which our certificate of
*its* weights is within 1e-4 or 1e-6, as in the module ``elastic_net``. skglm's solvers are its own recommendation:
ProxNewton for Poisson, gamma and Cox, AndersonCD for Huber, PDCD_WS for quantiles, MultiTaskBCD for several tasks.
The libraries take turns, so that the caches of the processor are cold; with L1 on 2,000 x 600 there are rows with warm
caches too (:func:`elastic_net.race`). Means of losses become sums as in ``cvxstructreg.conventions``. The strength of
quantiles is 0.05 times the largest pull of their residual signs.

``losses_cvxpy``: overlapping groups of 8 features on 1,000 x 500 dense data, at 0.3, 0.1 and 0.03 lambda_max (for
losses without gradient: of the Huber loss). CVXPY solves the program of ``Problem.to_cvxpy`` with Clarabel, including
compilation. Only Cox's loss has another program (``plain_cox``): that one takes minutes to compile its sums over
risk sets. ``losses_cvxpy_kinks``: the same for Huber's loss, several tasks, and the losses without gradient.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import cvxpy as cp
import numpy as np
import plain_cox
from elastic_net import contest, solving
from elastic_net_peers import GLUM_FEATURES, _quietly
from measure import REPEATS, Result, timed

import cvxstructreg as csr

PEERS, CVXPY = "losses, L1", "losses, overlapping groups"
#: Strengths of the groups, as parts of the largest useful one.
PARTS = (0.3, 0.1, 0.03)
#: Penalties by the part of L1; the others are for glum.
KINDS = {"": 1.0, ", elastic net": 0.5, ", ridge": 0.0}
Fit = Callable[[float], tuple[np.ndarray, float]]


def simulated(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, dict[str, Any]]:
    """Data with twelve true features, and one loss of each kind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X[:, :12] @ rng.normal(scale=0.3, size=12)
    noise, amounts = rng.normal(size=n), rng.gamma(2.0, np.exp(scores) / 2.0)
    times = rng.exponential(np.exp(-scores))
    events = rng.random(n) < 0.7
    exposure = rng.uniform(0.5, 2.0, size=n)
    return X, {
        "Poisson": csr.Poisson(rng.poisson(np.exp(scores))),
        "Poisson, exposures": csr.Poisson(rng.poisson(exposure * np.exp(scores)), exposure=exposure),
        "Gamma": csr.Gamma(amounts),
        "Tweedie": csr.Tweedie(np.where(rng.random(n) < 0.3, 0.0, amounts), power=1.5),
        "Huber": csr.Huber(scores + noise, delta=1.0),
        "Absolute": csr.Absolute(scores + noise),
        "Quantile": csr.Quantile(scores + noise, quantile=0.8),
        "MultiTask": csr.MultiTask(np.column_stack([scores + noise, scores - noise, noise])),
        "Cox, Breslow": csr.Cox(times, event=events),
        "Cox, Efron": csr.Cox(np.ceil(50.0 * times), event=events, ties="efron"),
        "Squared, offset": csr.Squared(scores + noise, offset=0.3 * noise),
        "Logistic, offset": csr.Logistic((scores + noise > 0).astype(int), offset=0.3 * noise),
        "Hinge, offset": csr.Hinge((scores + noise > 0).astype(int), offset=0.3 * noise),
    }


#: The losses of the section ``losses_cvxpy_kinks``.
KINKS = ("Huber", "Absolute", "Quantile", "MultiTask", "Hinge, offset")
#: The losses of the peers.
SKGLM = ("Poisson", "Gamma", "Huber", "Quantile", "MultiTask", "Cox, Breslow", "Cox, Efron")
GLUM = ("Poisson", "Poisson, exposures", "Gamma", "Tweedie")


def peers(name: str, loss: Any, X: np.ndarray, lam: float, ratio: float = 1.0) -> dict[str, Fit]:
    """The libraries that have this loss, with lam (ratio ||w||_1 + (1 - ratio) ||w||^2 / 2)."""
    fits: dict[str, Fit] = {}
    if find_spec("skglm") and ratio == 1.0 and name in SKGLM:
        fits["skglm"] = _skglm(name, loss, np.asfortranarray(X), lam)
    few = X.shape[1] <= GLUM_FEATURES  # glum keeps a dense Hessian of all features
    if few and find_spec("glum") and name in GLUM:
        fits["glum"] = _glum(name, loss, np.asfortranarray(X), lam, ratio)
    return fits


def _skglm(name: str, loss: Any, X: np.ndarray, lam: float) -> Fit:
    from skglm import datafits, penalties, solvers
    from skglm.experimental.pdcd_ws import PDCD_WS
    from skglm.experimental.quantile_regression import Pinball
    from skglm.utils.jit_compilation import compiled_clone

    n, y = len(X), loss.y[:, 0]
    if name == "MultiTask":
        datafit, penalty = compiled_clone(datafits.QuadraticMultiTask()), compiled_clone(penalties.L2_1(lam / n))
        targets = np.asfortranarray(loss.y)
        return lambda tol: (
            _quietly(lambda: solvers.MultiTaskBCD(tol=tol, fit_intercept=False).solve(X, targets, datafit, penalty)[0]),
            np.zeros(targets.shape[1]),
        )
    kinds = {
        "Poisson": datafits.Poisson,
        "Gamma": datafits.Gamma,
        "Huber": lambda: datafits.Huber(loss.delta),
        "Quantile": lambda: Pinball(loss.quantile),
    }
    if name.startswith("Cox"):
        y = np.column_stack([y, loss.event.astype(float)])
        datafit = compiled_clone(datafits.Cox(use_efron=loss.ties == "efron"))
    else:
        datafit = compiled_clone(kinds[name]())
    # the pinball loss of skglm is a sum over the rows, the other losses are means
    penalty = compiled_clone(penalties.L1(lam if name == "Quantile" else lam / n))
    datafit.initialize(X, y)
    kind = solvers.AndersonCD if name == "Huber" else solvers.ProxNewton

    def fit(tol: float) -> tuple[np.ndarray, float]:
        if name == "Quantile":
            solver: Any = PDCD_WS(tol=tol, fit_intercept=False, max_iter=1000, max_epochs=10_000)
        else:
            solver = kind(tol=tol, fit_intercept=False, max_iter=200)
        return _quietly(lambda: solver.solve(X, y, datafit, penalty)[0]), 0.0

    return fit


def _glum(name: str, loss: Any, X: np.ndarray, lam: float, ratio: float) -> Fit:
    from glum import GeneralizedLinearRegressor, TweedieDistribution

    family: Any = {"Poisson": "poisson", "Gamma": "gamma"}.get(name.split(",")[0]) or TweedieDistribution(loss.power)
    weight = np.ones(len(X)) if name != "Poisson, exposures" else np.asarray(loss.exposure)
    y = loss.y[:, 0] / weight

    def fit(tol: float) -> tuple[np.ndarray, float]:
        model = GeneralizedLinearRegressor(
            family=family, link="log", alpha=lam / weight.sum(), l1_ratio=ratio, gradient_tol=tol, max_iter=1000,
            solver="irls-cd" if ratio else "irls-ls", fit_intercept=False, check_input=False,
        )  # fmt: skip
        _quietly(lambda: model.fit(X, y, sample_weight=weight))
        return model.coef_, 0.0

    return fit


def against_peers() -> Iterator[Result]:
    """L1 at 0.05 lambda_max: as fast as skglm and glum at equal gaps."""
    for n, d in ((2000, 600), (500, 5000)):
        X, all_losses = simulated(n, d)
        model = csr.Linear(X, intercept=False)
        for name, loss in all_losses.items():
            if name not in SKGLM + GLUM:
                continue
            several = loss.n_outputs > 1
            penalty = csr.GroupLasso(csr.Groups([[j] for j in range(d)], n_features=d)) if several else csr.L1()
            lam = 0.05 * _largest(model, loss, penalty)
            for kind, ratio in KINDS.items():
                ridge = 0.5 * (1.0 - ratio) * lam * csr.Ridge()
                terms = ridge if not ratio else ratio * lam * penalty if ratio == 1.0 else ratio * lam * penalty + ridge

                def make(terms: Any = loss + terms, model: Any = model) -> csr.Problem:
                    return csr.Problem(model, terms)

                fits = peers(name, loss, X, lam, ratio)
                if fits:
                    work, best = f"{name}{kind}, {n:,} x {d:,}", "1 x the best peer"
                    ours = {"auto": solving(make, "auto")}
                    yield from contest(PEERS, work, make, ours, fits, best, 20.0)
                    if n == 2000 and not kind:  # most take a few milliseconds, so that caches matter
                        yield from contest(PEERS, f"{work}, warm caches", make, ours, fits, best, 20.0, warm=True)


def _largest(model: csr.Linear, loss: Any, penalty: Any) -> float:
    """The largest useful strength; for a quantile that of the residual signs at zero."""
    if loss.can("grad"):
        return csr.lambda_max(csr.Problem(model, loss + penalty))
    signs = np.where(loss.y > 0, loss.quantile, loss.quantile - 1.0)
    return float(np.abs(model.design.T @ signs).max())


def against_cvxpy(kinks: bool = False) -> Iterator[Result]:
    """Overlapping groups: at least 40 times as fast as CVXPY with Clarabel."""
    n, d = 1000, 500
    X, all_losses = simulated(n, d)
    ranges = [range(i, min(i + 8, d)) for i in range(0, d - 2, 5)]
    groups = csr.GroupLasso(csr.Groups(ranges, n_features=d))
    for name, loss in all_losses.items():
        if (name in KINKS) != kinks:
            continue
        model = csr.Linear(X, intercept=not loss.ignores_constants)
        smooth = loss if loss.can("grad") else csr.Huber(all_losses["Huber"].y, delta=0.3)
        most = csr.lambda_max(csr.Problem(model, smooth + groups)) / (1.0 if smooth is loss else 0.3)
        for part in PARTS:

            def make(model: Any = model, loss: Any = loss, lam: float = part * most) -> csr.Problem:
                return csr.Problem(model, loss + lam * groups)

            def program(make: Any = make, loss: Any = loss, lam: float = part * most) -> cp.Problem:
                return plain_cox.chained(X, loss, lam, ranges) if loss.couples_rows else make().to_cvxpy()

            yield from _beside_cvxpy(f"{name}, {part:g} lam_max", make, program)


def _beside_cvxpy(work: str, make: Callable[[], csr.Problem], plain: Callable[[], cp.Problem]) -> Iterator[Result]:
    """Ours, then CVXPY once."""
    problems = [make() for _ in range(REPEATS + 1)]
    solution, seconds, cold = timed(lambda: problems.pop().solve())
    yield Result(CVXPY, work, solution.solver, seconds, cold, solution.certificate.relative_gap, "40 x")
    program, began = plain(), time.process_time()
    try:
        program.solve(solver="CLARABEL", max_threads=1)
        error = abs(program.value / solution.objective - 1.0)
    except cp.SolverError:
        error = np.nan
    taken = time.process_time() - began
    yield Result(CVXPY, work, "cvxpy CLARABEL", taken, taken, error)


SECTIONS = {
    "losses": against_peers,
    "losses_cvxpy": against_cvxpy,
    "losses_cvxpy_kinks": lambda: against_cvxpy(kinks=True),
}
