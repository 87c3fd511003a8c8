"""Folders of blocks: written atomically, resumable, and every kind of damage is named."""

from __future__ import annotations

import errno
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.row_blocks import directory

X = sp.csr_array(np.where(np.random.default_rng(0).random((40, 6)) < 0.5, 1.5, 0.0))
Y = np.where(np.arange(40) % 3 == 0, 1, -1)


def written(folder, X=X):
    return csr.io.write_blocks(folder, X, y=Y, sample_weight=np.ones(40), rows_per_block=10)


def solve(path):
    blocks = csr.RowBlocks(path, engine="serial", memory_limit=100)
    return csr.Problem(csr.Linear(blocks), csr.Logistic(blocks.y) + csr.L1()).solve("gram_newton")


def test_a_folder_keeps_rows_labels_and_statistics(tmp_path):
    blocks = csr.RowBlocks(written(tmp_path / "new" / "folder"))
    assert blocks.shape == X.shape and blocks.n_blocks == 4
    np.testing.assert_array_equal(blocks.y, Y)
    np.testing.assert_array_equal(blocks.sample_weight, 1.0)
    np.testing.assert_allclose(blocks.squared_columns(), (X.toarray() ** 2).sum(axis=0))
    assert blocks.meter.passes == 0  # the statistics are stored
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path / "new" / "folder"))


def test_strings_are_labels_and_objects_are_not(tmp_path):
    names = np.where(Y > 0, "good", "bad")
    path = csr.io.write_blocks(tmp_path / "a", [(X, names)])
    assert csr.RowBlocks(path).y.tolist() == names.tolist()
    with pytest.raises(TypeError, match="must be numbers or strings, got dtype object"):
        csr.io.write_blocks(tmp_path / "b", [(X, np.array([None] * 40))])


def test_the_certificate_has_row_count_and_checksum(tmp_path):
    one, other = solve(written(tmp_path / "a")), solve(written(tmp_path / "b"))
    assert one.certificate.data == other.certificate.data
    assert one.certificate.data.n_rows == 40 and len(one.certificate.data.checksum) == 8
    changed = X.copy()
    changed.data[3] = 2.0
    assert solve(written(tmp_path / "c", changed)).certificate.data.checksum != one.certificate.data.checksum


def test_missing_truncated_and_changed_blocks_are_named(tmp_path):
    file = written(tmp_path) / "00002.data.npy"
    whole = file.read_bytes()
    file.unlink()
    with pytest.raises(csr.BlockError, match=r"block 2 of .* is missing: there is no file"):
        solve(tmp_path)
    file.write_bytes(whole[:-8])
    with pytest.raises(csr.BlockError, match=r"block 2 of .* is truncated or changed"):
        solve(tmp_path)
    file.write_bytes(whole[:-8] + np.float64(7.0).tobytes())
    with pytest.raises(csr.BlockError, match=r"block 2 of .* was changed since it was written: its checksum differs"):
        solve(tmp_path)
    file.write_bytes(whole)
    assert solve(tmp_path).status == "optimal"


def test_a_block_that_changes_between_two_passes_is_named(tmp_path):
    blocks = csr.RowBlocks(written(tmp_path), engine="serial")
    blocks @ np.ones((6, 1))
    file = tmp_path / "00001.data.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-8] + np.float64(7.0).tobytes())
    os.utime(file, ns=(1, 1))
    with pytest.raises(csr.BlockError, match=r"block 1 of .* was changed since it was first read"):
        blocks @ (2.0 * np.ones((6, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_named(tmp_path, bad):
    broken = [X[:10].toarray(), X[10:20].toarray(), X[20:].toarray()]
    broken[1][3, 2] = bad
    for source in (broken, [sp.csr_array(part) for part in broken], [lambda i=i: broken[i] for i in range(3)]):
        with pytest.raises(csr.BlockError, match="block 1 contains NaN or infinite values"):
            csr.RowBlocks(source, engine="serial") @ np.ones((6, 1))
    with pytest.raises(csr.BlockError, match="block 1 contains NaN or infinite values"):
        csr.io.write_blocks(tmp_path, broken)


def test_an_iterator_must_return_the_same_blocks(tmp_path):
    dense = X.toarray()
    turns = [[dense[:20], dense[20:]], [dense[:20]]]
    blocks = csr.RowBlocks(lambda: iter(turns.pop(0)), engine="serial")
    with pytest.raises(csr.BlockError, match="ended after 1 blocks; it had 2"):
        blocks @ np.ones((6, 1))
    turns = [[dense[:20], dense[20:]], [dense[:20], dense[20:], dense[:5]]]
    blocks = csr.RowBlocks(lambda: iter(turns.pop(0)), engine="serial")
    with pytest.raises(csr.BlockError, match="has more than 2 blocks"):
        blocks @ np.ones((6, 1))
    turns = [[dense[:20], dense[20:]], [dense[:20], dense[20:39]]]
    blocks = csr.RowBlocks(lambda: iter(turns.pop(0)), engine="serial")
    with pytest.raises(csr.BlockError, match="block 1 of the iterator has 19 rows, expected 20"):
        blocks @ np.ones((6, 1))


def test_a_full_disk_that_numpy_reports_without_a_number_is_named(tmp_path, monkeypatch):
    def full(file, array, **options):
        raise OSError("50495 requested and 49120 written")

    monkeypatch.setattr(directory.np, "save", full)
    for room, number in ((0, errno.ENOSPC), (10**9, errno.EIO)):
        monkeypatch.setattr(directory.shutil, "disk_usage", lambda path, room=room: SimpleNamespace(free=room))
        with pytest.raises(OSError, match=r"block 0 cannot be written to .* \(50495 requested.*make room") as caught:
            written(tmp_path)
        assert caught.value.errno == number


def test_a_full_disk_keeps_finished_blocks_and_writing_resumes(tmp_path, monkeypatch):
    real, calls = np.save, []

    def full(file, array, **options):
        calls.append(array)
        if len(calls) == 12:  # in the third block
            file.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file, array, **options)

    monkeypatch.setattr(directory.np, "save", full)
    with pytest.raises(OSError, match=r"block 2 cannot be written to .* No space left.*call write_blocks again"):
        written(tmp_path)
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path))
    with pytest.raises(FileNotFoundError, match="the folder is incomplete: call write_blocks again"):
        csr.RowBlocks(tmp_path)
    with open(tmp_path / directory.JOURNAL, "a") as journal:
        journal.write('{"number": 2, "sha')  # a line that was cut off
    before = len(calls)
    written(tmp_path)
    assert len(calls) - before == 2 * 5  # two blocks of five arrays are written, the others are kept
    np.testing.assert_allclose(csr.RowBlocks(tmp_path) @ np.eye(6), X.toarray())


