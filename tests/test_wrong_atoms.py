"""Deliberately wrong atoms: the contract has to find each of them and to name the clause."""

import ast
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from closed_forms import ClosedSquares

import cvxstructreg as csr
from cvxstructreg import testing
from cvxstructreg.core.atom import Atom
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.separable import Separable
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.dissimilarity import PairHinge
from cvxstructreg.testing import check_atom
from cvxstructreg.testing.probe import Probe

BLOCKS = (np.array([0, 2, 3]), np.array([1.0, 2.0]))
LABELS = [0, 1, 1]


class Nonconvex(Atom):
    def expr(self, z):
        return cp.sum(cp.sqrt(cp.abs(z)))


class Concave(Atom):
    def expr(self, z):
        return -cp.sum_squares(z)


class NoExpression(Atom):
    def expr(self, z):
        return 1.0


class NotScalar(Atom):
    def expr(self, z):
        return cp.abs(z)


class ValueWithoutHalf(csr.Squared):
    def value(self, z):
        return 2.0 * super().value(z)


class ValueOfOneColumn(csr.Ridge):
    def value(self, z):
        return float(np.sum(z[:, :1] ** 2))


class ValueWithoutDomain(csr.Box):
    def value(self, z):
        return 0.0


class NanValue(csr.Ridge):
    def value(self, z):
        return np.nan


class FlatGradient(csr.Ridge):
    def grad(self, z):
        return 2.0 * z[:, 0]


class WrongGradient(csr.Logistic):
    def grad(self, z):
        return -super().grad(z)


class GradientOfTheMean(csr.Squared):
    def grad(self, z):
        return super().grad(z) / len(z)


class WrongHessian(csr.Logistic):
    def hessp(self, z, p):
        return 0.25 * self.weight_column * p


class HessianOfOneKink(csr.SquaredHinge):
    def hessp(self, z, p):
        return 2.0 * self.weight_column * p


class WrongDiagonal(csr.Logistic):
    def hess_diag(self, z):
        return 2.0 * super().hess_diag(z)

    def hessp(self, z, p):
        return csr.Logistic.hess_diag(self, z) * p


class WrongBlocks(BlockNorms):
    def blocks(self):
        return np.array([0, 1, 3]), self.weights


class AsymmetricForm(ClosedSquares):
    def quadratic(self, m):
        return QuadraticForm(matrix=np.triu(np.ones((m, m))))


class SmallLipschitz(csr.Quadratic):
    def lipschitz(self):
        return 0.95 * super().lipschitz()


class SmallCurvature(csr.Logistic):
    def lipschitz(self):
        return 0.9 * super().lipschitz()


class WrongProx(csr.L1):
    def prox(self, v, t):
        return np.sign(v) * np.maximum(np.abs(v) - 0.5 * t, 0.0)


class ProxWithoutStep(csr.Hinge):
    def prox(self, v, t):
        return super().prox(v, 1.0)


class SlightlyWrongProx(csr.Ridge):
    def prox(self, v, t):
        return super().prox(v, t) * (1.0 + 1e-3)


class GreedyProx(csr.L1):
    def prox(self, v, t):
        v -= np.clip(v, -t, t)
        return v.copy()


class GreedyGradient(csr.Ridge):
    def grad(self, z):
        z *= 2.0
        return z


class WrongConjugate(csr.Squared):
    def conj(self, u):
        return super().conj(u) + 0.1


class SmallConjugate(csr.Squared):
    def conj(self, u):
        return float(np.sum(u * self.y))


class ConjugateWithoutDomain(csr.Hinge):
    def conj(self, u):
        return float(np.sum(self.y * u))


class ConjugateOfHalf(csr.Ridge):
    def conj(self, u):
        return 0.5 * float(np.sum(u**2))


class LargeDualNorm(BlockNorms):
    def dual_norm(self, u):
        return float(np.sum(self.norms(u) / self.weights))


class SmallDualNorm(BlockNorms):
    def dual_norm(self, u):
        return 0.5 * super().dual_norm(u)


