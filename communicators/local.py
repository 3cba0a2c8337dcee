"""Ranks that are threads of one process."""

from renga.communicators.transport.local import current, run

__all__ = ["current", "run"]
