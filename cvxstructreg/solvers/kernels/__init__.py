"""Solvers of kernel machines with graphs: ``kernel_cg``, the warped kernel, and the augmented Lagrangian of hinges.

``warp`` solves with I + M gram, ``reduced_kernel`` is the problem of the labelled rows, ``box_qp`` its dual for the
hinge loss. The files ``compiled_...`` hold the compiled loops.
"""
