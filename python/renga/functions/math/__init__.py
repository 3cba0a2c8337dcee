"""Arithmetic, means and products."""
