"""The contract of atoms: one check for each capability."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cvxstructreg.core.atom import CAPABILITIES, Atom, has_conjugate
from cvxstructreg.core.loss import Loss
from cvxstructreg.runtime import deadline
from cvxstructreg.testing import derivatives, duality, functions
from cvxstructreg.testing.probe import Probe

#: The check of each capability; a test fails if a capability has no check.
CHECKS: dict[str, Callable[[Probe], None]] = {
    "value": functions.check_value,
    "prox": duality.check_prox,
    "grad": derivatives.check_grad,
    "hessp": derivatives.check_hessp,
    "hess_diag": derivatives.check_hess_diag,
    "derivatives": derivatives.check_derivatives,
    "hess_rows": derivatives.check_hess_rows,
    "hess_factor": derivatives.check_hess_factor,
    "hess_bound": derivatives.check_hess_bound,
    "lipschitz": derivatives.check_lipschitz,
    "conj": duality.check_conj,
    "dual_norm": duality.check_dual_norm,
    "split": functions.check_split,
    "parts": lambda probe: _check_parts(probe),
    "quadratic": functions.check_quadratic,
    "separable": functions.check_separable,
    "blocks": functions.check_blocks,
    "latent_groups": functions.check_latent_groups,
    "hinges": functions.check_hinges,
    "kinks": functions.check_kinks,
    "centred_hinges": functions.check_centred_hinges,
    "repair": duality.check_repair,
    "dual_box": duality.check_dual_box,
    "rebalance": duality.check_rebalance,
}


def check_atom(
    atom: Atom, shape: tuple[int, int], rng: np.random.Generator | int | None = None, time_limit: float | None = None
) -> None:
    """Raise AssertionError unless everything that the atom defines agrees with its ``expr``.

    Parameters
    ----------
    atom : Atom
        The function to check.
    shape : (int, int)
        The shape (m, k) of the argument of the atom; use a small shape, because CVXPY is called many times.
    rng : numpy Generator or seed, optional
        Source of the random points; by default the points are the same in each call.
    time_limit : float, optional
        Seconds for all checks together. A check that begins later, or that CVXPY cannot finish in time, fails.

    Examples
    --------
    >>> from cvxstructreg import Ridge
    >>> from cvxstructreg.testing import check_atom
    >>> check_atom(Ridge(), (3, 1))

    A failure names the clause, the two numbers and the point.

    >>> class Careless(Ridge):
    ...     def value(self, z):
    ...         return 2.0 * super().value(z) + 1.0
    >>> check_atom(Careless(), (3, 1))
    Traceback (most recent call last):
    ...
    AssertionError: Careless(): value: differs from expr: got 1, expected 0 (at z = [[0.], [0.], [0.]])
    """
    probe = Probe(atom, shape, np.random.default_rng(0 if rng is None else rng))
    with deadline.within(math.inf if time_limit is None else time_limit):
        _run("expr", functions.check_definition, probe)
        for name in CAPABILITIES:
            if name == "value" or atom.can(name):  # every atom has a value
                _run(name, CHECKS[name], probe)
        if has_conjugate(atom):
            _run("into_domain", duality.check_into_domain, probe)
        if isinstance(atom, Loss):
            duality.check_sample_weight(probe, atom)


def _check_parts(probe: Probe) -> None:
    """Check the sum of the parts, and each part."""
    functions.check_parts(probe)
    for part in probe.atom.parts(probe.shape):
        check_atom(part.atom, probe.shape, probe.rng)


def _run(name: str, check: Callable[[Probe], None], probe: Probe) -> None:
    """Run a check; an exception in the atom also violates the contract."""
    late = f"{probe.atom!r}: {name}: the time limit passed before this was checked"
    if deadline.passed():
        raise AssertionError(late)
    try:
        check(probe)
    except AssertionError:
        raise
    except deadline.OutOfTimeError as error:
        raise AssertionError(late) from error
    except Exception as error:
        raise AssertionError(f"{probe.atom!r}: {name}: raises {type(error).__name__}: {error}") from error
