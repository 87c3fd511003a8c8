"""Second-order solvers for almost any problem: ``interior_point`` and ``semismooth_newton``, with dense or no matrices.

Both see a problem as smooth terms and largest linear functions over simple sets (``dual_sets``). ``semismooth_newton``
minimises the augmented Lagrangian of ``lagrangian``. A solver imports core, forms, certificates and the rooms below
them, and ``iterate`` of :mod:`cvxstructreg.solvers`.
"""
