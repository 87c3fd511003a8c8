"""Hinge losses by the method of multipliers around solvers for smooth losses: ``nested_multipliers``.

May import the contract of solvers, ``certificates``, ``forms``, ``core``, ``solvers.groups`` and ``solvers.lasso``.
"""
