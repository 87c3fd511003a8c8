"""Convert penalty strengths between other libraries and this one.

In this library a loss is a SUM over rows, each times its sample weight, and a penalty is the formula in its docstring::

    sum_i s_i loss_i + l1 ||w||_1 + ridge ||w||^2        (squared loss: 1/2 (f_i - y_i)^2; no 1/2 in the ridge)

Other libraries take a mean over rows, put a factor 1/2 before squares, or put the strength before the loss. Each
function states the formula it converts; ``n`` is the number of rows, or the sum of their sample weights. The conversion
is exact: the same data gives the same optimum. Intercepts are not penalised on either side (except in liblinear, which
penalises its intercept).
"""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.losses import Gamma, Logistic, Poisson, Squared, Tweedie

__all__ = [
    "Strengths",
    "from_glum",
    "from_group_lasso",
    "from_mean_loss",
    "from_skglm_group_lasso",
    "from_sklearn_logistic",
    "from_sklearn_ridge",
    "from_sklearn_svc",
    "from_statsmodels",
    "glum_loss",
    "to_glum",
    "to_group_lasso",
    "to_mean_loss",
    "to_skglm_group_lasso",
    "to_sklearn_logistic",
    "to_sklearn_ridge",
    "to_sklearn_svc",
    "to_statsmodels",
]


class Strengths(NamedTuple):
    """``l1 * L1() + ridge * Ridge()``, added to a sum of losses.

    Examples
    --------
    >>> strengths = from_sklearn_logistic(C=0.1)
    >>> strengths.l1, strengths.ridge
    (0.0, 5.0)
    """

    l1: float
    ridge: float


def from_sklearn_logistic(C: float, l1_ratio: float = 0.0) -> Strengths:
    """C sum_i loss_i + l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2: LogisticRegression of scikit-learn and of celer.

    celer's LogisticRegression has l1_ratio=1.

    Examples
    --------
    >>> from_sklearn_logistic(C=2.0)
    Strengths(l1=0.0, ridge=0.25)
    >>> from_sklearn_logistic(C=2.0, l1_ratio=1.0)
    Strengths(l1=0.5, ridge=0.0)
    """
    C, l1_ratio = _positive(C, "C"), _ratio(l1_ratio)
    return Strengths(l1_ratio / C, (1.0 - l1_ratio) / (2.0 * C))


def to_sklearn_logistic(l1: float, ridge: float) -> dict[str, float]:
    """``C`` and ``l1_ratio`` of scikit-learn's LogisticRegression; see :func:`from_sklearn_logistic`.

    Examples
    --------
    >>> to_sklearn_logistic(l1=0.0, ridge=0.25)
    {'C': 2.0, 'l1_ratio': 0.0}
    """
    total = _some(_nonnegative(l1, "l1") + 2.0 * _nonnegative(ridge, "ridge"))
    return {"C": 1.0 / total, "l1_ratio": l1 / total}


def from_mean_loss(alpha: float, n: float, l1_ratio: float = 1.0) -> Strengths:
    """1/n sum_i loss_i + alpha l1_ratio ||w||_1 + alpha (1 - l1_ratio)/2 ||w||^2, with squared loss 1/2 (f_i - y_i)^2.

    This is Lasso and ElasticNet of scikit-learn and celer; Lasso, ElasticNet, SparseLogisticRegression and all datafits
    of skglm (``Huber``, ``Poisson``, ``Gamma``, ``Cox``, ``QuadraticMultiTask``); glum with P2="identity"; and, in
    scikit-learn, QuantileRegressor (l1_ratio=1) and PoissonRegressor, GammaRegressor and TweedieRegressor (l1_ratio=0).

    Examples
    --------
    >>> from_mean_loss(alpha=0.5, n=100)
    Strengths(l1=50.0, ridge=0.0)
    >>> from_mean_loss(alpha=0.5, n=100, l1_ratio=0.5)
    Strengths(l1=25.0, ridge=12.5)
    """
    alpha, n, l1_ratio = _nonnegative(alpha, "alpha"), _positive(n, "n"), _ratio(l1_ratio)
    return Strengths(n * alpha * l1_ratio, n * alpha * (1.0 - l1_ratio) / 2.0)


def to_mean_loss(l1: float, ridge: float, n: float) -> dict[str, float]:
    """``alpha`` and ``l1_ratio`` of the libraries in :func:`from_mean_loss`.

    Examples
    --------
    >>> to_mean_loss(l1=25.0, ridge=12.5, n=100)
    {'alpha': 0.5, 'l1_ratio': 0.5}
    """
    total = _some(_nonnegative(l1, "l1") + 2.0 * _nonnegative(ridge, "ridge"))
    return {"alpha": total / _positive(n, "n"), "l1_ratio": l1 / total}


