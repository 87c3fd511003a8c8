"""Solvers for sum-to-zero machines: ``douglas_rachford`` and ``hinge_newton``.

Both use the problem in the form of ``hinge_rows``, compute gaps by ``hinge_bounds`` and iterate on ``working_rows``.
``compiled_hinge`` holds the compiled loops. Graph terms enter through the warped kernel of
:mod:`cvxstructreg.solvers.kernels`.
"""
