"""Iterators for several ranks, with ChainerMN's names."""

from renga.parallel.data.iterators import (
    multi_node_iterator as multi_node_iterator,
    synchronized_iterator as synchronized_iterator,
)
from renga.parallel.data.iterators.multi_node_iterator import (
    create_multi_node_iterator as create_multi_node_iterator,
)
from renga.parallel.data.iterators.synchronized_iterator import (
    create_synchronized_iterator as create_synchronized_iterator,
)
