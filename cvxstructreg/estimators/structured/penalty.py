"""The penalty of a generic estimator: a sum of atoms, or a function that returns one, on the columns of X."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.estimators.alignment import Columns, aligned_graph, aligned_groups
from cvxstructreg.expressions import FromExpression
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups
from cvxstructreg.penalties import Ridge
from cvxstructreg.runtime.lazy_cvxpy import cp


def penalty_terms(penalty: Any, columns: Columns) -> list[Term]:
    """Return the terms of a penalty, with graphs and groups matched to the columns of X by name.

    Parameters
    ----------
    penalty : atom, term, sum of them, or function; None is ``Ridge()``
        A function of the weights returns a convex CVXPY expression. A function of the column names, or of the names and
        of the structure that X carries, returns an atom, a term or a sum.
    columns : Columns
        The columns of X.

    Examples
    --------
    >>> from cvxstructreg import L1, GroupLasso, Groups
    >>> columns = Columns(3, ("a", "b", "c"), "error")
    >>> penalty_terms(2.0 * L1() + Ridge(), columns)
    [2 * L1(), Ridge()]
    >>> penalty_terms(lambda names: 0.5 * GroupLasso(Groups.singletons(len(names))), columns)
    [0.5 * GroupLasso(Groups(3 groups over 3 features, size 1, disjoint))]
    """
    objective = as_objective(penalty, columns)
    for term in objective.terms:
        if term.target != "weights":
            raise ValueError(
                f"{term!r} does not act on the weights; this estimator takes penalties on the weights only. Use "
                "csr.Problem for losses and penalties on the scores, or MixedGraphClassifier for graphs of rows"
            )
    return [replace(term, atom=_aligned(term.atom, columns)) for term in objective.terms]


def structure_of(terms: Sequence[Term]) -> tuple[Groups | None, Graph | None]:
    """Return the groups of the first term that has some, and the graph of the first term that has one."""
    atoms: list[Any] = [term.atom for term in terms]
    groups = [atom.groups for atom in atoms if isinstance(getattr(atom, "groups", None), Groups)]
    graphs = [atom.graph for atom in atoms if isinstance(getattr(atom, "graph", None), Graph)]
    return (groups[0] if groups else None), (graphs[0] if graphs else None)


def as_objective(penalty: Any, columns: Columns) -> Objective:
    """Return the penalty as a sum of terms; functions are called."""
    if penalty is None:
        return Objective.of(Ridge())
    if isinstance(penalty, Atom | Term | Objective):
        return Objective.of(penalty)
    if callable(penalty) and not isinstance(penalty, type):
        return Objective.of(_of_function(penalty, columns))
    if isinstance(penalty, type) and issubclass(penalty, Atom):
        raise TypeError(f"penalty must be an atom, got the class {penalty.__name__}; write {penalty.__name__}(...)")
    raise TypeError(
        f"penalty must be a sum of atoms such as 2.0 * csr.L1() + csr.Ridge(), or a function, got "
        f"{type(penalty).__name__}"
    )


def _of_function(function: Any, columns: Columns) -> Any:
    """Return the penalty that a function means: an expression of the weights, or what it returns for the columns."""
    given = [columns.labels, columns.structure] if _takes_structure(function) else [columns.labels]
    try:
        found = function(cp.Variable(columns.count))
    except Exception as error:  # a function of the column names
        of_weights: Any = error
    else:
        if isinstance(found, cp.Expression):
            return FromExpression(function)
        of_weights = f"it returned {type(found).__name__}, not a CVXPY expression"
    try:
        found = function(*given)
    except Exception as error:
        raise ValueError(
            f"penalty is a function, but fits neither use. Called with the weights: {of_weights}. Called with the "
            f"column names: {type(error).__name__}: {error}"
        ) from error
    if isinstance(found, Atom | Term | Objective):
        return found
    raise TypeError(
        f"penalty is a function; it must return a CVXPY expression of the weights, or for the column names an atom "
        f"such as csr.GroupLasso(groups), got {type(found).__name__}"
    )


def _takes_structure(function: Any) -> bool:
    """Whether a function has two arguments without default: the column names, and the structure that X carries."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return False
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) == 2


def _aligned(atom: Atom, columns: Columns) -> Atom:
    """Return a copy of the atom with its graph or groups on the columns of X; fitting leaves the parameter as it is."""
    if not is_dataclass(atom):
        return atom
    moved: dict[str, Any] = {}
    for field in fields(atom):
        value = getattr(atom, field.name, None)
        if isinstance(value, Graph):
            moved[field.name] = aligned_graph(value, columns)
        elif isinstance(value, Groups):
            moved[field.name] = aligned_groups(value, columns)[0]
    return replace(atom, **moved)
