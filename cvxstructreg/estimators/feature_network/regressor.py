"""Feature network regressor: each weight is pulled to the average of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from cvxstructreg.core.problem import Problem
from cvxstructreg.estimators.alignment import Columns
from cvxstructreg.estimators.feature_network.base import feature_network
from cvxstructreg.estimators.linear import LinearRegressor
from cvxstructreg.paths.strength import weight_terms


class FeatureNetworkRegressor(LinearRegressor):
    """1/2 sum_i s_i (x_i'w + b - y_i)^2 + alpha ||(I - P) w||^2 + beta ||w||^2, b free.

    The penalty of Sandler, Talukdar, Ungar and Blitzer, "Regularized learning with networks of features", NIPS 2008,
    equation (1), with the squared loss. P is the graph with rows summing to one: the weight of each feature is pulled
    to the average weight of its neighbours. Dissimilarity edges (negative weights) pull it to minus that average, and
    virtual nodes are class means (section 3 of the paper); see :class:`cvxstructreg.FeatureNetwork`. The loss is half a
    sum over rows, not a mean.

    Parameters
    ----------
    graph : Graph, square matrix, pairs, data frame of edges, networkx graph, path of a .gmt file, or builder; optional
        Which features belong together. A Graph with names is matched to the columns of a data frame (or to the
        ``feature_names`` given to ``fit``); columns without a node are isolated. Otherwise node j is column j. A
        builder such as :class:`cvxstructreg.graphs.CooccurrenceGraph` is fitted on the rows given to ``fit``. None
        leaves only the ridge term.
    alpha, beta : float
        Strengths of the network and of the ridge term.
    signed : {"separate", "joint"}
        Whether dissimilarity edges form a separate term, as in the paper, or are averaged with the other edges of a
        node.
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
    objective_ : float
        The objective above at the fitted point.
    certificate_ : Certificate
        Bounds how far ``objective_`` is above the optimum.
    solution_ : Solution
        The full solution, with the exact problem in ``solution_.problem``.
    n_iter_ : int
    graph_ : Graph or None
        The graph on the columns of X.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg import Graph
    >>> from cvxstructreg.estimators import FeatureNetworkRegressor
    >>> X = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> y = [2.0, 2.0, 0.0, 0.0]
    >>> graph = Graph.from_edges([(0, 1)], n_nodes=3)  # the second word never occurs, but resembles the first
    >>> model = FeatureNetworkRegressor(graph, alpha=10.0, beta=0.1).fit(X, y)
    >>> model.coef_[:2].round(1).tolist()
    [1.4, 1.4]
    """

    def __init__(
        self,
        graph: Any = None,
        *,
        alpha: float = 10.0,
        beta: float = 1.0,
        signed: str = "separate",
        missing: str = "error",
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.graph = graph
        self.alpha = alpha
        self.beta = beta
        self.signed = signed
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
        return feature_network(self, structure, columns)

    def _path_terms(self, problem: Problem) -> tuple[int, ...]:
        return weight_terms(problem)
