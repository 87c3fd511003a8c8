"""The refusal of a problem, in words."""

from __future__ import annotations

from typing import Any

#: Characters of an expression that a message shows.
MOST_SHOWN = 80


class UnrecognisedError(ValueError):
    """A plain CVXPY problem has a term that the library does not know; the message names the first."""


def shown(expression: Any) -> str:
    """The text of an expression, cut to a readable length."""
    text = " ".join(str(expression).split())
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
