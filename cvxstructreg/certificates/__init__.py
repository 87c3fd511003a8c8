"""Certificates prove how far given weights are from the optimum, using only the weights and the problem.

:mod:`~cvxstructreg.certificates.certificate` is the entry point. It uses a lower bound on the optimum
(:mod:`~cvxstructreg.certificates.bounds`), which is proved by a dual point
(:mod:`~cvxstructreg.certificates.weight_dual`, :mod:`~cvxstructreg.certificates.directions.free_directions`). This
room imports reductions, forms, core and below, and no solver. Solvers may import it.
"""
