"""Plots: figures that extensions draw again and again, each into one file."""

from __future__ import annotations

import importlib.util
import os
import warnings
from typing import TYPE_CHECKING

from renga.serializers.atomic import atomic_write
from renga.training import extension
from renga.training.trainer import Trainer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plot(extension.Extension):
    """Base of extensions that draw with matplotlib.

    Without matplotlib they warn when they are made, and draw nothing.

    Args:
        filename: name in the trainer's directory; its suffix is the format.
        figsize: width and height in inches; those of matplotlib by default.
    """

    def __init__(
        self, filename: str, figsize: tuple[float, float] | None = None
    ) -> None:
        self._file_name, self._figsize = filename, figsize
        if not self.available():
            warnings.warn(
                f"{type(self).__name__}: nothing will be plotted: matplotlib is not "
                "installed; install it with `pip install matplotlib`",
                stacklevel=3,
            )

    @staticmethod
    def available() -> bool:
        """Whether matplotlib is installed."""
        return importlib.util.find_spec("matplotlib") is not None

    def _redraw(self, trainer: Trainer) -> None:
        """Replaces the file by a new figure."""
        if not self.available():
            return
        # This draws without pyplot, which keeps global state and may open windows.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=self._figsize)
        FigureCanvasAgg(figure)
        self._draw(figure)
        path = os.path.join(trainer.out, self._file_name)
        form = os.path.splitext(path)[1][1:] or "png"
        with atomic_write(path) as file:
            figure.savefig(file, format=form, bbox_inches="tight")

    def _draw(self, figure: Figure) -> None:
        raise NotImplementedError
