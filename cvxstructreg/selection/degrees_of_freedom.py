"""Degrees of freedom of a certified optimum: the trace of the sensitivity of the fit, on the active subspace."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.quiet import warn
from cvxstructreg.solvers import InaccurateWarning
from cvxstructreg.solvers.driver import no_minimiser_in_words

#: Norms of blocks below this part of the largest count as zero.
ZERO = 1e-8


def degrees_of_freedom(fitted: Any) -> float:
    """Return trace(H^-1 M), where M = A'DA is the curvature of the loss and H is M plus that of the penalty.

    Near the optimum, weights that are zero stay zero, and so do differences and groups at zero: A are the columns of X
    in a basis of the other directions, and a column of ones for the intercept. D is the second derivative of the loss.
    A group norm c ||z|| that is not zero has the curvature c (I / ||z|| - zz' / ||z||^3); absolute values have none.
    For the squared loss this is the divergence of the fitted values in y (Stein's degrees of freedom), and for the
    lasso the number of nonzero weights; for other losses it is the usual first-order approximation.

    Parameters
    ----------
    fitted : Solution, or fitted estimator
        Solve to a small tolerance, such as ``tol=1e-10``: the curvature of groups is that of the weights returned. A
        problem without minimiser is refused, and a solution that is not within its tolerance gives a warning.
        The loss must have second derivatives, and the penalties must be quadratic, absolute values, bounds, or norms of
        linear maps (groups, differences). One output.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> X, y = np.eye(4), np.array([3.0, -2.0, 0.5, 0.2])
    >>> problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 1.0 * csr.L1())
    >>> round(degrees_of_freedom(problem.solve()), 6)  # two weights are not zero
    2.0
    >>> ridge = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 0.5 * csr.Ridge())
    >>> round(degrees_of_freedom(ridge.solve()), 6)  # 4 / (1 + 2 * 0.5)
    2.0
    """
    return degrees_at(solution_of(fitted))


def degrees_at(solution: Solution) -> float:
    """The degrees of freedom of a solution that :func:`solution_of` has accepted."""
    problem = solution.problem
    _check(problem)
    theta, b = problem.shaped(solution.coef, solution.intercept)
    active = _basis(problem, theta)
    design = np.asarray(problem.model.design @ active)
    if problem.model.intercept:
        design = np.column_stack([design, np.ones(len(design))])
    if design.shape[1] == 0:
        return 0.0
    loss = design.T @ _curvature_times(problem, problem.model.scores(theta, b), design)
    total = loss.copy()
    k = active.shape[1]
    total[:k, :k] += _penalty_curvature(problem, theta, active)
    return float(np.trace(scipy.linalg.lstsq(total, loss)[0]))


def solution_of(fitted: Any) -> Solution:
    """Return the solution of a fitted estimator, or the solution itself; warn if it is not within its tolerance."""
    solution = _given(fitted)
    if solution.status == "no_minimiser":
        raise ValueError(
            f"the problem has {no_minimiser_in_words(solution)}, so that its degrees of freedom and criteria mean "
            "nothing. Compare only models with a minimiser: add a penalty such as 0.01 * Ridge(), or leave this one out"
        )
    if solution.status not in ("optimal", "stationary"):
        warn(
            f"degrees of freedom and criteria are those of an optimum, but this solution has status "
            f"{solution.status!r}: {solution.certificate}. Solve with more iterations or time",
            InaccurateWarning,
            stacklevel=3,
        )
    return solution


def _given(fitted: Any) -> Solution:
    if isinstance(fitted, Solution):
        return fitted
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    found = getattr(last, "solution_", None)
    if isinstance(found, tuple):
        raise ValueError("the estimator has one problem for each class; pass one of its solution_ at a time")
    if found is None and hasattr(last, "attach_data"):
        raise ValueError(
            f"this {type(last).__name__} has no solution: fit it, or call attach_data(X, y) if it was pickled, which "
            "leaves the training data behind"
        )
    if not isinstance(found, Solution):
        raise TypeError(f"expected a Solution or a fitted estimator of this library, got {type(fitted).__name__}")
    return found


def _check(problem: Problem) -> None:
    parts = problem.normal_form
    if problem.given.kernel is not None or problem.given.row_blocks is not None:
        raise ValueError("degrees of freedom are for Linear models with data in memory")
    if problem.n_outputs > 1:
        raise ValueError(f"degrees of freedom are for one output, got {problem.n_outputs}")
    if not parts.scores_are_smooth or not all(piece.atom.can("hessp") for piece in parts.score_pieces):
        raise ValueError("the loss has kinks, so that the fit has no derivative; use a smooth loss such as Huber")
    for piece in parts.weight_pieces:
        if _block_starts(piece) is None and not piece.atom.can("separable"):
            raise ValueError(f"the curvature of {piece.source!r} is not known; use norms of groups or differences")


def _block_starts(piece: Piece) -> Any:
    return piece.atom.blocks()[0] if piece.atom.can("blocks") else None


def _rows_of_blocks(piece: Piece, z: Array) -> tuple[Any, Array, Array]:
    """The owner of each row of K theta among the blocks, the norms of the blocks, and their weights."""
    starts = _block_starts(piece)
    if starts is None:  # absolute values: each row is a block
        weights = np.broadcast_to(np.asarray(piece.atom.separable().weights, dtype=float).reshape(-1), (len(z),))
        return np.arange(len(z)), np.abs(z[:, 0]), weights
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    norms = np.sqrt(np.bincount(owner, z[:, 0] ** 2, minlength=len(starts) - 1))
    return owner, norms, np.asarray(piece.atom.blocks()[1], dtype=float)


def _is_zero(norms: Array) -> Any:
    return norms <= ZERO * max(float(norms.max(initial=0.0)), np.finfo(float).tiny)


def _basis(problem: Problem, theta: Array) -> Array:
    """An orthonormal basis (d x m) of the directions in which all kinks stay where they are."""
    parts, w = problem.normal_form, theta[:, 0]
    fixed = np.zeros(len(w), dtype=bool)
    if parts.separable is not None:
        weights, lower, upper = (
            np.broadcast_to(np.asarray(part, dtype=float), theta.shape)[:, 0]
            for part in (parts.separable.weights, parts.separable.lower, parts.separable.upper)
        )
        fixed |= ((w == 0) & (weights > 0)) | (w <= lower) | (w >= upper)
    rows = []
    for piece in parts.weight_pieces:
        owner, norms, weights = _rows_of_blocks(piece, piece.forward(theta))
        at_zero = (_is_zero(norms) & (weights > 0))[owner]
        rows.append(_matrix(piece, len(w))[np.flatnonzero(at_zero)])
    if rows:
        stacked = sp.csr_array(sp.vstack(rows))
        stacked.eliminate_zeros()
        single = np.diff(stacked.indptr) == 1
        fixed[stacked[np.flatnonzero(single)].indices] = True
        free = np.flatnonzero(~fixed)
        others = stacked[np.flatnonzero(~single)][:, free].toarray()
        others = others[np.abs(others).max(axis=1, initial=0.0) > 0]
        basis = np.zeros((len(w), 0))
        if free.size:
            inside = scipy.linalg.null_space(others) if len(others) else np.eye(free.size)
            basis = np.zeros((len(w), inside.shape[1]))
            basis[free] = inside
        return basis
    free = np.flatnonzero(~fixed)
    basis = np.zeros((len(w), free.size))
    basis[free, np.arange(free.size)] = 1.0
    return basis


def _matrix(piece: Piece, d: int) -> sp.csr_array:
    """K as a sparse matrix."""
    if piece.K is None:
        return sp.eye_array(d, format="csr")
    return sp.csr_array(piece.K.tocsr() if isinstance(piece.K, Selection) else piece.K)


def _curvature_times(problem: Problem, scores: Array, design: Array) -> Array:
    """The second derivative of the losses, times each column."""
    parts = problem.normal_form
    columns = [parts.smooth_score_hessp(scores, design[:, [j]]) for j in range(design.shape[1])]
    return np.concatenate(columns, axis=1)


def _penalty_curvature(problem: Problem, theta: Array, active: Array) -> Array:
    """The second derivative of the penalties, in the basis."""
    parts = problem.normal_form
    columns = [parts.quadratic_grad(active[:, [j]]) for j in range(active.shape[1])]
    total = active.T @ np.concatenate(columns, axis=1) if columns else np.zeros((0, 0))
    for piece in parts.weight_pieces:
        if _block_starts(piece) is None:
            continue  # absolute values are linear where they are not zero
        z = piece.forward(theta)
        owner, norms, weights = _rows_of_blocks(piece, z)
        kept = ~_is_zero(norms)
        scale = np.where(kept, piece.scale * weights / np.where(kept, norms, 1.0), 0.0)
        mapped = piece.forward(active)
        total = total + mapped.T @ (scale[owner][:, None] * mapped)
        unit = z[:, 0] / np.where(kept, norms, 1.0)[owner]
        sums = sp.csr_array((unit, (owner, np.arange(len(owner)))), shape=(len(norms), len(owner))) @ mapped
        total = total - sums.T @ (scale[:, None] * sums)
    return np.asarray(total)
