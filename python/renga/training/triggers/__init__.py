"""Conditions on which a trainer runs an extension or stops."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.training.triggers.early_stopping_trigger import EarlyStoppingTrigger
from renga.training.triggers.interval_trigger import IntervalTrigger
from renga.training.triggers.minmax_value_trigger import (
    BestValueTrigger,
    MaxValueTrigger,
    MinValueTrigger,
)
from renga.training.triggers.points import (
    ManualScheduleTrigger,
    OnceTrigger,
    TimeTrigger,
)

__all__ = [
    "BestValueTrigger",
    "EarlyStoppingTrigger",
    "IntervalTrigger",
    "ManualScheduleTrigger",
    "MaxValueTrigger",
    "MinValueTrigger",
    "OnceTrigger",
    "TimeTrigger",
]

_suggest_names(__name__)
