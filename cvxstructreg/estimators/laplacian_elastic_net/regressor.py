"""Laplacian elastic net regressor: sparse weights that are smooth over a graph of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from cvxstructreg.estimators.alignment import Columns
from cvxstructreg.estimators.laplacian_elastic_net.base import laplacian_elastic_net
from cvxstructreg.estimators.linear import LinearRegressor


class LaplacianElasticNetRegressor(LinearRegressor):
    """1/2 sum_i s_i (x_i'w + b - y_i)^2 + lam1 ||w||_1 + lam2/2 w'Lw, b free.

    The penalty of Fei, Quanz and Huan, "Regularization and feature selection for networked features", CIKM 2010, with
    the factor 1/2 of the paper. L is the Laplacian of a graph of features: w'Lw is the sum over its edges of
    |W_ij| (w_i - s_ij w_j)^2, s_ij the sign of the edge. The loss is half a sum over rows, not a mean:
    ``lam1 = n * alpha`` is scikit-learn's Lasso(alpha).

    Parameters
    ----------
    graph : Graph, square matrix, pairs, data frame of edges, networkx graph, path of a .gmt file, or builder; optional
        Which features belong together. The graph must be undirected; dissimilarity edges (negative weights) pull
        weights to opposite values. A Graph with names is matched to the columns of a data frame (or to the
        ``feature_names`` given to ``fit``); columns without a node are isolated. Otherwise node j is column j. A
        builder such as :class:`cvxstructreg.graphs.SeedCorrelationGraph` is fitted on the rows given to ``fit``, and
        its graph is symmetrised. None leaves only the L1 term.
    lam1, lam2 : float
        Strengths of the L1 term and of the graph.
    normalized : bool
        Whether L is D^-1/2 (D - W) D^-1/2, as in the paper, or D - W.
    missing : {"error", "ignore"}
        What to do with nodes of the graph that are not columns of X.
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised.
    solver, tol, max_iter, verbose, solver_options
        As in :meth:`cvxstructreg.Problem.solve`: ``tol`` is the certified relative gap to reach, and ``solver_options``
        is a dict of further options such as ``{"time_limit": 10}``.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    objective_, certificate_, solution_, n_iter_
        The objective above at the fitted point, a bound on how far it is above the optimum, the full solution (with the
        exact problem in ``solution_.problem``) and the number of iterations.
    graph_ : Graph or None
        The graph on the columns of X.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg import Graph
    >>> from cvxstructreg.estimators import LaplacianElasticNetRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 6))
    >>> y = 2 * X[:, 0] + 2 * X[:, 1] + 0.1 * rng.normal(size=60)
    >>> graph = Graph.from_edges([(0, 1), (2, 3), (4, 5)], n_nodes=6)
    >>> model = LaplacianElasticNetRegressor(graph, lam1=5.0, lam2=10.0).fit(X, y)
    >>> sorted(feature.name for feature in model.selected_features())
    ['x0', 'x1']
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    _needs_undirected = True

    def __init__(
        self,
        graph: Any = None,
        *,
        lam1: float = 1.0,
        lam2: float = 1.0,
        normalized: bool = True,
        missing: str = "error",
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.graph = graph
        self.lam1 = lam1
        self.lam2 = lam2
        self.normalized = normalized
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None, graph: Any = None, feature_names: Any = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of n numbers
        sample_weight : array of n numbers, optional
            The s_i.
        graph : Graph or square matrix, optional
            Used instead of the parameter ``graph``.
        feature_names : sequence of d str, optional
            The names of the columns if X has none, such as ``vectorizer.get_feature_names_out()``.
        """
        return self._fit(X, y, sample_weight, feature_names, self.graph if graph is None else graph)

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        return laplacian_elastic_net(self, structure, columns)
