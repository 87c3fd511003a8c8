"""Gene expression of patients with diabetes and controls, with pathways: gene sets mapped to columns of the matrix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from cvxstructreg.core.checks import checked_count
from cvxstructreg.datasets.locating import DataNotFoundError, PathLike, Source, locate
from cvxstructreg.datasets.reading import DataFormatError, check_length, read_npz
from cvxstructreg.graphs.builders.pathways import read_gmt
from cvxstructreg.groups import Groups

_MSIGDB = "https://www.gsea-msigdb.org/gsea/msigdb"
DIABETES = Source(
    title="diabetes gene expression (Mootha et al. 2003)",
    path="gene_expression/diabetes.npz",
    content="an .npz file with X (samples x genes), y (0, 1), class_names, genes (one symbol per column) and samples",
    origin="https://www.gsea-msigdb.org/gsea/datasets.jsp (Diabetes, collapsed to gene symbols)",
)
_GMT = "a .gmt file: one gene set per line, name, description and gene symbols separated by tabs"
PATHWAYS = {
    "curated": Source("curated gene sets", "gene_expression/c2.curated.old.gmt.gz", _GMT, f"{_MSIGDB} (old C2)"),
    "kegg": Source("KEGG pathways", "gene_expression/c2.cp.kegg.v7.5.1.symbols.gmt.gz", _GMT, _MSIGDB),
}
#: Affymetrix probe sets that have no gene symbol keep their own name, such as 215538_at.
PROBE = re.compile(r"_at$")
_DESCR = """Diabetes gene expression (Mootha et al. 2003).

