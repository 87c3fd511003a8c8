"""Losses: sums over labelled rows, weighted by sample weights."""

from cvxstructreg.losses.absolute import Absolute
from cvxstructreg.losses.hinge import Hinge
from cvxstructreg.losses.huber import Huber
from cvxstructreg.losses.log_link.gamma import Gamma
from cvxstructreg.losses.log_link.poisson import Poisson
from cvxstructreg.losses.log_link.tweedie import Tweedie
from cvxstructreg.losses.logistic import Logistic
from cvxstructreg.losses.multi_task import MultiTask
from cvxstructreg.losses.multiclass_hinge import MulticlassHinge
from cvxstructreg.losses.multinomial import Multinomial
from cvxstructreg.losses.quantile import Quantile
from cvxstructreg.losses.squared import Squared
from cvxstructreg.losses.squared_hinge import SquaredHinge
from cvxstructreg.losses.survival.cox import Cox

__all__ = [
    "Absolute",
    "Cox",
    "Gamma",
    "Hinge",
    "Huber",
    "Logistic",
    "MultiTask",
    "MulticlassHinge",
    "Multinomial",
    "Poisson",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "Tweedie",
]
