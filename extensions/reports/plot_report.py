"""An extension that plots observations."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from renga.core.reporter import DictSummary
from renga.core.serializer import AbstractSerializer, serialize_part
from renga.extensions.reports.plot import Plot
from renga.training.trainer import Trainer
from renga.training.triggers.interval_trigger import TriggerLike, get_trigger
from renga.utils import argument

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class PlotReport(Plot):
    """Draws the mean of observations over each interval as curves, with matplotlib.

    Without matplotlib it warns and draws nothing.

    Args:
        y_keys: the observations, one curve each.
        x_key: the x axis: iteration, epoch or an observation.
        trigger: ends an interval, after which the plot is redrawn.
        postprocess: function of (figure, axes, summary) that may change the plot.
        filename: name in the trainer's directory; its suffix is the format.
        marker: marker of the points, as matplotlib names them, or None.
        grid: whether to draw a grid.
    """

    def __init__(
        self,
        y_keys: Iterable[str] | str,
        x_key: str = "iteration",
        trigger: TriggerLike = (1, "epoch"),
        postprocess: Callable[[Figure, Axes, DictSummary], object] | None = None,
        filename: str | None = None,
        marker: str | None = "x",
        grid: bool = True,
        **kwargs: object,
    ) -> None:
        (file_name,) = argument.parse_kwargs(kwargs, ("file_name", "plot.png"))
        super().__init__(filename or file_name)
        self._y_keys = [y_keys] if isinstance(y_keys, str) else list(y_keys)
        self._x_key = x_key
        self._trigger = get_trigger(trigger)
        self._postprocess = postprocess
        self._marker = marker
        self._grid = grid
        self._init_summary()
        self._has_ended = False
        self._data: dict[str, list[list[float]]] = {key: [] for key in self._y_keys}

    def __call__(self, trainer: Trainer) -> None:
        """Adds the observation to the means; draws the plot if an interval ended."""
        keys = {*self._y_keys, self._x_key}
        observation = trainer.observation
        self._summary.add({k: observation[k] for k in keys if k in observation})
        if not trainer.is_before_training and not self._trigger(trainer):
            return
        self._has_ended = True
        means = self._summary.compute_mean()
        means["epoch"] = trainer.updater.epoch
        means["iteration"] = trainer.updater.iteration
        for key in self._y_keys:
            if key in means:
                self._data[key].append([means[self._x_key], means[key]])
        self._redraw(trainer)
        self._init_summary()

    def _init_summary(self) -> None:
        """Begins an interval; subclasses of Chainer's PlotReport call it, too."""
        self._summary = DictSummary()

    def finalize(self) -> None:
        """Warns of curves without a point, where an interval has ended."""
        missing = [key for key in self._y_keys if not self._data[key]]
        if self._has_ended and missing:
            warnings.warn(
                f"PlotReport: nothing was reported as {', '.join(missing)}",
                stacklevel=2,
            )

    def _draw(self, figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_xlabel(self._x_key)
        axes.grid(self._grid)
        for key, points in self._data.items():
            if points:
                axes.plot(*zip(*points), marker=self._marker, label=key)
        if axes.has_data():
            axes.legend(bbox_to_anchor=(1.02, 1), loc="upper left", borderaxespad=0)
        if self._postprocess is not None:
            self._postprocess(figure, axes, self._summary)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the points and the current interval."""
        serialize_part(self._trigger, serializer, "_trigger")
        self._summary.serialize(serializer["_summary"])
        key = f"_plot_{self._file_name}"
        self._data = json.loads(serializer(key, json.dumps(self._data)))
