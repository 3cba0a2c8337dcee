"""Names of ChainerMN: deprecated epochs, the exception hook, an evaluator."""

from __future__ import annotations

import warnings
from typing import Any

from renga.communicators import Communicator
from renga.parallel.data.extensions.generic_multi_node_evaluator import (
    GenericMultiNodeEvaluator as GenericMultiNodeEvaluator,
)


def get_n_iterations_for_one_epoch(
    dataset: Any, local_batch_size: int, comm: Communicator
) -> int:
    """How many batches rank 0 takes for its part of a data set."""
    warnings.warn(
        "get_n_iterations_for_one_epoch is deprecated, use triggers of epochs",
        DeprecationWarning,
        stacklevel=2,
    )
    n = -(-len(dataset) // local_batch_size) if comm.rank == 0 else None
    return int(comm.bcast_obj(n))


def get_epoch_trigger(
    n_epochs: int, dataset: Any, local_batch_size: int, comm: Communicator
) -> tuple[int, str]:
    """A trigger of that many epochs, in iterations."""
    warnings.warn(
        "get_epoch_trigger is deprecated, use triggers of epochs",
        DeprecationWarning,
        stacklevel=2,
    )
    n = get_n_iterations_for_one_epoch(dataset, local_batch_size, comm)
    return n_epochs * n, "iteration"


def add_hook() -> None:
    """Does nothing: communicators of processes end the job after an exception."""
