"""One rank's shard of a data set, and the examples that two ranks have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from renga.communicators import Communicator
from renga.core.types import Dataset
from renga.datasets import SubDataset
from renga.datasets.sub_dataset import Order


class DatasetShard(SubDataset):
    """The examples of one rank.

    Shards of one length overlap where the number of examples is no multiple of that of
    ranks.

    Args:
        repeats: how many of the last examples belong to another rank's shard, too.
    """

    def __init__(
        self,
        dataset: Dataset,
        start: int,
        finish: int,
        order: Order | None = None,
        repeats: int = 0,
    ) -> None:
        super().__init__(dataset, start, finish, order)
        self.repeats = repeats

    @contextlib.contextmanager
    def without_repeats(self) -> Iterator[None]:
        """Context in which every example of the data set is on one rank only."""
        self._finish -= self.repeats
        try:
            yield
        finally:
            self._finish += self.repeats


@contextlib.contextmanager
def without_repeats(name: str, dataset: Dataset, comm: Communicator) -> Iterator[None]:
    """Hides the examples that another rank counts, of shards within a data set.

    Every rank of ``comm`` calls it.

    Args:
        name: of the evaluator, for the error.

    Raises:
        ValueError: on all ranks, if they cannot be hidden on one, as in a subset of a
            shard.
    """
    shards = list({id(shard): shard for shard in _shards_in(dataset)}.values())
    length = len(dataset)
    repeats = sorted({shard.repeats for shard in shards})
    with contextlib.ExitStack() as hidden:
        for shard in shards:
            hidden.enter_context(shard.without_repeats())
        is_refused = bool(shards) and [length - len(dataset)] != repeats
        kind = type(dataset).__name__ if is_refused else None
        refused = [kind for kind in comm.allgather_obj(kind) if kind is not None]
        if refused:
            raise ValueError(
                f"{name}: expected a shard of scatter_dataset, or "
                "columns or a transformation of shards, so that an example that two "
                f"ranks have can be counted once, got a {refused[0]} of a "
                "shard: give scatter_dataset all of it, or force_equal_length=False"
            )
        yield


def _shards_in(dataset: Any) -> Iterator[Any]:
    """The shards of data sets that a data set is made of."""
    if hasattr(dataset, "without_repeats"):
        yield dataset
        return
    parts = getattr(dataset, "_datasets", [getattr(dataset, "_dataset", None)])
    for part in parts.values() if isinstance(parts, Mapping) else parts:
        if part is not None:
            yield from _shards_in(part)
