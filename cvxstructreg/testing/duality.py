"""Checks of the prox, of the conjugate, and of the operations on dual points that certificates use."""

from __future__ import annotations

import copy
import itertools

import numpy as np

from cvxstructreg.core.atom import Atom, conjugate, freeze, has_conjugate
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.testing.probe import STEPS, Probe


def check_prox(probe: Probe) -> None:
    """Check that the prox is the minimiser that CVXPY finds, or a better one."""
    for step in STEPS:
        for v in (probe.normal(), 5.0 * probe.normal()):
            found = probe.call("prox", v, step), Atom.prox(probe.atom, v, step)
            costs = [step * Atom.value(probe.atom, x) + 0.5 * float(np.sum((x - v) ** 2)) for x in found]
            cheap = costs[0] <= costs[1] + 1e-5 * (1.0 + abs(costs[1]))
            why = f"the objective {costs[0]:.9g} is above that of CVXPY, {costs[1]:.9g}, for t = {step}"
            probe.require(cheap, "prox", why, v=v)
            if not costs[0] < costs[1] < np.inf:  # otherwise CVXPY is less accurate
                probe.close(*found, "prox", f"differs from the prox by CVXPY for t = {step}", 1e-5, v=v)


def check_conj(probe: Probe) -> None:
    """Check that conj(u) >= <u, z> - f(z) everywhere, with equality at subgradients."""
    name, pairs = "conj" if probe.atom.can("conj") else "dual_norm", probe.pairs()
    values = [(y, probe.at(y)) for y in probe.points + [z for z, _ in pairs]]
    for z, u in pairs:
        random = probe.normal()
        if name == "dual_norm":  # scale into the dual ball, where the conjugate is 0
            u, random = ((1.0 - 1e-9) * x / max(1.0, probe.call(name, x)) for x in (u, random))
        for other in (u, 0.5 * u, random):
            conj = probe.call("conj", other) if name == "conj" else conjugate(probe.atom, other)
            excess = max(float(np.sum(other * y)) - value - conj for y, value in values)
            why = f"conj(u) is smaller than <u, z> - f(z) for some z: {conj:.9g}, too small by {excess:.9g}"
            probe.require(not excess > 1e-6 * (1.0 + abs(conj)), name, why, u=other)
        why = "conj(u) + f(z) is not <u, z> at a subgradient u of z"
        probe.close(conjugate(probe.atom, u) + probe.at(z), np.sum(u * z), name, why, 1e-5, z=z, u=u)


def check_into_domain(probe: Probe) -> None:
    """Check that a dual point in the domain does not move, and that the result is in the domain of the conjugate."""
    for _, u in probe.pairs(exact=False):
        moved = probe.call("into_domain", u)
        probe.close(moved, u, "into_domain", "moves a dual point that is in the domain", 1e-6, u=u)
        why = "the conjugate is infinite at the returned point"
        probe.require(conjugate(probe.atom, moved) < np.inf, "into_domain", why, u=u, moved=moved)


def check_dual_norm(probe: Probe) -> None:
    """Check that f is a norm (or seminorm), and that subgradients have dual norm 1, or at most 1 where f is 0."""
    check_conj(probe)
    for z, u in probe.pairs():
        value, size = probe.at(z), probe.call("dual_norm", u)
        probe.close(probe.at(-2.0 * z), 2.0 * value, "dual_norm", "f(-2 z) is not 2 f(z)", 1e-6, z=z)
        why = f"is {size:.9g} at a subgradient; must be at most 1, and equal to 1 if f(z) = {value:.9g} is positive"
        probe.require(size <= 1.0 + 1e-5 and (value <= 1e-5 or size >= 1.0 - 1e-5), "dual_norm", why, z=z, u=u)


