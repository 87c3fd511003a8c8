"""Gram matrices of low rank: a bound on the smallest eigenvalue that costs less than a Cholesky factorisation."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.numerics import low_rank, semidefinite
from cvxstructreg.numerics.low_rank import low_rank_shift

N = 1500


def smooth(width, d=1, n=N, seed=0):
    """A Gaussian kernel."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    squares = (X**2).sum(axis=1)
    gram = np.exp(-np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0) / (2.0 * d * width))
    return (gram + gram.T) / 2


@pytest.mark.parametrize(("width", "d"), [(0.03, 1), (0.1, 1), (1.0, 1), (100.0, 1), (10.0, 2), (100.0, 3)])
def test_smooth_kernels_are_proved_by_their_rank(width, d):
    gram = smooth(width, d)
    shift = low_rank_shift(gram)
    assert 0.0 < shift < 1e-13 * N
    assert np.linalg.eigvalsh(gram)[0] >= -shift
    proof = semidefinite.prove(gram)
    assert (proof.by_rank, proof.shift) == (True, shift)


def test_the_shift_is_the_remainder_and_the_round_off_of_all_products():
    gram = smooth(1.0)
    L = low_rank._factor(gram)
    exact = gram.astype(np.longdouble) - L.T.astype(np.longdouble) @ L.astype(np.longdouble)
    size, charge = float(np.sqrt(np.sum(exact**2))), (len(L) + 2) * low_rank.UNIT * float(np.sum(L**2))
    assert abs(low_rank._remainder(gram, L) - size) <= charge
    assert low_rank_shift(gram) >= size


@pytest.mark.parametrize("part", [1e-2, 1e-6, 1e-9, 3e-12, 1e-14, 1e-16])
def test_negative_eigenvalues_are_never_hidden(part):
    gram, v = smooth(1.0), np.random.default_rng(1).normal(size=N)
    v -= gram @ np.linalg.lstsq(gram, v, rcond=1e-15)[0]
    v /= np.linalg.norm(v)
    gram -= part * N * np.outer(v, v)
    gram = (gram + gram.T) / 2
    shift = low_rank_shift(gram)
    assert shift is None or shift >= 0.99 * part * N
    if part >= 1e-9:  # more than round-off: the answer is that of a factorisation
        for by_rank in (True, False):
            with pytest.raises(ValueError, match="must be positive semidefinite") if part > 1e-8 else nullcontext():
                proof = semidefinite.prove(gram, by_rank=by_rank)
                assert not proof.by_rank and proof.shift >= 0.99 * part * N


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**-40, 2.0**60, 2.0**300])
def test_the_shift_scales_with_the_matrix(scale):
    gram = smooth(10.0)
    assert low_rank_shift(scale * gram) == scale * low_rank_shift(gram)


def test_other_matrices_are_left_to_a_factorisation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 50))
    rough = np.exp(-((X[:, None, :10] - X[None, :, :10]) ** 2).sum(axis=-1) / 10.0)
    single = smooth(1.0).astype(np.float32).astype(float)
    negative = smooth(1.0)
    negative[3, 3] = -1.0
    for gram in (rough, np.eye(N), single, negative, smooth(1.0, n=400), 1e-200 * smooth(1.0), np.zeros((N, N))):
        assert low_rank_shift(gram) is None
    assert low_rank_shift(X @ X.T) is not None
    assert low_rank_shift(np.ones((N, N))) is not None
    with np.errstate(all="raise"):
        assert low_rank_shift(np.diag(np.r_[np.ones(5), np.zeros(N - 5)])) is not None


def test_certificates_that_need_a_closer_proof_get_one(monkeypatch):
    proofs = []
    cholesky = semidefinite._negative_direction
    monkeypatch.setattr(semidefinite, "_negative_direction", lambda *args: proofs.append(1) or cholesky(*args))
    gram = smooth(1.0)
    y = np.sin(7.0 * gram[:, 5])
    problem = csr.Problem(csr.Kernel(gram), csr.Squared(y) + 0.1 * csr.RKHSNorm())
    assert problem.solve().status == "optimal"
    rough = problem.model.slack()
    assert not proofs
    solution = problem.solve(tol=1e-12)  # tighter than a proof of low rank allows
    assert len(proofs) == 1 and problem.model.slack() < rough
    known = csr.Problem(csr.Kernel(gram, psd=True), csr.Squared(y) + 0.1 * csr.RKHSNorm()).solve(tol=1e-12)
    assert solution.certificate.relative_gap == pytest.approx(known.certificate.relative_gap, abs=1e-12)
