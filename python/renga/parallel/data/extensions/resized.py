"""Loading of training runs that another number of ranks has saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from renga.core.serializer import AbstractSerializer, Serializable
from renga.parallel.data.iterators.synchronized_iterator import CommonOrderSampler
from renga.serializers import npz
from renga.serializers.stored import entry_of, restore

# The keys in an archive of the number of ranks, and of the node of each.
RANKS = "multi_node/ranks"
NODES = "multi_node/nodes"


class _Resized(npz.NpzDeserializer):
    """Reads the state of a training run of another number of ranks.

    Models and optimizers are the same on all ranks. An iterator continues in the same
    part of the epoch, in a new order if it has other examples. A rank that did not
    exist before keeps the state of its random generators, so that no two ranks have the
    same, but for that of a synchronized iterator.

    Attributes:
        ratio: of the examples of an iterator to those that it had. Where a file does
            not tell, the data set counts as scattered over the ranks.
    """

    ratio: float
    is_new_rank: bool

    def __call__(self, key: str, value: Any) -> Any:
        full = self.path + key
        is_common = f"/{CommonOrderSampler.KEY}/" in full
        if full.endswith("random_state") and self.is_new_rank and not is_common:
            return value
        if "iterator:" not in full:
            return super().__call__(key, value)
        entry = self._entry(full)
        if isinstance(value, numpy.ndarray) and entry is not None:
            if key in ("order", "_order") and entry.shape is not None:
                self.ratio = value.size / max(math.prod(entry.shape), 1)
            if entry.shape != value.shape:
                return value
        loaded = super().__call__(key, value)
        if key == "dataset_size":
            self.ratio = value / max(loaded, 1)
        return int(loaded * self.ratio) if key == "current_position" else loaded


Archive = Mapping[str, numpy.ndarray]


def load(
    archive: Archive,
    target: Serializable,
    rank: int,
    size: int,
    file: object = None,
    is_new_rank: bool | None = None,
) -> None:
    """Loads ``target`` on rank ``rank`` of ``size`` from one rank's archive.

    Args:
        file: its name in errors.
        is_new_rank: whether another rank loads the archive as its own; by default it
            does if there were fewer ranks.

    Raises:
        Exception: any that ``load_npz`` raises.
    """
    old_size = ranks_of(archive) or size
    is_new_rank = rank >= old_size if is_new_rank is None else is_new_rank
    if old_size == size and not is_new_rank:
        npz.NpzDeserializer(archive, file=file).load(target)
        return
    deserializer = _Resized(archive, file=file)
    deserializer.ratio, deserializer.is_new_rank = old_size / size, is_new_rank
    deserializer.load(target)


def ranks_of(archive: Archive) -> int | None:
    """The number of ranks that saved an archive; None if it is not known."""
    return restore(RANKS, entry_of(archive[RANKS]), 0) if RANKS in archive else None


def nodes_of(archive: Archive) -> list[int]:
    """The node of each rank that saved an archive; none if they are not known."""
    if NODES not in archive:
        return []
    nodes: list[int] = restore(NODES, entry_of(archive[NODES]), None).tolist()
    return nodes


def source_of(
    rank: int, nodes: Sequence[int], old_size: int, old_nodes: Sequence[int]
) -> tuple[int, bool]:
    """The rank whose values a rank loads, and whether another one has them, too.

    If there are as many nodes as before it was on the same one, so that what is kept of
    gradients by a node stays there.

    Args:
        rank: that loads.
        nodes: those of all ranks.
        old_size: how many ranks have saved.
        old_nodes: their nodes; files of 0.1.0 have none.
    """
    before, place = list(range(old_size)), rank
    if set(nodes) == set(old_nodes):
        before = [r for r in before if old_nodes[r] == nodes[rank]]
        place = list(nodes[:rank]).count(nodes[rank])
    return before[place % len(before)], place >= len(before)


class Marked:
    """An object that is saved together with the nodes of the ranks."""

    def __init__(self, target: Serializable, nodes: Sequence[int]) -> None:
        self._target = target
        self._nodes = nodes

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves both."""
        self._target.serialize(serializer)
        serializer(RANKS, len(self._nodes))
        serializer(NODES, numpy.array(self._nodes))
