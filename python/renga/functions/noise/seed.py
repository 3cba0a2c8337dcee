"""Where the core's random operations get their seeds."""

from __future__ import annotations

from typing import Any

import numpy

# An odd number near 2**53 / the golden ratio: multiples lie far apart.
_STRIDE = 5566755282872655
# Whether any function has a random stream: without, graphs need not be searched.
_parts_exist = False


def draw_seed(x: Any = None) -> int:
    """53 bits from NumPy's global generator, so that seeding that one is enough.

    Ranks with the same generator draw the same for a variable that all of them have,
    and each its own for a variable ``x`` of which it has a part.
    """
    seed = int(numpy.random.random_sample() * 2**53)
    if x is None or not _parts_exist:
        return seed
    return (seed + _stream_of(x) * _STRIDE) % 2**53


def keep_stream(leaf: Any, x: Any) -> None:
    """Makes ``draw_seed`` treat ``leaf`` like ``x``, whose graph it has not."""
    if _parts_exist:
        leaf.random_stream = _stream_of(x)


def expect_parts() -> None:
    """Makes ``draw_seed`` look for a ``random_stream`` from now on."""
    global _parts_exist
    _parts_exist = True


def _stream_of(x: Any) -> int:
    """The ``random_stream`` of the nearest function or leaf before ``x`` that has one.

    It is a number that differs between ranks with different parts, 0 on all ranks
    where they have the same.
    """
    own = getattr(x, "random_stream", None)
    if own is not None:
        return own
    open_nodes = [getattr(x, "creator_node", None)]
    seen: dict[int, Any] = {}
    while open_nodes:
        node = open_nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = node
        leaves = [vertex for vertex in node.inputs if vertex.creator_node is None]
        for owner in (node, *(leaf.get_variable_or_none() for leaf in leaves)):
            stream = getattr(owner, "random_stream", None)
            if stream is not None:
                return stream
        open_nodes += [vertex.creator_node for vertex in reversed(node.inputs)]
    return 0
