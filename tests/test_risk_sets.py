"""Sums over risk sets: the compiled loops for many rows are the few lines of NumPy for few rows."""

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.losses.survival import risk_sets


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("n_strata", [1, 4])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_compiled_sums_are_those_of_numpy(monkeypatch, ties, n_strata, size):
    rng = np.random.default_rng(n_strata)
    n = 200
    time, event = rng.integers(0, 40, n).astype(float), rng.random(n) < 0.6
    weights, strata = rng.choice([0.0, 1.0, 2.5], n), rng.integers(0, n_strata, n)
    z, p = size * rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    found = []
    for least in (1, n + 1):
        monkeypatch.setattr(risk_sets, "COMPILE_FROM", least)
        loss = csr.Cox(time, event=event, ties=ties, strata=strata, sample_weight=weights)
        assert (loss._sets.compiled is None) == (least > n)
        found.append((loss.value(z), loss.grad(z), loss.hessp(z, p)))
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize(("spread", "direct"), [(290.0, True), (310.0, False), (2000.0, False)])
def test_sums_without_logarithms_are_those_with_them_up_to_their_limit(monkeypatch, ties, spread, direct):
    rng = np.random.default_rng(5)
    n = 60
    time, event, strata = rng.integers(0, 20, n).astype(float), rng.random(n) < 0.6, np.arange(n) % 2
    z = 700.0 * strata + rng.uniform(0.0, spread, n)
    for stratum in (0, 1):  # each has exactly this range, with the largest score last or first
        rows = np.flatnonzero(strata == stratum)
        at = rows[np.argsort(time[rows])[:: 1 - 2 * stratum]]
        z[at[0]], z[at[-1]] = 700.0 * stratum, 700.0 * stratum + spread
    found = []
    for least in (1, n + 1):
        monkeypatch.setattr(risk_sets, "COMPILE_FROM", least)
        loss = csr.Cox(time, event=event, ties=ties, strata=strata)
        sums = loss._at(z[:, None])
        assert (sums.sums is not None) == (direct and least == 1)
        found.append((loss.value(z), sums.mass, *sums.shares))
    for direct_one, by_logs in zip(*found, strict=True):
        np.testing.assert_allclose(direct_one, by_logs, rtol=1e-10)


def test_sums_are_computed_anew_for_scores_changed_in_place():
    rng = np.random.default_rng(0)
    time, z = rng.exponential(size=600), rng.normal(size=(600, 1))
    loss = csr.Cox(time)
    before = loss.grad(z)
    z[0] += 1.0
    np.testing.assert_allclose(loss.grad(z), csr.Cox(time).grad(z), rtol=1e-13)
    assert np.abs(loss.grad(z) - before).max() > 1e-3
