"""The problem on a sample of the rows, for a preliminary fit; and losses of some rows only."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.known import stacked_parts

#: Blocks that a sample of rows is taken from.
SAMPLED_BLOCKS = 16
#: The part of the memory limit that a sample may take, and the fewest rows of a useful one.
SHARE, FEWEST = 0.2, 500
#: Arrays of a loss with a number for each output, not for each row.
OF_OUTPUTS = ("classes", "task_weight")


def loss_of_rows(loss: Loss, rows: Any) -> Loss:
    """The part of a loss that belongs to some rows, in their order, without any check."""
    n, part = len(loss.y), object.__new__(type(loss))
    for item in fields(loss):
        value = getattr(loss, item.name)
        if isinstance(value, np.ndarray) and value.ndim and value.shape[0] == n and item.name not in OF_OUTPUTS:
            value = value[rows]
        object.__setattr__(part, item.name, value)
    return part


def sampled(problem: Problem, n_rows: int, for_selection: bool = False) -> Problem | None:
    """The problem on about ``n_rows`` rows, spread over all blocks, with a loss of the same size.

    The noise of the gradient grows by sqrt(n / n_rows). If the sample is meant to select features, the penalties grow
    with it. None if memory is short, if a term of the scores is not a loss of all rows, or if the sample lacks a class.
    """
    design = problem.model.row_blocks
    n_rows = min(n_rows, int(SHARE * design.memory_limit / design.bytes_of() * problem.model.n_rows))
    if n_rows < FEWEST:
        return None
    if any(term.target != "weights" and not _is_plain(term.atom) for term in problem.terms):
        return None
    rows, X = rows_of(design, n_rows)
    growth, terms = float(np.sqrt(problem.model.n_rows / len(rows))) if for_selection else 1.0, []
    for term in problem.terms:
        if not isinstance(term.atom, Loss):
            terms.append(growth * term)
            continue
        weights = np.asarray(term.atom.sample_weight)
        part = loss_of_rows(term.atom, rows)
        share = float(weights[rows].sum()) / float(weights.sum())
        targets = np.asarray(part.y)[weights[rows] > 0]
        if not share > 0.0 or (not part.attains_infimum and np.any(np.ptp(targets, axis=0) == 0)):
            return None
        freeze(part, sample_weight=weights[rows] / share)
        terms.append(Term(part, term.scale, term.target))
    return Problem(Linear(sp.csr_array(X) if sp.issparse(X) else X, problem.model.intercept), Objective(tuple(terms)))


def rows_of(design: Any, n_rows: int) -> tuple[Any, Any]:
    """About ``n_rows`` rows spread over the blocks (over the first blocks of an iterator), and their numbers first."""
    count = min(design.n_blocks, SAMPLED_BLOCKS)
    each, spread = max(1, -(-n_rows // count)), np.unique(np.linspace(0, design.n_blocks - 1, count).astype(np.int64))
    found = [(design.starts[i], result) for i, result in design.look(spread, kernels.some_rows, (each,))]
    rows = np.concatenate([first + its for first, (its, _) in found])
    return rows, stacked_parts([part for _, (_, part) in found], "csr")


def _is_plain(atom: Any) -> bool:
    return isinstance(atom, Loss) and atom.rows is None
