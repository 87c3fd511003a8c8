"""The normal form of a problem and the forms it sorts terms into: quadratic, separable, block norms, centred hinges.

Solvers and certificates never look at the class of a term. They ask the normal form what the term can do. This room
imports core, numerics and runtime. Penalties, losses, reductions, certificates and solvers import it.
"""