class UnweightedDualNorm(BlockNorms):
    def dual_norm(self, u):
        return float(np.max(self.norms(u)))


class NoNorm(csr.Ridge):
    capabilities = frozenset({"value", "prox", "dual_norm"})

    def dual_norm(self, u):
        return float(np.linalg.norm(u))


class WrongSplit(csr.L1):
    def split(self):
        return csr.L1(), np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


class WideSplit(csr.L1):
    def split(self):
        return csr.L1(), np.eye(3, 4)


class WrongForm(ClosedSquares):
    def quadratic(self, m):
        return QuadraticForm.diagonal_form(np.full(m, 0.5))


class IndefiniteForm(ClosedSquares):
    def quadratic(self, m):
        return QuadraticForm(matrix=np.eye(m) - np.ones((m, m)))


class WrongSeparable(csr.L1):
    def separable(self):
        return Separable(np.array(1.0), np.array(-1.0), np.array(np.inf))

    def value(self, z):
        return float(np.sum(np.abs(z)))

    def prox(self, v, t):
        return Separable.l1(np.array(1.0)).prox(v, t)

    def conj(self, u):
        return Separable.l1(np.array(1.0)).conj(u)


class WithoutWeights(Loss):
    def _encode(self, y):
        return np.asarray(y, dtype=float).reshape(-1, 1)

    def expr(self, z):
        return cp.sum(cp.abs(z - self.y))


class WrongSums(csr.Logistic):
    def rebalance(self, u, target):
        return u


class OutOfDomain(csr.Logistic):
    def rebalance(self, u, target):
        return u + (target - u.sum(axis=0)) / len(u)


class OutOfBox(csr.Hinge):
    def into_domain(self, u):
        return 1.01 * u


class HalfWay(csr.Hinge):
    def into_domain(self, u):
        return 0.5 * u


class WideBox(csr.Hinge):
    def dual_box(self):
        lower, upper = super().dual_box()
        return 2.0 * lower, 2.0 * upper


class NarrowBox(csr.Hinge):
    def dual_box(self):
        lower, upper = super().dual_box()
        return 0.5 * lower, 0.5 * upper


class PairsWithoutCentring(PairHinge):
    def value(self, z):
        k = z.shape[1]
        return float(np.sum(self.weights[:, None] * np.maximum(0.0, z - (k - 2) / (k - 1))))


