"""Training loops: trainers, updaters, triggers and extensions."""

import importlib
from typing import Any

from renga._runtime.suggestions import suggestion as _suggestion
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


def __getattr__(name: str) -> Any:
    # The extensions import this package, so they are imported on first use.
    if name == "extensions":
        return importlib.import_module("renga.training.extensions")
    hint = "" if name[0] == "_" else _suggestion(name, __all__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
