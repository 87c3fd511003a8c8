"""Direct solvers for denoising: squared loss on the weights themselves (X = I), and differences over chains or grids.

``total_variation`` splits the edges into paths (``paths``) and minimises over all edges of one direction at once by the
compiled loop of ``compiled_chain``, which is exact. A chain takes one such step, a grid several. ``block_variation`` is
for isotropic total variation: it takes accelerated gradient steps on the dual problem. ``banded_differences`` is for
trends and other differences of neighbours: an interior point method with banded systems. A solver imports core, forms,
certificates and the rooms below them, and ``iterate`` of :mod:`cvxstructreg.solvers`.
"""
