"""Graphs on features or samples: signed, sparse, possibly directed, possibly with virtual nodes; and their builders.

Builders that learn from a matrix X are classes with ``fit(X).graph_``; conversions of existing data are functions.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvxstructreg.graphs.graph import Graph

if TYPE_CHECKING:
    from cvxstructreg.graphs.alignment import aligned_graph, edge_list_graph
    from cvxstructreg.graphs.builders.cooccurrence import CooccurrenceGraph
    from cvxstructreg.graphs.builders.lexicon import (
        lexicon_graph,
        negation_graph,
        negation_pairs,
        read_lexicon,
        read_synset_relations,
        sentiment_scores,
        sentiment_seeds,
    )
    from cvxstructreg.graphs.builders.neighbors import NeighborGraph
    from cvxstructreg.graphs.builders.pathways import pathway_graph, read_gmt
    from cvxstructreg.graphs.builders.quoting import quoting_pairs, shows_disagreement
    from cvxstructreg.graphs.builders.seed_correlation import SeedCorrelationGraph
    from cvxstructreg.graphs.feature_classes import class_graph
    from cvxstructreg.graphs.files import read_edge_list, read_word_list
    from cvxstructreg.graphs.networkx_bridge import from_networkx, to_networkx
    from cvxstructreg.graphs.pairs import mixed_graph, oracle_pairs

__all__ = [
    "CooccurrenceGraph",
    "Graph",
    "NeighborGraph",
    "SeedCorrelationGraph",
    "aligned_graph",
    "class_graph",
    "edge_list_graph",
    "from_networkx",
    "lexicon_graph",
    "mixed_graph",
    "negation_graph",
    "negation_pairs",
    "oracle_pairs",
    "pathway_graph",
    "quoting_pairs",
    "read_edge_list",
    "read_gmt",
    "read_lexicon",
    "read_synset_relations",
    "read_word_list",
    "sentiment_scores",
    "sentiment_seeds",
    "shows_disagreement",
    "to_networkx",
]

# The builders are loaded on first use: importing scikit-learn takes longer than importing everything else.
_MODULES = {
    "alignment": ("aligned_graph", "edge_list_graph"),
    "builders.cooccurrence": ("CooccurrenceGraph",),
    "feature_classes": ("class_graph",),
    "files": ("read_edge_list", "read_word_list"),
    "builders.lexicon": (
        "lexicon_graph",
        "negation_graph",
        "negation_pairs",
        "read_lexicon",
        "read_synset_relations",
        "sentiment_scores",
        "sentiment_seeds",
    ),
    "builders.neighbors": ("NeighborGraph",),
    "networkx_bridge": ("from_networkx", "to_networkx"),
    "pairs": ("mixed_graph", "oracle_pairs"),
    "builders.pathways": ("pathway_graph", "read_gmt"),
    "builders.quoting": ("quoting_pairs", "shows_disagreement"),
    "builders.seed_correlation": ("SeedCorrelationGraph",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
