"""Warn when a graph term swamps all other terms. The check is the same for all solvers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.composed_forms import PulledForm
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.kernels.warp import GraphOperator

#: Above this value of trace(M gram) / n, the graph term swamps all others; published experiments reach about 10^6.
HUGE = 1e8
#: Number of random sign vectors r for estimating trace(M gram) by the mean of r'M gram r in linear models, where
#: gram = X X' is not formed.
SIGNS = 8


class GraphDominatesWarning(UserWarning):
    """The graph term is so much stronger than the function norm that f is nearly constant."""


def warn_of_strong_graphs(problem: Problem) -> None:
    """Warn if trace(M gram) / n is huge, where M is the sum of the graph terms divided by the strength of the norm."""
    parts, model = problem.normal_form, problem.model
    if model.kernel is not None:
        graphs, norm = (*parts.score_forms, *parts.function_forms), parts.function_norm
        if graphs and norm is not None:
            warn_if_graph_dominates(GraphOperator(norm.relative(graphs), model.n_rows), model.design)
        return
    if not parts.score_forms and not parts.weight_forms:
        return
    if model.row_blocks is not None:  # the test would need several passes over the data
        return
    forms, ridge = _forms_of_linear(problem)
    if forms and ridge.min() > 0:
        size = _trace_of_linear(GraphOperator(forms, model.n_rows), model.design, ridge)
        _warn_if_huge(size / model.n_rows)


def warn_if_graph_dominates(operator: GraphOperator, gram: Array) -> None:
    """Warn if trace(M gram) / n is huge, given M and the kernel matrix."""
    if operator.trace_bound(gram) > HUGE * operator.n:
        _warn_if_huge(operator.trace_with(gram) / operator.n)


def _warn_if_huge(size: float) -> None:
    if size > HUGE:
        warnings.warn(
            f"the graph term is {size:.1e} times as strong as the function norm (trace(M gram) / n): f is nearly "
            "constant along the edges and hardly depends on the labels. Lower the strength of the Laplacian, raise "
            "that of RKHSNorm(), or use normalized=True",
            GraphDominatesWarning,
            stacklevel=5,
        )


def _forms_of_linear(problem: Problem) -> tuple[list[tuple[float, QuadraticForm]], Array]:
    """The quadratic forms of the scores, and the ridge of each weight."""
    parts = problem.normal_form
    forms, ridge = [(f.scale, f.form) for f in parts.score_forms], np.zeros(problem.model.n_weights)
    for scaled in parts.weight_forms:
        if isinstance(scaled.form, PulledForm):
            forms.append((scaled.scale, scaled.form.form))
        elif scaled.form.diagonal is not None:
            ridge += scaled.scale * scaled.form.diagonal
    return forms, ridge


def _trace_of_linear(operator: GraphOperator, X: Any, ridge: Array) -> float:
    """trace(M X D^-1 X') for the ridge D: an upper bound if the bound is not huge, else an estimate."""
    traces = sum(c * form.trace_bound for c, form in (*operator.plain, *operator.operators))
    bound = 2.0 * traces * _largest_row(X) / float(ridge.min())
    if bound <= HUGE * operator.n:
        return bound
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(operator.n, SIGNS))
    images = np.asarray(X @ ((X.T @ signs) / ridge[:, None]))
    return float(np.sum(operator.apply(signs) * images)) / SIGNS


def _largest_row(X: Any) -> float:
    """The largest squared norm of a row."""
    if not sp.issparse(X):
        return float(np.einsum("ij,ij->i", X, X).max())
    sums = np.concatenate([[0.0], np.cumsum(X.data**2)])
    return float(np.diff(sums[X.indptr]).max())
