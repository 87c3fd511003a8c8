"""What all builders of graphs and groups share: cloning that keeps the vocabulary, and a repr with the result."""

from __future__ import annotations

import copy
from typing import Any, Self


class Builder:
    """Mixin for scikit-learn estimators that learn a graph or groups from data.

    The parameter `vocabulary` says what the columns of X are. It is a fact about the data and not something to be
    fitted, so a clone keeps it as it is: a fitted vectorizer stays fitted, also in cross-validation.
    """

    def __sklearn_clone__(self) -> Self:
        parameters: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        kept = {name: value if name == "vocabulary" else copy.deepcopy(value) for name, value in parameters.items()}
        clone = type(self)(**kept)
        for name in ("_metadata_request", "_sklearn_output_config"):
            if name in vars(self):
                setattr(clone, name, copy.deepcopy(vars(self)[name]))
        return clone

    def _summary(self) -> str:
        """Return what was found by the fit, in words; empty before."""
        return ""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        summary = self._summary()
        return f"{text}\n  -> {summary}" if summary else text
