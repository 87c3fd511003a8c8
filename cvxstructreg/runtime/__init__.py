"""Runtime support: time limits, memory limits, muted warnings, progress, optional packages.

This is the lowest layer: it imports nothing from the package, and every other layer may import it.
"""
