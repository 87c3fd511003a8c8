"""Laplacian elastic net classifier: sparse weights that are smooth over a graph of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from cvxstructreg.estimators.alignment import Columns
from cvxstructreg.estimators.laplacian_elastic_net.base import laplacian_elastic_net
from cvxstructreg.estimators.linear import LinearClassifier


class LaplacianElasticNetClassifier(LinearClassifier):
    """sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + lam1 ||w||_1 + lam2/2 w'Lw, b free.

    Fei, Quanz and Huan, "Regularization and feature selection for networked features", CIKM 2010, with the factor 1/2
    of the paper. L is the Laplacian of a graph of features: w'Lw is the sum over its edges of |W_ij| (w_i - s_ij
    w_j)^2, s_ij the sign of the edge. The loss is a sum over rows, not a mean. The method is for two classes. More
    classes are fitted one against the rest, and their probabilities are divided by their sum; or jointly, with the
    multinomial loss and the penalties summed over the classes.

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
    multi_class : {"one_vs_rest", "multinomial"}
        More than two classes: one problem for each class, or one joint problem.
    missing : {"error", "ignore"}
        What to do with nodes of the graph that are not columns of X.
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised.
    class_weight : dict or "balanced", optional
        Factors of the sample weights by class; "balanced" gives every class the same total weight.
    solver, tol, max_iter, verbose, solver_options
        As in :meth:`cvxstructreg.Problem.solve`: ``tol`` is the certified relative gap to reach, and ``solver_options``
        is a dict of further options such as ``{"time_limit": 10}``.

    Attributes
    ----------
    coef_ : array of shape (1, d), or (k, d) for k > 2 classes
    intercept_ : array of shape (1,) or (k,)
    classes_ : array of the class labels
    objective_ : float
        The objective above at the fitted point.
    certificate_ : Certificate
        Bounds how far ``objective_`` is above the optimum.
    solution_ : Solution, or tuple of k Solutions
        The full solution, with the exact problem in ``solution_.problem``. For more than two classes, objective and
        certificate are sums over the k problems.
    n_iter_ : int
    graph_ : Graph or None
        The graph on the columns of X.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg import Graph
    >>> from cvxstructreg.estimators import LaplacianElasticNetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80) > 0, "up", "down")
    >>> graph = Graph.from_edges([(0, 1), (2, 3), (4, 5)], n_nodes=6)
    >>> model = LaplacianElasticNetClassifier(graph, lam1=8.0, lam2=5.0).fit(X, y)
    >>> [feature.name for feature in model.selected_features()]
    ['x1', 'x0']
    >>> float(model.score(X, y)) > 0.9
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
        multi_class: str = "one_vs_rest",
        missing: str = "error",
        fit_intercept: bool = True,
        class_weight: Any = None,
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
        self.multi_class = multi_class
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
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
        y : array of n labels
        sample_weight : array of n numbers, optional
            The s_i.
        graph : Graph or square matrix, optional
            Used instead of the parameter ``graph``.
        feature_names : sequence of d str, optional
            The names of the columns if X has none, such as ``vectorizer.get_feature_names_out()``.
        """
        return self._fit(X, y, sample_weight, feature_names, self.graph if graph is None else graph)

    @property
    def _one_vs_rest(self) -> bool:  # type: ignore[override]
        """Whether more than two classes are separate problems."""
        return self._choice("multi_class", ("one_vs_rest", "multinomial")) == "one_vs_rest"

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        return laplacian_elastic_net(self, structure, columns)
