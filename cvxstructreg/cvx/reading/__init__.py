"""Read the expressions of a CVXPY problem: affine maps of its variables, and known functions of them.

Part of ``cvx``, with the same rules. Only ``names.py`` imports from inside CVXPY.
"""
