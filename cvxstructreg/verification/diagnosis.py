"""Why weights are not optimal: for which strengths or conventions they are, and which features are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate, certify_point
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.paths.largest_strength import lambda_max
from cvxstructreg.paths.strength import sparsifying_terms
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.cards import card, items, table
from cvxstructreg.verification.certified import certified
from cvxstructreg.verification.given import GivenWeights, checked_problem, given_weights
from cvxstructreg.verification.strengths import fitted_factors, in_words, penalty_terms, with_factors
from cvxstructreg.verification.variants import Variant, best_intercept, variants
from cvxstructreg.verification.violations import Violation, violations

#: A convention explains the weights if its gap is at most OPTIMAL, or at most NEARLY and TIMES smaller than as stated.
OPTIMAL, NEARLY, TIMES = 1e-5, 1e-3, 100.0
#: Conventions whose gap is certified with a search for a dual point, and the seconds of each solver there.
MOST_SEARCHED, SEARCH_SECONDS = 4, 2.0
#: Factors of the strengths that are tried if the loss has no gradient.
KNOWN_FACTORS = (2.0, 0.5)
#: A diagnosis prints so many explanations and violations.
MOST_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Explanation:
    """A problem for which the weights are optimal, or nearly so.

    Attributes
    ----------
    words : str
        The convention or the strengths.
    relative_gap : float
        The certified relative gap of the weights for that problem.
    problem : Problem
        That problem, for a check with :func:`cvxstructreg.certify`.
    coef, intercept : arrays of shape (d, k) and (k,)
        The weights as they are read for that problem.
    """

    words: str
    relative_gap: float
    problem: Problem = field(repr=False)
    coef: Array = field(repr=False)
    intercept: Array = field(repr=False)

    def __str__(self) -> str:
        how = "optimal" if self.relative_gap <= OPTIMAL else "nearly optimal"
        return f"{how} {self.words} (relative gap {self.relative_gap:.1e})"


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is wrong with given weights. Print it to read it.

    Attributes
    ----------
    certificate : Certificate
        The certificate of the weights for the problem as stated.
    explanations : tuple of Explanation
        The strengths and conventions for which the weights are optimal or nearly so, the best first.
    violations : tuple of Violation
        Features, groups and the intercept that violate the optimality conditions, the largest violation first.
    remark : str
        What the objective says: the part of the way to the optimum, for instance.
    tol : float
        The relative gap below which weights are optimal.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> diagnosis = csr.diagnose(problem, [1.3])  # the optimal weight for 1.5 * L1()
    >>> diagnosis.explanations[0].words.partition(":")[0]
    'for 1.5 * L1(), half your strength'
    """

    certificate: Certificate
    explanations: tuple[Explanation, ...]
    violations: tuple[Violation, ...]
    remark: str
    tol: float

    @property
    def is_optimal(self) -> bool:
        """Whether the weights are optimal for the problem as stated, within the tolerance."""
        return self.certificate.error <= self.tol

    def __str__(self) -> str:
        if self.is_optimal:
            return f"The weights are optimal: {self.certificate}, tolerance {self.tol:g}."
        lines = [f"The weights are not optimal: {self.certificate}, tolerance {self.tol:g}.", self.remark]
        if self.explanations:
            lines += ["They are", *(f"  - {item}" for item in self.explanations[:MOST_SHOWN])]
        else:
            lines.append("No other strength and no known convention explains them.")
        if self.violations:
            lines += ["Largest violations of the optimality conditions:"]
            lines += [f"  - {item}" for item in self.violations[:MOST_SHOWN]]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.is_optimal:
            return card("Optimal", [("certificate", self.certificate), ("tolerance", f"{self.tol:g}")])
        rows = [("certificate", self.certificate), ("tolerance", f"{self.tol:g}"), ("objective", self.remark)]
        why = ["No other strength and no known convention explains them."] if not self.explanations else []
        why += [f"They are {item}" for item in self.explanations[:MOST_SHOWN]]
        head = ("largest violations", "weight", "slope", "violation")
        shown = [
            (
                item.name if item.kind == "intercept" else f"{item.kind} {item.name}",
                *(f"{number:.3g}" for number in (item.weight, item.slope, item.size)),
            )
            for item in self.violations[:MOST_SHOWN]
        ]
        return card("Not optimal", rows, items(why), table(head, shown) if shown else "")


