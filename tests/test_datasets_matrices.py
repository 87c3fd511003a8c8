"""Semi-supervised matrices, gene expression and pathways: whole and broken files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dataset_files import (
    CSR,
    EXPRESSION,
    LOADERS,
    MATRIX,
    PARTS,
    SPLITS,
    X,
    folder_with_every_set,
    hide_folders,
    write,
    write_npz,
)
from scipy import sparse

from cvxstructreg import datasets
from cvxstructreg.datasets import DataFormatError, DataNotFoundError
from cvxstructreg.graphs import pathway_graph


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_folders(monkeypatch, tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return folder_with_every_set(tmp_path)


# --- matrices ---------------------------------------------------------------------------------------------------------


def test_semi_supervised_matrices(home):
    g50c, uspst = datasets.load_g50c(data_home=home), datasets.load_uspst(data_home=home)
    np.testing.assert_array_equal(g50c.data, X)
    np.testing.assert_array_equal(g50c.labeled_idx, SPLITS["labeled_idx"])
    assert g50c.target.dtype == np.int64 and g50c.target_names == ["-1", "1"]
    assert uspst.target_names == ["3", "5", "7"]
    windows = datasets.load_mac_windows(data_home=home)
    assert sparse.issparse(windows.data)
    np.testing.assert_array_equal(windows.data.toarray(), X)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": None}, "has no array X; it contains"),
        ({"y": None, "labeled_idx": None}, "has no array y, labeled_idx"),
        ({"X": X.ravel()}, r"shape \(8,\); expected numbers in 2 dimensions"),
        ({"X": X.astype(str)}, "expected numbers"),
        ({"X": np.where(X == 3, np.nan, X)}, "NaN or infinite"),
        ({"y": np.array([1, 1])}, "y has 2 entries, expected one for each of 4 rows of X"),
        ({"y": np.array([1.5, 1, 2, 3])}, "expected integers in 1 dimension$"),
        ({"labeled_idx": np.array([[0, 1]])}, "labeled_idx has 1 splits, but unlabeled_idx has 2"),
        ({"labeled_idx": np.array([[0, 9], [2, 3]])}, "split 0 must have distinct rows from 0 to 3"),
        ({"labeled_idx": np.array([[0, 1], [2, 0]])}, "split 1 must have distinct rows"),
    ],
)
def test_broken_matrices(tmp_path, changed, message):
    arrays = {name: array for name, array in {**MATRIX, **changed}.items() if array is not None}
    write_npz(tmp_path / "ssl_matrices/g50c.npz", **arrays)
    with pytest.raises(DataFormatError, match=message):
        datasets.load_g50c(data_home=tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"X_indices": CSR.indices + 5},
        {"X_indptr": CSR.indptr[:-1]},
        {"X_shape": np.array([4])},
        {"X_data": CSR.data[:2]},
        {"X_shape": np.array([4, 1])},
    ],
)
def test_broken_sparse_matrices(tmp_path, changed):
    write_npz(tmp_path / "ssl_matrices/mac_windows.npz", **{**PARTS, **changed}, y=MATRIX["y"], **SPLITS)
    with pytest.raises(DataFormatError, match="are not a CSR matrix"):
        datasets.load_mac_windows(data_home=tmp_path)


@pytest.mark.parametrize("path", [path for path in LOADERS if path.endswith(".npz")])
@pytest.mark.parametrize("damage", ["truncated", "text", "empty", "flipped", "pickle"])
def test_damaged_npz_files(home, path, damage):
    stored = (home / path).read_bytes()
    middle = stored.index(b"NUMPY") + 90
    changed = {
        "truncated": stored[: len(stored) // 2],
        "text": b"not a matrix",
        "empty": b"",
        "flipped": stored[:middle] + bytes(255 - byte for byte in stored[middle : middle + 40]) + stored[middle + 40 :],
    }
    if damage == "pickle":
        names = np.load(home / path).files
        np.savez(home / path, **{name: np.array([{}], dtype=object) for name in names})
    else:
        (home / path).write_bytes(changed[damage])
    with pytest.raises(DataFormatError, match=Path(path).name):
        LOADERS[path](home)


# --- expression and pathways ------------------------------------------------------------------------------------------


def test_expression_with_pathways(home):
    bunch = datasets.load_diabetes_expression(data_home=home)
    assert bunch.target_names == ["NGT", "DMT"] and bunch.feature_names == ["INS", "A /// B"]
    assert bunch.sample_names == ["s1", "s2", "s3", "s4"]
    assert bunch.pathways.names == ("s",) and bunch.pathways[0].tolist() == [0, 1]
    assert bunch.pathway_columns == {"s": ["INS", "A /// B"]}
    graph = pathway_graph(bunch.pathway_columns, bunch.feature_names)
    assert graph.weights.toarray().tolist() == [[0, 1], [1, 0]]
    report = bunch.pathway_report
    assert (report.n_columns, report.n_multi_symbol, report.n_probes) == (2, 1, 0)
    assert (report.n_symbols, report.n_symbols_found, report.n_sets, report.n_sets_kept) == (3, 2, 2, 1)
    assert datasets.load_diabetes_expression("kegg", data_home=home).pathways[0].tolist() == [1]
    assert "pathways" not in datasets.load_diabetes_expression(None, data_home=home)
    own = write(home / "own.gmt", "mine\t\tINS\n")
    assert datasets.load_diabetes_expression(own, data_home=home).pathways.names == ("mine",)
    with pytest.raises(DataNotFoundError, match=r'"curated", "kegg", None or a \.gmt file'):
        datasets.load_diabetes_expression("reactome", data_home=home)


def test_genes_sets_on_columns_with_several_symbols_and_probes():
    columns = ["A", "B /// C", "A /// D", "AFFX-r2-Bs-lys-3_at", "217024_x_at"]
    groups, report = datasets.map_gene_sets({"one": ["A", "A", "E"], "two": ["C", "D"], "none": ["F"]}, columns)
    assert [group.tolist() for group in groups] == [[0, 2], [1, 2]]
    assert groups.names == ("one", "two") and groups.feature_names == tuple(columns)
    assert (report.n_multi_symbol, report.n_probes, report.n_columns_covered) == (2, 2, 3)
    assert (report.n_symbols, report.n_symbols_found) == (5, 3)
    assert "2 of 3 gene sets kept" in str(report)
    assert datasets.map_gene_sets({"one": ["A"], "two": ["C"]}, columns, min_size=2)[0].names == ("one",)
    with pytest.raises(ValueError, match="none of the 1 gene sets has 1 of the 5 columns"):
        datasets.map_gene_sets({"none": ["F"]}, columns)
    with pytest.raises(ValueError, match="min_size must be at least 1"):
        datasets.map_gene_sets({"one": ["A"]}, columns, min_size=0)


@pytest.mark.parametrize("damage", ["s\tx\tINS\ns\tx\tB\n", "s\tx\tINS\nt x B\n", "\n", "truncated"])
def test_broken_gene_sets(home, damage):
    path = home / "gene_expression/c2.curated.old.gmt.gz"
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        write(path, damage)
    with pytest.raises(DataFormatError, match=r"(?s)c2\.curated\.old\.gmt\.gz.*one gene set per line"):
        datasets.load_diabetes_expression(data_home=home)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"genes": np.array(["INS"])}, "genes has 1 entries, expected one for each of 2 columns"),
        ({"samples": np.array(["s"])}, "samples has 1 entries, expected one for each of 4 rows"),
        ({"y": np.array([0, 1, 2, 1])}, "y must number the 2 class_names"),
        ({"genes": np.arange(2)}, "expected strings in 1 dimension"),
    ],
)
def test_broken_expression(home, changed, message):
    write_npz(home / "gene_expression/diabetes.npz", **{**EXPRESSION, **changed})
    with pytest.raises(DataFormatError, match=message):
        datasets.load_diabetes_expression(data_home=home)
