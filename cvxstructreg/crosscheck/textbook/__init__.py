"""Objectives by the formulas of textbooks, written a second time and without any code of the library."""