Expression in skeletal muscle of 17 men with normal glucose tolerance (NGT) and 17 with type 2 diabetes (DMT), one
column per gene symbol. Some columns have several symbols (A /// B); some have only the name of a probe set, which is in
no pathway.
"""


@dataclass(frozen=True)
class GeneSetReport:
    """How many gene sets and symbols match the columns of an expression matrix.

    Attributes
    ----------
    n_columns, n_multi_symbol, n_probes
        Number of all columns, of columns with several symbols (``A /// B``), and of columns with a bare probe name.
    n_symbols, n_symbols_found
        Number of distinct symbols in the gene sets, and of those that occur in a column.
    n_sets, n_sets_kept
        Number of all gene sets, and of those with enough columns.
    n_columns_covered
        Number of columns in at least one kept set.

    Examples
    --------
    >>> groups, report = map_gene_sets({"s": ["A", "C"], "t": ["D"]}, ["A", "B /// C", "99_at"])
    >>> report.n_sets, report.n_sets_kept, report.n_columns_covered
    (2, 1, 2)
    """

    n_columns: int
    n_multi_symbol: int
    n_probes: int
    n_symbols: int
    n_symbols_found: int
    n_sets: int
    n_sets_kept: int
    n_columns_covered: int

    def __str__(self) -> str:
        return (
            f"{self.n_sets_kept} of {self.n_sets} gene sets kept; "
            f"{self.n_symbols_found} of {self.n_symbols} symbols found; "
            f"{self.n_columns_covered} of {self.n_columns} columns in a set "
            f"({self.n_multi_symbol} with several symbols, {self.n_probes} bare probes)"
        )


def load_diabetes_expression(
    pathways: str | PathLike | None = "curated", *, min_size: int = 1, data_home: PathLike | None = None
) -> Bunch:
    """Load the diabetes expression data with pathways as `Groups` over its columns.

    Parameters
    ----------
    pathways : {"curated", "kegg"}, path of a .gmt file, or None
        "curated" uses the old symbols, which match the data best.
    min_size : int
        Drop pathways with fewer columns.
    data_home : path, optional
        The only folder to look in; by default ``$CVXSTRUCTREG_DATA``, then the cache folder.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (34 x 15056), target (0 NGT, 1 DMT), target_names, feature_names, sample_names, DESCR, and with pathways:
        pathways (`Groups`, named), pathway_columns (the same with names, as `pathway_graph` takes it), pathway_report
        (`GeneSetReport`).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> genes, samples = np.array(["INS", "GCK /// HK4", "215538_at"]), np.array(["a", "b"])
    >>> with tempfile.TemporaryDirectory() as home:
    ...     folder = pathlib.Path(home) / "gene_expression"
    ...     folder.mkdir()
    ...     parts = dict(X=np.ones((2, 3)), y=np.array([0, 1]), class_names=np.array(["NGT", "DMT"]))
    ...     np.savez(folder / "diabetes.npz", **parts, genes=genes, samples=samples)
    ...     _ = (folder / "c2.curated.old.gmt").write_text("glycolysis\\tsugar\\tINS\\tHK4\\tPFK\\n")
    ...     bunch = load_diabetes_expression(data_home=home)
    >>> bunch.pathways[0]
    array([0, 1])
    >>> print(bunch.pathway_report)
    1 of 1 gene sets kept; 2 of 3 symbols found; 2 of 3 columns in a set (1 with several symbols, 1 bare probes)
    """
    path = locate(DIABETES, data_home)
    expected = {"X": ("fiu", 2), "y": ("iu", 1), "class_names": ("U", 1), "genes": ("U", 1), "samples": ("U", 1)}
    arrays = read_npz(path, expected)
    X, y, class_names = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64), arrays["class_names"].tolist()
    check_length(path, "y", len(y), X.shape[0], "rows of X")
    check_length(path, "samples", len(arrays["samples"]), X.shape[0], "rows of X")
    check_length(path, "genes", len(arrays["genes"]), X.shape[1], "columns of X")
    if not np.isin(y, np.arange(len(class_names))).all():
        raise DataFormatError(f"{path}: y must number the {len(class_names)} class_names from 0; get the file again")
    bunch = Bunch(
        data=X,
        target=y,
        target_names=class_names,
        feature_names=arrays["genes"].tolist(),
        sample_names=arrays["samples"].tolist(),
        DESCR=_DESCR,
    )
    if pathways is not None:
        sets = _gene_sets(_gmt_path(pathways, data_home))
        groups, report = map_gene_sets(sets, bunch.feature_names, min_size)
        columns = {
            name: [bunch.feature_names[j] for j in group]
            for name, group in zip(groups.names or (), groups, strict=True)
        }
        bunch.update(pathways=groups, pathway_columns=columns, pathway_report=report)
    return bunch


def _gmt_path(pathways: str | PathLike, data_home: PathLike | None) -> Path:
    if isinstance(pathways, str) and pathways in PATHWAYS:
        return locate(PATHWAYS[pathways], data_home)
    path = Path(pathways).expanduser()
    if not path.is_file():
        raise DataNotFoundError(f'pathways is {str(pathways)!r}; it must be "curated", "kegg", None or a .gmt file')
    return path


def _gene_sets(path: Path) -> dict[str, list[str]]:
    try:
        return read_gmt(path)
    except ValueError as error:
        raise DataFormatError(f"{error}; expected {_GMT}") from error


def map_gene_sets(
    gene_sets: Mapping[str, Iterable[str]], columns: Sequence[str], min_size: int = 1
) -> tuple[Groups, GeneSetReport]:
    """Convert sets of gene symbols to groups of columns; a column ``A /// B`` is in the sets of A and of B.

    Parameters
    ----------
    gene_sets : mapping of set name to gene symbols
    columns : sequence of str
        The header of each column: a symbol, several symbols separated by ``///``, or a bare probe name.
    min_size : int
        Drop sets with fewer columns.

    Returns
    -------
    groups : Groups
        Named by the sets, in their order; features are named by the columns.
    report : GeneSetReport

    Examples
    --------
    >>> groups, report = map_gene_sets({"s": ["A", "C"], "t": ["D"]}, ["A", "B /// C", "99_at"])
    >>> groups.names, groups[0], report.n_symbols_found
    (('s',), array([0, 1]), 2)
    """
    least = checked_count(min_size, "min_size")
    symbols = [[symbol.strip() for symbol in column.split("///")] for column in columns]
    columns_of: dict[str, list[int]] = {}
    for number, names in enumerate(symbols):
        for name in dict.fromkeys(names):
            columns_of.setdefault(name, []).append(number)
    sets = {name: list(dict.fromkeys(genes)) for name, genes in gene_sets.items()}
    mapped = {name: sorted({j for gene in genes for j in columns_of.get(gene, ())}) for name, genes in sets.items()}
    kept = {name: members for name, members in mapped.items() if len(members) >= least}
    if not kept:
        raise ValueError(
            f"none of the {len(sets)} gene sets has {least} of the {len(columns)} columns; "
            "do both use the same kind of gene symbols?"
        )
    groups = Groups(list(kept.values()), len(columns), names=list(kept), feature_names=columns)
    distinct = {gene for genes in sets.values() for gene in genes}
    return groups, GeneSetReport(
        n_columns=len(columns),
        n_multi_symbol=sum(len(names) > 1 for names in symbols),
        n_probes=sum(len(names) == 1 and PROBE.search(names[0]) is not None for names in symbols),
        n_symbols=len(distinct),
        n_symbols_found=len(distinct & columns_of.keys()),
        n_sets=len(sets),
        n_sets_kept=len(kept),
        n_columns_covered=int(groups.covered.sum()),
    )
