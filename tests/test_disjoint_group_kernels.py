"""The passes of group_descent against their twins in NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from disjoint_group_problems import data

import cvxstructreg as csr
from cvxstructreg.solvers.groups import group_descent, plain_group_descent
from cvxstructreg.solvers.groups.block_model import BlockModel, Surface
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.lasso.working_set import as_columns


@pytest.fixture
def compiled(monkeypatch):
    """Compiled passes whatever the size."""
    monkeypatch.setattr(group_descent, "FEW_NUMBERS", 0)


def _layout(rng, starts, k, d):
    column = rng.permutation(d).astype(np.int64)
    radii = rng.uniform(0.0, 1.0, size=len(starts) - 1)
    radii[0] = 0.0
    sizes, lam = rng.uniform(0.5, 1.0, size=len(radii)), rng.uniform(0.0, 0.5, size=d * k)
    lam[: 2 * k] = 0.0
    return column, np.array(starts, dtype=np.int64), radii, sizes, lam


def _rows(rng, n, k):
    """The Hessians of the rows, and the inverse of their sum."""
    q = np.ascontiguousarray(rng.dirichlet(np.ones(k + 1), size=n)[:, :k]) if k > 1 else rng.uniform(size=(n, 1))
    between = np.diag(q.sum(axis=0)) - (q.T @ q if k > 1 else 0.0)
    return (q[:, 0], np.zeros(0), np.linalg.inv(between)) if k == 1 else (q, q.copy(), np.linalg.inv(between))


def _separate_outputs(hess):
    """The same Hessians without their off-diagonal parts: outputs that do not interact."""
    direct, root, _ = hess
    return direct, root[:0].copy(), np.diag(1.0 / direct.sum(axis=0))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("k", "separate"), [(1, False), (2, True), (3, False), (3, True), (4, False), (4, True)])
def test_compiled_passes_are_those_of_numpy(k, separate, sparse):
    from cvxstructreg.solvers.groups import compiled_group_descent as compiled

    rng = np.random.default_rng(26)
    n, d = 15, 9
    dense = data(rng, n=n, d=d) * (rng.random((n, d)) < 0.6)
    dense[:, 1] = dense[:, 0]  # a block whose diagonal says too little
    X = as_columns(sp.csc_array(dense) if sparse else np.asfortranarray(dense))
    layout, hess = _layout(rng, [0, 1, 4, 8, 9], k, d), _rows(rng, n, k)
    hess = _separate_outputs(hess) if separate else hess
    chosen = np.array([0, 1, 2, 3])
    B = rng.normal(size=(4, d))
    matrix = sp.csr_array(B.T @ B)
    Q = (matrix.data, matrix.indices.astype(np.uint32), matrix.indptr.astype(np.int64))
    g = rng.normal(size=n) if k == 1 else rng.normal(size=(n, k))

    def run(module, X):
        slope, scores = np.zeros(d * k), np.zeros_like(g)
        module.slopes(X, layout, chosen[1:], g, k, slope)
        module.add_columns(X, layout, chosen[:3], slope, k, scores)
        curvature, centre = np.zeros(d * k), np.zeros(d * k * k)
        module.curvatures(X, layout, chosen, hess, k, matrix.diagonal(), np.full(d, 1e-3), curvature, centre)
        w, factors, r = np.zeros(d * k), np.ones(4), g.copy()
        Qw, total = np.zeros(d * k), np.atleast_1d(g.sum(axis=0))
        found = [module.descend(
            X, Q, layout, chosen, hess, k, curvature, centre, factors, total, r, w, Qw, 1e-9, passes
        ) for passes in (1, 3)]  # fmt: skip
        return [slope, scores, curvature, centre, w, factors, r, Qw, total, *map(np.array, found)]

    for one, other in zip(run(compiled, X), run(plain_group_descent, as_columns(dense)), strict=True):
        assert np.any(other)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_passes_lower_the_model_and_keep_its_gradient():
    """r = g + HXd and Qw stay what they say, with the intercept at its minimum."""
    from cvxstructreg.solvers.groups import compiled_group_descent as compiled

    rng = np.random.default_rng(27)
    n, d = 40, 9
    X = data(rng, n=n, d=d)
    layout, hess = _layout(rng, [0, 1, 4, 8, 9], 1, d), _rows(rng, n, 1)
    column, starts, radii, _, lam = layout
    h, g, columns = hess[0], 5.0 * rng.normal(size=n), as_columns(np.asfortranarray(X))
    Q = (np.ones(d), np.arange(d, dtype=np.uint32), np.arange(d + 1))
    curvature, centre = np.zeros(d), np.zeros(d)
    compiled.curvatures(columns, layout, np.arange(4), hess, 1, np.ones(d), np.zeros(d), curvature, centre)
    w, Qw, r, total, factors = np.zeros(d), np.zeros(d), g.copy(), np.array([g.sum()]), np.ones(4)

    def value(w):
        z = X[:, column] @ w
        z = z - (g.sum() + h @ z) / h.sum()
        norms = np.sqrt(np.add.reduceat(w**2, starts[:-1]))
        return g @ z + 0.5 * h @ z**2 + 0.5 * w @ w + lam @ np.abs(w) + radii @ norms

    values = [value(w)]
    for _ in range(8):
        compiled.descend(
            columns, Q, layout, np.arange(4), hess, 1, curvature, centre, factors, total, r, w, Qw, 0.0, 1
        )  # fmt: skip
        np.testing.assert_allclose(r, g + h * (X[:, column] @ w), atol=1e-10)
        np.testing.assert_allclose(total, r.sum(), atol=1e-9)
        np.testing.assert_allclose(Qw, w, atol=1e-12)
        values.append(value(w))
    assert w.any()
    assert np.all(np.diff(values) <= 1e-12)


@pytest.mark.parametrize("spread", [0.0, 8.0])
def test_the_prox_of_a_block(spread):
    """Its optimality condition: bend x - a + radius x / ||x|| = 0, or x = 0 and ||a|| <= radius."""
    rng = np.random.default_rng(28)
    from cvxstructreg.solvers.groups import compiled_group_descent as compiled

    for _ in range(20):
        a, bend = rng.normal(size=5), 10.0 ** rng.uniform(-spread, spread, size=5)
        radius, x, twin = float(rng.uniform(0.0, 2.0)), np.empty(5), np.empty(5)
        compiled.block_prox(a, bend, radius, 5, x)
        plain_group_descent.block_prox(a, bend, radius, 5, twin)
        np.testing.assert_allclose(x, twin, rtol=1e-9, atol=1e-300)
        if np.linalg.norm(a) <= radius:
            assert not x.any()
        else:
            np.testing.assert_allclose(bend * x + radius * x / np.linalg.norm(x), a, atol=1e-7)


def test_small_problems_compile_none_of_its_kernels():
    code = """
