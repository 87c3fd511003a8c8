"""Functions of sums of two scores, for pairs of examples."""
