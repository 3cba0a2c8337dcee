"""Conditions on which a trainer runs an extension or stops."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.training.triggers.early_stopping_trigger import (
    EarlyStoppingTrigger as EarlyStoppingTrigger,
)
from renga.training.triggers.interval_trigger import IntervalTrigger as IntervalTrigger
from renga.training.triggers.minmax_value_trigger import (
    BestValueTrigger as BestValueTrigger,
    MaxValueTrigger as MaxValueTrigger,
    MinValueTrigger as MinValueTrigger,
)
from renga.training.triggers.points import (
    ManualScheduleTrigger as ManualScheduleTrigger,
    OnceTrigger as OnceTrigger,
    TimeTrigger as TimeTrigger,
)

_suggest_names(__name__)
