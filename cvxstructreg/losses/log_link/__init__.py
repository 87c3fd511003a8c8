"""Losses of means exp(f_i): Poisson, gamma and Tweedie models with a logarithmic link. May import what losses may."""
