"""The normal form of a problem, and the forms of its terms: quadratic, separable, block norms, centred hinges.

Solvers and certificates never test the class of a term. They use the normal form, which sorts the terms by their
capabilities. This package imports core, numerics and runtime. Penalties, losses, reductions, certificates and solvers
import it.
"""
