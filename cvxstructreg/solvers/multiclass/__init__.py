"""Solvers of sum-to-zero machines: Douglas-Rachford splitting and ``hinge_newton``.

Both see the problem as ``hinge_rows``, prove gaps by ``hinge_bounds`` and work on ``working_rows``. ``compiled_hinge``
holds the compiled loops. Graph terms come in by the warp of :mod:`cvxstructreg.solvers.kernels`.
"""
