"""The same problem in other units: the objective, the data or the order of the rows changed, the minimiser known."""

from __future__ import annotations

import copy

import numpy as np

import cvxstructreg as csr
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Objective, Term

#: Terms of the weights that are quadratic; all others are norms or bounds.
QUADRATIC = ("Ridge", "FeatureNetwork", "Laplacian", "Quadratic", "RKHSNorm")


def in_units(problem: csr.Problem, objective: float = 1.0, data: float = 1.0, costs: float = 1.0) -> csr.Problem:
    """The objective times ``objective * costs``, X times ``data`` (gram times its square).

    ``costs`` go to the sample weights, where there are some. The minimiser is divided by ``data``, and by its square
    for a kernel.
    """
    terms = tuple(_term(term, objective, data, costs) for term in problem.terms)
    model = problem.model
    if model.kernel is not None:
        return csr.Problem(csr.Kernel(model.design * data**2, intercept=model.intercept), Objective(terms))
    return csr.Problem(csr.Linear(model.design * data, intercept=model.intercept), Objective(terms))


def _term(term: Term, objective: float, data: float, costs: float) -> Term:
    atom, scale = term.atom, term.scale
    if isinstance(atom, Loss):
        return Term(_changed(atom, sample_weight=atom.sample_weight * costs), scale * objective, term.target)
    if term.target not in ("weights", "function"):
        return Term(atom, scale * objective * costs, term.target)
    if isinstance(atom, csr.Box | csr.NonNegative):
        part = atom.separable()
        return Term(csr.Box(part.lower / data, part.upper / data), 1.0, term.target)
    return Term(atom, scale * objective * costs * data ** (2 if type(atom).__name__ in QUADRATIC else 1), term.target)


def _changed(loss: Loss, **fields: np.ndarray) -> Loss:
    """The loss with other fields; its labels are encoded already."""
    changed = copy.copy(loss)
    for name, value in fields.items():
        object.__setattr__(changed, name, value)
    return changed


def with_rows_permuted(problem: csr.Problem, order: np.ndarray) -> csr.Problem:
    """The rows of X and the labels in another order; terms of the scores of graphs are not taken."""
    terms, back = [], np.argsort(order)
    for term in problem.terms:
        atom = term.atom
        if isinstance(atom, Loss):
            rows = np.arange(problem.model.n_rows) if atom.rows is None else atom.rows
            atom = _changed(atom, rows=back[rows])
        terms.append(Term(atom, term.scale, term.target))
    model = csr.Linear(problem.model.design[order], intercept=problem.model.intercept)
    return csr.Problem(model, Objective(tuple(terms)))
