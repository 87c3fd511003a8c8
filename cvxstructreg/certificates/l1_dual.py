"""The bound for problems whose only term on the weights is L1: the dual point of the scores decides it alone.

    minimize over (theta, b)   loss(X theta + 1 b') + sum_j c_j |theta_j|         |X_j'u| <= c_j,   1'u = 0

A u that violates the first condition is scaled down. :class:`~cvxstructreg.certificates.weight_dual.WeightDual` finds
the same bound, and knows more ways to one, but takes several times as long on small problems.
"""

from __future__ import annotations

import numpy as np

from cvxstructreg.certificates.absorbed_pull import AbsorbedPull, pull_of
from cvxstructreg.certificates.dual_point import NO_PROOF, Proof, dual_of
from cvxstructreg.certificates.score_dual import ScoreDual
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.round_off import UNIT

#: Scaled dual points are shrunk by this much more, to be feasible despite round-off.
JUST_INSIDE = 1e-15


def l1_proof(parts: NormalForm, start: ScoreDual) -> Proof:
    """The bound from s times the dual point of the scores, s <= 1; none for other problems, and where s would be 0."""
    part = parts.separable
    if part is None or part.bounded or parts.weight_forms or parts.weight_pieces or not start.is_here:
        return NO_PROOF
    pull, exact = pull_of(parts, start)
    s, sizes = 1.0, np.abs(pull)
    beyond = (~(sizes <= part.weights)).nonzero()
    if beyond[0].size:
        c, excessive = part.weights_at(beyond, pull.shape), sizes[beyond]
        s = float((c / excessive).min()) * (1.0 - JUST_INSIDE)
        if not s > 0.0 or (s * excessive > c).any():
            return NO_PROOF
    cost = start.cost(parts, s)
    reach = parts.column_norms @ np.abs(start.theta)
    in_pull = float(reach @ (UNIT * start.norms() + start.error))  # the cost of the round-off in the pull
    bound = -cost - UNIT * abs(cost) - in_pull - start.round_off(parts)
    if not bound > -np.inf:
        return NO_PROOF
    separable = -s * pull if exact else AbsorbedPull(parts, start.total, s)
    return Proof(bound, dual_of(parts, start, -cost, s, [], separable))
