"""The CVXPY form of sum-to-zero machines: only the relevant rows, k columns, and zero sums as sparse constraints.

If all terms except quadratic ones depend only on centred scores, the weights can be restricted to zero row sums,
because centring does not increase a quadratic term. With theta 1 = 0 and 1'b = 0 as constraints, the hinges need no
centring, which would couple all columns densely. If the norm is also the only penalty on the weights, these are
combinations of the m rows of R F that the hinges use, and

    minimize  sum_ij c_ij (Z_ij - tau_i)_+^p_i + lam ||V||^2     with  Z = G V + q b',  V 1 = 0,  1'b = 0

has m x k variables, where G is a factor of the kernel K_R = G G' of these rows. The size does not depend on the number
of other examples or features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # SciPy loads scipy.linalg when it is first used
import scipy.sparse as sp

from cvxstructreg.forms.quadratic_form import to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.semidefinite import PSD_ROUND_OFF, not_psd
from cvxstructreg.runtime.lazy_cvxpy import cp

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


def sums_to_zero(problem: Problem) -> bool:
    """Whether all terms except quadratic ones are hinges of centred scores."""
    parts = problem.normal_form
    if problem.n_outputs < 2 or parts.separable is not None or parts.weight_pieces:
        return False
    return bool(parts.score_pieces) and all(piece.atom.can("centred_hinges") for piece in parts.score_pieces)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates V with theta = T V, R A theta = G V, and the norm of theta equal to ``strength ||V||^2``."""

    G: Array
    T: Array
    strength: float
    sums: Array  # q = R 1


def row_coordinates(problem: Problem) -> Coordinates | None:
    """The coordinates of the relevant rows; None if other terms need all weights, or there are fewer weights than rows.

    The coordinates are computed once and cached with the problem.
    """
    if "_row_coordinates" not in problem.__dict__:
        problem.__dict__["_row_coordinates"] = _coordinates(problem)
    found: Coordinates | None = problem.__dict__["_row_coordinates"]
    return found


def _coordinates(problem: Problem) -> Coordinates | None:
    parts, model = problem.normal_form, problem.model
    if not sums_to_zero(problem) or parts.score_forms or parts.function_forms:
        return None
    maps = [sp.eye_array(model.n_rows, format="csr") if piece.K is None else piece.K for piece in parts.score_pieces]
    R = sp.csr_array(sp.vstack(maps))
    sums = np.asarray(R.sum(axis=1)).reshape(-1, 1)
    if model.kernel is not None:
        if parts.function_norm is None:
            return None
        values, vectors = _spectrum(R @ np.asarray(R @ model.design).T, model.kernel.round_off)
        lifted = R.T @ (vectors / np.sqrt(values))
        return Coordinates(vectors * np.sqrt(values), lifted, parts.function_norm.scale, sums)
    diagonal = all(scaled.form.diagonal is not None for scaled in parts.weight_forms)
    if R.shape[0] >= model.n_weights or not diagonal or not np.all(parts.ridge > 0):
        return None
    rows = sp.csr_array((R @ model.design) @ sp.diags_array(1.0 / np.sqrt(parts.ridge)))
    values, vectors = _spectrum(to_dense(rows @ rows.T))
    lifted = rows.T @ (vectors / np.sqrt(values))
    return Coordinates(vectors * np.sqrt(values), lifted / np.sqrt(parts.ridge)[:, None], 1.0, sums)


def _spectrum(kernel: Array, round_off: float = PSD_ROUND_OFF) -> tuple[Array, Array]:
    """The eigenvalues above round-off, and their eigenvectors."""
    values, vectors = scipy.linalg.eigh(kernel)
    top = max(float(values[-1]), np.finfo(float).tiny)
    if values[0] < -round_off * top:
        raise not_psd(float(values[0]), top)
    kept = values > len(values) * np.finfo(float).eps * top
    return values[kept], vectors[:, kept]


def zero_sums(theta: cp.Variable, b: cp.Variable | None) -> list[Any]:
    """The constraints theta 1 = 0 and 1'b = 0."""
    return [cp.sum(theta, axis=1) == 0] + ([] if b is None else [cp.sum(b) == 0])


def program(problem: Problem, at: Coordinates) -> tuple[cp.Problem, cp.Variable, cp.Variable | None, dict[int, Any]]:
    """The CVXPY problem, its variables ``v`` and ``b``, and by term the constraint whose multiplier is its dual."""
    k = problem.n_outputs
    v = cp.Variable((at.G.shape[1], k), name="v")
    b = cp.Variable((1, k), name="b") if problem.model.intercept else None
    expressions, links, first = [at.strength * cp.sum_squares(v)], {}, 0
    for piece in problem.normal_form.score_pieces:
        hinges = piece.atom.centred_hinges(k)
        rows = slice(first, first + len(hinges.costs))
        first = rows.stop
        if first == rows.start:
            continue
        copy = cp.Variable((first - rows.start, k))
        scores = at.G[rows] @ v
        links[piece.number] = (scores if b is None else scores + at.sums[rows] @ b) == copy
        expressions.append(piece.scale * hinges.expr_of_zero_sums(copy))
    constraints = [*links.values(), *zero_sums(v, b)]
    return cp.Problem(cp.Minimize(cp.sum(expressions)), constraints), v, b, links
