"""Other libraries for the lasso and the Laplacian elastic net, in their best configuration and in our conventions.

Each entry is a function of the library's own tolerance that returns (coef, intercept). The data are converted to the
preferred format of the library beforehand. Libraries that are not installed are skipped. celer has no intercept and is
skipped in problems with one. liblinear penalises the intercept; a large ``intercept_scaling`` makes this negligible.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

Fit = Callable[[float], tuple[np.ndarray, float]]
INTERCEPT_SCALING = 1e3
GLUM_FEATURES = 3000


def lasso_peers(X: Any, y: np.ndarray, lam: float, intercept: bool) -> dict[str, Fit]:
    """Sum of logistic losses + lam ||w||_1."""
    fits: dict[str, Fit] = {"liblinear": _scikit_learn(X, y, lam, intercept, "liblinear")}
    if intercept:  # saga is slow: run it only once for each data set
        fits["saga"] = _scikit_learn(X, y, lam, intercept, "saga")
    if find_spec("skglm"):
        fits["skglm"] = _skglm(X, y, lam, intercept)
    if find_spec("celer") and not intercept:
        fits["celer"] = _celer(X, y, lam)
    return fits


def elastic_net_peers(X: Any, y: np.ndarray, lam: float, laplacian: Any) -> dict[str, Fit]:
    """Sum of logistic losses + lam ||w||_1 + 1/2 w'Lw with a free intercept: glum accepts a matrix as its ridge.

    glum keeps a dense Hessian of all features, so it is skipped for many features. Its check of the matrix is switched
    off, because the check takes longer than the fit.
    """
    if not find_spec("glum") or X.shape[1] > GLUM_FEATURES:
        return {}
    from glum import GeneralizedLinearRegressor

    n, columns, P2 = len(y), _columns(X), _columns(2.0 * laplacian / len(y))

    def fit(tol: float) -> tuple[np.ndarray, float]:
        model = GeneralizedLinearRegressor(
            family="binomial", alpha=1.0, l1_ratio=0.5, P1=np.full(X.shape[1], 2.0 * lam / n), P2=P2,
            solver="irls-cd", gradient_tol=tol, max_iter=1000, check_input=False,
        )  # fmt: skip
        _quietly(lambda: model.fit(columns, y.astype(float)))
        return model.coef_, float(model.intercept_)

    return {"glum": fit}


def _scikit_learn(X: Any, y: np.ndarray, lam: float, intercept: bool, solver: str) -> Fit:
    rows = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)
    scaling = {"intercept_scaling": INTERCEPT_SCALING} if intercept and solver == "liblinear" else {}

    def fit(tol: float) -> tuple[np.ndarray, float]:
        model = LogisticRegression(
            l1_ratio=1.0, solver=solver, C=1.0 / lam, tol=tol, fit_intercept=intercept, max_iter=2000, random_state=0,
            **scaling,
        )  # fmt: skip
        _quietly(lambda: model.fit(rows, y))
        return model.coef_[0], float(np.ravel(model.intercept_)[0])

    return fit


def _skglm(X: Any, y: np.ndarray, lam: float, intercept: bool) -> Fit:
    from skglm.datafits import Logistic
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton
    from skglm.utils.jit_compilation import compiled_clone

    columns, signs = _columns(X), np.where(y == 1, 1.0, -1.0)
    datafit, penalty = compiled_clone(Logistic()), compiled_clone(L1(lam / len(y)))
    if sp.issparse(columns):
        datafit.initialize_sparse(columns.data, columns.indptr, columns.indices, signs)
    else:
        datafit.initialize(columns, signs)

    def fit(tol: float) -> tuple[np.ndarray, float]:
        solver = ProxNewton(tol=tol, fit_intercept=intercept, max_iter=200)
        w = _quietly(lambda: solver.solve(columns, signs, datafit, penalty)[0])
        return (w[:-1], float(w[-1])) if intercept else (w, 0.0)

    return fit


def _celer(X: Any, y: np.ndarray, lam: float) -> Fit:
    from celer import LogisticRegression as Celer

    columns = _columns(X)

    def fit(tol: float) -> tuple[np.ndarray, float]:
        model = Celer(C=1.0 / lam, tol=tol, max_iter=100, fit_intercept=False)
        _quietly(lambda: model.fit(columns, y))
        return model.coef_.ravel(), 0.0

    return fit


def _columns(X: Any) -> Any:
    if not sp.issparse(X):
        return np.asfortranarray(X)
    columns = sp.csc_matrix(X)
    columns.indices, columns.indptr = columns.indices.astype(np.int32), columns.indptr.astype(np.int32)
    return columns


def _quietly(run: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()
