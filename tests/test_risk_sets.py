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
