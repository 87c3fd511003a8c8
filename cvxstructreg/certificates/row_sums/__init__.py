"""Certificates by sums over rows that stay where their blocks are."""
