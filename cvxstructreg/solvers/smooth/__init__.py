"""Solvers of smooth problems: ``newton`` with conjugate gradients, ``lbfgs``, their preconditioners and products.

``truncated_newton`` and ``lbfgs`` are the algorithms; both work on ``smooth_objective``. ``compiled_newton`` holds the
compiled loops. The group solvers share the curvature of the scores.
"""
