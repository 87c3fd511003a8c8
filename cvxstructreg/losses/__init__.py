"""Losses: sums over labelled rows, weighted by sample weights."""

from cvxstructreg.losses.hinge import Hinge
from cvxstructreg.losses.logistic import Logistic
from cvxstructreg.losses.multiclass_hinge import MulticlassHinge
from cvxstructreg.losses.multinomial import Multinomial
from cvxstructreg.losses.squared import Squared
from cvxstructreg.losses.squared_hinge import SquaredHinge

__all__ = ["Hinge", "Logistic", "MulticlassHinge", "Multinomial", "Squared", "SquaredHinge"]
