"""Losses that define only some of the methods: no solver fails half-way, and no certificate claims too much."""

import warnings
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom, conjugate
from cvxstructreg.core.loss import Loss
from cvxstructreg.solvers import InaccurateWarning, registry
from cvxstructreg.testing import check_atom

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
SCORES = X @ [1.0, 2.0, -1.0] + 0.5 * RNG.normal(size=12)
LABELS = {
    csr.Hinge: (SCORES > 0).astype(int),
    csr.Logistic: (SCORES > 0).astype(int),
    csr.MulticlassHinge: np.digitize(SCORES, [-1, 1]),
    csr.Multinomial: np.digitize(SCORES, [-1, 1]),
    csr.Squared: SCORES,
    csr.SquaredHinge: (SCORES > 0).astype(int),
}
PENALTIES = {
    "ridge": csr.Ridge(),
    "l1": csr.L1(),
    "groups": csr.GroupLasso(csr.Groups([[0, 1], [1, 2]], n_features=3)),
}
ALL = "all but conj"
KEPT = {
    "expr": set(),
    "no dual_box": {"value", "prox", "conj"},
    "gradient only": {"value", "grad", "lipschitz"},
    "smooth without conj": {"value", "grad", "hessp", "lipschitz"},
    "no conj": {ALL},
}


class Partial(Loss):
    """A loss of the package of which a subclass shows a part."""

    def __init__(self, inner):
        object.__setattr__(self, "inner", inner)
        super().__init__(y=inner.y)

    def _encode(self, y):
        return y

    @property
    def n_outputs(self):
        return self.inner.n_outputs

    def expr(self, z):
        return self.inner.expr(z)


def partial(cls, kept):
    """Such a subclass with these methods."""
    names = cls.capabilities - {"conj", "hinges", "centred_hinges"} if ALL in kept else cls.capabilities & kept
    own = {name for name in names if name != "rebalance" or "rebalance" in vars(cls)}
    methods = {name: lambda self, *given, name=name: getattr(self.inner, name)(*given) for name in own}
    for name, method in methods.items():
        method.__name__ = name
    return type(f"Partial{cls.__name__}", (Partial,), methods)


@cache
def reference(cls, intercept, penalty):
    """The optimum for the whole loss."""
    problem = csr.Problem(csr.Linear(X, intercept=intercept), cls(LABELS[cls]) + PENALTIES[penalty])
    solution = problem.solve(solver="cvxpy")
    assert solution.status == "optimal"
    return solution


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("cls", LABELS, ids=lambda cls: cls.__name__)
def test_no_solver_fails_and_no_bound_is_above_the_optimum(cls, kept, intercept):
    loss = partial(cls, KEPT[kept])(cls(LABELS[cls]))
    for name, penalty in PENALTIES.items():
        optimum = reference(cls, intercept, name)
        problem = csr.Problem(csr.Linear(X, intercept=intercept), loss + penalty)
        for solver in registry.accepting(problem):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InaccurateWarning)
                # without a conjugate group_newton has no gap at which it could end its costly iterations
                limit = 10 if solver.name == "group_newton" else 40
                solution = problem.solve(solver=solver.name, tol=1e-5, max_iter=limit)
            told = f"{name}, {solver.name}: {solution.status}, {solution.certificate}"
            proof, slack = solution.certificate, 1e-9 * (1.0 + abs(optimum.objective))
            assert solution.objective >= optimum.certificate.lower_bound - slack, told
            assert proof.kind == "kkt" or proof.lower_bound <= optimum.objective + slack, told
            assert (solution.status == "optimal") <= (proof.kind != "kkt"), told


class Absolute(Loss):
    """sum_i s_i |f_i - y_i| with all that a loss without gradient needs, but for the intercept."""

    def _encode(self, y):
        return np.asarray(y, dtype=float).reshape(-1, 1)

    def expr(self, z):
        return self._weighted_sum(cp.abs(z - self.y))

    def value(self, z):
        return float(np.sum(self.weight_column * np.abs(z - self.y)))

    def prox(self, v, t):
        return self.y + np.sign(v - self.y) * np.maximum(np.abs(v - self.y) - t * self.weight_column, 0.0)

    def conj(self, u):
        return float(np.sum(u * self.y)) if np.all(np.abs(u) <= self.weight_column) else np.inf

    def into_domain(self, u):
        return np.clip(u, -self.weight_column, self.weight_column)


class Boxed(Absolute):
    def dual_box(self):
        return -self.weight_column, self.weight_column


class Balanced(Absolute):
    def rebalance(self, u, target):
        return Boxed(self.y[:, 0], sample_weight=self.sample_weight).rebalance(u, target)


def test_rebalance_is_offered_where_a_loss_can_do_it():
    assert not Loss.can("rebalance") and not Loss.can("dual_box")
    assert not Absolute.can("dual_box") and not Absolute.can("rebalance")
    assert Boxed.can("dual_box", "rebalance")
    assert Balanced.can("rebalance") and not Balanced.can("dual_box")
    assert csr.MulticlassHinge.can("rebalance") and not csr.MulticlassHinge.can("dual_box")
    assert csr.Hinge.can("rebalance", "dual_box")


@pytest.mark.parametrize("cls", [Absolute, Boxed, Balanced])
def test_a_loss_without_gradient_is_certified_as_far_as_it_can_be(cls):
    check_atom(cls([1.0, -2.0, 0.5], sample_weight=[1.0, 2.0, 0.5]), (3, 1))
    for intercept in (True, False):
        problem = csr.Problem(csr.Linear(X, intercept=intercept), cls(SCORES) + csr.Ridge())
        for solver in ("admm", "cvxpy"):
            proved = cls.can("rebalance") or not intercept
            with warnings.catch_warnings():
                warnings.simplefilter("error" if proved else "ignore", InaccurateWarning)
                solution = problem.solve(solver=solver, tol=1e-5)
            kind = solution.certificate.kind
            assert (solution.status == "optimal") <= (kind == "duality_gap")
            assert (
                solution.status == "optimal"
                if proved
                else kind == "duality_gap" or solution.certificate.residual < 1e-3
            )


def test_a_conjugate_that_is_not_known_counts_as_infinite():
    class Bare(Atom):
        def expr(self, z):
            return cp.sum(cp.abs(z))

    assert conjugate(Bare(), np.zeros((2, 1))) == np.inf
    assert conjugate(csr.L1(), np.zeros((2, 1))) == 0.0
