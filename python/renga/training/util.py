"""Triggers from the short forms of arguments."""

from renga.training.triggers.interval_trigger import get_trigger as get_trigger