def diagnose(
    problem: Problem, coef: Any, intercept: Any = None, tol: float = 1e-6, time_limit: float = 60.0
) -> Diagnosis:
    """Find out why weights are not optimal for a problem.

    The weights are read in the ways of known conventions: other strengths, a mean instead of a sum of losses, a factor
    1/2, the strength C before the loss, a penalised, missing or wrong intercept, swapped labels, scaled columns, or
    another loss. A convention explains the weights if they are certified to be optimal, or nearly so, for the problem
    that it states.

    Parameters
    ----------
    problem : Problem
        The problem that the weights should solve.
    coef, intercept
        Weights from any source, as in :func:`cvxstructreg.certify`.
    tol : float
        The relative gap below which the weights are optimal.
    time_limit : float
        Seconds after which no further convention is tried.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> y = np.array([9.0, -7.0, 3.0, 1.0, 0.0])
    >>> problem = csr.Problem(csr.Linear(np.eye(5), intercept=False), csr.Squared(y) + 1.0 * csr.L1())
    >>> w = np.sign(y) * np.maximum(np.abs(y) - 2.0, 0.0)  # the threshold is doubled
    >>> diagnosis = csr.diagnose(problem, w)
    >>> diagnosis.explanations[0].words
    'for 2 * L1(), twice your strength'
    >>> print(diagnosis.violations[0])
    feature 0: weight 7, slope -2, violation 1
    """
    problem = checked_problem(problem, "diagnose")
    given = given_weights(problem, coef, intercept)
    stated = certified(problem, given, given.dual, tol)
    if stated.error <= tol or not math.isfinite(stated.objective):
        found = () if math.isfinite(stated.objective) else _infinite(problem, given)
        return Diagnosis(stated, (), found, "The objective is infinite: some weights are out of bounds.", tol)
    with deadline.within(time_limit):
        explanations = _explanations(problem, given, stated, tol)
    remark = _remark(problem, stated, bool(explanations))
    return Diagnosis(stated, explanations, violations(problem, given), remark, tol)


def _infinite(problem: Problem, given: GivenWeights) -> tuple[Violation, ...]:
    """Return the features out of their bounds."""
    part = problem.normal_form.separable
    if part is None:
        return ()
    beyond = np.maximum(np.maximum(part.lower - given.theta, given.theta - part.upper), 0.0).max(axis=1)
    names = problem.feature_names or tuple(map(str, range(len(beyond))))
    found = [
        Violation(names[j], "feature", float(given.theta[j, 0]), math.nan, float(beyond[j]))
        for j in np.flatnonzero(beyond)
    ]
    return tuple(sorted(found, key=lambda item: -item.size))


def _candidates(problem: Problem, given: GivenWeights) -> Iterator[Variant]:
    """Yield all conventions with the strengths as stated, and with those that fit best."""
    for variant in variants(problem, given):
        if variant.words:
            yield variant
        if variant.scalable:
            joint = f" {variant.words}" if variant.words else ""
            for factors in _factors(variant):
                words = f"for {in_words(variant.problem, factors)}{joint}"
                yield Variant(words, with_factors(variant.problem, factors), variant.given, base=variant.words)


def _factors(variant: Variant) -> Iterator[dict[int, float]]:
    problem, numbers = variant.problem, penalty_terms(variant.problem)
    if problem.normal_form.scores_are_smooth:
        yield from fitted_factors(problem, variant.given)
    elif numbers and not variant.words:
        n = float(problem.model.n_rows)
        scale = problem.terms[numbers[0]].scale
        for factor in (*KNOWN_FACTORS, n, 1.0 / n, 1.0 / scale**2, 0.5 / scale**2):
            yield dict.fromkeys(numbers, factor)


