"""The language: atoms, losses, objectives, models, problems, solutions, and the checks of what users pass in.

Everything that states a problem lives here, and nothing that solves one. It imports :mod:`cvxstructreg.runtime` and
:mod:`cvxstructreg.numerics`; only ``Problem`` and ``Solution`` reach into rooms above, for the user's convenience. All
other rooms may import it.
"""
