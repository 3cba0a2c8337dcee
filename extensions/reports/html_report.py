"""HtmlReport: an extension that keeps a page about a run up to date."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence

from renga._runtime.runtime_info import runtime_info
from renga.extensions.reports.terminal import is_first_rank
from renga.serializers.atomic import atomic_write
from renga.training import extension, run_report
from renga.training.trainer import Trainer


class HtmlReport(extension.Extension):
    """Writes a page about the run, from what other extensions have written.

    The page (``renga report``) is one file, which needs no network, and is refreshed
    after each epoch. Rank 0 alone writes it. It needs plotly: ``renga[report]``.

    Args:
        filename: of the page, in the trainer's directory.
        others: folders of other runs that the page shows beside this one.
        arguments: those of the program, such as ``vars(parser.parse_args())``.
    """

    trigger = (1, "epoch")
    # This runs after those extensions that write what the page shows.
    priority = extension.PRIORITY_READER - 1

    def __init__(
        self,
        filename: str = "report.html",
        others: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
    ) -> None:
        self._filename = filename
        self._others = others
        self._arguments = dict(arguments or {})

    def initialize(self, trainer: Trainer) -> None:
        """Writes the arguments and the environment."""
        if not is_first_rank(trainer):
            return
        program = {"command": " ".join(sys.argv), "began": time.strftime("%F %T %Z")}
        about = {
            "program": {**program, **self._arguments},
            "environment": runtime_info(),
        }
        with atomic_write(os.path.join(trainer.out, "about.json"), "w") as file:
            json.dump(about, file, default=str)

    def __call__(self, trainer: Trainer) -> None:
        """Writes the page."""
        if is_first_rank(trainer):
            path = os.path.join(trainer.out, self._filename)
            run_report.write([trainer.out, *self._others], path)
