"""Names of ChainerMN: deprecated epochs, the exception hook, private functions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from renga.backends.device import Device
from renga.communicators import Communicator
from renga.core import backend
from renga.core.types import Dataset
from renga.parallel.data.datasets.scatter import _range_of
from renga.parallel.data.extensions.checkpoint import (
    CheckpointStats as _CheckpointStats,  # noqa: F401
    MultiNodeCheckpointer,
)
from renga.parallel.data.extensions.generic_multi_node_evaluator import (
    GenericMultiNodeEvaluator as GenericMultiNodeEvaluator,
)
from renga.parallel.data.extensions.multi_node_snapshot import _complete
from renga.parallel.data.optimizers.double_buffering_optimizer import (
    DoubleBufferingOptimizer as _DoubleBufferingOptimizer,  # noqa: F401
)
from renga.parallel.data.optimizers.multi_node_optimizer import (
    MultiNodeOptimizer as _MultiNodeOptimizer,  # noqa: F401
)


def get_n_iterations_for_one_epoch(
    dataset: Dataset, local_batch_size: int, comm: Communicator
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
    n_epochs: int, dataset: Dataset, local_batch_size: int, comm: Communicator
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


# chainermn.testing


def get_device(device_id: int | None = None, use_chainerx: bool = False) -> Device:
    """The GPU with a number, or the CPU; of ChainerX where ``use_chainerx``."""
    if device_id is None:
        return backend.get_device("native:0" if use_chainerx else "@numpy")
    kind = "cuda" if use_chainerx else "@cupy"
    return backend.get_device(f"{kind}:{device_id}")


# chainermn.iterators.multi_node_iterator


def _build_ctrl_msg(
    stop: bool,
    is_valid_data_type: bool,
    is_paired_dataset: bool,
    is_new_epoch: bool,
    current_position: int,
) -> numpy.ndarray:
    """What the master of a multi-node iterator tells the others of a batch."""
    flags = (stop, is_valid_data_type, is_paired_dataset, is_new_epoch)
    return numpy.array([*map(int, flags), int(current_position)], numpy.float32)


def _parse_ctrl_msg(msg: Any) -> tuple[bool, bool, bool, bool, int]:
    """The arguments of ``_build_ctrl_msg``."""
    stop, valid, paired, new_epoch = map(bool, msg[:4])
    return stop, valid, paired, new_epoch, int(msg[4])


# chainermn.datasets.scatter


def _scatter_index(
    n_total_samples: int, size: int, force_equal_length: bool
) -> Iterator[tuple[int, int, int]]:
    """Each rank with the begin and end of its range of the samples."""
    for rank in range(size):
        own = _range_of(n_total_samples, rank, size, force_equal_length)
        yield rank, own.begin, own.end


# chainermn.extensions._multi_node_snapshot


def _parse_replica_sets(replica_sets: Any, size: int) -> list[set[int]]:
    """The sets of ranks that have the same state, with one of all that are in none.

    Raises:
        AssertionError: sets overlap, or a rank does not exist.
    """
    try:
        return [set(ranks) for ranks in _complete(replica_sets, size)]
    except ValueError as error:
        raise AssertionError(str(error)) from error


# chainermn.extensions.checkpoint


def _filename(self: MultiNodeCheckpointer, iteration: int) -> str:
    """The name of this rank's file of an iteration."""
    return os.path.basename(self._file(self.comm.rank, iteration))


def _filenames(self: MultiNodeCheckpointer, iterations: Iterable[int]) -> list[str]:
    """The names of this rank's files of iterations."""
    return [_filename(self, iteration) for iteration in iterations]


def _parse_filename(
    self: MultiNodeCheckpointer, filename: str
) -> tuple[str, int, int] | None:
    """The name, rank and iteration of a file; None if it is no checkpoint's."""
    match = self._pattern.fullmatch(filename)
    return match and (self._file_name, int(match[1]), int(match[2]))


def _parse_filenames(self: MultiNodeCheckpointer, filenames: Iterable[str]) -> Any:
    """``_parse_filename`` of each."""
    return [_parse_filename(self, filename) for filename in filenames]


def add_to_classes() -> None:
    """Gives checkpointers and communicators what clients read of ChainerMN's."""
    for method in (_filename, _filenames, _parse_filename, _parse_filenames):
        setattr(MultiNodeCheckpointer, method.__name__, method)
    copied = property(lambda self: self.get_config("batched_copy"))
    setattr(Communicator, "batched_copy", copied)  # noqa: B010
