"""A model for several ranks, made from one for a single rank."""

from __future__ import annotations

import copy
from typing import Any

from renga.link import Link
from renga.links import BatchNormalization
from renga.links.parallel.multi_node_batch_normalization import (
    MultiNodeBatchNormalization,
)


def create_mnbn_model(
    link: Link, comm: Any, communication_backend: str = "auto"
) -> Any:
    """A copy of ``link`` in which each BatchNormalization is for all ranks together.

    Parameters and statistics are copied. ``communication_backend`` is as for
    MultiNodeBatchNormalization.

    Raises:
        ValueError: there is no such backend.
    """
    convert = MultiNodeBatchNormalization.from_link
    replacements: dict[int, Any] = {
        id(child): convert(child, comm, communication_backend)
        for child in link.links()
        if isinstance(child, BatchNormalization)
    }
    return copy.deepcopy(link, replacements)
