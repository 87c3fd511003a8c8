"""Losses of survival times: the partial likelihood of Cox, and its risk sets. May import what losses may."""
