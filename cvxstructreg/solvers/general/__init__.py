"""General-purpose solvers: ``semismooth_newton``, accelerated proximal gradient (``fista``) and ``admm``.

``semismooth_newton`` minimises the augmented Lagrangian of ``lagrangian``, whose multipliers live in ``dual_sets``. A
solver imports core, forms, certificates and the rooms below them, and ``iterate`` of :mod:`cvxstructreg.solvers`.
"""
