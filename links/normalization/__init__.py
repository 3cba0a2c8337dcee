"""Normalizations with trained scales and shifts."""
