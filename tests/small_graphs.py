"""A small signed graph, for tests."""

import numpy as np

SIGNED = np.array([[0.0, 2.0, -1.0], [2.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
ABC = ["a", "b", "c"]
