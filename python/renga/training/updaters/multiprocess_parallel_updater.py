"""An updater with a process for each GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from renga.dataset import convert
from renga.training.updaters.standard_updater import StandardUpdater


class MultiprocessParallelUpdater(StandardUpdater):
    """Divides batches among processes, one for each GPU, which communicate by NCCL.

    Not available: ``renga.distributed`` does the same on CPUs and GPUs alike, over MPI
    or NCCL, and the data-parallel examples show how. The constructor raises
    RuntimeError.
    """

    def __init__(
        self,
        iterators: Sequence[Any],
        optimizer: Any,
        converter: Callable = convert.concat_examples,
        devices: Any = None,
        auto_new_epoch: bool = True,
    ) -> None:
        raise RuntimeError(
            "MultiprocessParallelUpdater: not available; start the script by mpiexec "
            "with a communicator and a multi-node optimizer of renga.distributed"
        )

    @staticmethod
    def available() -> bool:
        """False: it is not available in this library."""
        return False
