"""Penalties on differences between neighbours: on lines, in images and volumes, and over the edges of a graph."""
