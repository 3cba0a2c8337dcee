"""An extension that draws the graph of a computation."""

from __future__ import annotations

import os
import shutil
import subprocess

from renga.core import configuration
from renga.core.computational_graph import Style, build_computational_graph
from renga.serializers.atomic import atomic_write
from renga.training import extension
from renga.training.trainer import Trainer
from renga.training.triggers import OnceTrigger
from renga.utils import argument


class DumpGraph(extension.Extension):
    """Writes the graph behind an observation of the first iteration, as DOT.

    Where Graphviz's ``dot`` is installed it also draws a PNG.

    Args:
        root_name: key of the observation, a Variable.
        filename: name in the trainer's directory; ``"cg.dot"`` unless given.
        variable_style, function_style: DOT attributes of the nodes.

    Raises:
        KeyError: there is no such observation.
    """

    default_name = "dump_graph"  # type: ignore[assignment]

    def __init__(
        self,
        root_name: str,
        filename: str | None = None,
        variable_style: Style | None = None,
        function_style: Style | None = None,
        **kwargs: object,
    ) -> None:
        (out_name,) = argument.parse_kwargs(kwargs, ("out_name", "cg.dot"))
        self._root_name = root_name
        self._filename = filename or out_name
        self._styles = (variable_style or "default", function_style or "default")
        self._keep_graph: bool | None = None  # the setting before training
        self.trigger = OnceTrigger()

    def initialize(self, trainer: Trainer) -> None:
        """Keeps the graph of reported values until it is drawn."""
        if not self.trigger.finished:
            self._keep_graph = configuration.config.keep_graph_on_report
            configuration.config.keep_graph_on_report = True

    def __call__(self, trainer: Trainer) -> None:
        """Draws the graph."""
        self.finalize()
        root = trainer.observation[self._root_name]
        path = os.path.join(trainer.out, self._filename)
        with atomic_write(path, "w") as file:
            file.write(build_computational_graph([root], True, *self._styles).dump())
        dot = shutil.which("dot")
        if dot is not None:
            png = os.path.splitext(path)[0] + ".png"
            subprocess.run([dot, "-Tpng", path, "-o", png], check=True)

    def finalize(self) -> None:
        """Restores the setting."""
        if self._keep_graph is not None:
            configuration.config.keep_graph_on_report = self._keep_graph
            self._keep_graph = None


dump_graph = DumpGraph
