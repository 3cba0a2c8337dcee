"""The triggers that every extension needs."""

from renga.training.triggers.interval_trigger import IntervalTrigger, get_trigger

__all__ = ["IntervalTrigger", "get_trigger"]
