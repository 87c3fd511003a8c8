"""Genes linked within pathways, from .gmt files of gene sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from cvxstructreg.building.vocabulary import ColumnFinder, check_choice, vocabulary_names
from cvxstructreg.graphs.builders.cliques import binary, clique_counts
from cvxstructreg.graphs.files import FilePath, numbered_lines
from cvxstructreg.graphs.graph import Graph


def read_gmt(path: FilePath) -> dict[str, list[str]]:
    """Return the genes of each set in a .gmt file, plain or gzipped: name, description and genes, separated by tabs.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "sets.gmt"
    ...     _ = file.write_text("glycolysis\\tsugar\\tHK1\\tPGK1\\n")
    ...     read_gmt(file)
    {'glycolysis': ['HK1', 'PGK1']}
    """
    sets: dict[str, list[str]] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        genes = list(dict.fromkeys(gene for gene in fields[2:] if gene))
        if not fields[0] or not genes:
            raise ValueError(
                f"line {number} of {str(path)!r} is not a gene set: {line[:60]!r}; expected name, description and "
                "at least one gene, separated by tabs"
            )
        if fields[0] in sets:
            raise ValueError(
                f"line {number} of {str(path)!r}: the gene set {fields[0]!r} occurs twice; remove or rename one"
            )
        sets[fields[0]] = genes
    if not sets:
        raise ValueError(f"{str(path)!r} has no gene sets")
    return sets


def pathway_graph(
    pathways: FilePath | Mapping[str, Iterable[Any]],
    vocabulary: Any,
    weights: str = "binary",
    missing: str = "ignore",
    max_size: int | None = None,
) -> Graph:
    """W_ij = 1 if genes i and j share a pathway, or the number of pathways they share.

    Parameters
    ----------
    pathways : .gmt file, or mapping from the name of a set to its genes
    vocabulary : sequence of str, dict from name to column, or fitted vectorizer
        Names of the columns of X: the nodes of the graph.
    weights : {"binary", "count"}
        The two formulas above, in this order.
    missing : {"ignore", "error"}
        What to do with genes that are not in the vocabulary.
    max_size : int, optional
        Leave out larger sets; a set of m genes has m (m - 1) / 2 edges.

    Examples
    --------
    >>> pathway_graph({"a": ["HK1", "PGK1", "PKM"], "b": ["PKM", "TP53"]}, ["HK1", "PGK1", "PKM", "MYC"])
    Graph(4 nodes, 3 edges, undirected)
    """
    check_choice(weights, ("binary", "count"), "weights")
    names = vocabulary_names(vocabulary)
    sets = read_gmt(pathways) if isinstance(pathways, str | PathLike) else dict(pathways)
    for title, genes in sets.items():
        if isinstance(genes, str):
            raise TypeError(f"the genes of {title!r} must be a list, not the single string {genes!r}")
    finder = ColumnFinder(names, len(names), missing)
    members = [finder.find(genes, "gene")[0] for genes in sets.values()]
    if not any(len(genes) for genes in members):
        raise ValueError("no gene of any pathway is in the vocabulary; do both use the same kind of gene names?")
    counts = clique_counts([genes for genes in members if max_size is None or len(genes) <= max_size], len(names))
    return Graph(binary(counts) if weights == "binary" else counts, names)
