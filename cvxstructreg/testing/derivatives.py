"""Checks of derivatives by finite differences of values and gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.testing.probe import Probe


def check_grad(probe: Probe) -> None:
    """Compare ``grad`` with central differences of ``value``."""
    for z in probe.points:
        gradient, h = probe.call("grad", z), 1e-5 * (1.0 + float(np.abs(z).max()))
        scale = 1.0 + float(np.abs(gradient).max()) + 1e-6 * abs(probe.at(z)) / h
        for p in (probe.normal(), probe.normal(), probe.normal()):
            slope = (probe.at(z + h * p) - probe.at(z - h * p)) / (2.0 * h)
            why = "<grad, p> differs from the finite difference of value"
            probe.close(np.sum(gradient * p), slope, "grad", why, 1e-5, floor=scale, z=z, p=p)


def check_hessp(probe: Probe) -> None:
    """Compare ``hessp`` with differences of ``grad``."""
    _check_product(probe, "hessp", lambda z, p: probe.call("hessp", z, p))


def check_hess_diag(probe: Probe) -> None:
    """Compare a diagonal Hessian with differences of ``grad``."""
    _check_product(probe, "hess_diag", lambda z, p: probe.call("hess_diag", z) * p)


def check_derivatives(probe: Probe) -> None:
    """Compare ``derivatives`` with ``value``, ``grad`` and ``hess_diag``."""
    missing = [name for name in ("grad", "hess_diag") if not probe.atom.can(name)]
    probe.require(not missing, "derivatives", f"has no meaning without {' and '.join(missing)}: define them as well")
    for z in probe.points:
        found = probe.call("derivatives", z)
        for name, part in zip(("value", "grad", "hess_diag"), found, strict=True):
            probe.close(part, probe.call(name, z), "derivatives", f"differs from {name}", z=z)


def check_hess_rows(probe: Probe) -> None:
    """Compare a Hessian with blocks diag(D_i) - R_i R_i' with differences of ``grad``."""

    def product(z: Array, p: Array) -> Array:
        D, R = probe.call("hess_rows", z)
        return np.asarray(D * p - R * np.sum(R * p, axis=1, keepdims=True))

    _check_product(probe, "hess_rows", product)


def check_hess_factor(probe: Probe) -> None:
    """Compare a Hessian diag(D) - L L' of one output with differences of ``grad``."""

    def product(z: Array, p: Array) -> Array:
        D, L = probe.atom.hess_factor(z)
        shapes = np.shape(D), np.shape(L)[:1]
        expected = probe.shape, probe.shape[:1]
        why = f"D has shape {np.shape(D)} and L {np.shape(L)}, expected {probe.shape} and ({probe.shape[0]}, any)"
        probe.require(shapes == expected and np.ndim(L) == 2, "hess_factor", why)
        return np.asarray(D * p - L @ (L.T @ p))

    _check_product(probe, "hess_factor", product)


def check_hess_bound(probe: Probe) -> None:
    """Check that the diagonal is above the Hessian: along random directions, and along unit vectors."""
    probe.require(probe.atom.can("hessp"), "hess_bound", "bounds the Hessian: define hessp as well")
    for z in probe.points:
        D = probe.call("hess_bound", z)
        units = [unit.reshape(probe.shape) for unit in np.eye(D.size)]
        for p in (*units, *(probe.normal() for _ in range(10))):
            top, bend = float(np.sum(D * p**2)), float(np.sum(p * probe.call("hessp", z, p)))
            why = f"<p, D p> is {top:.9g}, below <p, H p>, {bend:.9g}"
            probe.require(top >= bend - 1e-9 * (1.0 + abs(bend)), "hess_bound", why, z=z, p=p)


def _check_product(probe: Probe, name: str, product: Callable[[Array, Array], Array]) -> None:
    probe.require(probe.atom.can("grad"), name, "a Hessian needs a gradient: define grad as well")
    checked = 0
    for z in probe.points:
        p, h = probe.normal(), 1e-6 * (1.0 + float(np.abs(z).max()))
        here, ahead, behind = (probe.call("grad", z + step * p) for step in (0.0, h, -h))
        found = product(z, p)
        scale = 1.0 + float(np.abs(here).max())
        if np.abs(ahead - 2.0 * here + behind).max() <= 1e-4 * h * scale:  # otherwise there is a kink
            difference, why = (ahead - behind) / (2.0 * h), "differs from the finite difference of grad"
            # the tolerance includes the round-off of the gradients
            probe.close(found, difference, name, why, 1e-5, floor=scale, z=z, p=p)
            checked += 1
    probe.require(checked, name, "the gradient is differentiable at none of the points")


def check_lipschitz(probe: Probe) -> None:
    """Check that gradients differ by at most the bound times the distance, also along the largest curvature."""
    probe.require(probe.atom.can("grad"), "lipschitz", "bounds the change of the gradient: define grad as well")
    bound = probe.call("lipschitz")
    probe.require(0.0 <= bound < np.inf, "lipschitz", f"must be finite and at least 0, got {bound}")
    for number, x in enumerate(probe.points):
        p = probe.points[number - 1] - x
        for _ in range(30):  # after the first, power iteration towards the direction of largest curvature at x
            moved = probe.call("grad", x + p) - probe.call("grad", x)
            size, length = float(np.linalg.norm(moved)), float(np.linalg.norm(p))
            why = f"gradients differ by {size:.9g} over a distance of {length:.9g}, more than {bound:.9g} times as much"
            probe.require(size <= bound * length * (1.0 + 1e-6) + 1e-9, "lipschitz", why, x=x, p=p)
            p = 1e-3 * moved / max(size, 1e-300)
