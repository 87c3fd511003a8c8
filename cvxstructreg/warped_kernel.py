"""A kernel that includes a graph on the examples, for use with any kernel machine."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg

from cvxstructreg.core.atom import as_columns
from cvxstructreg.core.checks import check_range, indices_of
from cvxstructreg.core.model import Kernel, as_design
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.quadratic_penalty import QuadraticPenalty
from cvxstructreg.graphs import Graph
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties import Laplacian, Quadratic
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.memory import require_memory
from cvxstructreg.solvers.graph_strength import warn_if_graph_dominates
from cvxstructreg.solvers.kernels.warp import GraphOperator, Warp

#: Bytes of a number in double precision.
BYTES = 8.0
#: A graph whose product with a constant is below this, relative to its size, does not penalise constants.
ROUND_OFF = 1e-12


class WarpedKernel:
    """k'(x, z) = k(x, z) - k_x'(I + M gram)^-1 M k_z: a kernel warped by a graph on the examples.

    M is ``strength`` times the matrix of the graph, and k' is the kernel of the norm

        ||h||^2 + strength * sum over edges |W_ij| (h(x_i) - s_ij h(x_j))^2

    (Sindhwani, Niyogi and Belkin 2005; with dissimilarity edges Goldberg, Zhu and Wright 2007). A support vector
    machine with k' and C = 1 / (2 lam1) is manifold regularization with hinge loss, strength = lam2 / lam1, an
    unpenalised intercept, and the graph on h. Between training examples k' is computed as gram (I + M gram)^-1: the
    subtraction above loses digits if k' is much smaller than k.

    Parameters
    ----------
    kernel : array of shape (n, n), or a function (X, Z) -> array
        The kernel matrix of all examples, labelled or not, or a kernel function such as
        ``sklearn.metrics.pairwise.rbf_kernel``, which needs ``X``.
    graph : Graph, Laplacian, Quadratic or matrix M
        On the n examples. A Graph means its Laplacian; pass ``Laplacian(graph, normalized=True, power=5)`` for options.
    strength : float
        lam2 / lam1.
    X : array of n rows, optional
        The examples, for a kernel function.
    on_scores : bool
        Whether the graph acts on f = h + b, where b is the intercept, and not on h. Then k' has a further term
        u(x) u(z) / s; use it with a machine *without* an intercept. The graph must have dissimilarity edges, so that
        it penalises constants.
    psd : bool
        Whether the kernel is positive semidefinite by construction, so that no proof is needed. As in
        :class:`cvxstructreg.Kernel`, a matrix that round-off made indefinite is repaired.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from sklearn.svm import SVC
    >>> from cvxstructreg import Graph
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]])
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (3, 4), (4, 5), (2, 3)], [1.0, 1.0, 1.0, 1.0, -1.0])
    >>> warped = WarpedKernel(rbf_kernel, graph, strength=10.0, X=X, psd=True)
    >>> labelled = [0, 5]
    >>> machine = SVC(kernel="precomputed", C=10.0).fit(warped.gram(labelled), [-1, 1])
    >>> machine.predict(warped.between(X, labelled)).tolist()
    [-1, -1, -1, 1, 1, 1]
    >>> machine.predict(warped.between([[2.9], [3.9]], labelled)).tolist()
    [-1, 1]
    """

    def __init__(
        self, kernel: Any, graph: Any, strength: Any = 1.0, X: Any = None, on_scores: bool = False, psd: bool = False
    ) -> None:
        self.function: Callable[[Any, Any], Array] | None = kernel if callable(kernel) else None
        if self.function is not None:
            if X is None:
                raise ValueError(
                    "a kernel function needs the examples: pass X, or pass a kernel matrix instead of the function"
                )
            n = int(np.shape(X)[0])
            remedy = "use a linear model, or fewer examples"
            require_memory(BYTES * n * n, f"the kernel matrix of {n:,} examples", remedy)
            kernel = self.function(X, X)
        elif X is not None:
            raise ValueError("X is only used with a kernel function; leave out X when you pass a kernel matrix")
        self.X = X
        self._model = Kernel(kernel, psd=psd).convex()
        self._gram: Array = self._model.design
        self.n = self._model.n_rows
        if isinstance(strength, bool) or not isinstance(strength, Real) or not 0 <= float(strength) < np.inf:
            raise ValueError(f"strength must be a finite number of at least 0, got {strength!r}")
        penalty = _penalty(graph)
        penalty.check_rows(self.n, "examples")
        form: QuadraticForm = penalty.quadratic(self.n)
        self.operator = GraphOperator([(float(strength), form)], self.n)
        self.on_scores = bool(on_scores)
        self._pull = self.operator.apply(np.ones((self.n, 1))) if self.on_scores else np.zeros((self.n, 1))
        size = float(strength) * form.trace_bound / self.n
        if self.on_scores and np.abs(self._pull).max() <= ROUND_OFF * size:
            raise ValueError(
                "on_scores=True needs a graph with dissimilarity edges: constants cost nothing on this graph, so "
                "the intercept is free; use on_scores=False and a machine with an intercept"
            )
        warn_if_graph_dominates(self.operator, self._gram)
        self._warp = Warp(self._gram, self.operator)

    @cached_property
    def _constant(self) -> tuple[Array, Array, float]:
        """Return (I + M gram)^-1 M 1, the values u of the training examples, and s."""
        shift = self._warp.solve(self._pull)
        values = -(self._gram @ shift)
        u = 1.0 + values
        s = -float(np.sum(shift * values)) + float(np.sum(u * self.operator.apply(u)))
        return shift, u, s

    def gram(self, rows: Any = None, columns: Any = None) -> Array:
        """Return k' between the training examples ``rows`` (default: all) and ``columns`` (default: the same rows)."""
        chosen = self._indices(rows, "rows")
        others = chosen if columns is None else self._indices(columns, "columns")
        require_memory(
            2 * BYTES * self.n * len(others), f"{len(others):,} columns of a warped kernel", "use fewer columns"
        )
        right = np.zeros((self.n, len(others)), order="F")
        right[others, np.arange(len(others))] = 1.0
        result = self._gram[chosen] @ self._warp.solve(right)
        if columns is None:
            result = (result + result.T) / 2
        if self.on_scores:
            _, u, s = self._constant
            result = result + u[chosen] @ u[others].T / s
        return np.asarray(result)

    def factor(self) -> Array:
        """Return R with k' = R R' between all training examples, at a cost of a few n^3 operations.

        R R' is positive semidefinite by construction.
        """
        require_memory(
            4 * BYTES * self.n * self.n, f"a factor of the warped kernel of {self.n:,} examples", "use gram(rows)"
        )
        G = self._model.factor()
        inner = np.eye(G.shape[1]) + G.T @ self.operator.apply(G)
        lower = scipy.linalg.cholesky((inner + inner.T) / 2, lower=True)
        R = scipy.linalg.solve_triangular(lower, G.T, lower=True).T
        if self.on_scores:
            _, u, s = self._constant
            R = np.column_stack([R, u / np.sqrt(s)])
        return np.asarray(R)

    def between(self, points: Any, columns: Any = None) -> Array:
        """Return k' between any points and training examples (``columns``, all by default).

        ``points`` are examples if the kernel is a function, and otherwise rows of the kernel between the points and all
        n training examples.
        """
        others = self._indices(columns, "columns")
        rows = self._rows(points)
        require_memory(
            2 * BYTES * self.n * len(others), f"{len(others):,} columns of a warped kernel", "use fewer columns"
        )
        right = np.zeros((self.n, len(others)), order="F")
        right[others, np.arange(len(others))] = 1.0
        result = rows @ self._warp.solve(right)
        if self.on_scores:
            shift, u, s = self._constant
            result = result + (1.0 - rows @ shift) @ u[others].T / s
        return np.asarray(result)

    def function_of(self, dual_coef: Any, rows: Any = None) -> Callable[[Any], Array]:
        """x -> sum_i dual_coef_i k'(x, x_i) over the training examples ``rows``: n multiplications per point.

        ``dual_coef`` are the coefficients of a kernel machine, such as ``KernelRidge().dual_coef_``, or the product of
        labels and multipliers of a support vector machine. The intercept is not included.
        """
        chosen = self._indices(rows, "rows")
        coefficients = as_columns(dual_coef, "dual_coef")
        if len(coefficients) != len(chosen):
            raise ValueError(
                f"dual_coef has {len(coefficients)} rows, expected one for each of {len(chosen)} training examples"
            )
        right = np.zeros((self.n, coefficients.shape[1]))
        right[chosen] = coefficients
        theta, shift = self._warp.solve(right), 0.0
        if self.on_scores:
            moved, u, s = self._constant
            intercepts = u[chosen].T @ coefficients / s
            theta, shift = theta - moved @ intercepts, intercepts
        single = np.ndim(dual_coef) == 1

        def function(points: Any) -> Array:
            values = self._rows(points) @ theta + shift
            return np.asarray(values[:, 0] if single else values)

        return function

    def _rows(self, points: Any) -> Array:
        if self.function is not None:
            return np.asarray(self.function(points, self.X), dtype=float)
        rows = as_design(points, "points")
        if rows.shape[1] != self.n:
            raise ValueError(
                f"points must be rows of the kernel with all {self.n} training examples, got shape {rows.shape}; "
                "to pass examples, create the WarpedKernel with a kernel function and X"
            )
        return np.asarray(rows)

    def _indices(self, rows: Any, name: str) -> np.ndarray:
        if rows is None:
            return np.arange(self.n)
        indices = indices_of(np.atleast_1d(np.asarray(rows)), None, "example")
        check_range(indices, self.n, "example", name)
        return indices

    def __repr__(self) -> str:
        on = ", on_scores=True" if self.on_scores else ""
        shift = f", shift={self._model.shift:.3g}" if self._model.shift else ""
        return f"WarpedKernel({self.n} examples{on}{shift})"


def _penalty(graph: Any) -> QuadraticPenalty:
    if isinstance(graph, Graph):
        return Laplacian(graph)
    if isinstance(graph, QuadraticPenalty):
        return graph
    return Quadratic(matrix=graph)
