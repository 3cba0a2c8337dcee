"""The times at which the actions of a schedule run."""

from renga.parallel.pipeline.schedule import timeline

__all__ = ["timeline"]
