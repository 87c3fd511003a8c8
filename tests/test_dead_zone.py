"""Dissimilar pairs with a dead zone: values, proofs, limits, bad input."""

import numpy as np
import pytest
from penalty_problems import LOSSES, require_proof_and_reference, small_problem

import cvxstructreg as csr

PAIRS = [(0, 1), (2, 3), (4, 9), (10, 20)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("k", [1, 3])
def test_auto_proves_every_loss(k, power, loss):
    penalty = csr.Dissimilarity(PAIRS, power, margin=0.4) + 0.5 * csr.Ridge()
    require_proof_and_reference(small_problem(loss, penalty, k=k))


@pytest.mark.parametrize("power", [1, 2])
def test_by_its_formula(power):
    f, m = np.random.default_rng(0).normal(size=21), 0.4
    expected = sum(max(abs(f[s] + f[t]) - m, 0.0) ** power for s, t in PAIRS)
    assert csr.Dissimilarity(PAIRS, power, margin=m)(f) == pytest.approx(expected)
    two = np.column_stack([f, -f])  # the same scores, as two classes
    assert csr.Dissimilarity(PAIRS, power, margin=m)(two) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 3])
def test_without_a_margin_nothing_changes_and_a_wide_one_costs_nothing(k):
    F = np.random.default_rng(0).normal(size=(21, k))
    assert csr.Dissimilarity(PAIRS, margin=0.0)(F) == csr.Dissimilarity(PAIRS)(F) > 0
    assert csr.Dissimilarity(PAIRS, margin=100.0)(F) == 0.0


@pytest.mark.parametrize("margin", [-0.1, np.inf, np.nan, "wide", [0.1]])
def test_bad_margins_are_refused(margin):
    with pytest.raises((TypeError, ValueError), match="margin"):
        csr.Dissimilarity(PAIRS, margin=margin)
