"""Solvers for kernel machines with graphs: ``kernel_cg``, ``warped_kernel``, and ``augmented_lagrangian`` for hinges.

``warp`` solves linear systems with I + M gram, ``reduced_kernel`` is the problem restricted to the labelled rows, and
``box_qp`` is its dual for the hinge loss. The files ``compiled_...`` hold the compiled loops.
"""
