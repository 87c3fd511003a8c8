"""Kernel classifier with similar and dissimilar examples in one graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from cvxstructreg.core.model import Model
from cvxstructreg.core.problem import Problem
from cvxstructreg.estimators.base import sum_of_terms
from cvxstructreg.estimators.kernels.base import KernelClassifier, Labelled
from cvxstructreg.estimators.kernels.row_structure import Rows
from cvxstructreg.estimators.linear import one_vs_rest_probabilities
from cvxstructreg.graphs import Graph
from cvxstructreg.losses import Hinge, Logistic, Squared, SquaredHinge
from cvxstructreg.penalties import Laplacian, RKHSNorm

LOSSES: Mapping[str, Any] = {"hinge": Hinge, "squared_hinge": SquaredHinge, "logistic": Logistic, "squared": Squared}


def _is_logistic(model: Any) -> bool:
    if model.loss != "logistic":
        raise AttributeError(f"predict_proba needs loss='logistic', got loss={model.loss!r}")
    return True


class MixedGraphClassifier(KernelClassifier):
    """sum over labelled i of s_i loss(y_i f(x_i)) + lam1 ||h||_K^2 + lam2 f'Mf, with f = h + b and b free.

    Goldberg, Zhu and Wright, "Dissimilarity in graph-based semi-supervised classification", AISTATS 2007, equations (4)
    and (11). f'Mf is the sum over the edges of |W_ij| (f_i - s_ij f_j)^2, over labelled and unlabelled rows: similar
    rows (s_ij = 1) get similar scores, dissimilar ones (s_ij = -1) opposite scores. The loss is a sum over rows, not a
    mean. The method is for two classes. More classes are fitted one against the rest, where dissimilar edges carry less
    information; :class:`DissimilaritySVC` handles several classes directly.

    New rows are classified by the kernel expansion f(x) = sum_i theta_i k(x_i, x) + b over all rows given to ``fit``.

    Parameters
    ----------
    graph : "knn", NeighborGraph, Graph or square matrix, optional
        Which rows are similar (positive weights) or dissimilar (negative ones); "knn" builds the graph from X. Nodes
        are the rows given to ``fit``, in order, or are matched by name with ``sample_ids``. None gives an ordinary
        kernel machine.
    pairs : sequence of (row, row) or (row, row, weight), mapping from pairs to weights, or data frame; optional
        Dissimilar rows, as row numbers (or ``sample_ids``). They become edges of minus their weight, 1 by default, and
        replace existing edges between the same rows.
    lam1, lam2 : float
        Strengths of the norm and of the graph.
    loss : {"hinge", "squared_hinge", "squared", "logistic"}
        (1 - yf)_+, (1 - yf)_+^2, 1/2 (f - y)^2 or log(1 + exp(-yf)); ``predict_proba`` needs "logistic".
    graph_options : dict, optional
        Parameters of :class:`cvxstructreg.graphs.NeighborGraph` for "knn", such as
        ``{"n_neighbors": 5, "weights": "binary"}``.
    normalized : bool
        Whether to use the normalized Laplacian D^-1/2 M D^-1/2, with D the degrees.
    power : int
        The power of M: rows up to this many edges apart interact.
    graph_on : {"scores", "function"}
        Whether the graph acts on f = h + b, as in equation (11), or on h alone, as in a support vector machine with the
        warped kernel. With dissimilar edges and an intercept the two differ.
    kernel : str or function
        "rbf", "linear", "poly", "laplacian", "cosine" or "sigmoid" as in ``sklearn.metrics.pairwise``, "precomputed" (X
        is the kernel between its rows and the rows given to ``fit``), or a function of two matrices. The kernel must be
        positive semidefinite. If it is not so by construction (sigmoid, functions and matrices), this is proved with
        n^3 / 3 multiplications.
    gamma, degree, coef0 : float
        Parameters of the kernel, if it has them; gamma=None is 1 / number of columns.
    unlabeled : label
        The label of unlabelled rows in y: -1 as in ``sklearn.semi_supervised``, another label, or None if all rows are
        labelled. If the labels are only -1 and 1, set this parameter: y is then ambiguous, which is an error.
    missing : {"error", "ignore"}
        What to do with nodes and pairs whose rows are not in ``sample_ids``.
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised.
    class_weight : dict or "balanced", optional
        Factors of the sample weights by class; "balanced" gives every class the same total weight.
    solver, tol, max_iter, verbose, solver_options
        As in :meth:`cvxstructreg.Problem.solve`: ``tol`` is the certified relative gap to reach, and ``solver_options``
        is a dict of further options such as ``{"time_limit": 10}``.

    Attributes
    ----------
    dual_coef_ : array of shape (n, 1), or (n, k) for k > 2 classes
        The theta above, one row for each row given to ``fit`` (not for a linear kernel).
    coef_ : array of shape (1, d) or (k, d)
        The weights, for a linear kernel only.
    intercept_ : array of shape (1,) or (k,)
    classes_ : array of the class labels
    objective_, certificate_, n_iter_
        The objective above at the fitted point, a bound on how far it is above the optimum, and the number of
        iterations.
    solution_ : Solution, or tuple of k Solutions
        The full solution, with the exact problem in ``solution_.problem``.
    graph_ : Graph or None
        The graph on the rows given to ``fit``, dissimilar pairs included.
    pairs_, pair_weights_ : arrays of shape (m, 2) and (m,)
        The dissimilar pairs, as row numbers, and their weights.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from cvxstructreg.estimators import MixedGraphClassifier
    >>> X, truth = make_moons(60, noise=0.05, random_state=0)
    >>> y = np.full(60, -1)
    >>> y[:6] = truth[:6]  # six rows are labelled
    >>> model = MixedGraphClassifier("knn", lam1=0.01, gamma=5.0, graph_options={"n_neighbors": 5}).fit(X, y)
    >>> float(model.score(X, truth)) > 0.95
    True
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        graph: Any = None,
        *,
        pairs: Any = None,
        lam1: float = 0.1,
        lam2: float = 0.1,
        loss: str = "hinge",
        graph_options: Mapping[str, Any] | None = None,
        normalized: bool = False,
        power: int = 1,
        graph_on: str = "scores",
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        unlabeled: Any = -1,
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
        self.pairs = pairs
        self.lam1 = lam1
        self.lam2 = lam2
        self.loss = loss
        self.graph_options = graph_options
        self.normalized = normalized
        self.power = power
        self.graph_on = graph_on
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.unlabeled = unlabeled
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, graph: Any = None, pairs: Any = None, sample_ids: Any = None
    ) -> Self:
        """Fit the function to the labelled rows; unlabelled rows enter through the graph and the pairs.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            All rows, labelled or not.
        y : array of n labels
            ``unlabeled`` for rows without a label.
        sample_weight : array of n numbers, optional
            The s_i; those of unlabelled rows are ignored.
        graph : "knn", Graph or square matrix, optional
            Used instead of the parameter ``graph``.
        pairs : as the parameter, optional
            Used instead of the parameter ``pairs``.
        sample_ids : sequence of n ids, optional
            Names of the rows. Pairs and the nodes of a graph then refer to these names (graph nodes as text). Without
            names both refer to row numbers, which differ between the folds of a cross-validation.
        """
        graph = self.graph if graph is None else graph
        return self._fit(X, y, sample_weight, graph, self.pairs if pairs is None else pairs, sample_ids)

    def _structure(self, X: Any, rows: Rows, graph: Any, pairs: Any) -> Graph | None:
        similar = rows.graph(graph, X, self.graph_options)
        dissimilar, weights = rows.pairs(pairs)
        if len(dissimilar):
            from cvxstructreg.graphs import mixed_graph

            similar = mixed_graph(similar or Graph(np.zeros((rows.count, rows.count))), dissimilar, weights)
        self.graph_, self.pairs_, self.pair_weights_ = similar, dissimilar, weights
        return self.graph_

    def _problems(self, model: Model, labelled: Labelled, structure: Graph | None) -> list[Problem]:
        lam1, lam2 = self._strength("lam1"), self._strength("lam2")
        terms = [lam1 * RKHSNorm()]
        if structure is not None:
            graph = Laplacian(structure, normalized=self.normalized, power=self.power)
            on_scores = self._choice("graph_on", ("scores", "function")) == "scores"
            terms.append(lam2 * (graph.on_scores() if on_scores else graph.on_function()))
        loss = LOSSES[self._choice("loss", tuple(LOSSES))]
        positive = [1] if labelled.n_classes == 2 else range(labelled.n_classes)
        problems = []
        for j in positive:
            signs = np.where(labelled.codes == j, 1, -1)
            fit = loss(signs, rows=labelled.rows, sample_weight=labelled.weights)
            problems.append(Problem(model, sum_of_terms([fit, *terms])))
        return problems

    @available_if(_is_logistic)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, in the order of ``classes_``; only for ``loss="logistic"``."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return one_vs_rest_probabilities(scores)
