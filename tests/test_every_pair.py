"""Every loss with every kind of penalty: ``auto`` proves the gap without a warning, and certificates stay cheap."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.certificates import certificate
from cvxstructreg.core.model import Model
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.solvers.general import interior_point
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian
from cvxstructreg.solvers.lasso import compiled_coordinate_descent as descent
from cvxstructreg.solvers.lasso.quadratic_model import QuadraticModel
from cvxstructreg.solvers.multiclass import hinge_newton

N, D = 60, 16
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D))
SCORE = X[:, 0] + X[:, 1] - X[:, 2] + 0.5 * RNG.normal(size=N)
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.8, 0.8])
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)], n_nodes=D)
ACROSS, DOWN = [(i, i + 1) for i in range(D) if (i + 1) % 4], [(i, i + 4) for i in range(D - 4)]
GRID = csr.Graph.from_edges(ACROSS + DOWN, n_nodes=D)
OVERLAPPING = csr.Groups([list(range(i, min(i + 5, D))) for i in range(0, D, 3)], n_features=D)
DISJOINT = csr.Groups([list(range(i, i + 2)) for i in range(0, D, 2)], n_features=D)

LOSSES = {
    "squared": csr.Squared(SCORE),
    "logistic": csr.Logistic(TWO),
    "squared hinge": csr.SquaredHinge(TWO),
    "hinge": csr.Hinge(TWO),
    "multinomial": csr.Multinomial(THREE),
    "multiclass hinge": csr.MulticlassHinge(THREE),
}
PENALTIES = {
    "ridge": 1.0 * csr.Ridge(),
    "L1": 1.0 * csr.L1(),
    "network + ridge": 2.0 * csr.FeatureNetwork(CHAIN) + 0.1 * csr.Ridge(),
    "L1 + Laplacian": 0.6 * csr.L1() + csr.Laplacian(CHAIN),
    "fused chain + ridge": 1.0 * csr.FusedLasso(CHAIN) + 0.1 * csr.Ridge(),
    "fused grid + L1": 0.6 * csr.FusedLasso(GRID) + 0.2 * csr.L1(),
    "overlapping groups + L1": 0.6 * csr.GroupLasso(OVERLAPPING) + 0.2 * csr.L1(),
    "disjoint groups": 1.0 * csr.GroupLasso(DISJOINT),
    "latent groups + ridge": 1.0 * csr.LatentGroupLasso(OVERLAPPING) + 0.1 * csr.Ridge(),
    "nonnegative + ridge": csr.NonNegative() + 0.1 * csr.Ridge(),
    "box + Laplacian": csr.Box(-0.5, 0.5) + csr.Laplacian(CHAIN),
    "overlapping groups + Laplacian": 0.6 * csr.GroupLasso(OVERLAPPING) + csr.Laplacian(CHAIN),
}


class Products:
    """Products with X and with the maps of terms: those of certificates, and a lower bound on those of the solver."""

    def __init__(self, monkeypatch):
        self.certifying, self.of_certificates, self.of_solver = False, 0, 0
        for owner in (Model, Piece):
            for name in ("scores", "forward", "adjoint"):
                if hasattr(owner, name):
                    monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))
        # one for the scores, one for the gradient and one for the step, whatever the matrix itself costs
        monkeypatch.setattr(AugmentedLagrangian, "newton_matrix", self._newton(AugmentedLagrangian.newton_matrix))
        monkeypatch.setattr(interior_point.Newton, "__init__", self._dense(interior_point.Newton.__init__))
        monkeypatch.setattr(certificate, "certify_point", self._certified(certificate.certify_point))
        for name in ("gradient_on", "add_columns", "add_moves", "descend"):
            monkeypatch.setattr(descent, name, self._on_columns(getattr(descent, name)))
        monkeypatch.setattr(QuadraticModel, "__init__", self._curvatures(QuadraticModel.__init__))
        monkeypatch.setattr(QuadraticModel, "_matrix", self._gram(QuadraticModel._matrix))
        for name in ("_update_bounds", "_newton"):
            monkeypatch.setattr(hinge_newton._Run, name, self._on_rows(getattr(hinge_newton._Run, name)))

    def _counted(self, method):
        def product(*args):
            if self.certifying:
                self.of_certificates += 1
            else:
                self.of_solver += 1
            return method(*args)

        return product

    def _on_columns(self, function):
        """Compiled loops over some columns are that part of a product; a pass of coordinate descent makes two."""

        def compiled(X, *args):
            found = function(X, *args)
            features = next(arg for arg in args if isinstance(arg, np.ndarray) and arg.dtype.kind == "i")
            part = features.size / D if X[0].shape[-1] == N or X[0].size == N * D else 0.0  # not those with Q
            if isinstance(found, tuple):
                *_, passes, moving = found
                part = 2.0 * (part + (passes - 1) * moving.size / D)
            self.of_solver += part
            return found

        return compiled

    def _on_rows(self, method):
        """A gradient and a step, or a dual point and its weights, on the working rows."""

        def on_rows(machine, *args):
            self.of_solver += 2 * len(machine.Phi) / N
            return method(machine, *args)

        return on_rows

    def _curvatures(self, method):
        """Coordinate descent computes the curvature of each feature once."""

        def model(descent, given, features, *args):
            self.of_solver += features.size / D if given.intercept else 0.0
            method(descent, given, features, *args)

        return model

    def _gram(self, method):
        """A matrix X'HX on some columns is half a product with each of them."""

        def matrix(model, free, steps):
            found = method(model, free, steps)
            self.of_solver += 0.0 if found is None else 0.5 * free.size * free.size / D
            return found

        return matrix

    def _newton(self, method):
        def newton_matrix(function, state):
            self.of_solver += 3 * (len(function.smooth) + len(function.rough))
            return method(function, state)

        return newton_matrix

    def _dense(self, method):
        """A system of all columns is half a product with each of them; its two right sides and steps are six more."""

        def system(newton, terms, at):
            self.of_solver += 0.5 * D + 6
            method(newton, terms, at)

        return system

    def _certified(self, function):
        def certify(*args, **kwargs):
            self.certifying = True
            try:
                return function(*args, **kwargs)
            finally:
                self.certifying = False

        return certify


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_proves_every_pair_without_a_warning(loss, penalty):  # warnings are errors
    solution = csr.Problem(csr.Linear(X), LOSSES[loss] + PENALTIES[penalty]).solve(tol=1e-6)
    assert solution.status == "optimal"
    assert not solution.switches
    assert solution.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_take_at_most_a_quarter_of_the_products(loss, penalty, monkeypatch):
    problem = csr.Problem(csr.Linear(X), LOSSES[loss] + PENALTIES[penalty])
    products = Products(monkeypatch)
    assert problem.solve(tol=1e-6).status == "optimal"
    assert 0 < products.of_certificates <= 0.25 * (products.of_certificates + products.of_solver)


def test_a_proof_on_a_factor_of_the_kernel_must_hold_for_the_kernel():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 5))
    score = -points[:, 0] + np.std(points[:, 0]) / 5 * np.random.default_rng(1000).normal(size=300)
    gram = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1) / 5.0)
    ring = csr.Graph.from_edges([(i, (i + 1) % 300) for i in range(300)], n_nodes=300)
    loss = csr.Multinomial(np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])))
    penalty = 1.0 * csr.RKHSNorm() + 0.1 * csr.Laplacian(ring).on_function()
    for tol in (1e-5, 3e-6, 1e-6, 3e-7):  # the same weights have a wider gap in the coordinates of the problem
        solution = csr.Problem(csr.Kernel(gram, psd=True), loss + penalty).solve(tol=tol)
        assert solution.status == "optimal"
