"""Random expressions of random variables: the recognised problem has the objective of the CVXPY problem."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

PROBLEMS, BATCHES = 40, 3


def affine(rng: np.random.Generator, variables: list[Any], depth: int) -> Any:
    """A random affine expression."""
    if depth == 0:
        return variables[rng.integers(len(variables))]
    e = affine(rng, variables, depth - 1)
    order = "FC"[rng.integers(2)]
    choices = [-e, e / 2.5, cp.multiply(rng.normal(size=e.shape), e), e - rng.normal(size=e.shape)]
    choices += [cp.vec(e, order=order), e + variables[-1]]
    if e.ndim >= 1:
        choices += [rng.normal(size=(3, e.shape[0])) @ e, e @ rng.normal(size=(e.shape[-1], 2)), e[::-1], e[[0, -1, 0]]]
        choices += [cp.cumsum(e, axis=0), sp.csr_array(np.round(rng.normal(size=(2, e.shape[0])))) @ e]
    if e.ndim == 1:
        choices += [cp.hstack([e, 2 * e]), cp.diag(e), cp.convolve(rng.normal(size=2), e)]
    if e.ndim == 2:
        choices += [
            e.T,
            e[:, 0],
            cp.sum(e, axis=int(rng.integers(2)), keepdims=bool(rng.integers(2))),
            cp.vstack([e, e]),
        ]
    if e.size % 2 == 0:
        choices.append(cp.reshape(e, (2, e.size // 2), order=order))
    return choices[rng.integers(len(choices))]


def function(rng: np.random.Generator, z: Any) -> Any:
    """A random convex function of an affine expression."""
    w = rng.random(z.shape)
    choices = [
        cp.sum_squares(z),
        cp.sum(cp.abs(z)),
        cp.norm(cp.vec(z, order="F")),
        cp.norm(cp.vec(z, order="F")) ** 2 / 3,
        cp.sum(cp.multiply(w, cp.logistic(z))),
        cp.sum(cp.logistic(z) - cp.multiply(w, z)),
        cp.sum(cp.pos(z + 1)),
        cp.sum(cp.square(cp.pos(1 - z))),
        cp.sum(cp.multiply(w, cp.huber(z, 0.7))),
        cp.sum(cp.maximum(0.3 * z, -0.8 * z)),
        -cp.sum(cp.minimum(z, 2 * z + 1)),
        cp.mean(cp.square(z)),
    ]
    if z.ndim == 2:
        axis = int(rng.integers(2))
        choices += [cp.sum(cp.norm(z, axis=axis)), cp.sum(cp.norm1(z, axis=axis)), cp.mixed_norm(z, 2, 1)]
    return choices[rng.integers(len(choices))]


def random_problem(seed: int) -> cp.Problem:
    """A sum of random functions, minimised, or its negative, maximised."""
    rng = np.random.default_rng(seed)
    every = [cp.Variable(4), cp.Variable((3, 2)), cp.Variable()]
    variables = [every[i] for i in rng.permutation(2)[: rng.integers(1, 3)]] + [every[2]]
    depths = rng.integers(1, 4, size=rng.integers(1, 4))
    goal = sum(float(rng.random() + 0.1) * function(rng, affine(rng, variables, int(depth))) for depth in depths)
    goal = goal + 0.1 * sum(cp.sum_squares(variable) for variable in variables if rng.random() < 0.8)
    return cp.Problem(cp.Minimize(goal) if rng.random() < 0.7 else cp.Maximize(-goal))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_problems_keep_their_objective(batch):
    recognised = 0
    for seed in range(batch * PROBLEMS, (batch + 1) * PROBLEMS):
        prob = random_problem(seed)
        try:
            problem = csr.from_cvxpy(prob)
        except csr.UnrecognisedError:
            continue
        recognised += 1
        rng = np.random.default_rng(seed)
        for variable in prob.variables():
            variable.value = rng.normal(size=variable.shape)
        found = problem.sign * (problem.value(*problem.weights_at()) + problem.constant)
        assert found == pytest.approx(prob.objective.value, rel=1e-9, abs=1e-9), f"seed {seed}: {prob}"
    assert recognised >= 0.8 * PROBLEMS
