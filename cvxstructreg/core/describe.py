"""Descriptions of a problem: the exact objective with its conventions."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Term

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


def as_text(problem: Problem) -> str:
    """The objective as a few lines of plain text."""
    rows = [_row(problem, term) for term in problem.terms]
    width = max(len(formula) for formula, _ in rows)
    lines = [f"minimize over {_variables(problem)}"]
    for number, (formula, note) in enumerate(rows):
        lines.append(f"  {'+' if number else ' '} {formula:<{width}}   {note}")
    return "\n".join([*lines, f"where {_scores(problem)}", *_repair(problem)])


def as_html(problem: Problem) -> str:
    """The objective as a small HTML table."""
    cells = "".join(
        f"<tr><td style='text-align:left'><code>{'+ ' if number else ''}{html.escape(formula)}</code></td>"
        f"<td style='text-align:left'>{html.escape(note)}</td></tr>"
        for number, (formula, note) in enumerate(_row(problem, term) for term in problem.terms)
    )
    head, foot = html.escape(_variables(problem)), html.escape(_scores(problem))
    notes = "".join(f"<br>{html.escape(note.strip())}" for note in _repair(problem))
    return f"<div>minimize over <code>{head}</code><table>{cells}</table>where <code>{foot}</code>{notes}</div>"


def _row(problem: Problem, term: Term) -> tuple[str, str]:
    atom = term.atom
    formula, convention = atom.described() if isinstance(atom, Loss) else (atom.formula, atom.convention)
    if term.target == "scores" and type(atom).target == "weights":
        formula = formula.replace("w_i", "f_i").replace("w_j", "f_j").replace("||w||", "||F||").replace(" w", " F")
    if term.target == "values":
        formula = formula.replace("w_i", "h_i").replace("w_j", "h_j").replace("||w||", "||h||").replace(" w", " h")
    strength = "" if term.scale == 1 else f"{term.scale:g} * "
    note = f"{atom!r}: {convention}" if convention else repr(atom)
    if isinstance(atom, Loss):
        if np.any(atom.sample_weight != 1):
            note += "; s_i are the sample weights"
        if atom.offset is not None:
            note += "; at the scores plus the offset"
        if atom.rows is not None:
            note += f"; on the {len(atom.rows)} labelled of {problem.given.n_rows} rows"
    elif term.target == "scores":
        note += f"; on the scores of all {problem.given.n_rows} rows"
    elif term.target == "values":
        shift = "without the intercept" if problem.given.intercept else "of the function"
        note += f"; on the values h = F - 1 b' of all {problem.given.n_rows} rows, {shift}"
    return strength + formula, note


def _variables(problem: Problem) -> str:
    d, k = problem.given.n_weights, problem.n_outputs
    letter = problem.given.weights_name
    weights = f"{letter} in R^{d}" if k == 1 else f"{letter} in R^({d} x {k})"
    return weights + ((", b in R" if k == 1 else f", b in R^{k}") if problem.given.intercept else "")


def _scores(problem: Problem) -> str:
    model, k = problem.given, problem.n_outputs
    scores = "f" if k == 1 else "F"
    shift = "" if not model.intercept else (" + b" if k == 1 else " + 1 b'")
    note = "; penalties on the weights do not include b" if model.intercept else "; there is no intercept"
    return f"{scores} = {model.name} {model.weights_name}{shift}, {model!r}{note}"


def _repair(problem: Problem) -> list[str]:
    """A line about the repair of the Gram matrix, or about why the problem is not convex."""
    try:
        model = problem.model
    except ValueError as error:
        return [f"but {error}"]
    return [f"  and {note}" for note in (*model.notes(), *_traffic(problem))]


def _traffic(problem: Problem) -> tuple[str, ...]:
    """Where the scores of data in blocks are, if they stay with the blocks, and what moves instead."""
    blocks = problem.given.row_blocks
    if blocks is None or not blocks.keeps_scores:
        return ()
    size = f"{8 * problem.given.n_weights:,} bytes"
    return (
        f"scores stay with the blocks: {size} of weights go to each block and {size} of X'u come back in a pass; "
        "Cox, and newton, lbfgs and fista if they are asked for, bring their scores here",
    )
