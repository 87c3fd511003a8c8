"""What a pass computes from one sparse block equals dense formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.known import stacked_parts
from cvxstructreg.runtime import memory

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((300, 40)) < 0.4, RNG.normal(size=(300, 40)), 0.0)
BLOCK = sp.csr_array(DENSE)


@pytest.mark.parametrize("chosen", [np.arange(39, 3, -1), np.array([7]), np.zeros(0, dtype=np.int64)])
def test_chosen_columns_keep_their_order(chosen):
    assert np.array_equal(kernels.chosen_columns(BLOCK, chosen).toarray(), DENSE[:, chosen])


def test_more_chosen_entries_than_a_look_at_some_rows_suggests():
    uneven = DENSE.copy()
    uneven[::50] = 0.0  # the rows that are looked at
    found = kernels.chosen_columns(sp.csr_array(uneven), np.arange(40))
    assert found.nnz > 1000 and np.array_equal(found.toarray(), uneven)


@pytest.mark.parametrize("chosen", [[5, 2, 30], [5, 2, 5]])
def test_columns_are_stored_by_columns_and_may_repeat(chosen, monkeypatch):
    monkeypatch.setattr(kernels, "compiled_pays", lambda count: True)
    found = kernels.columns(BLOCK, np.array(chosen))
    assert found.format == "csc" and np.array_equal(found.toarray(), DENSE[:, chosen])


@pytest.mark.parametrize("dense_from", [0.2, 0.9])  # by products of dense rows, or added up entry by entry
@pytest.mark.parametrize("density", ["sparse", "dense"])
def test_a_newton_pass_has_all_products(density, dense_from, monkeypatch):
    monkeypatch.setattr(kernels, "DENSE_FROM", dense_from)
    monkeypatch.setattr(kernels, "GRAM_ROWS", 128)
    chosen, b = RNG.permutation(40)[:33], np.array([0.3])
    loss, w = csr.Logistic(np.where(DENSE[:, 0] > 0, 1, -1)), RNG.normal(size=(33, 1))
    X, C = BLOCK if density == "sparse" else DENSE, DENSE[:, chosen]
    g, h = 2.0 * loss.grad(C @ w + b), 2.0 * loss.hess_diag(C @ w + b)
    expected = C @ w, g, h, DENSE.T @ g, C.T @ h, C.T @ (h * C)
    for found, wanted in zip(kernels.second_order_on(X, chosen, w, b, [(2.0, loss)]), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("first", "step"), [(0, 1), (2, 3)])
@pytest.mark.parametrize("density", ["sparse", "dense"])
def test_a_newton_pass_on_some_columns_takes_the_curvature_of_some_rows(density, first, step):
    chosen, b = RNG.permutation(40)[:7], np.array([0.3])
    loss, w = csr.Logistic(np.where(DENSE[:, 0] > 0, 1, -1)), RNG.normal(size=(7, 1))
    X, C = BLOCK if density == "sparse" else DENSE, DENSE[:, chosen]
    z = C @ w + b
    found = kernels.newton_on(X, chosen, w, b, (first, step), [(2.0, loss)])
    images, slope, curved, total, value = found
    g, h, some = 2.0 * loss.grad(z), 2.0 * loss.hess_diag(z)[first::step], C[first::step]
    expected = C @ w, C.T @ g, g.sum(), 2.0 * loss.value(z)
    expected += len(some), h.sum(), (some.T @ h)[:, 0], some.T @ (h * some)
    for mine, wanted in zip((images, slope, total, value, *curved), expected, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-12, atol=1e-12)


def test_statistics_are_added_up_over_parts_of_the_entries(monkeypatch):
    monkeypatch.setattr(kernels, "ENTRIES_AT_ONCE", 1)  # then 160 entries at a time
    sums, squares, counts = kernels.statistics(BLOCK)
    np.testing.assert_allclose(sums, DENSE.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(squares, (DENSE**2).sum(axis=0))
    assert np.array_equal(counts, np.count_nonzero(DENSE, axis=0))


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("kind", ["sparse", "dense", "both"])
def test_blocks_put_together(kind, layout, monkeypatch):
    monkeypatch.setattr(memory, "HUGE_FROM", 0)  # then all arrays are in small pages
    first, second = DENSE[:100], DENSE[100:]
    long = sp.csr_array(first)
    if kind == "sparse" and layout == "csr":
        long.indices, long.data = np.append(long.indices, 3), np.append(long.data, 9.0)  # the last one is not used
    parts = [first, second] if kind == "dense" else [long, sp.csr_array(second) if kind == "sparse" else second]
    whole = stacked_parts(parts, layout)
    assert np.array_equal(whole if kind == "dense" else whole.toarray(), DENSE)
    if kind == "dense":
        assert whole.flags.c_contiguous if layout == "csr" else whole.flags.f_contiguous
    else:
        assert whole.format == layout and whole.has_canonical_format
