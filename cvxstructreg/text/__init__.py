"""Raw documents in a pipeline: X and the groups or graph of its words. May import graphs, groups, building and core."""

from cvxstructreg.text.text_structure import TextStructure
from cvxstructreg.text.word_matrix import WordMatrix

__all__ = ["TextStructure", "WordMatrix"]
