"""Activations and gated cells."""
