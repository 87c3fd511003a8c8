"""Known conventions that differ from the problem as stated: other problems for which given weights may be optimal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from cvxstructreg.certificates.directions.free_directions import refit
from cvxstructreg.core.atom import freeze
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Linear, Model
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.quadratic_form import squared_columns
from cvxstructreg.losses import Hinge, Logistic, SquaredHinge
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.verification.given import GivenWeights

#: All orders of so many classes are tried.
MOST_CLASSES = 5
#: Columns whose scales differ by less than this part are scaled already.
EQUAL = 1e-6


@dataclass(frozen=True, eq=False)
class Variant:
    """A problem, the weights read for it, and the convention in words: "optimal ..."."""

    words: str
    problem: Problem
    given: GivenWeights
    scalable: bool = True  # whether other strengths are tried as well
    base: str | None = None  # the words of the same convention with the strengths as stated


def variants(problem: Problem, given: GivenWeights) -> Iterator[Variant]:
    """Yield the problem as stated, and then with each convention."""
    yield Variant("", problem, given)
    yield from _signs(problem, given)
    yield from _intercepts(problem, given)
    yield from _losses(problem, given)
    if problem.given.kernel is None:
        yield from _scaled_columns(problem, problem.given, given)


def _signs(problem: Problem, given: GivenWeights) -> Iterator[Variant]:
    theta, b = given.theta, given.b
    if problem.n_outputs == 1:
        binary = any(hasattr(term.atom, "classes") for term in problem.terms)
        words = "with the opposite sign: the labels are swapped" if binary else "with the opposite sign"
        yield Variant(words, problem, GivenWeights(-theta, -b))
        return
    orders: Any = itertools.permutations(range(problem.n_outputs))
    if problem.n_outputs > MOST_CLASSES:
        orders = [tuple(reversed(range(problem.n_outputs)))]
    moved = [GivenWeights(theta[:, list(order)], b[list(order)]) for order in orders]
    values = [problem.value_at(item.theta, item.b) for item in moved]
    yield Variant("with the classes in another order", problem, moved[int(np.argmin(values))])


def _intercepts(problem: Problem, given: GivenWeights) -> Iterator[Variant]:
    """Yield the best intercept for these weights, no intercept, and a penalised intercept."""
    if not problem.model.intercept:
        return
    best = best_intercept(problem, given)
    if best is not None:
        shown = ", ".join(f"{value:.6g}" for value in best)
        missing = "the intercept is missing" if not given.b.any() else "the intercept is off"
        yield Variant(f"with the intercept {shown}: {missing}", problem, GivenWeights(given.theta, best), False)
    if problem.given.kernel is not None:
        return
    X = problem.given.design
    if not given.b.any():
        without = Problem(Linear(X, intercept=False), Objective(problem.terms))
        yield Variant("for a model without intercept", without, given)
    yield from _penalised_intercept(problem, given)


def _penalised_intercept(problem: Problem, given: GivenWeights, words: str = "") -> Iterator[Variant]:
    """Yield the problem with a column of ones in place of the intercept, if all penalties can have one more weight."""
    terms = [_with_one_more(term) for term in problem.terms]
    if not problem.model.intercept or problem.given.kernel is not None or any(term is None for term in terms):
        return
    X, ones = problem.given.design, np.ones((problem.given.n_rows, 1))
    stacked = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
    joint = Problem(Linear(stacked, intercept=False), Objective(tuple(t for t in terms if t is not None)))
    weights = GivenWeights(np.vstack([given.theta, given.b]), np.zeros_like(given.b))
    yield Variant(f"{words}if the intercept is penalised like a weight, as liblinear does", joint, weights)


def best_intercept(problem: Problem, given: GivenWeights) -> Array | None:
    """Return the intercepts that minimise the objective for these weights; None if that is not easy."""
    parts, theta, b = problem.normal_form, given.theta, given.b
    scores = problem.model.scores(theta, b)
    if parts.scores_are_smooth:
        return refit(parts, theta, b, scores, np.zeros((len(theta), 0)))[1]
    if problem.n_outputs > 1:
        return None
    reach = 1.0 + float(np.abs(scores).max()) + float(np.abs(b).max())
    found = minimize_scalar(
        lambda shift: problem.value_at(theta, b + shift), bounds=(-reach, reach), options={"xatol": 1e-9 * reach}
    )
    return np.asarray(b + found.x)


def _with_one_more(term: Term) -> Term | None:
    """Return the term for one more weight, the intercept; None if the term cannot have one."""
    if isinstance(term.atom, Loss):
        return term
    if term.target != "weights":
        return None
    atom = term.atom
    if not (atom.can("separable") or (atom.can("quadratic") and atom.quadratic(atom.size or 1).diagonal is not None)):
        return None  # not a sum over single weights: the penalty may need its number of weights
    if atom.size is None:
        return term
    if is_dataclass(atom) and [field.name for field in fields(atom)] == ["weights"]:
        return replace(term, atom=replace(atom, weights=np.append(atom.weights, 1.0)))
    return None


def _losses(problem: Problem, given: GivenWeights) -> Iterator[Variant]:
    """Yield other losses for two classes, and losses without sample weights."""
    kinds: tuple[type[Any], ...] = (Logistic, Hinge, SquaredHinge)
    for number, term in enumerate(problem.terms):
        loss = term.atom
        if not isinstance(loss, Loss):
            continue
        if np.any(loss.sample_weight != 1):
            plain = copy(loss)  # the labels are encoded, so the class cannot be called with them again
            freeze(plain, sample_weight=np.ones(len(loss.y)))
            yield Variant("without the sample weights", _with_term(problem, number, plain), given)
        if type(loss) in kinds:
            for kind in kinds:
                if type(loss) is not kind:
                    other = kind(loss.y[:, 0], rows=loss.rows, sample_weight=loss.sample_weight, classes=(-1, 1))
                    changed, words = _with_term(problem, number, other), f"for the loss {kind.__name__}"
                    yield Variant(words, changed, given)
                    yield from _penalised_intercept(changed, given, f"{words}, ")


def _with_term(problem: Problem, number: int, atom: Any) -> Problem:
    terms = [replace(term, atom=atom) if n == number else term for n, term in enumerate(problem.terms)]
    return Problem(problem.given, Objective(tuple(terms)))


def _scaled_columns(problem: Problem, model: Model, given: GivenWeights) -> Iterator[Variant]:
    """Yield problems with scaled columns; a free intercept makes centring the columns as well unnecessary."""
    X, n = model.design, model.n_rows
    means = np.asarray(X.sum(axis=0), dtype=float).ravel() / n
    squares = np.asarray(squared_columns(X), dtype=float)
    deviations = np.sqrt(np.maximum(squares / n - means**2, 0.0))
    largest = np.asarray(abs(X).max(axis=0).toarray() if sp.issparse(X) else np.abs(X).max(axis=0)).ravel()
    kinds = [("variance", deviations), ("norm", np.sqrt(squares)), ("largest absolute value", largest)]
    if n > 1:
        kinds.insert(1, ("variance (n - 1)", deviations * np.sqrt(n / (n - 1.0))))
    for name, scale in kinds:
        scale = np.where(scale > 1e-12 * np.sqrt(squares / n + 1e-300), scale, 1.0)
        if scale.max() <= (1.0 + EQUAL) * scale.min():  # the same as another strength
            continue
        scaled = X @ sp.diags_array(1.0 / scale) if sp.issparse(X) else X / scale
        theirs = Problem(Linear(scaled, intercept=model.intercept), Objective(problem.terms))
        shift = (means / scale) @ given.theta if model.intercept else np.zeros_like(given.b)
        readings = [GivenWeights(given.theta, given.b), GivenWeights(given.theta, given.b - shift)]
        words = f"for columns scaled to unit {name}: these are the weights of the scaled columns"
        yield Variant(words, theirs, min(readings, key=lambda item: theirs.value_at(item.theta, item.b)))
        words = f"if the penalty acts on the weights of columns scaled to unit {name}"
        yield Variant(words, theirs, GivenWeights(given.theta * scale[:, None], given.b))
