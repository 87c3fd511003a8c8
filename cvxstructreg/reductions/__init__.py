"""Changes of coordinates: each turns a problem into an equivalent one and carries points back and forth.

A reduction has the new problem, ``lift`` (a point of the new problem as a point of the given one) and ``lower`` (the
way back, for warm starts). This room imports core, forms and below. Certificates and solvers import it.
"""
