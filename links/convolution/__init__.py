"""Convolutions with filters to train."""
