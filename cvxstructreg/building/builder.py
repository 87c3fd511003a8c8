"""Base class of all graph and group builders: clones keep the vocabulary, and the repr shows the result."""

from __future__ import annotations

import copy
from typing import Any, Self


class Builder:
    """Mixin for scikit-learn estimators that learn a graph or groups from data.

    The parameter `vocabulary` names the columns of X. It describes the data and is not fitted, so a clone keeps the
    vocabulary unchanged: a fitted vectorizer stays fitted, also in cross-validation.
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
        """Return a one-line description of the fitted result; an empty string before the fit."""
        return ""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        summary = self._summary()
        return f"{text}\n  -> {summary}" if summary else text