import sys
import numpy as np
import cvxstructreg as csr
X = np.random.default_rng(0).normal(size=(20, 6))
groups = csr.Groups.from_labels([0, 0, 1, 1, 2, 2])
problem = csr.Problem(csr.Linear(X), csr.Logistic(np.arange(20) % 2) + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(groups))
assert problem.solve("group_descent").status == "optimal"
assert problem.solve().solver == "semismooth_newton"  # each group holds a third of the features
assert not [name for name in sys.modules if name.endswith(("compiled_group_descent", "compiled_columns"))]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_products_by_blas_are_those_by_columns(monkeypatch):
    seen = []
    newton_step = Surface.newton_step
    monkeypatch.setattr(Surface, "newton_step", lambda self, tol: seen.append(self) or newton_step(self, tol))
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 90)), rng.normal(size=(60, 3))
    problem = csr.Problem(csr.Linear(X), csr.MultiTask(Y) + 1.5 * csr.GroupLasso(csr.Groups.singletons(90)))
    assert problem.solve("group_descent").status == "optimal" and seen
    surface = seen[0]
    p = rng.normal(size=surface.v.size)
    by_blas = surface.product(p)
    assert surface.columns is not None
    surface.columns = None
    for one, other in zip(by_blas, surface.product(p), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * np.abs(other).max())


def test_the_preconditioner_of_jumps_is_the_inverse_of_the_blocks():
    """D + c (I - u u') / ||w_g|| of every group, for the weights away from kinks."""
    rng = np.random.default_rng(28)
    X, targets = data(rng, n=30, d=6), rng.normal(size=(30, 2))
    penalty = 0.5 * csr.L1() + 2.0 * csr.GroupLasso(csr.Groups([[0, 1], [2], [3, 4]], n_features=6))
    problem = csr.Problem(csr.Linear(X), csr.MultiTask(targets) + penalty)
    state = group_descent.State(problem, Iterate(rng.normal(size=(6, 2)), np.zeros(2)))
    state.w[1] = 0.0
    state.columns.need(np.arange(6))
    chosen = np.arange(state.blocks.radii.size)
    model = BlockModel(state.given, chosen, state.hess(), state.g, state.w, state.Qw)
    surface = Surface(model, chosen)
    blocks = np.diag(np.where(surface.kept, state.given.curvature[surface.flat] + surface.pull, 1.0))
    same = surface.part.group[:, None] == surface.part.group
    unit = np.where(surface.kept, surface.unit, 0.0)
    blocks -= np.where(same, surface.pull[:, None] * np.outer(unit, unit), 0.0)
    residual = np.where(surface.kept, rng.normal(size=12), 0.0)
    np.testing.assert_allclose(blocks @ surface.preconditioned(residual), residual, atol=1e-10)
    assert not surface.kept.all() and surface.pull.any()
