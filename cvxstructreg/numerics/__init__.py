"""Small numerical tools, independent of any model: round-off, units, momentum, roots, semidefinite matrices.

This package imports only :mod:`cvxstructreg.runtime`. Every higher layer may import it.
"""
