"""Groups of features: overlapping or disjoint, weighted, stored as one flat array of indices; and their builders.

Builders that learn from documents are classes with ``fit(documents).groups_``; conversions of data are functions.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvxstructreg.groups.groups import Groups
from cvxstructreg.groups.trees import TreeGroups

if TYPE_CHECKING:
    from cvxstructreg.groups.embeddings import EmbeddingGroups
    from cvxstructreg.groups.graph_of_words import GraphOfWordsGroups
    from cvxstructreg.groups.named import named_groups
    from cvxstructreg.groups.sentences import SentenceGroups
    from cvxstructreg.groups.splitting import PunktSplitter
    from cvxstructreg.groups.topics import LDAGroups, LSIGroups

__all__ = [
    "EmbeddingGroups",
    "GraphOfWordsGroups",
    "Groups",
    "LDAGroups",
    "LSIGroups",
    "PunktSplitter",
    "SentenceGroups",
    "TreeGroups",
    "named_groups",
]

# The builders are loaded on first use: importing scikit-learn takes longer than importing everything else.
_HOME = {
    "EmbeddingGroups": "embeddings",
    "GraphOfWordsGroups": "graph_of_words",
    "LDAGroups": "topics",
    "LSIGroups": "topics",
    "PunktSplitter": "splitting",
    "SentenceGroups": "sentences",
    "named_groups": "named",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
