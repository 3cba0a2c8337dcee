"""An extension that measures a model on a data set."""

from __future__ import annotations

import copy
import itertools
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from renga.backends.device import DeviceLike
from renga.core import backend, configuration, reporter as reporter_module
from renga.core.link import Link
from renga.dataset import convert
from renga.dataset.iterator import Iterator as DatasetIterator
from renga.extensions.reports.terminal import bar_class, can_draw
from renga.training import extension
from renga.training.trainer import Trainer
from renga.utils import argument


class Evaluator(extension.Extension):
    """Reports the means over batches of what a model reports in test mode.

    Args:
        iterator: one pass over the data; or a dictionary with a ``"main"`` one.
        target: the model; or a dictionary with a ``"main"`` one. It is called with
            the arrays of each batch, without recording a graph.
        converter: makes arrays of (batch, device).
        device: the arrays are sent there.
        eval_hook: called with this extension before each evaluation.
        eval_func: called with the arrays instead of the model.
        progress_bar: whether to display the progress, on a terminal.
    """

    trigger = (1, "epoch")
    default_name = "validation"  # type: ignore[assignment]
    priority = extension.PRIORITY_WRITER
    _limit: int | None = None  # of batches

    def __init__(
        self,
        iterator: DatasetIterator | Mapping[str, DatasetIterator],
        target: Link | Mapping[str, Link],
        converter: Callable = convert.concat_examples,
        device: DeviceLike | None = None,
        eval_hook: Callable[[Evaluator], object] | None = None,
        eval_func: Callable | None = None,
        **kwargs: object,
    ) -> None:
        (self._progress_bar,) = argument.parse_kwargs(kwargs, ("progress_bar", False))
        self._iterators = argument.by_name(iterator)
        self._targets = argument.by_name(target)
        self.converter = converter
        self.device = None if device is None else backend.get_device(device)
        self.eval_hook = eval_hook
        self.eval_func = eval_func
        for name, each in self._iterators.items():
            if getattr(each, "repeat", False):
                warnings.warn(
                    f"Evaluator: iterator {name!r} has repeat=True: "
                    "its evaluation would not end",
                    stacklevel=2,
                )

    def get_iterator(self, name: str) -> Iterator:
        """The iterator called ``name``."""
        return self._iterators[name]

    def get_all_iterators(self) -> dict[str, Iterator]:
        """All iterators by name."""
        return dict(self._iterators)

    def get_target(self, name: str) -> Link:
        """The target called ``name``."""
        return self._targets[name]

    def get_all_targets(self) -> dict[str, Link]:
        """All targets by name."""
        return dict(self._targets)

    def __call__(self, trainer: Trainer | None = None) -> dict[str, Any]:
        """Evaluates, reports the means under this extension's name, returns them."""
        reporter = reporter_module.Reporter()
        prefix = "" if self.name is None else f"{self.name}/"
        for name, target in self._targets.items():
            reporter.add_links(prefix + name, target)
        self._limit = getattr(trainer, "fast_dev_run", 0) or None
        with reporter, configuration.using_config("train", False):
            result = self.evaluate()
        reporter_module.report(result)
        return result

    def evaluate(self) -> dict[str, Any]:
        """The mean over the batches of each observation; subclasses may override it."""
        summary = reporter_module.DictSummary()
        for observation, _ in self.evaluate_batches():
            summary.add(observation)
        return summary.compute_mean()

    def evaluate_batches(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Pairs of a batch's observation and its number of examples."""
        if self.eval_hook is not None:
            self.eval_hook(self)
        eval_func = self.eval_func or self._targets["main"]
        for batch in self._batches():
            observation: dict[str, Any] = {}
            args, kwargs = convert.arguments_from(self.converter, batch, self.device)
            scope = reporter_module.report_scope(observation)
            with scope, configuration.no_backprop_mode():
                eval_func(*args, **kwargs)
            yield observation, len(batch)

    def _batches(self) -> Iterator[Any]:
        iterator = self._iterators["main"]
        if getattr(iterator, "repeat", False):
            raise ValueError(
                "Evaluator: expected an iterator that ends, got one with repeat=True"
            )
        if hasattr(iterator, "reset"):
            iterator.reset()
        else:
            iterator = copy.copy(iterator)
        if self._limit is not None:
            return itertools.islice(iterator, self._limit)
        if not self._progress_bar or not can_draw(sys.stdout):
            return iterator
        try:
            total = math.ceil(len(iterator.dataset) / iterator.batch_size)
        except (AttributeError, TypeError):
            total = None
        return iter(
            bar_class()(
                iterator,
                desc=self.name or self.default_name,
                total=total,
                file=sys.stdout,
                leave=False,
            )
        )

    def finalize(self) -> None:
        """Ends the iterators."""
        for iterator in self._iterators.values():
            iterator.finalize()
