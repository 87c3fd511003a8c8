"""Changes of coordinates: each turns a problem into an equivalent one and maps points in both directions.

A reduction has the new problem, ``lift`` (from a point of the new problem to a point of the given one) and ``lower``
(the opposite direction, for warm starts). This room imports core, forms and below. Certificates and solvers import it.
"""
