"""Solvers for group lasso problems: ``group_newton`` (overlapping), ``group_descent`` (disjoint), ``sentence_admm``.

``group_newton`` solves ``group_subproblem`` by the Newton steps of ``group_steps``. ``group_descent`` minimises a
``block_model`` in each step. ``sentence_admm`` is the published algorithm. The files ``compiled_...`` hold the compiled
loops. This room uses the working sets of :mod:`cvxstructreg.solvers.lasso` and the curvature of
:mod:`cvxstructreg.solvers.smooth`.
"""
