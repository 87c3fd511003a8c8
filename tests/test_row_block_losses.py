"""The losses that ``test_row_blocks.py`` leaves out: blocks equal memory within the certificates."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from test_row_blocks import LOSSES, OVERLAPPING, SCORES, N, X, agree, split

import cvxstructreg as csr
from cvxstructreg.core.loss import Loss
from cvxstructreg.solvers import registry

RNG = np.random.default_rng(3)
AMOUNTS = np.exp(0.3 * SCORES) + 0.05
MORE = {
    "absolute": csr.Absolute(SCORES),
    "gamma": csr.Gamma(AMOUNTS),
    "tweedie": csr.Tweedie(np.where(RNG.random(N) < 0.2, 0.0, AMOUNTS), power=1.5),
    "multi-task": csr.MultiTask(np.column_stack([SCORES, SCORES**2])),
    "cox": csr.Cox(AMOUNTS, event=RNG.random(N) < 0.7),
}
BY_NEWTON = ("gamma", "tweedie")
PENALTIES = (0.5 * csr.Ridge(), 0.2 * csr.L1() + 0.6 * csr.GroupLasso(OVERLAPPING))


def test_every_public_loss_has_its_blocks():
    items = (getattr(csr, name) for name in csr.__all__)
    public = {item.__name__ for item in items if inspect.isclass(item) and issubclass(item, Loss)}
    assert public == {type(loss).__name__ for loss in (*LOSSES.values(), *MORE.values())}


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("penalty", PENALTIES, ids=["ridge", "groups"])
def test_blocks_equal_memory(name, penalty):
    objective, intercept = MORE[name] + penalty, name != "cox"
    expected = csr.Problem(csr.Linear(X, intercept=intercept), objective).solve(tol=1e-5)

    def blocked():
        model = csr.Linear(csr.RowBlocks(split(sp.csr_array(X)), engine="serial"), intercept=intercept)
        return csr.Problem(model, objective)

    solvers = {solver.name for solver in registry.accepting(blocked())} - {"lbfgs", "fista"}
    assert "in_memory" in solvers and ("gram_newton" in solvers) == (name in BY_NEWTON)
    for solver in sorted(solvers):
        found = blocked().solve(solver, tol=1e-5)
        assert found.status == "optimal" and agree(found, expected), (solver, found, expected)