def from_sklearn_ridge(alpha: float) -> Strengths:
    """sum_i (f_i - y_i)^2 + alpha ||w||^2: Ridge and RidgeClassifier of scikit-learn, with no factor 1/2 in the loss.

    Examples
    --------
    >>> from_sklearn_ridge(alpha=1.0)
    Strengths(l1=0.0, ridge=0.5)
    """
    return Strengths(0.0, _nonnegative(alpha, "alpha") / 2.0)


def to_sklearn_ridge(ridge: float) -> dict[str, float]:
    """``alpha`` of scikit-learn's Ridge.

    Examples
    --------
    >>> to_sklearn_ridge(0.5)
    {'alpha': 1.0}
    """
    return {"alpha": 2.0 * _nonnegative(ridge, "ridge")}


def from_sklearn_svc(C: float, n: float | None = None) -> dict[str, float]:
    """C sum_i hinge_i + 1/2 ||h||_K^2: SVC of scikit-learn to ``lam1`` of MixedGraphClassifier (a sum of losses).

    If ``n``, the number of labelled rows, is given, lam1 is that of a *mean* loss, 1/n sum_i hinge_i + lam1 ||h||_K^2.

    Examples
    --------
    >>> from_sklearn_svc(C=10.0)
    {'lam1': 0.05}
    """
    return {"lam1": 1.0 / (2.0 * _positive(C, "C") * (1.0 if n is None else _positive(n, "n")))}


def to_sklearn_svc(lam1: float, n: float | None = None) -> dict[str, float]:
    """``C`` of scikit-learn's SVC; see :func:`from_sklearn_svc`.

    Examples
    --------
    >>> to_sklearn_svc(0.05)
    {'C': 10.0}
    """
    return {"C": from_sklearn_svc(lam1, n)["lam1"]}


def from_glum(alpha: float, n: float, l1_ratio: float = 0.0) -> dict[str, float]:
    """1/n sum_i loss_i + alpha l1_ratio ||w||_1 + alpha (1 - l1_ratio)/2 w'P2w: glum's GeneralizedLinearRegressor.

    Returns ``lam1`` and ``lam2`` of the Laplacian elastic nets, where L takes the place of P2 (``normalized=False`` for
    P2 = graph.laplacian()). Without a graph, P2 = I, and :func:`from_mean_loss` gives the strength of ``Ridge``, which
    has no factor 1/2. Valid for every family: glum's mean of half deviances is that of our losses, see
    :func:`glum_loss`.

    Examples
    --------
    >>> from_glum(alpha=0.5, n=100, l1_ratio=0.5)
    {'lam1': 25.0, 'lam2': 25.0}
    """
    strengths = from_mean_loss(alpha, n, l1_ratio)
    return {"lam1": strengths.l1, "lam2": 2.0 * strengths.ridge}


def to_glum(lam1: float, lam2: float, n: float) -> dict[str, float]:
    """``alpha`` and ``l1_ratio`` of glum; see :func:`from_glum`.

    Examples
    --------
    >>> to_glum(lam1=25.0, lam2=25.0, n=100)
    {'alpha': 0.5, 'l1_ratio': 0.5}
    """
    return to_mean_loss(lam1, _nonnegative(lam2, "lam2") / 2.0, n)


def glum_loss(family: str, y: Any, sample_weight: Any = None, offset: Any = None) -> tuple[Loss, float]:
    """The loss of a family of glum, and ``n``, the sum of the sample weights: 1/n times the loss is glum's data term.

    The families are "normal", "binomial", "poisson", "gamma" and "tweedie (p)", with the logarithmic link for the last
    three. glum models rates of counts by y = counts / exposure and sample_weight = exposure; the result is then
    ``Poisson(counts, exposure=exposure)``.

    Examples
    --------
    >>> glum_loss("poisson", y=[0.5, 2.0], sample_weight=[4.0, 1.0])
    (Poisson(2 rows, exposure=<2 numbers>), 5.0)
    >>> glum_loss("tweedie (1.7)", y=[0.0, 2.0])
    (Tweedie(2 rows, power=1.7), 2.0)
    """
    y = np.asarray(y, dtype=float)
    s = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    n, weights = float(s.sum()), {"sample_weight": sample_weight, "offset": offset}
    if family == "poisson":
        counts = np.rint(s * y)
        if sample_weight is not None and np.all(s > 0) and np.allclose(s * y, counts, atol=1e-8):
            return Poisson(counts, exposure=s, offset=offset), n
        return Poisson(y, **weights), n
    power = re.fullmatch(r"tweedie ?\(([0-9.]+)\)", family)
    if power is not None:
        return Tweedie(y, **weights, power=float(power.group(1))), n
    kinds: dict[str, type[Loss]] = {"normal": Squared, "binomial": Logistic, "gamma": Gamma}
    if family not in kinds:
        raise ValueError(f"family must be one of {', '.join([*kinds, 'poisson', 'tweedie (p)'])}, got {family!r}")
    return kinds[family](y, **weights), n


