"""An extension that reports statistics of parameters and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy

from renga.core import reporter
from renga.core.link import Link
from renga.core.serializer import AbstractSerializer, serialize_part
from renga.extensions.reports.whole_arrays import whole_array
from renga.training import extension
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger

_SIGMAS = (0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87)

Statistic = Callable[[numpy.ndarray], Any]


class ParameterStatistics(extension.Extension):
    """Reports means over each interval of statistics of a link's parameters.

    The keys are like ``VGG/conv1/W/data/mean`` and ``VGG/conv1/W/grad/percentile/0``.

    Args:
        links: one or several links, distinguished by their names.
        statistics: functions of a flat array by name, each for a number or several;
            arrays of devices are copied to the host for them. ``"default"`` for mean,
            std, min, max, the number of zeros, and the percentiles of 0, ±1, ±2 and ±3
            standard deviations.
        report_params, report_grads: whether to report values and gradients.
        prefix: put before the keys.
        trigger: ends an interval, after which the means are reported.
        skip_nan_params: whether to report NaN for arrays that hold one.
    """

    default_name = "parameter_statistics"
    priority = extension.PRIORITY_WRITER
    report_key_template = "{prefix}{link_name}{param_name}/{attr_name}/{function_name}"
    default_statistics: dict[str, Statistic] = {
        "mean": numpy.mean,
        "std": numpy.std,
        "min": numpy.min,
        "max": numpy.max,
        "zeros": lambda x: numpy.count_nonzero(x == 0),
        "percentile": lambda x: numpy.percentile(x, _SIGMAS),
    }

    def __init__(
        self,
        links: Link | Iterable[Link],
        statistics: dict[str, Statistic] | str | None = "default",
        report_params: bool = True,
        report_grads: bool = True,
        prefix: str | None = None,
        trigger: TriggerLike = (1, "epoch"),
        skip_nan_params: bool = False,
    ) -> None:
        self._links = [links] if isinstance(links, Link) else list(links)
        if statistics == "default":
            statistics = self.default_statistics
        self._statistics: dict[str, Statistic] = dict(statistics or {})  # type: ignore
        attributes = (("data", report_params), ("grad", report_grads))
        self._attributes = [name for name, wanted in attributes if wanted]
        self._prefix = prefix
        self._trigger = get_trigger(trigger)
        self._skip_nan_params = skip_nan_params
        self._summary = reporter.DictSummary()

    def __call__(self, trainer: Trainer) -> None:
        """Takes the statistics; reports their means if an interval ended."""
        self._summary.add(dict(self._measure()))
        if self._trigger(trainer):
            reporter.report(self._summary.compute_mean())
            self._summary = reporter.DictSummary()

    def register_statistics(self, name: str, function: Statistic) -> None:
        """Adds a statistic, or replaces the one of that name."""
        self._statistics[name] = function

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the current interval."""
        serialize_part(self._trigger, serializer, "_trigger")
        self._summary.serialize(serializer["_summary"])

    def _measure(self) -> Iterator[tuple[str, float]]:
        for link in self._links:
            for path, parameter in link.namedparams():
                for attribute in self._attributes:
                    array = whole_array(type(self).__name__, parameter, attribute)
                    if array is not None and array.size:
                        yield from self._of(link, path, attribute, array.ravel())

    def _of(
        self, link: Link, path: str, attribute: str, array: numpy.ndarray
    ) -> Iterator[tuple[str, float]]:
        broken = self._skip_nan_params and numpy.isnan(array).any()
        for name, function in self._statistics.items():
            key = self.report_key_template.format(
                prefix=self._prefix + "/" if self._prefix else "",
                link_name=link.name,
                param_name=path,
                attr_name=attribute,
                function_name=name,
            )
            value: Any = numpy.nan if broken else function(array)
            if numpy.ndim(value) == 0:
                yield key, value
            else:
                for i, each in enumerate(value):
                    yield f"{key}/{i}", each