WRONG = [
    (Nonconvex(), (3, 1), r"expr: must be convex by the rules of CVXPY.*curvature is UNKNOWN"),
    (Concave(), (3, 1), "expr: must be convex by the rules of CVXPY.*curvature is CONCAVE"),
    (NotScalar(), (3, 2), r"expr: must be a scalar expression, got shape \(3, 2\)"),
    (NoExpression(), (3, 1), "expr: must return a CVXPY expression, got float"),
    (ValueWithoutHalf([1.0, 2.0, 3.0]), (3, 1), "value: differs from expr"),
    (ValueOfOneColumn(), (3, 2), "value: differs from expr"),
    (ValueWithoutDomain(-1.0, 1.0), (3, 1), "value: differs from expr"),
    (NanValue(), (3, 1), "value: returns NaN"),
    (FlatGradient(), (3, 1), "grad: returns shape"),
    (WrongGradient(LABELS), (3, 1), "grad: <grad, p> differs"),
    (GradientOfTheMean([1.0, 2.0, 3.0]), (3, 1), "grad: <grad, p> differs"),
    (WrongHessian(LABELS), (3, 1), "hessp: differs"),
    (HessianOfOneKink(LABELS), (3, 1), "hessp: differs"),
    (WrongDiagonal(LABELS), (3, 1), "hess_diag: differs"),
    (WrongBlocks(*BLOCKS), (3, 1), "blocks: the sum of the norms differs"),
    (AsymmetricForm(), (3, 1), "quadratic: the matrix is not symmetric"),
    (SmallLipschitz(matrix=np.ones((3, 3))), (3, 1), "lipschitz: gradients differ by"),
    (SmallCurvature(LABELS), (3, 1), "lipschitz: gradients differ by"),
    (WrongProx(), (3, 1), "prox: "),
    (ProxWithoutStep(LABELS), (3, 1), "prox: "),
    (SlightlyWrongProx(), (3, 1), "prox: "),
    (GreedyProx(), (3, 1), "prox: modifies its input"),
    (GreedyGradient(), (3, 1), "grad: modifies its input"),
    (WrongConjugate([1.0, 2.0, 3.0]), (3, 1), r"conj: conj\(u\) \+ f\(z\) is not"),
    (SmallConjugate([1.0, 2.0, 3.0]), (3, 1), r"conj: conj\(u\) is smaller"),
    (ConjugateWithoutDomain(LABELS), (3, 1), r"conj: conj\(u\) is smaller"),
    (ConjugateOfHalf(), (3, 1), "conj: "),
    (LargeDualNorm(*BLOCKS), (3, 1), "dual_norm: "),
    (SmallDualNorm(*BLOCKS), (3, 1), "dual_norm: "),
    (UnweightedDualNorm(*BLOCKS), (3, 1), "dual_norm: "),
    (NoNorm(), (3, 1), "dual_norm: "),
    (WrongSplit(), (3, 1), "split: .* differs from expr"),
    (WideSplit(), (3, 1), "split: .* too many columns"),
    (WrongForm(), (3, 1), "quadratic: differs from expr"),
    (IndefiniteForm(), (3, 1), "quadratic: the matrix is not positive semidefinite"),
    (WrongSeparable(), (3, 1), "separable: the value differs"),
    (WithoutWeights(LABELS, sample_weight=[1.0, 2.0, 3.0]), (3, 1), "sample_weight: "),
    (WrongSums(LABELS), (3, 1), "rebalance: the column sums differ"),
    (OutOfDomain(LABELS), (3, 1), "rebalance: no point with a finite conjugate"),
    (OutOfBox(LABELS), (3, 1), "into_domain: moves a dual point"),
    (HalfWay(LABELS), (3, 1), "into_domain: moves a dual point"),
    (WideBox(LABELS), (3, 1), "dual_box: the conjugate is infinite inside"),
    (NarrowBox(LABELS), (3, 1), "dual_box: the conjugate is finite outside"),
    (PairsWithoutCentring(np.ones(2)), (2, 3), "value: differs from expr"),
]


@pytest.mark.parametrize("atom, shape, clause", WRONG, ids=[type(atom).__name__ for atom, _, _ in WRONG])
def test_wrong_atoms_are_found(atom, shape, clause):
    with pytest.raises(AssertionError, match=f"{type(atom).__name__}.*: ({clause})"):
        check_atom(atom, shape)


def test_an_expr_that_may_be_negative_is_allowed():
    class Shifted(Atom):
        def expr(self, z):
            return cp.sum(cp.abs(z)) - 1.0

    check_atom(Shifted(), (3, 1))


def test_a_failure_names_the_property_the_point_and_both_numbers():
    told = r"value: differs from expr: got 4, expected 2 \(at z = \[\[0\.\], \[2\.\]\]\)"
    with pytest.raises(AssertionError, match=told):
        probe = Probe(csr.Ridge(), (2, 1), np.random.default_rng(0))
        probe.close(4.0, 2.0, "value", "differs from expr", z=np.array([[0.0], [2.0]]))
    with pytest.raises(AssertionError, match=r"grad: differs: entry \(1, 0\) is 5, expected 3"):
        probe.close(np.array([[1.0], [5.0]]), np.array([[1.1], [3.0]]), "grad", "differs")


def test_optimised_python_checks_too():
    """All that python -O leaves out are assert statements and __debug__: the checks have neither."""
    files = sorted(Path(testing.__file__).parent.glob("*.py"))
    assert "probe.py" in {path.name for path in files}
    for path in files:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        assert not [node.lineno for node in nodes if isinstance(node, ast.Assert)], path
        assert "__debug__" not in {node.id for node in nodes if isinstance(node, ast.Name)}, path
