"""Randomized tests: solve random problems with every solver and compare with independent textbook formulas.

``python -m cvxstructreg.crosscheck --problems 10000 --seed 0 --jobs 2 --report out.html``
"""

from cvxstructreg.crosscheck.checks import check
from cvxstructreg.crosscheck.findings import Outcome, Settings, Violation
from cvxstructreg.crosscheck.recipe import random_recipe
from cvxstructreg.crosscheck.script import as_script
from cvxstructreg.crosscheck.shrink import shrink

__all__ = ["Outcome", "Settings", "Violation", "as_script", "check", "random_recipe", "shrink"]
