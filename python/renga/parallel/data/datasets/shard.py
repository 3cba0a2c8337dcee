"""One rank's shard of a data set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

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
