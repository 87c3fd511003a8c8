"""Information criteria of a certified optimum."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from cvxstructreg.core.loss import Loss
from cvxstructreg.losses import Cox, Logistic, Multinomial, Poisson, Squared
from cvxstructreg.selection.degrees_of_freedom import degrees_at, solution_of


class Criteria(NamedTuple):
    """Degrees of freedom, number of observations, minus twice the log-likelihood, and criteria; smaller is better.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0], [4.0]]), csr.Squared([1.0, 2.5, 4.0]) + 0.1 * csr.L1())
    >>> criteria = information_criteria(problem.solve())
    >>> criteria.n, criteria.aic > criteria.deviance
    (3, True)
    """

    degrees_of_freedom: float
    n: int
    deviance: float
    aic: float
    bic: float
    ebic: float


def information_criteria(fitted: Any, gamma: float = 0.5) -> Criteria:
    """Return AIC = dev + 2 df, BIC = dev + log(n) df and EBIC = BIC + 2 gamma log C(p, s) of a certified optimum.

    ``dev`` is minus twice the log-likelihood, up to a constant: n log(RSS / n) for the squared loss (the variance is
    estimated), and twice the loss for the logistic, the Poisson and the Cox loss. ``df`` is
    :func:`degrees_of_freedom`, s the number of nonzero weights of p features, and n the number of rows of positive
    weight (of events for the Cox loss).

    Parameters
    ----------
    fitted : Solution, or fitted estimator
        A point of a path is a Solution: ``min(path, key=lambda point: information_criteria(point).ebic)``. A problem
        without minimiser is refused, and a solution that is not within its tolerance gives a warning.
    gamma : float
        From 0 (EBIC is BIC) to 1; see Chen and Chen, Biometrika 2008.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 10))
    >>> y = 2.0 * X[:, 0] + rng.normal(size=80)
    >>> path = csr.path(csr.Problem(csr.Linear(X), csr.Squared(y) + csr.L1()), n_points=15)
    >>> best = min(path, key=lambda point: information_criteria(point).ebic)
    >>> int(np.argmax(np.abs(best.coef))), bool(np.count_nonzero(best.coef) < 5)
    (0, True)
    """
    if not isinstance(gamma, int | float) or not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must be from 0 to 1, got {gamma!r}")
    solution = solution_of(fitted)
    problem = solution.problem
    losses = [term for term in problem.terms if isinstance(term.atom, Loss)]
    if len(losses) != 1:
        raise ValueError(f"information criteria are for one loss, got {len(losses)}")
    loss: Any = losses[0].atom
    theta, b = problem.shaped(solution.coef, solution.intercept)
    scores = problem.model.scores(theta, b)
    value = float(loss.value(scores if loss.rows is None else scores[loss.rows]))
    n = int(np.count_nonzero(loss.sample_weight))
    plain = loss.without_offset
    if isinstance(plain, Squared):
        deviance = n * float(np.log(2.0 * value / n))
    elif isinstance(plain, Logistic | Poisson | Cox):
        deviance = 2.0 * value
        n = int(np.count_nonzero(loss.event)) if isinstance(plain, Cox) else n
    elif isinstance(plain, Multinomial):
        raise ValueError(
            "information criteria need degrees of freedom, which are for one output, and Multinomial has one for each "
            "class; use Logistic for two classes, or choose the strength by cross-validation"
        )
    else:
        raise ValueError(
            f"{type(plain).__name__} has no likelihood without further parameters; information criteria are for "
            "Squared, Logistic, Poisson and Cox"
        )
    df = degrees_at(solution)
    p, s = theta.shape[0], int(np.count_nonzero(theta))
    bic = deviance + float(np.log(n)) * df
    choices = float(gammaln(p + 1) - gammaln(s + 1) - gammaln(p - s + 1))
    return Criteria(df, n, deviance, deviance + 2.0 * df, bic, bic + 2.0 * gamma * choices)
