"""Differentiable communication of variables."""
