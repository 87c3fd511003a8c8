"""Selection that you can report: stability, features of all folds, degrees of freedom and information criteria.

May import everything: it fits estimators and reads solutions.
"""

from cvxstructreg.selection.criteria import Criteria, information_criteria
from cvxstructreg.selection.degrees_of_freedom import degrees_of_freedom
from cvxstructreg.selection.folds import FoldSelection, across_folds
from cvxstructreg.selection.stability import Stability, stability

__all__ = [
    "Criteria",
    "FoldSelection",
    "Stability",
    "across_folds",
    "degrees_of_freedom",
    "information_criteria",
    "stability",
]
