"""Training loops: trainers, updaters, triggers and extensions."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.training import extension, trigger, triggers, updater, updaters, util
from renga.training.extension import (
    PRIORITY_EDITOR,
    PRIORITY_READER,
    PRIORITY_WRITER,
    Extension,
    make_extension,
)
from renga.training.lr_range_test import LRRange, lr_range_test
from renga.training.trainer import Trainer
from renga.training.triggers import IntervalTrigger
from renga.training.triggers.interval_trigger import get_trigger
from renga.training.updaters import ParallelUpdater, StandardUpdater
from renga.training.updaters.updater import Updater

__all__ = [
    "Extension",
    "IntervalTrigger",
    "LRRange",
    "PRIORITY_EDITOR",
    "PRIORITY_READER",
    "PRIORITY_WRITER",
    "ParallelUpdater",
    "StandardUpdater",
    "Trainer",
    "Updater",
    "extension",
    "extensions",
    "get_trigger",
    "lr_range_test",
    "make_extension",
    "trigger",
    "triggers",
    "updater",
    "updaters",
    "util",
]

if TYPE_CHECKING:
    from renga.training import extensions

# The extensions import this package.
_suggest_names(__name__, at_first_use={"renga.training": "extensions"})
