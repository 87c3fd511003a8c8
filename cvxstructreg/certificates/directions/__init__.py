"""Directions of the weights without penalty: minimised over exactly, or endless ways down of the objective."""
