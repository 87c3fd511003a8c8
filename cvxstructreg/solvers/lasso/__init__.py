"""Solvers of problems with absolute values: ``working_set`` and the published ``irls``, by coordinate descent.

``working_set`` and ``irls`` are the algorithms; both work on ``quadratic_model``. The files ``compiled_...`` hold the
compiled loops. The group solvers share the rounds of working sets and the columns.
"""
