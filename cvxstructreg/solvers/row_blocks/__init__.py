"""Solvers for data in blocks of rows: in memory if they fit, by Gram matrices, or with working sets of columns.

May import the contract of solvers, ``certificates``, ``forms``, ``core``, ``row_blocks`` and ``solvers.general``.
"""
