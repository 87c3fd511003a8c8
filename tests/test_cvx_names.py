"""Names from inside CVXPY: a new version of CVXPY that changes them must fail here, and nowhere else."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cvxstructreg.cvx.reading import names
from cvxstructreg.cvx.reading.affine import Reader

x, W = cp.Variable(4), cp.Variable((3, 2))
SQUARE = cp.Variable((2, 2))
WRITTEN = {
    "AddExpression": x + 1,
    "NegExpression": -x,
    "multiply": cp.multiply(np.arange(4), x),
    "MulExpression": np.eye(4) @ x,
    "DivExpression": x / 2.0,
    "Sum": cp.sum(x),
    "absolute": cp.abs(x),
    "exp": cp.exp(x),
    "huber": cp.huber(x, 2),
    "logistic": cp.logistic(x),
    "maximum": cp.pos(x),
    "minimum": cp.minimum(x, 0),
    "Power": cp.square(x),
    "log_sum_exp": cp.log_sum_exp(W, axis=1),
    "norm1": cp.norm(x, 1),
    "norm_inf": cp.norm(x, "inf"),
    "Pnorm": cp.norm(x),
    "QuadForm": cp.quad_form(x, np.eye(4)),
    "quad_over_lin": cp.sum_squares(x),
    "Inequality": x <= 1,
    "Equality": x == 1,
}
GATHERED = {
    "slice": x[1:],
    "list of entries": x[[0, 2]],
    "reshape": cp.reshape(x, (2, 2), order="C"),
    "transpose": W.T,
    "hstack": cp.hstack([x, x]),
    "vstack": cp.vstack([x, x]),
    "concatenate": cp.concatenate([W, W], axis=0),
    "diagonal": cp.diag(SQUARE),
    "upper triangle": cp.upper_tri(SQUARE),
    "wrap": cp.psd_wrap(SQUARE),
    "promoted scalar": (x + cp.Variable()).args[1],
    "broadcast": cp.broadcast_to(cp.Variable(2), (3, 2)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_people_write_has_the_class_that_the_package_knows(name):
    assert isinstance(WRITTEN[name], getattr(names, name))


@pytest.mark.parametrize("name", GATHERED)
def test_gathering_atoms_say_which_entries_they_take(name):
    e = GATHERED[name]
    assert isinstance(e, names.GATHERING)
    (at,) = Reader().gathered_positions(e)
    values = [np.random.default_rng(0).normal(size=argument.shape) for argument in e.args]
    entries = np.concatenate([value.ravel(order="F") for value in values])
    np.testing.assert_array_equal(entries[at], np.reshape(e.numeric(values), e.shape, order="F"))


def test_data_of_the_atoms():
    assert float(cp.norm(x).p) == 2.0 and cp.norm(W, axis=1).axis == 1
    assert float(cp.square(x).p.value) == 2.0 and float(np.ravel(cp.huber(x, 3).M.value)[0]) == 3.0
    assert cp.sum(W, axis=0, keepdims=True).keepdims
    assert names.SolverStats.from_dict({cp.settings.NUM_ITERS: 3}, "name").num_iters == 3


def test_the_method_is_registered():
    assert "structreg" in cp.Problem.REGISTERED_SOLVE_METHODS
