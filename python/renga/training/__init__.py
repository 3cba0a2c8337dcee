"""Training loops: trainers, updaters, triggers and extensions."""

from renga.training import extension, trigger, triggers, updater, updaters, util
from renga.training.extension import (
    PRIORITY_EDITOR,
    PRIORITY_READER,
    PRIORITY_WRITER,
    Extension,
    make_extension,
)
from renga.training.trainer import Trainer
from renga.training.triggers import IntervalTrigger
from renga.training.updaters import StandardUpdater
from renga.training.updaters.updater import Updater
from renga.training.util import get_trigger

# The extensions build upon all of the above.
from renga.training import extensions  # isort: skip

__all__ = [
    "Extension",
    "IntervalTrigger",
    "PRIORITY_EDITOR",
    "PRIORITY_READER",
    "PRIORITY_WRITER",
    "StandardUpdater",
    "Trainer",
    "Updater",
    "extension",
    "extensions",
    "get_trigger",
    "make_extension",
    "trigger",
    "triggers",
    "updater",
    "updaters",
    "util",
]
