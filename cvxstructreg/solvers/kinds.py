"""The kinds of models: most solvers are for some of them only, and a solve looks only at solvers for its kind."""

from __future__ import annotations

from cvxstructreg.core.model import Model

LINEAR, KERNEL, BLOCKS = "linear", "kernel", "in blocks of rows"
KINDS = frozenset({LINEAR, KERNEL, BLOCKS})


def kind_of(model: Model) -> str:
    """The kind of a model: a kernel model, data in blocks of rows, or data in memory."""
    if model.kernel is not None:
        return KERNEL
    return LINEAR if model.row_blocks is None else BLOCKS
