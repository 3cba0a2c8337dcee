"""Convolutions with trained filters."""