def check_repair(probe: Probe) -> None:
    """Check that the repaired dual point is feasible, no worse, and as good as one projected gradient step."""
    probe.require(has_conjugate(probe.atom), "repair", "repairs dual points: define conj or dual_norm as well")
    scale, k = 0.7, probe.shape[1]
    for number, (_, u) in enumerate(probe.pairs()):
        u, K = scale * u, _row_selection(probe)
        left = probe.rng.normal(size=(K.shape[1], k)) * (0.5, 2.0, 5.0)[number % 3]
        bound = np.zeros((1, 1)) if number % 2 else np.abs(probe.rng.normal(size=(K.shape[1], 1)))

        def excess(u: Array, K: Selection = K, left: Array = left, bound: Array = bound) -> Array:
            rest = left - K.T @ u
            return np.asarray(rest - np.clip(rest, -bound, bound))

        given = u.copy(), left.copy(), bound.copy()
        moved = probe.atom.repair(given[0], K, given[1], given[2], scale, 50)
        unchanged = all(map(np.array_equal, given, (u, left, bound)))
        probe.require(unchanged, "repair", "modifies its input", u=u, left=left)
        probe.checked("repair", moved, probe.shape, u=u, left=left)
        why = "the repaired dual point is not feasible: the conjugate is infinite"
        probe.require(conjugate(probe.atom, (1.0 - 1e-12) * moved / scale) < np.inf, "repair", why, u=u, moved=moved)
        sizes = [float(np.linalg.norm(excess(point))) for point in (moved, u)]
        why = f"makes the bound worse: the residual is {sizes[0]:.9g} instead of {sizes[1]:.9g}"
        probe.require(sizes[0] <= sizes[1] * (1.0 + 1e-9) + 1e-12, "repair", why, u=u, left=left)
        stepped = u + (K @ excess(u)) / K.counts.max()
        stepped = stepped - probe.call("prox", stepped, scale)
        plain = float(np.linalg.norm(excess(stepped)))
        why = f"is worse than one projected gradient step: the residual is {sizes[0]:.9g} instead of {plain:.9g}"
        probe.require(sizes[0] <= plain * (1.0 + 1e-6) + 1e-9, "repair", why, u=u, left=left)


def _row_selection(probe: Probe) -> Selection:
    """Return a map that selects rows, none of them twice within a block."""
    m = probe.shape[0]
    indptr = probe.atom.blocks()[0] if probe.atom.can("blocks") else (0, m)
    widest = max((end - start for start, end in itertools.pairwise(indptr)), default=m)
    columns = max(int(widest), m - 1, 1)
    chosen = [probe.rng.permutation(columns)[: end - start] for start, end in itertools.pairwise(indptr)]
    return Selection(np.concatenate([np.zeros(0, dtype=int), *chosen]), columns)


def check_dual_box(probe: Probe) -> None:
    """Check that the conjugate is finite inside the box and infinite outside."""
    atom = probe.atom
    probe.require(has_conjugate(atom), "dual_box", "is the domain of the conjugate: define conj as well")
    for side, bound in zip(("lower", "upper"), atom.dual_box(), strict=True):
        why = f"the {side} bounds have shape {np.shape(bound)}, expected {probe.shape}"
        probe.require(np.shape(bound) == probe.shape, "dual_box", why)
        probe.require(not np.isnan(bound).any(), "dual_box", f"the {side} bounds contain NaN")
    lower, upper = atom.dual_box()
    probe.require(np.all(lower <= upper), "dual_box", f"a lower bound is above its upper bound: {lower} and {upper}")
    for _, u in probe.pairs():
        inside = np.clip(u + probe.normal(), lower, upper)
        why = "the conjugate is infinite inside the box"
        probe.require(np.isfinite(conjugate(atom, inside)), "dual_box", why, u=inside)
        for bound, step in ((lower, -0.1), (upper, 0.1)):
            for entry in map(tuple, np.argwhere(np.isfinite(bound))):
                outside = inside.copy()
                outside[entry] = bound[entry] + step
                found, where = conjugate(atom, outside), tuple(map(int, entry))
                why = f"the conjugate is finite outside the box, {found:.9g}, in entry {where}"
                probe.require(np.isinf(found), "dual_box", why, u=outside)


def check_rebalance(probe: Probe) -> None:
    """Check that a dual point can get the column sums of any other one and stay in the domain of the conjugate."""
    atom = probe.atom
    probe.require(has_conjugate(atom), "rebalance", "moves dual points: define conj as well")
    for (_, u), (_, other) in itertools.pairwise(probe.pairs()):
        for target in (u.sum(axis=0), other.sum(axis=0), 0.5 * (u + other).sum(axis=0)):
            given = u.copy(), target.copy()
            moved = atom.rebalance(*given)
            probe.require(np.array_equal(given[0], u), "rebalance", "modifies its input", u=u)
            why = "no point with a finite conjugate for column sums that a dual point has"
            probe.require(moved is not None, "rebalance", f"{why}: returns None", u=u, target=target)
            point = probe.checked("rebalance", moved, probe.shape, u=u, target=target)
            probe.require(np.isfinite(conjugate(atom, point)), "rebalance", why, u=u, target=target)
            sums, why = point.sum(axis=0), "the column sums differ from the target"
            probe.close(sums, target, "rebalance", why, 1e-8, u=u, target=target)


def check_sample_weight(probe: Probe, loss: Loss) -> None:
    """Check that doubling the sample weights doubles the loss."""
    twice = copy.copy(loss)
    freeze(twice, sample_weight=2.0 * np.asarray(loss.sample_weight))
    for z in probe.points:
        doubled, why = (twice.value(z), Atom.value(twice, z)), "doubling the weights does not double the value"
        probe.close(doubled, [2.0 * probe.at(z)] * 2, "sample_weight", why, z=z)
