"""Checksums of blocks: every kind of change is found, also while a kernel reads the block."""

import json
import zlib

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.numerics import checksum as checksums
from cvxstructreg.numerics.checksum import STRIPE, checksum
from cvxstructreg.row_blocks import directory, kernels

RNG = np.random.default_rng(0)
X = sp.random_array((400, 30), density=0.4, rng=RNG, format="csr")


def of(array):
    return checksum({"data": array})


@pytest.mark.parametrize("size", [0, 1, 7, STRIPE - 1, STRIPE, STRIPE + 1, 5 * STRIPE + 3])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
def test_compiled_loops_give_the_same_checksum(size, dtype, monkeypatch):
    array = (100 * RNG.random(size)).astype(dtype)
    expected = of(array)
    monkeypatch.setattr(checksums, "COMPILE_FROM", 0)
    assert of(array) == expected


def test_every_bit_of_every_word_counts():
    words = RNG.normal(size=3 * STRIPE + 5)
    seen = {of(words)}
    for place in (0, 1, STRIPE - 1, STRIPE, 2 * STRIPE + 7, len(words) - 1):
        for bit in range(64):
            other = words.copy()
            other.view(np.uint64)[place] ^= np.uint64(1 << bit)
            seen.add(of(other))
    assert len(seen) == 1 + 6 * 64


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_changes_that_leave_sums_alone_are_found(constant):
    """Swaps, shifts, two changes that cancel, and signs of two words; also among many equal words."""
    words = np.full(4 * STRIPE, constant)
    words[10:20], words[2 * STRIPE : 2 * STRIPE + 10] = np.arange(10.0), 7.0
    cases = [words, np.roll(words, 1), np.roll(words, STRIPE), words[::-1], -words]
    for one, other in [(10, 11), (10, 19), (11, 2 * STRIPE), (15, 15 + STRIPE), (0, 2 * STRIPE)]:
        swapped = words.copy()
        swapped[[one, other]] = swapped[[other, one]]
        cases += [swapped] if words[one] != words[other] else []
        bits = words.copy().view(np.uint64)
        bits[[one, other]] ^= np.uint64(1 << 63)
        cases.append(bits.view(float))
        bits = words.copy().view(np.uint64)
        bits += np.where(np.arange(len(bits)) == one, 5, 0).astype(np.uint64)
        bits -= np.where(np.arange(len(bits)) == other, 5, 0).astype(np.uint64)
        cases.append(bits.view(float))
    pairs = words.copy()
    pairs[[10, 11, 12, 13]] = pairs[[11, 10, 13, 12]]
    cases += [pairs, words[:-1], words[1:], np.append(words, 0.0), np.insert(words, 0, 0.0), words[: 2 * STRIPE]]
    cases += [words.view(np.int64), words.reshape(4, STRIPE), words[: len(words) // 2].repeat(2)]
    sums = [of(case) for case in cases]
    assert len(set(sums)) == len(sums)
    assert checksum({"data": words, "indices": words}) != checksum({"indices": words, "data": words})


def test_random_damage_is_found():
    words, seen = RNG.normal(size=2 * STRIPE), set()
    for _ in range(300):
        other = words.copy()
        places = RNG.choice(len(words), size=RNG.integers(1, 6), replace=False)
        other[places] = RNG.permutation(words)[: len(places)]
        seen.add((other.tobytes(), of(other)))
    assert len({data for data, _ in seen}) == len({found for _, found in seen})


def written(folder):
    return csr.io.write_blocks(folder, X, rows_per_block=100)


KERNELS = {
    "pull": lambda blocks: blocks.pull(np.ones((400, 1))),
    "two columns of u": lambda blocks: blocks.pull(np.ones((400, 2))),
    "columns": lambda blocks: blocks.read_columns([3, 1, 20]),
    "times": lambda blocks: blocks.times(np.ones((30, 1))),
    "newton": lambda blocks: list(
        blocks.run(
            kernels.newton_on,
            (np.arange(5), np.zeros((5, 1)), np.zeros(1), (0, 1)),
            lambda rows: ([(1.0, csr.Squared(np.ones(100)))],),
        )
    ),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("file", ["data", "indices", "indptr"])
def test_damage_is_found_while_a_block_is_read(name, file, tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "compiled_pays", lambda count: True)
    path = written(tmp_path) / f"00002.{file}.npy"
    whole = path.read_bytes()
    for place, byte in [(-1, 0x7F), (-1, 0xFF), (-3, 1), (len(whole) // 2, 3), (130, 0x80)]:
        damaged = bytearray(whole)
        damaged[place] ^= byte
        path.write_bytes(bytes(damaged))
        with pytest.raises(csr.BlockError, match=r"block 2 of .* was changed since it was written"):
            KERNELS[name](csr.RowBlocks(tmp_path, engine="serial"))
    path.write_bytes(whole)
    KERNELS[name](csr.RowBlocks(tmp_path, engine="serial"))


def test_products_that_verify_are_those_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "compiled_pays", lambda count: True)
    blocks, u = csr.RowBlocks(written(tmp_path), engine="serial"), RNG.normal(size=(400, 1))
    np.testing.assert_allclose(blocks.pull(u), X.T @ u, atol=1e-12)
    again = csr.RowBlocks(tmp_path, engine="serial")
    assert np.array_equal(again.read_columns([3, 1, 20]).toarray(), X[:, [3, 1, 20]].toarray())
    assert again.record == blocks.record == csr.RowBlocks([X[i : i + 100] for i in range(0, 400, 100)]).record


def test_folders_with_crc32_are_read_resumed_and_repaired(tmp_path):
    """Folders of earlier versions have CRC-32 in their journal, and no kind of checksum."""
    path = written(tmp_path)
    lines = [json.loads(line) for line in (path / directory.JOURNAL).read_text().splitlines()]
    for line in lines:
        block = directory._file_block(path, line).load(True)
        del line["kind"]
        line["checksum"] = zlib.crc32(block.data.tobytes() + block.indices.tobytes() + block.indptr.tobytes())
        line["extra"] = 0
    (path / directory.JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in lines))
    end = json.loads((path / directory.COMPLETE).read_text())
    end["checksum"] = directory._checksum_of_journal(lines)
    (path / directory.COMPLETE).write_text(json.dumps(end))
    assert np.array_equal(csr.RowBlocks(path, engine="serial").gather().toarray(), X.toarray())
    file = path / "00001.indices.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(csr.BlockError, match=r"block 1 of .* was changed since it was written"):
        csr.RowBlocks(path, engine="serial").pull(np.ones((400, 1)))
    written(path)
    assert file.read_bytes() == whole and "kind" not in (path / directory.JOURNAL).read_text()


def test_a_checksum_of_a_later_version_is_refused(tmp_path):
    path = written(tmp_path)
    block = directory._file_block(path, {**directory._journal(path)[0], "kind": "new"})
    with pytest.raises(csr.BlockError, match="'new' are not known; a later version wrote the folder"):
        block.load(True)