def _explanations(problem: Problem, given: GivenWeights, stated: Certificate, tol: float) -> tuple[Explanation, ...]:
    """Return the conventions that explain the weights. All are compared by a quick bound, the best by a search."""
    quick: list[tuple[float, int, Variant]] = []
    for number, variant in enumerate(_candidates(problem, given)):
        if deadline.passed():
            break
        quick.append((_quick_gap(variant), number, variant))
    quick.sort(key=lambda item: item[:2])
    found: list[tuple[bool, float, Explanation]] = []
    for gap, number, variant in quick[:MOST_SEARCHED] if problem.normal_form.scores_are_smooth else quick:
        if gap > OPTIMAL and not deadline.passed():
            gap = certified(variant.problem, variant.given, {}, tol, time_limit=SEARCH_SECONDS).error
        if gap <= OPTIMAL or gap <= min(NEARLY, stated.error / TIMES):
            item = Explanation(variant.words, gap, variant.problem, variant.given.theta, variant.given.b)
            found.append((gap > OPTIMAL, number if gap <= OPTIMAL else gap, item))
    found += [(False, -1, item) for item in _all_zero(problem, given)]
    return _best_only([item for _, _, item in sorted(found, key=lambda entry: entry[:2])], quick)


def _best_only(found: list[Explanation], quick: list[tuple[float, int, Variant]]) -> tuple[Explanation, ...]:
    """Leave out near optima beside an optimum, and other strengths of a convention that needs none."""
    if any(item.relative_gap <= OPTIMAL for item in found):
        found = [item for item in found if item.relative_gap <= OPTIMAL]
    explained = {item.words for item in found}
    bases = {variant.words: variant.base for _, _, variant in quick}
    return tuple(item for item in found if bases.get(item.words) not in explained)


def _quick_gap(variant: Variant) -> float:
    """Return the gap that the weights prove by themselves, or infinity."""
    try:
        error = certify_point(variant.problem, variant.given.theta, variant.given.b).error
    except (deadline.OutOfTimeError, np.linalg.LinAlgError):
        return math.inf
    return error if math.isfinite(error) else math.inf


def _all_zero(problem: Problem, given: GivenWeights) -> list[Explanation]:
    """Return the strengths from which on zero weights are optimal."""
    numbers = sparsifying_terms(problem)
    if given.theta.any() or not numbers or not problem.normal_form.scores_are_smooth:
        return []
    factor = lambda_max(problem)
    if not factor > 1.0:
        return []
    factors = dict.fromkeys(numbers, factor)
    scaled, b, words = with_factors(problem, factors), given.b, ""
    best = best_intercept(problem, given) if problem.model.intercept else None
    if best is not None and problem.value_at(given.theta, best) < problem.value_at(given.theta, b):
        b, words = best, f" with the intercept {', '.join(f'{value:.6g}' for value in best)}"
    error = certify_point(scaled, given.theta, b).error
    words = f"from the strength {in_words(problem, factors)}, on{words}"
    return [Explanation(words, error, scaled, given.theta, b)] if error <= NEARLY else []


def _remark(problem: Problem, stated: Certificate, explained: bool) -> str:
    """Say how far the objective is on the way from the null point to the optimum."""
    null = null_point(problem).objective
    here = f"The objective is {stated.objective:.6g}"
    if stated.kind == "kkt" or not null > stated.lower_bound:
        return f"{here}."
    here += f"; the optimum is at least {stated.lower_bound:.6g}, and zero weights have {null:.6g}."
    if stated.objective > null * (1.0 + OPTIMAL):
        return f"{here} That is worse than zero weights: the iteration diverges, or a sign is wrong."
    part = (null - stated.objective) / (null - stated.lower_bound)
    early = "" if explained else " A solver that stops early, or takes steps that are too short, ends like this."
    return f"{here} That is {100.0 * part:.4g} % of the way.{early}"
