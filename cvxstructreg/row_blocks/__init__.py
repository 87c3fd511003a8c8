"""Data in blocks of rows: sources larger than memory, passes over them, and engines that run a pass.

The files of the design matrix import only ``runtime``, ``numerics`` and ``core``. The files that build smaller problems
(:mod:`~cvxstructreg.row_blocks.restriction`, :mod:`~cvxstructreg.row_blocks.sampling`) also import ``forms``,
``losses`` and ``penalties``.
"""
