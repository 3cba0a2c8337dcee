"""Terminal output of one process of a run."""

from __future__ import annotations

import sys
from typing import TextIO

from renga.training.trainer import Trainer


def is_first_rank(trainer: Trainer) -> bool:
    """Whether this process has rank 0 in the communicators of its optimizers."""
    optimizers = trainer.updater.get_all_optimizers().values()
    communicators = (getattr(each, "communicator", None) for each in optimizers)
    return all(c is None or c.rank == 0 for c in communicators)


def print_above_bars(line: str, out: TextIO) -> None:
    """Prints a line where progress bars do not overwrite it."""
    tqdm = sys.modules.get("tqdm")
    if tqdm is None:  # without tqdm there are no bars
        print(line, file=out, flush=True)
    else:
        tqdm.tqdm.write(line, file=out)
        out.flush()
