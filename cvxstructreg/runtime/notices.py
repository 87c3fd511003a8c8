"""Warnings of the estimators about models that are probably not what the user wants."""

from __future__ import annotations


class GridEdgeWarning(UserWarning):
    """Cross-validation chose a strength or a ratio at the edge of those tried; the best one may lie outside."""


class AllZeroWarning(UserWarning):
    """The penalty is so strong that all weights are zero; the message names the strength where this begins."""


class UngroupedWarning(UserWarning):
    """Some features are in no group, so that the group penalty leaves them free."""
