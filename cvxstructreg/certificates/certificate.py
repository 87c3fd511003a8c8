"""Certificates: how far a point is from the optimum, computed only from the point and an optional dual point.

This module does not depend on any solver. It builds a feasible dual point (see :mod:`cvxstructreg.certificates.bounds`)
and reports one of these:

- ``duality_gap``: objective minus dual objective, an upper bound on the distance of the objective from its minimum;
- ``strong_convexity``: a bound of the same kind, ||s||^2 / (2 mu) with a subgradient s, if some term has no conjugate
  but the objective is mu-strongly convex;
- ``kkt``: no bound, only a measure of the violation of the optimality conditions.

Possible round-off is subtracted from the bound (:mod:`cvxstructreg.numerics.round_off`). So a gap is never smaller than
the round-off in objective and bound, and a negative gap means that a formula is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxstructreg.certificates import bounds as dual_points
from cvxstructreg.certificates.dual_point import NO_PROOF, DualPoint, Proof, zero_dual
from cvxstructreg.certificates.kkt import kkt_residual
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows, kept_value, value_at
from cvxstructreg.certificates.strong_convexity import strong_convexity_bound
from cvxstructreg.core.data_record import DataRecord
from cvxstructreg.core.default_prox import NoProxError
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.chains.chain_dual import ChainDual, ChainPoint
from cvxstructreg.forms.chains.plain_chain import plain_chain
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.reductions.centring import Centring
from cvxstructreg.reductions.reduction import Point
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.cards import card

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: A gap is measured relative to the objective, or to this part of the objective at the null point if that is larger.
SCALE_FLOOR = 1e-3
#: After a perfect fit, the objective is only round-off, and gaps relative to it mean nothing. So the scale is also at
#: least FIT_FLOOR times the objective with zero weights and the best intercept, and ROUND_OFF_FLOOR (about eps^2) times
#: the objective with zero scores.
FIT_FLOOR, ROUND_OFF_FLOOR = 1e-12, 1e-24
#: A bound above the objective by more than this part of the scale means that a formula is wrong.
WRONG = 1e-9
#: A bound above the objective by less than that is round-off. The gap is then this multiple of the difference.
SAFETY = 10.0
#: Sweeps of one search for dual points at most.
MOST_SWEEPS = 200
#: Seconds allowed for a last certificate after the time limit has passed.
GRACE = 0.3
#: The smallest scale.
TINY = float(np.finfo(float).tiny)


class WrongBoundError(ValueError):
    """A lower bound lies above the objective: a formula of some atom is wrong."""


@dataclass(frozen=True)
class Certificate:
    """What is proved about a point.

    Attributes
    ----------
    kind : str
        "duality_gap", "strong_convexity" or "kkt".
    objective, lower_bound : float
        The optimum lies between the two (``lower_bound`` is NaN for kind "kkt").
    gap : float
        ``objective - lower_bound``: the point is at most this far from the optimum. NaN for kind "kkt".
    relative_gap : float
        ``gap / max(|objective|, 0.001 * |objective at the null point|)``, where the null point has zero weights and
        the best intercept (:mod:`cvxstructreg.certificates.null_point`). NaN for kind "kkt".
    residual : float
        For kind "kkt" the relative violation of the optimality conditions, else NaN.
    dual : DualPoint or None
        For kind "duality_gap", the feasible dual point that proves the bound; None for the other kinds, in the history
        of a solve, in the certificate of several problems together, and where there are ``multipliers``.
    multipliers : object or None
        In place of ``dual``, for a small plain CVXPY problem with terms of no known form: the multipliers ``y`` and
        ``z`` of its cone program ``program``, which prove the bound ``value``.
    data : DataRecord or None
        For data in blocks of rows: the number of rows that were read, and their checksum.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> certificate = csr.certify(problem, [1.0])  # the optimal weight
    >>> certificate.kind, certificate.objective, certificate.gap < 1e-6
    ('duality_gap', 4.0, True)
    """

    kind: str
    objective: float
    lower_bound: float
    gap: float
    relative_gap: float
    residual: float = float("nan")
    dual: DualPoint | None = field(default=None, repr=False, compare=False)
    data: DataRecord | None = None
    multipliers: Any = field(default=None, repr=False, compare=False)

    @property
    def error(self) -> float:
        """The number a tolerance is compared with: the relative gap, or the residual for kind "kkt"."""
        return self.residual if self.kind == "kkt" else self.relative_gap

    def status(self, tol: float) -> str | None:
        """The status: "optimal" if the gap is within ``tol``, "stationary" if only the residual is, else None."""
        if not 0.0 <= self.error <= tol:
            return None
        return "stationary" if self.kind == "kkt" else "optimal"

    def _repr_html_(self) -> str:
        if self.kind == "kkt":
            rows = [("objective", f"{self.objective:.9g}"), ("residual", f"{self.residual:.2e}")]
            note = "No bound on the optimum is known: the residual measures the violation of the optimality conditions."
            return card("Certificate: kkt", rows, note=note)
        rows = [("objective", f"{self.objective:.9g}"), ("lower bound", f"{self.lower_bound:.9g}")]
        rows += [("gap", f"{self.gap:.3g}"), ("relative gap", f"{self.relative_gap:.2e}")]
        note = "The optimum lies between the lower bound and the objective."
        proof = " The dual point certificate.dual proves the bound." if self.dual is not None else ""
        return card(f"Certificate: {self.kind}", rows, note=note + proof)

    def __str__(self) -> str:
        if self.kind == "kkt":
            return f"kkt residual {self.residual:.1e} (no bound on the objective)"
        return f"{self.kind} {self.gap:.3g} (relative {self.relative_gap:.1e})"


def certify_point(
    problem: Problem,
    theta: Array,
    b: Array,
    dual: Mapping[int, Array] | None = None,
    known_bound: float = -np.inf,
    sweeps: int = MOST_SWEEPS,
    tol: float = 0.0,
    known_dual: DualPoint | None = None,
) -> Certificate:
    """The certificate of ``(theta, b)``, with known dual points keyed by term number.

    ``known_bound`` is a lower bound on the optimum, proved by ``known_dual`` for the same problem. ``sweeps``
    limits the search for dual points of group norms and similar terms. The search also ends when it cannot gain more
    than a tenth of the relative gap ``tol``.
    """
    centred = Centring.apply(problem)
    if centred is not None:  # centred data avoid cancellation
        lowered = centred.lower(Point(theta, b))
        problem, theta, b = centred.problem, lowered.theta, lowered.b
    parts = problem.normal_form
    by_chain = _of_chain(problem, theta, dual or {}, Proof(known_bound, known_dual))
    if by_chain is not None:
        return by_chain
    quadratic = parts.quadratic_value_and_grad(theta)
    rows = kept_rows(parts)
    if rows is not None and not rows.is_smooth and parts.score_pieces[0].number in (dual or {}):
        rows = None  # the solver had the scores here, and a dual point of them
    scores = problem.model.scores(theta, b) if rows is None else None
    on_scores = None if rows is None else parts.score_pieces[0].scale * kept_value(rows, theta, b)
    objective = problem.value_at(theta, b, scores, quadratic[0], on_scores)
    if not math.isfinite(objective):
        return Certificate("duality_gap", objective, known_bound, np.inf, np.inf, dual=known_dual)
    if all(piece.has_conjugate for piece in parts.pieces):
        kind, known = "duality_gap", (objective, tol)
        try:
            search = dual or {}, sweeps, known, quadratic
            by_rows = None if rows is None else dual_points.lower_bound_by_rows(parts, theta, b, rows, *search)
            if by_rows is None:
                scores = problem.model.scores(theta, b) if scores is None else scores
                by_rows = dual_points.lower_bound(parts, theta, b, scores, *search)
            proof = by_rows
        except NoProxError:  # first dual points of terms on the scores come from prox steps
            proof = NO_PROOF
    else:
        kind, proof = "strong_convexity", Proof(strong_convexity_bound(problem, theta, b))
    proof = proof if proof.bound >= known_bound else Proof(known_bound, known_dual)
    found = _from_bound(problem, kind, objective, proof)
    return _with_data(problem, found or _without_bound(problem, theta, b, objective, dual or {}))


def bounded(
    problem: Problem,
    theta: Array,
    b: Array,
    dual: Mapping[int, Array],
    known_bound: float = -np.inf,
    tol: float = 0.0,
    sweeps: int = MOST_SWEEPS,
) -> Certificate:
    """The certificate of a point in bounded time; if the time limit interrupts it, from the known bound alone."""
    with deadline.at_least(GRACE):
        try:
            return certify_point(problem, theta, b, dual, known_bound, sweeps, tol)
        except (deadline.OutOfTimeError, np.linalg.LinAlgError):
            pass
    with deadline.at_least(math.inf):  # always computes the objective, which takes one evaluation
        return from_known_bound(problem, theta, b, known_bound)


def _of_chain(problem: Problem, theta: Array, dual: Mapping[int, Array], known: Proof) -> Certificate | None:
    """The certificate of a long chain with X = I from dual points in balance, in one pass; None in other cases."""
    parts = problem.normal_form
    chain = plain_chain(parts)
    if chain is None or any(piece.number not in dual for piece in parts.pieces):
        return None
    loss, edges = parts.pieces
    points: dict[int, Any]
    if isinstance(dual, ChainDual) and dual.belongs(chain, theta):  # no need to store them
        points = {number: ChainPoint(dual, number) for number in dual}
        found: tuple[float, float, float] | None = chain.proof(theta[:, 0])
    else:
        points = {piece.number: dual[piece.number] for piece in (loss, edges)}
        found = chain.bounds(theta[:, 0], points[loss.number][:, 0], points[edges.number][:, 0])
    if found is None or not np.isfinite(found).all():
        return None
    objective, value, round_off = found
    proof = Proof(value - round_off, DualPoint(value, points[loss.number], points))
    return _from_bound(problem, "duality_gap", objective, proof if proof.bound >= known.bound else known)


def from_known_bound(problem: Problem, theta: Array, b: Array, known_bound: float) -> Certificate:
    """The certificate from a known bound, or from the bound 0 if no term can be negative, without any search."""
    objective = value_at(problem, theta, b)
    bound = 0.0 if known_bound == -np.inf and _is_nonnegative(problem) else known_bound
    found = _from_bound(problem, "duality_gap", objective, Proof(bound)) if np.isfinite(objective) else None
    return _with_data(problem, found or Certificate("kkt", objective, np.nan, np.nan, np.nan, np.inf))


def _with_data(problem: Problem, certificate: Certificate) -> Certificate:
    """The certificate with the record of data in blocks of rows."""
    record = problem.model.data_record
    return certificate if record is None else replace(certificate, data=record)


def tightened(problem: Problem, certificate: Certificate, proof: Certificate) -> Certificate:
    """The certificate with the lower bound of another certificate of the same problem, if that is higher."""
    if proof.kind == "kkt" or proof.lower_bound <= certificate.lower_bound or not np.isfinite(certificate.objective):
        return certificate
    found = _from_bound(problem, proof.kind, certificate.objective, Proof(proof.lower_bound, proof.dual))
    return certificate if found is None else _with_data(problem, found)


def _from_bound(problem: Problem, kind: str, objective: float, proof: Proof) -> Certificate | None:
    """The certificate from a lower bound, or from the bound 0 if that is better; None if there is no bound."""
    scale, (bound, dual) = objective_scale(problem, objective), proof
    if bound < 0.0 and (bound > -np.inf or objective < scale) and _is_nonnegative(problem):
        bound, dual = 0.0, None  # without any other bound, 0 is used only for good fits
    if bound == -np.inf:
        return None
    gap = objective - (bound - UNIT * abs(objective))
    if gap < -WRONG * scale:
        _refuse_wrong_bound(problem, objective, bound, scale)
        return None
    if gap < 0.0:  # round-off was larger than estimated
        gap = -SAFETY * gap
    gap = float(gap)
    if bound == 0.0 and dual is None and kind == "duality_gap":
        dual = zero_dual(problem.normal_form)
    return Certificate(kind, objective, objective - gap, gap, gap / scale, dual=dual)


def from_multipliers(objective: float, bound: float, multipliers: Any, constant: float = 0.0) -> Certificate | None:
    """The certificate from a bound by multipliers of a cone program; None if it is above the objective.

    Both contain the ``constant``, and the certificate does not. The gap is relative to the objective without it, which
    is never less than relative to the scale of other certificates.
    """
    scale = max(abs(objective - constant), TINY)
    gap = objective - bound + UNIT * (abs(objective) + abs(constant))
    if not np.isfinite(gap) or gap < -WRONG * scale:
        return None
    gap, own = float(gap if gap >= 0.0 else -SAFETY * gap), objective - constant
    return Certificate("duality_gap", own, own - gap, gap, gap / scale, multipliers=multipliers)


def _without_bound(
    problem: Problem, theta: Array, b: Array, objective: float, dual: Mapping[int, Array]
) -> Certificate:
    try:
        residual = kkt_residual(problem.normal_form, theta, b, dual)
    except NoProxError:
        residual = np.inf
    return Certificate("kkt", objective, np.nan, np.nan, np.nan, residual)


def _refuse_wrong_bound(problem: Problem, objective: float, bound: float, scale: float) -> None:
    """Raise if a bound above the objective can only come from a wrong formula.

    Atoms of this package are tested against their definitions. If there are no other atoms, numbers of very different
    sizes have caused more round-off than estimated, and the bound is discarded.
    """
    foreign = sorted({type(t.atom).__name__ for t in problem.terms if not _is_built_in(t.atom)})
    if foreign:
        raise WrongBoundError(
            f"the lower bound {bound:.9g} is above the objective {objective:.9g} (by {(bound - objective) / scale:.1e} "
            f"of it), so a formula is wrong: conj, dual_norm, prox, value or expr of {' or '.join(foreign)}. "
            f"Check each with cvxstructreg.testing.check_atom(atom, shape)"
        )


def _is_built_in(atom: object) -> bool:
    return type(atom).__module__.split(".")[0] == __name__.split(".")[0]


def objective_scale(problem: Problem, objective: float) -> float:
    """The scale of relative gaps: the objective, but at least a small part of its value at the null point."""
    floor = problem.__dict__.get("_scale_floor")
    if floor is None:
        null = null_point(problem)
        values = (
            (SCALE_FLOOR, null.objective),
            (FIT_FLOOR, null.with_intercept),
            (ROUND_OFF_FLOOR, null.with_zero_scores),
        )
        floors = [float(part * abs(value)) for part, value in values if math.isfinite(value)]
        floor = problem.__dict__["_scale_floor"] = max([*floors, TINY])
    return max(abs(objective), floor)


def _is_nonnegative(problem: Problem) -> bool:
    """Whether all terms are known to be nonnegative, so that the optimum is at least 0."""
    known = problem.__dict__.get("_is_nonnegative")
    if known is None:
        known = all(_term_is_nonnegative(problem, number) for number in range(len(problem.terms)))
        problem.__dict__["_is_nonnegative"] = known
    return bool(known)


def _term_is_nonnegative(problem: Problem, number: int) -> bool:
    term, k = problem.terms[number], problem.n_outputs
    if term.scale == 0.0:
        return True
    if isinstance(term.atom, Loss):
        rows = len(term.atom.y)
    else:
        rows = problem.model.n_weights if term.target == "weights" else problem.model.n_rows
    return term.atom.is_nonnegative((rows, k))
