"""The gamma loss at the edge of the domain of its conjugate."""

import numpy as np
import pytest

import cvxstructreg as csr


def test_the_conjugate_holds_to_round_off_up_to_the_edge_of_its_domain():
    y = np.array([0.5, 2.0, 1.0, 3.0])
    loss = csr.Gamma(y)
    for a in (0.0, 5e-324, 1e-300, np.finfo(float).eps / 2.0, 1e-8, 0.3, 1.0, 1e9):
        u = np.full((4, 1), 1.0 - a)
        left = 1.0 - u[0, 0]  # what round-off leaves of a
        expected = 4.0 * (left * (np.log(left) if left else 0.0) - left + 1.0) + float(u[:, 0] @ np.log(y))
        assert loss.conj(u) == pytest.approx(expected, rel=1e-14, abs=1e-14)
    small = np.full((4, 1), 1e-9)  # a log a - a + 1 = u^2 / 2 + ..., which must not cancel
    assert loss.conj(small) - float(small[:, 0] @ np.log(y)) == pytest.approx(2e-18, rel=1e-6, abs=1e-24)
    assert loss.conj(np.full((4, 1), 1.0 + 1e-9)) == np.inf
