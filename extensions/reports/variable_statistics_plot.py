"""An extension that plots the distribution of parameters over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy

from renga.core.link import Link
from renga.core.serializer import AbstractSerializer
from renga.core.variable import Variable
from renga.extensions.reports.plot import Plot
from renga.extensions.reports.whole_arrays import whole_array
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger
from renga.utils import argument

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class VariableStatisticsPlot(Plot):
    """Draws mean, deviation and percentiles of values and gradients, with matplotlib.

    At most ``max_sample_size`` points in time are kept, a uniform random sample. With
    several variables the statistics are means over them.

    Args:
        targets: a Variable, a link or several of them.
        report_data, report_grad: what to plot.
        plot_mean, plot_std, percentile_sigmas: which statistics; percentiles from 0 to
            100.
        trigger: when to redraw the plot.
        filename: name in the trainer's directory; its suffix is the format.
        figsize, marker, grid: options of matplotlib.
    """

    def __init__(
        self,
        targets: object,
        max_sample_size: int = 1000,
        report_data: bool = True,
        report_grad: bool = True,
        plot_mean: bool = True,
        plot_std: bool = True,
        percentile_sigmas: float | tuple[float, ...] = (
            0,
            0.13,
            2.28,
            15.87,
            50,
            84.13,
            97.72,
            99.87,
            100,
        ),
        trigger: TriggerLike = (1, "epoch"),
        filename: str | None = None,
        figsize: tuple[float, float] | None = None,
        marker: str | None = None,
        grid: bool = True,
        **kwargs: object,
    ) -> None:
        (file_name,) = argument.parse_kwargs(kwargs, ("file_name", "statistics.png"))
        super().__init__(filename or file_name, figsize)
        self._variables = list(_variables(targets))
        if not self._variables:
            raise ValueError("VariableStatisticsPlot: expected variables, got none")
        attributes = (("data", report_data), ("grad", report_grad))
        self._attributes = [name for name, wanted in attributes if wanted]
        self._plot_mean = plot_mean
        self._plot_std = plot_std
        self._sigmas = numpy.atleast_1d(numpy.asarray(percentile_sigmas, float))
        self._trigger = get_trigger(trigger)
        self._marker = marker
        self._grid = grid
        shape = (len(self._attributes), 2 + len(self._sigmas))
        self._samples = _Reservoir(max_sample_size, shape)

    def __call__(self, trainer: Trainer) -> None:
        """Takes the statistics; draws the plot if its trigger fires."""
        rows = [self._measure(attribute) for attribute in self._attributes]
        self._samples.add(trainer.updater.iteration, numpy.array(rows))
        if self._trigger(trainer):
            self._redraw(trainer)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the samples."""
        self._samples.serialize(serializer["_samples"])

    def _measure(self, attribute: str) -> numpy.ndarray:
        """Mean, deviation and percentiles, each the mean over the variables."""
        name = type(self).__name__
        arrays = [whole_array(name, each, attribute) for each in self._variables]
        rows = [
            [array.mean(), array.std(), *numpy.percentile(array, self._sigmas)]
            for array in arrays
            if array is not None and array.size > 0
        ]
        if not rows:
            return numpy.full(2 + len(self._sigmas), numpy.nan)
        return numpy.mean(rows, axis=0)

    def _draw(self, figure: Figure) -> None:
        titles = [
            title
            for title, wanted in (
                ("Mean", self._plot_mean),
                ("Deviation", self._plot_std),
                ("Percentiles", len(self._sigmas) > 0),
            )
            if wanted
        ]
        grid = figure.subplots(
            len(titles), len(self._attributes), sharex=True, squeeze=False
        )
        for column, attribute in enumerate(self._attributes):
            for row, title in enumerate(titles):
                self._draw_one(grid[row, column], title, column)
            grid[0, column].set_title(attribute)
            grid[-1, column].set_xlabel("iteration")
        for row, title in enumerate(titles):
            grid[row, 0].set_ylabel(title)
        figure.tight_layout()

    def _draw_one(self, axes: Any, title: str, column: int) -> None:
        iterations, data = self._samples.in_order()
        first = {"Mean": 0, "Deviation": 1, "Percentiles": 2}[title]
        axes.grid(self._grid)
        if first < 2:
            axes.plot(iterations, data[:, column, first], marker=self._marker)
            return
        # Pairs of percentiles enclose bands, darker towards the median.
        lines = data[:, column, 2:]
        count = lines.shape[1]
        for i in range(count // 2):
            low, high = lines[:, i], lines[:, count - 1 - i]
            shade = 0.15 + 0.6 * i / max(count // 2, 1)
            axes.fill_between(iterations, low, high, color="C0", alpha=shade, lw=0)
        if count % 2:
            axes.plot(iterations, lines[:, count // 2], color="C1")


class _Reservoir:
    """A uniform random sample of points in time (reservoir sampling).

    Source: Vitter, Random sampling with a reservoir (1985).
    """

    def __init__(self, size: int, shape: tuple[int, ...]) -> None:
        self._iterations = numpy.zeros(size, numpy.int64)
        self._data = numpy.zeros((size, *shape))
        self._seen = 0
        # A separate generator: drawing from NumPy's would change the training.
        self._random = numpy.random.RandomState(0)

    def add(self, iteration: int, data: numpy.ndarray) -> None:
        size = len(self._data)
        index = (
            self._seen if self._seen < size else self._random.randint(self._seen + 1)
        )
        self._seen += 1
        if index < size:
            self._iterations[index] = iteration
            self._data[index] = data

    def in_order(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        count = min(self._seen, len(self._data))
        order = numpy.argsort(self._iterations[:count])
        return self._iterations[:count][order], self._data[:count][order]

    def serialize(self, serializer: AbstractSerializer) -> None:
        self._iterations = serializer("iterations", self._iterations)
        self._data = serializer("data", self._data)
        self._seen = serializer("seen", self._seen)


def _variables(targets: Any) -> Iterable[Variable]:
    if isinstance(targets, Variable):
        yield targets
    elif isinstance(targets, Link):
        yield from targets.params()
    else:
        for target in targets:
            yield from _variables(target)
