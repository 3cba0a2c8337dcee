"""Replacement of a model's batch normalization by one over all ranks."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links import BatchNormalization
from renga.links.parallel.multi_node_batch_normalization import (
    MultiNodeBatchNormalization,
)
from renga.parallel.conversion.replacement import copy_with_replacements

_Link = TypeVar("_Link", bound=Link)


def create_mnbn_model(
    link: _Link, comm: Communicator, communication_backend: str = "auto"
) -> _Link:
    """A copy of ``link`` in which each BatchNormalization is a multi-node one.

    Parameters and statistics are copied.

    Args:
        communication_backend: as for MultiNodeBatchNormalization.

    Raises:
        ValueError: there is no such backend.
    """
    convert = MultiNodeBatchNormalization.from_link
    replacements: dict[int, Any] = {
        id(child): convert(child, comm, communication_backend)
        for child in link.links()
        if isinstance(child, BatchNormalization)
    }
    return cast(_Link, copy_with_replacements(link, replacements))
