"""Small numerical tools without a model: round-off, powers of two as units, momentum, roots, semidefinite matrices.

It imports :mod:`cvxstructreg.runtime` only. Every room above may import it.
"""
