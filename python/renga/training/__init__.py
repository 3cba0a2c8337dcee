"""Training loops: trainers, updaters, triggers and extensions."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.training import (
    extension as extension,
    trigger as trigger,
    triggers as triggers,
    updater as updater,
    updaters as updaters,
    util as util,
)
from renga.training.extension import (
    PRIORITY_EDITOR as PRIORITY_EDITOR,
    PRIORITY_READER as PRIORITY_READER,
    PRIORITY_WRITER as PRIORITY_WRITER,
    Extension as Extension,
    make_extension as make_extension,
)
from renga.training.lr_range_test import (
    LRRange as LRRange,
    lr_range_test as lr_range_test,
)
from renga.training.trainer import Trainer as Trainer
from renga.training.triggers import IntervalTrigger as IntervalTrigger
from renga.training.triggers.interval_trigger import get_trigger as get_trigger
from renga.training.updaters import (
    ParallelUpdater as ParallelUpdater,
    StandardUpdater as StandardUpdater,
)
from renga.training.updaters.updater import Updater as Updater

if TYPE_CHECKING:
    from renga.training import extensions as extensions

# The extensions import this package.
_suggest_names(__name__, at_first_use={"renga.training": "extensions"})
