"""Iterators for several ranks, with ChainerMN's names."""

from renga.parallel.data.iterators import multi_node_iterator, synchronized_iterator
from renga.parallel.data.iterators.multi_node_iterator import create_multi_node_iterator
from renga.parallel.data.iterators.synchronized_iterator import (
    create_synchronized_iterator,
)

__all__ = [
    "create_multi_node_iterator",
    "create_synchronized_iterator",
    "multi_node_iterator",
    "synchronized_iterator",
]
