"""Proofs: how far given weights are from the optimum, computed from the weights and the problem alone.

:mod:`~cvxstructreg.certificates.certificate` is the entry. It asks for a lower bound
(:mod:`~cvxstructreg.certificates.bounds`), which needs a dual point (:mod:`~cvxstructreg.certificates.weight_dual`,
:mod:`~cvxstructreg.certificates.free_directions`). This room imports reductions, forms, core and below, and no solver.
Solvers may import it.
"""
