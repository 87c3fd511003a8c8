"""Long chains with X = I, recognised and evaluated in a few passes over the data.

This package imports forms, core, numerics and runtime. Penalties, certificates and solvers import it.
"""
