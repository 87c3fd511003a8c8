"""Multiclass support vector machine with pairs of examples from different classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.model import Model
from cvxstructreg.core.problem import Problem
from cvxstructreg.estimators.base import sum_of_terms
from cvxstructreg.estimators.kernels.base import KernelClassifier, Labelled
from cvxstructreg.estimators.kernels.row_structure import Rows
from cvxstructreg.losses import MulticlassHinge
from cvxstructreg.penalties import Dissimilarity, Laplacian, RKHSNorm


class DissimilaritySVC(KernelClassifier):
    """1/l sum_i s_i sum_(j != y_i) (F_ij + 1/(k-1))_+ + lam1 sum_j ||h_j||_K^2 + lam2/|D| sum_(s,t) in D c_st d_st.

    The dissimilarity d_st of two rows is sum_j (F_sj + F_tj - (k-2)/(k-1))_+^p. There are k scores F_j = h_j + b_j with
    unpenalised b_j; the scores sum to zero over the classes.

    Goldberg, Zhu and Wright, "Dissimilarity in graph-based semi-supervised classification", AISTATS 2007, equation (8):
    the multiclass support vector machine of Lee, Lin and Wahba (2004) with pairs D of rows, labelled or not, that are
    known to be of different classes. l is the sum of the weights s_i of the labelled rows; without pairs, the last term
    is left out. Similar rows may be given as a graph, which adds lam_graph sum_j h_j'L h_j; this is the same as a
    warped kernel instead of K.

    New rows are classified by the kernel expansion F_j(x) = sum_i theta_ij k(x_i, x) + b_j over all rows given to
    ``fit``.

    Parameters
    ----------
    pairs : sequence of (row, row) or (row, row, weight), mapping from pairs to weights, or data frame; optional
        Dissimilar rows, as row numbers (or ``sample_ids``), and their weights c_st, 1 by default.
    lam1, lam2 : float
        Strengths of the norm and of the pairs.
    power : {1, 2}
        The p above; 1 in the paper.
    graph : "knn", NeighborGraph, Graph or square matrix, optional
        Which rows are similar; "knn" builds the graph from X. Nodes are the rows given to ``fit``, in order, or are
        matched by name with ``sample_ids``.
    lam_graph : float
        Strength of the graph.
    graph_options : dict, optional
        Parameters of :class:`cvxstructreg.graphs.NeighborGraph` for "knn".
    normalized : bool
        Whether to use the normalized Laplacian D^-1/2 L D^-1/2, with D the degrees.
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
    dual_coef_ : array of shape (n, k)
        The theta above, one row for each row given to ``fit`` (not for a linear kernel).
    coef_ : array of shape (k, d)
        The weights, for a linear kernel only.
    intercept_ : array of shape (k,)
    classes_ : array of the class labels
    objective_, certificate_, n_iter_
        The objective above at the fitted point, a bound on how far it is above the optimum, and the number of
        iterations.
    solution_ : Solution
        The full solution, with the exact problem in ``solution_.problem``.
    graph_ : Graph or None
        The graph on the rows given to ``fit``.
    pairs_, pair_weights_ : arrays of shape (m, 2) and (m,)
        The dissimilar pairs, as row numbers, and their weights.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from cvxstructreg.estimators import DissimilaritySVC
    >>> X, truth = load_iris(return_X_y=True)
    >>> X, truth = X[::3], truth[::3]
    >>> y = np.full(50, -1)
    >>> y[::5] = truth[::5]  # ten rows are labelled
    >>> pairs = [(1, 21), (22, 41), (3, 42), (23, 43)]  # of these rows we know only that they differ
    >>> model = DissimilaritySVC(pairs).fit(X, y)
    >>> float(model.score(X, truth)) > 0.9
    True
    >>> abs(model.decision_function(X).sum(axis=1)).max() < 1e-8
    np.True_
    """

    def __init__(
        self,
        pairs: Any = None,
        *,
        lam1: float = 0.01,
        lam2: float = 1.0,
        power: int = 1,
        graph: Any = None,
        lam_graph: float = 0.1,
        graph_options: Mapping[str, Any] | None = None,
        normalized: bool = False,
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
        self.pairs = pairs
        self.lam1 = lam1
        self.lam2 = lam2
        self.power = power
        self.graph = graph
        self.lam_graph = lam_graph
        self.graph_options = graph_options
        self.normalized = normalized
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

    def _structure(self, X: Any, rows: Rows, graph: Any, pairs: Any) -> Any:
        similar = rows.graph(graph, X, self.graph_options)
        if similar is not None and similar.is_signed:
            raise ValueError("graph has dissimilarity edges (negative weights); pass them as pairs= instead")
        self.graph_ = similar
        self.pairs_, self.pair_weights_ = rows.pairs(pairs)
        return self.pairs_, self.pair_weights_, similar

    def _problems(self, model: Model, labelled: Labelled, structure: Any) -> list[Problem]:
        lam1, lam2, lam_graph = self._strength("lam1"), self._strength("lam2"), self._strength("lam_graph")
        pairs, weights, graph = structure
        loss = MulticlassHinge(
            labelled.codes, rows=labelled.rows, sample_weight=labelled.weights, classes=range(labelled.n_classes)
        )
        terms = [(1.0 / float(labelled.weights.sum())) * loss, lam1 * RKHSNorm()]
        if len(pairs):
            terms.append((lam2 / len(pairs)) * Dissimilarity(pairs, power=self.power, weights=weights))
        if graph is not None:
            terms.append(lam_graph * Laplacian(graph, normalized=self.normalized).on_function())
        return [Problem(model, sum_of_terms(terms))]

    def _center(self, theta: NDArray[np.float64]) -> None:
        """Centre the scores so that they sum to zero over the classes, which changes no term."""
        theta -= theta.mean(axis=1, keepdims=True)
        self.intercept_ -= self.intercept_.mean()
