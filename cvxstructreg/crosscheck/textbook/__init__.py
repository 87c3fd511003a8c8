"""Objectives computed by textbook formulas, independent of the code of the library."""
