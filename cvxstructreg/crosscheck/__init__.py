"""The machine that keeps looking: random problems, every solver, a second opinion by textbook formulas.

``python -m cvxstructreg.crosscheck --problems 10000 --seed 0 --jobs 2 --report out.html``
"""

from cvxstructreg.crosscheck.checks import check
from cvxstructreg.crosscheck.findings import Outcome, Settings, Violation
from cvxstructreg.crosscheck.recipe import random_recipe
from cvxstructreg.crosscheck.script import as_script
from cvxstructreg.crosscheck.shrink import shrink

__all__ = ["Outcome", "Settings", "Violation", "as_script", "check", "random_recipe", "shrink"]
