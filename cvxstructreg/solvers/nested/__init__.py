"""Two loops: ``nested_multipliers`` (hinges around smooth losses) and ``split_newton`` (Newton steps around ADMM).

May import the contract of solvers, ``certificates``, ``forms``, ``core``, ``solvers.general``, ``solvers.groups``
and ``solvers.lasso``.
"""
