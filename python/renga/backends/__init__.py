"""Devices by kind."""

from renga.backends import cuda, intel64

__all__ = ["cuda", "intel64"]
