"""Solvers for problems with L1 terms, by coordinate descent: ``working_set`` and the published ``irls``.

``working_set`` and ``irls`` are the algorithms. Both minimise a ``quadratic_model`` in each step. The files
``compiled_...`` hold the compiled loops. The group solvers share ``working_set_rounds`` and ``compiled_columns``.
"""
