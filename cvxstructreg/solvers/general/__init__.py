"""General-purpose solvers: accelerated proximal gradient (``fista``) and ``admm``.

A solver imports core, forms, certificates and the rooms below them, and ``iterate`` of :mod:`cvxstructreg.solvers`.
"""
