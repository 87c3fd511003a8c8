"""Every name from inside CVXPY that this package uses, in one place.

CVXPY does not promise which of its functions are classes, so a new version of CVXPY may break this file. Nothing else
in the package imports from inside CVXPY; ``tests/test_cvx_names.py`` checks each name with an expression that people
write.
"""

from __future__ import annotations

from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.broadcast_to import broadcast_to
from cvxpy.atoms.affine.concatenate import Concatenate
from cvxpy.atoms.affine.diag import diag_mat
from cvxpy.atoms.affine.hstack import Hstack
from cvxpy.atoms.affine.index import index, special_index
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.transpose import transpose
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.affine.upper_tri import upper_tri
from cvxpy.atoms.affine.vstack import Vstack
from cvxpy.atoms.affine.wraps import Wrap, nonneg_wrap
from cvxpy.atoms.elementwise.abs import abs as absolute
from cvxpy.atoms.elementwise.exp import exp
from cvxpy.atoms.elementwise.huber import huber
from cvxpy.atoms.elementwise.logistic import logistic
from cvxpy.atoms.elementwise.maximum import maximum
from cvxpy.atoms.elementwise.minimum import minimum
from cvxpy.atoms.elementwise.power import Power
from cvxpy.atoms.log_sum_exp import log_sum_exp
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_form import QuadForm
from cvxpy.atoms.quad_over_lin import quad_over_lin
from cvxpy.constraints.nonpos import Inequality, NonNeg, NonPos
from cvxpy.constraints.zero import Equality, Zero
from cvxpy.problems.problem import SolverStats
from cvxpy.reductions.solution import Solution, failure_solution

#: Atoms whose entries are entries of their arguments: ``numeric`` applied to positions says which.
GATHERING = (
    index,
    special_index,
    reshape,
    transpose,
    broadcast_to,
    Promote,
    Hstack,
    Vstack,
    Concatenate,
    diag_mat,
    upper_tri,
    Wrap,
)

__all__ = [
    "GATHERING",
    "AddExpression",
    "AffAtom",
    "DivExpression",
    "Equality",
    "Inequality",
    "MulExpression",
    "NegExpression",
    "NonNeg",
    "NonPos",
    "Pnorm",
    "Power",
    "QuadForm",
    "Solution",
    "SolverStats",
    "Sum",
    "Wrap",
    "Zero",
    "absolute",
    "exp",
    "failure_solution",
    "huber",
    "log_sum_exp",
    "logistic",
    "maximum",
    "minimum",
    "multiply",
    "nonneg_wrap",
    "norm1",
    "norm_inf",
    "quad_over_lin",
]
