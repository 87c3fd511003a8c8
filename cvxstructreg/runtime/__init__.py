"""What a running program needs besides numbers: time limits, memory limits, quiet solvers, progress, optional packages.

This is the lowest room: it imports nothing from the package, and every room may import it.
"""
