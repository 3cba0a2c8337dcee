"""Measures of how good a prediction is."""
