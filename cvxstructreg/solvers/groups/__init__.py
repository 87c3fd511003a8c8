"""Solvers of group lasso problems: ``group_newton`` (overlapping), ``group_descent`` (disjoint), ``sentence_admm``.

``group_newton`` works on ``group_subproblem`` by ``group_steps``; ``group_descent`` works on ``block_model``;
``sentence_admm`` is the published algorithm. The files ``compiled_...`` hold the compiled loops. This room uses the
working sets of :mod:`cvxstructreg.solvers.lasso` and the curvature of :mod:`cvxstructreg.solvers.smooth`.
"""
