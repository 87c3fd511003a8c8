"""Other libraries in their best configuration for our problems, translated to our conventions (sums, not means).

Each entry is a function of the library's own tolerance that returns (coef, intercept). Libraries that are not installed
are left out.
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

#: Tried from the loosest on, until the certified gap is reached.
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


def sklearn_ridge(X: Any, y: np.ndarray, beta: float) -> Callable[[float], Any]:
    """sum of losses + beta ||w||^2 by scikit-learn's L-BFGS: C = 1 / (2 beta)."""

    def fit(tol: float) -> Any:
        model = LogisticRegression(C=1.0 / (2.0 * beta), tol=tol, max_iter=10_000)
        return model.fit(sp.csr_matrix(X) if sp.issparse(X) else X, y)

    return fit


def lasso(X: Any, y: np.ndarray, lam: float) -> dict[str, Fit]:
    """Sum of logistic losses + lam ||w||_1 with a free intercept where the library has one."""
    fits: dict[str, Fit] = {}
    X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    signs = np.where(y == 1, 1.0, -1.0)

    def liblinear(tol: float) -> tuple[np.ndarray, float]:
        # liblinear penalises its intercept; a large scaling makes that negligible
        model = LogisticRegression(
            l1_ratio=1.0, solver="liblinear", C=1.0 / lam, tol=tol, intercept_scaling=1e3, max_iter=10_000
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        return model.coef_[0], float(model.intercept_[0])

    fits["liblinear"] = liblinear
    if find_spec("skglm"):
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Logistic
        from skglm.penalties import L1
        from skglm.solvers import ProxNewton

        def skglm(tol: float) -> tuple[np.ndarray, float]:
            solver = ProxNewton(tol=tol, max_iter=100, fit_intercept=True)
            model = GeneralizedLinearEstimator(Logistic(), L1(lam / len(y)), solver)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, signs)
            return model.coef_.ravel(), float(np.ravel(model.intercept_)[0])

        fits["skglm"] = skglm
    return fits


def elastic_net(X: Any, y: np.ndarray, lam: float, laplacian: Any) -> dict[str, Fit]:
    """Sum of logistic losses + lam ||w||_1 + 1/2 w'Lw: glum takes a matrix as its ridge penalty."""
    fits: dict[str, Fit] = {}
    if find_spec("glum"):
        from glum import GeneralizedLinearRegressor

        n = len(y)

        def glum(tol: float) -> tuple[np.ndarray, float]:
            model = GeneralizedLinearRegressor(
                family="binomial",
                alpha=1.0,
                l1_ratio=0.5,
                P1=np.full(X.shape[1], 2.0 * lam / n),
                P2=sp.csc_matrix(2.0 * laplacian / n),
                gradient_tol=tol,
                max_iter=1000,
                scale_predictors=False,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(sp.csc_matrix(X), y)
            return model.coef_, float(model.intercept_)

        fits["glum"] = glum
    return fits
