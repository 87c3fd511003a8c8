"""Penalties on all weights together: sorted absolute values, singular values, and squared L1 norms of groups."""
