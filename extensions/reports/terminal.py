"""Output of one process of a run to a terminal or a notebook."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from typing import TextIO

from renga.training.trainer import Trainer


def is_first_rank(trainer: Trainer) -> bool:
    """Whether this process has rank 0 in the communicators of its optimizers."""
    optimizers = trainer.updater.get_all_optimizers().values()
    communicators = (getattr(each, "communicator", None) for each in optimizers)
    return all(c is None or c.rank == 0 for c in communicators)


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which displays HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def can_draw(out: TextIO) -> bool:
    """Whether progress bars can be drawn: terminals, and notebooks with ipywidgets."""
    if out is sys.stdout and in_notebook():
        return importlib.util.find_spec("ipywidgets") is not None
    isatty = getattr(out, "isatty", lambda: False)
    return isatty() and os.environ.get("TERM") != "dumb"


@functools.cache
def bar_class() -> type:
    """tqdm's bars without its monitor: that thread may outlive the interpreter."""
    from tqdm.auto import tqdm

    class UnmonitoredBar(tqdm):  # type: ignore[type-arg, misc]
        monitor_interval = 0

    return UnmonitoredBar


def print_above_bars(line: str, out: TextIO) -> None:
    """Prints a line where progress bars do not overwrite it."""
    tqdm = sys.modules.get("tqdm")
    if tqdm is None:  # without tqdm there are no bars
        print(line, file=out)
    else:
        tqdm.tqdm.write(line, file=out)
    if hasattr(out, "flush"):  # as Chainer does: a minimal stream may lack it
        out.flush()
