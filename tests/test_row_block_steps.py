"""Solvers whose scores stay where the blocks are: no vector of rows leaves its block during a solve."""

import numpy as np
import pytest
from test_row_block_outputs import OUTPUTS, pair
from test_row_block_scores import PENALTIES, D, losses

import cvxstructreg as csr
from cvxstructreg.certificates.directions import no_minimiser

CHAIN = csr.Graph.from_edges([(j, j + 1) for j in range(D - 1)], n_nodes=D)
SMOOTH = {"ridge": PENALTIES["ridge"], "graph": lambda: 2.0 * csr.Laplacian(CHAIN) + 0.5 * csr.Ridge()}


@pytest.fixture(autouse=True)
def no_search_for_an_escape(monkeypatch):
    monkeypatch.setattr(no_minimiser, "SMALL", 0)  # it needs all rows, and is for small data


def same_optimum(objective, solver, intercept=True, **options):
    memory, problem, engine = pair(objective, intercept)
    expected, found = memory.solve(), problem.solve(solver, **options)
    assert engine.watching and found.solver == solver and found.status == expected.status == "optimal"
    assert abs(found.objective - expected.objective) <= max(found.certificate.gap, expected.certificate.gap)
    return found


@pytest.mark.parametrize("penalty", [*SMOOTH, "box"])
def test_gram_newton(penalty):
    objective = losses()["logistic"] + {**PENALTIES, **SMOOTH}[penalty]()
    assert same_optimum(objective, "gram_newton", sample=0).n_passes <= 30


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", SMOOTH)
@pytest.mark.parametrize("name", ["logistic", "poisson", "squared hinge", "multinomial", "weighted tasks"])
def test_row_newton(name, penalty, intercept):
    objective = {**losses(), **OUTPUTS}[name] + SMOOTH[penalty]()
    assert same_optimum(objective, "row_newton", intercept).n_passes <= 120


@pytest.mark.parametrize("name", ["logistic", "multinomial", "tasks"])
def test_row_fista(name):
    penalty = (
        12.0 * csr.L1()
        if name == "tasks"
        else 8.0 * csr.GroupLasso(csr.Groups(np.arange(D).reshape(-1, 5), n_features=D))
    )
    same_optimum({**losses(), **OUTPUTS}[name] + penalty, "row_fista")


def test_auto_takes_them_only_for_scores_that_stay():
    _, problem, _ = pair(OUTPUTS["multinomial"] + csr.Ridge())
    problem.given.row_blocks.memory_limit = 1.0  # so the data do not fit
    assert problem.solve().solver == "row_newton"
    problem.given.row_blocks.keeps_scores = False
    for solver in ("row_newton", "row_fista"):
        with pytest.raises(ValueError, match="the scores are in this process"):
            problem.solve(solver)