def from_statsmodels(alpha: float, nobs: float, L1_wt: float = 1.0) -> Strengths:
    """-1/nobs loglike + alpha (L1_wt ||w||_1 + (1 - L1_wt)/2 ||w||^2): ``fit_regularized`` of statsmodels.

    For OLS, GLM (Gaussian, Poisson and Gamma with log link, binomial) and PHReg, whose log-likelihoods are minus our
    losses plus constants, for a scale of one. statsmodels also penalises a constant column; give it a zero in a vector
    ``alpha``.

    Examples
    --------
    >>> from_statsmodels(alpha=0.5, nobs=100, L1_wt=0.5)
    Strengths(l1=25.0, ridge=12.5)
    """
    return from_mean_loss(alpha, nobs, L1_wt)


def to_statsmodels(l1: float, ridge: float, nobs: float) -> dict[str, float]:
    """``alpha`` and ``L1_wt`` of statsmodels; see :func:`from_statsmodels`.

    Examples
    --------
    >>> to_statsmodels(l1=25.0, ridge=12.5, nobs=100)
    {'alpha': 0.5, 'L1_wt': 0.5}
    """
    found = to_mean_loss(l1, ridge, nobs)
    return {"alpha": found["alpha"], "L1_wt": found["l1_ratio"]}


def from_skglm_group_lasso(alpha: float, n: float) -> dict[str, float]:
    """1/(2n) ||y - f||^2 + alpha sum_g weights_g ||w_g||: GroupLasso of skglm and celer.

    Returns ``lam_group`` of GroupLassoRegressor. Group weights are the same on both sides, 1 by default.

    Examples
    --------
    >>> from_skglm_group_lasso(alpha=0.25, n=100)
    {'lam_group': 25.0}
    """
    return {"lam_group": _nonnegative(alpha, "alpha") * _positive(n, "n")}


def to_skglm_group_lasso(lam_group: float, n: float) -> dict[str, float]:
    """``alpha`` of the GroupLasso of skglm and celer.

    Examples
    --------
    >>> to_skglm_group_lasso(25.0, n=100)
    {'alpha': 0.25}
    """
    return {"alpha": _nonnegative(lam_group, "lam_group") / _positive(n, "n")}


def from_group_lasso(group_reg: float, l1_reg: float, n: float, scale_reg: str = "group_size") -> dict[str, Any]:
    """1/(2n) sum_i loss_i + group_reg sum_g c_g ||w_g|| + l1_reg ||w||_1: the package group-lasso, version 1.5.

    c_g is the square root of the group size for ``scale_reg="group_size"``, its default, and 1 for "none". Returns
    the parameters of GroupLassoClassifier and GroupLassoRegressor. The documentation of that package says 1/n instead
    of 1/(2n), but its steps use half the gradient, so its results are those of the formula above. For two classes its
    classifier fits a column of weights for *each* class, so the models are the same only for three or more classes.

    Examples
    --------
    >>> from_group_lasso(group_reg=0.05, l1_reg=0.01, n=100)
    {'lam_group': 10.0, 'lam_l1': 2.0, 'group_weights': 'sqrt'}
    """
    if scale_reg not in ("group_size", "none", None):
        raise ValueError(
            f"scale_reg must be 'group_size' or 'none', got {scale_reg!r}; for others set group_weights yourself"
        )
    n = _positive(n, "n")
    return {
        "lam_group": 2.0 * n * _nonnegative(group_reg, "group_reg"),
        "lam_l1": 2.0 * n * _nonnegative(l1_reg, "l1_reg"),
        "group_weights": "sqrt" if scale_reg == "group_size" else None,
    }


def to_group_lasso(lam_group: float, lam_l1: float, n: float, group_weights: str | None = "sqrt") -> dict[str, Any]:
    """``group_reg``, ``l1_reg`` and ``scale_reg`` of the package group-lasso; see :func:`from_group_lasso`.

    Examples
    --------
    >>> to_group_lasso(lam_group=10.0, lam_l1=2.0, n=100)
    {'group_reg': 0.05, 'l1_reg': 0.01, 'scale_reg': 'group_size'}
    """
    if group_weights not in ("sqrt", None):
        raise ValueError(
            f"group_weights must be 'sqrt' or None, got {group_weights!r}; group-lasso has no name for other weights"
        )
    n = _positive(n, "n")
    return {
        "group_reg": _nonnegative(lam_group, "lam_group") / (2.0 * n),
        "l1_reg": _nonnegative(lam_l1, "lam_l1") / (2.0 * n),
        "scale_reg": "group_size" if group_weights == "sqrt" else "none",
    }


def _nonnegative(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def _positive(value: float, name: str) -> float:
    if _nonnegative(value, name) == 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return float(value)


def _ratio(l1_ratio: float) -> float:
    if _nonnegative(l1_ratio, "l1_ratio") > 1:
        raise ValueError(f"l1_ratio must be between 0 and 1, got {l1_ratio!r}")
    return float(l1_ratio)


def _some(total: float) -> float:
    if total == 0:
        raise ValueError("both strengths are zero, so l1_ratio is undefined; make at least one of them positive")
    return total
