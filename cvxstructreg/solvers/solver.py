"""A solver: an algorithm, the problems it accepts, and the coordinates it works in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cvxstructreg.core.problem import Problem
from cvxstructreg.reductions.centring import Centring
from cvxstructreg.reductions.kernel_to_linear import KernelToLinear
from cvxstructreg.reductions.latent_copies import LatentCopies, latent_term
from cvxstructreg.reductions.reduction import Chain, Reduction, reduced
from cvxstructreg.solvers.iterate import Iterate, Refusal
from cvxstructreg.solvers.kinds import BLOCKS, KINDS
from cvxstructreg.solvers.needs import Need

#: Coordinates of solvers for linear models only, and of solvers that handle kernel models directly.
LINEAR: tuple[type[Reduction], ...] = (KernelToLinear, Centring)
AS_GIVEN: tuple[type[Reduction], ...] = (Centring,)
#: Coordinates of solvers for disjoint groups: latent groups get copies of their features.
COPIED: tuple[type[Reduction], ...] = (KernelToLinear, LatentCopies, Centring)


@dataclass(eq=False)
class Solver:
    """An entry of the solver registry.

    Parameters
    ----------
    name : str
        The name to pass to ``problem.solve(solver=name)``.
    run : function
        ``run(problem, start, tol, **options)`` yields an :class:`~cvxstructreg.solvers.iterate.Iterate` for each
        iteration. The driver certifies the iterates and decides when to stop.
    needs : tuple of Need
        Conditions that a problem must meet. The reasons for refusing a problem are derived from them.
    coordinates : tuple of Reduction classes
        The reductions applied to the problem before it is passed to ``run``:
        :data:`LINEAR`, :data:`AS_GIVEN` or :data:`COPIED`.
    rough_zeros : bool
        Whether the solver returns small values in place of exact zeros. The driver then tries to round them to zero.
    accurate : mapping
        Options for an accurate solution, for a solver whose defaults are meant for early stopping.
    baseline : bool
        Whether the solver is a published method for comparison. ``auto`` tries such solvers last.
    aliases : tuple of str
        Former names. They still work, with a warning.
    fastest_if : tuple of Need
        Conditions under which the solver is expected to be faster than those after it. ``auto`` takes a problem that
        does not meet them to a later solver, if one accepts it. Any other problem can still be solved by name.
    cheap_steps : bool
        Whether an iteration costs about as much as a sweep in the search of a certificate for dual points. Searches are
        then no longer than the iterations so far.
    by_passes : bool
        Whether the solver uses the data only through products, so that it accepts data in blocks of rows.
    ignores_start : bool
        Whether the solver does not read its starting point, which is then not copied for it.
    patience : int
        Iterations before ``auto`` looks whether progress is so slow that another solver should take over.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> from cvxstructreg.solvers.iterate import Iterate
    >>> from cvxstructreg.solvers.needs import Quadratic, ScoresCan
    >>> def descend(problem, start, tol, step=0.1):
    ...     theta = start.theta
    ...     while True:
    ...         scores = problem.model.scores(theta, start.b)
    ...         slope = problem.model.adjoint(problem.normal_form.smooth_score_grad(scores))
    ...         theta = theta - step * (slope + problem.normal_form.quadratic_grad(theta))
    ...         yield Iterate(theta, start.b)
    >>> gradient = Solver("descent", descend, (ScoresCan((("grad",),), "gradient"), Quadratic()))
    >>> problem = csr.Problem(csr.Linear(np.eye(2), intercept=False), csr.Squared([1.0, 2.0]) + csr.Ridge())
    >>> with csr.solvers.register(gradient):
    ...     problem.solve("descent", tol=1e-9).coef.round(3).tolist()
    [0.333, 0.667]
    >>> gradient.refusal(csr.Problem(problem.model, csr.Squared([1.0, 2.0]) + csr.L1())).reason
    'L1 and bounds have no gradient; only quadratic terms on the weights are supported'
    """

    name: str
    run: Callable[..., Iterator[Iterate]]
    needs: tuple[Need, ...] = ()
    coordinates: tuple[type[Reduction], ...] = LINEAR
    rough_zeros: bool = False
    accurate: Mapping[str, Any] = field(default_factory=dict)
    baseline: bool = False
    aliases: tuple[str, ...] = ()
    fastest_if: tuple[Need, ...] = ()
    cheap_steps: bool = False
    by_passes: bool = False
    ignores_start: bool = False
    patience: int = 1000

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of models of all problems that the solver may accept."""
        own = KINDS if self.by_passes else KINDS - {BLOCKS}
        if LatentCopies in self.coordinates:  # its needs are those of a problem with another model
            return own
        return own.intersection(*(need.kinds for need in self.needs))

    def refusal(self, problem: Problem) -> Refusal | None:
        """Why the solver does not accept a problem; None if the problem is accepted."""
        if problem.given.row_blocks is not None and not self.by_passes:
            return Refusal("it needs the data in memory, but they are in blocks of rows")
        return self._unmet(problem, self.needs)

    def slower(self, problem: Problem) -> Refusal | None:
        """Why a later solver is expected to be faster on a problem that this one accepts; None if it is not."""
        return self._unmet(problem, self.fastest_if)

    def _unmet(self, problem: Problem, needs: tuple[Need, ...]) -> Refusal | None:
        if needs and LatentCopies in self.coordinates and latent_term(problem) is not None:
            problem = reduced(problem, self.coordinates[:-1]).problem
        for need in needs:
            reason = need.missing(problem)
            if reason is not None:
                return Refusal(reason)
        return None

    def accepts(self, problem: Problem) -> bool:
        """Whether the problem meets all needs."""
        return self.refusal(problem) is None

    def reduced(self, problem: Problem) -> Chain:
        """The problem in the coordinates of the solver, with the maps of points in both directions."""
        return reduced(problem, self.coordinates)

    def __repr__(self) -> str:
        return f"Solver({self.name!r})"
