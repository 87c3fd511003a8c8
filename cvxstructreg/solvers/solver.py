"""A solver: its algorithm, what it needs of a problem, and the coordinates it works in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cvxstructreg.core.problem import Problem
from cvxstructreg.reductions.centring import Centring
from cvxstructreg.reductions.kernel_to_linear import KernelToLinear
from cvxstructreg.reductions.reduction import Chain, Reduction, reduced
from cvxstructreg.solvers.iterate import Iterate, Refusal
from cvxstructreg.solvers.needs import Need, unmet

#: Coordinates of a solver that takes linear models only, and of one that takes kernels as they are.
LINEAR: tuple[type[Reduction], ...] = (KernelToLinear, Centring)
AS_GIVEN: tuple[type[Reduction], ...] = (Centring,)


@dataclass(eq=False)
class Solver:
    """A solver as the registry knows it.

    Parameters
    ----------
    name : str
        The name that ``problem.solve(solver=name)`` takes.
    run : function
        ``run(problem, start, tol, **options)`` yields an :class:`~cvxstructreg.solvers.iterate.Iterate` for each
        iteration. The driver certifies the iterates and decides when to stop.
    needs : tuple of Need
        Conditions that a problem must meet; refusals are derived from them.
    coordinates : tuple of Reduction classes
        The reductions applied to the problem before ``run`` sees it: :data:`LINEAR` or :data:`AS_GIVEN`.
    rough_zeros : bool
        Whether weights that should be zero are only nearly zero. The driver then tries to round them.
    accurate : mapping
        Options for an accurate solution, used where the defaults are made for early stopping.
    baseline : bool
        Whether this is a published method for comparison, which ``auto`` tries last.
    aliases : tuple of str
        Former names, which still work with a deprecation warning.

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
    'L1 and bounds have no gradient; only quadratic terms of the weights are supported'
    """

    name: str
    run: Callable[..., Iterator[Iterate]]
    needs: tuple[Need, ...] = ()
    coordinates: tuple[type[Reduction], ...] = LINEAR
    rough_zeros: bool = False
    accurate: Mapping[str, Any] = field(default_factory=dict)
    baseline: bool = False
    aliases: tuple[str, ...] = ()

    def refusal(self, problem: Problem) -> Refusal | None:
        """Why the solver does not accept a problem; None if it does."""
        reason = next(unmet(problem, self.needs), None)
        return None if reason is None else Refusal(reason)

    def accepts(self, problem: Problem) -> bool:
        """Whether the problem meets all needs."""
        return self.refusal(problem) is None

    def reduced(self, problem: Problem) -> Chain:
        """The problem in the coordinates of the solver, and the way back."""
        return reduced(problem, self.coordinates)

    def __repr__(self) -> str:
        return f"Solver({self.name!r})"
