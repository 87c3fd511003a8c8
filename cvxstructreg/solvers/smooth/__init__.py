"""Solvers for smooth problems: ``newton`` with conjugate gradients, and ``lbfgs``.

``truncated_newton`` and ``lbfgs`` are the algorithms. Both minimise ``smooth_objective``. ``compiled_newton`` holds the
compiled loops; the other files hold preconditioners and matrix products. The group solvers share ``score_curvature``.
"""