def test_damaged_blocks_are_written_again(tmp_path):
    """The remedy that errors name works: the same call repairs missing and changed files, labels included."""
    for name in ("00001.data.npy", "00002.y.npy", "00003.indptr.npy"):
        file = written(tmp_path) / name
        whole = file.read_bytes()
        for damage in (None, whole[:-8], whole[:-1] + bytes([whole[-1] ^ 1])):
            file.unlink() if damage is None else file.write_bytes(damage)
            with pytest.raises(csr.BlockError, match=rf"block {int(name[:5])} of"):
                solve(tmp_path)
            assert solve(written(tmp_path)).status == "optimal"
            assert file.read_bytes() == whole


def test_a_folder_is_not_overwritten_by_other_data(tmp_path):
    written(tmp_path)
    with pytest.raises(ValueError, match="has another block 0 from an earlier call"):
        written(tmp_path, 2.0 * X)
    with pytest.raises(ValueError, match="has 4 blocks from an earlier call, but X only 1"):
        csr.io.write_blocks(tmp_path, [(X[:10], Y[:10], np.ones(10))])
    with pytest.raises(FileNotFoundError, match="was not made by it"):
        csr.RowBlocks(tmp_path / "elsewhere")


def test_a_changed_journal_is_found(tmp_path):
    journal = written(tmp_path) / directory.JOURNAL
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(csr.BlockError, match="was changed since it was written"):
        csr.RowBlocks(tmp_path)


def test_parquet_and_arrow_files_are_blocks(tmp_path):
    pyarrow, parquet, feather = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet", "pyarrow.feather"))
    from sklearn.feature_extraction.text import HashingVectorizer

    dense = X.toarray()
    table = pyarrow.table({f"x{j}": dense[:, j] for j in range(6)} | {"label": Y, "weight": np.ones(40)})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=15)
    blocks = csr.io.read_tables(tmp_path / "rows.parquet", y="label", sample_weight="weight")
    assert blocks.shape == (40, 6) and blocks.n_blocks == 3
    np.testing.assert_array_equal(blocks.y, Y)
    np.testing.assert_allclose(blocks @ np.eye(6), dense)
    found = csr.Problem(csr.Linear(blocks), csr.Logistic(blocks.y) + csr.L1()).solve("gram_newton")
    expected = csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.L1()).solve()
    assert abs(found.objective - expected.objective) <= max(found.certificate.gap, expected.certificate.gap)

    feather.write_feather(table, tmp_path / "rows.feather")
    some = csr.io.read_tables(tmp_path / "rows.feather", columns=["x1", "x4"], format="feather")
    np.testing.assert_allclose(some @ np.eye(2), dense[:, [1, 4]])
    with pytest.raises(ValueError, match="there is no column 'x9'; the columns are x0, x1"):
        csr.io.read_tables(tmp_path / "rows.parquet", columns=["x9"])

    texts = ["good film", "bad film", "good plot", "no plot"]
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "text.parquet", row_group_size=3)
    hashed = HashingVectorizer(n_features=16)
    words = csr.io.read_tables(tmp_path / "text.parquet", make=lambda t: hashed.transform(t["text"].to_pylist()))
    np.testing.assert_allclose(words @ np.eye(16), hashed.transform(texts).toarray())
    assert words.sparse


def test_damaged_tables_are_named(tmp_path):
    pyarrow, parquet = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
    table = pyarrow.table({"x": np.arange(20.0), "label": Y[:20]})
    for number in range(3):
        parquet.write_table(table, tmp_path / f"{number}.parquet", row_group_size=10)
    blocks, file = csr.io.read_tables(tmp_path, y="label"), tmp_path / "1.parquet"
    file.unlink()
    with pytest.raises(csr.BlockError, match=r"row group 0 of .*1.parquet cannot be read"):
        blocks @ np.ones(1)
    file.write_bytes((tmp_path / "0.parquet").read_bytes()[:-50])
    with pytest.raises(csr.BlockError, match=r"a file cannot be read: .*1.parquet"):
        csr.io.read_tables(tmp_path, y="label")
    holes = np.where(np.arange(20) == 15, np.nan, 1.0)
    parquet.write_table(pyarrow.table({"x": holes, "label": Y[:20]}), file, row_group_size=10)
    with pytest.raises(csr.BlockError, match=r"row group 1 of .*1.parquet contains NaN"):
        csr.io.read_tables(tmp_path, y="label") @ np.ones(1)


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r'pip install "cvxstructreg\[arrow\]"'):
        csr.io.read_tables("rows.parquet")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "cvxstructreg\[dask\]"'):
        csr.RowBlocks([X], engine="dask")
