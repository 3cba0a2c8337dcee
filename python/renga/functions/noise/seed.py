"""Random numbers of functions, which agree between ranks where their inputs do."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy

# An odd number near 2**53 / the golden ratio: multiples are far apart.
_STRIDE = 5566755282872655
# Whether any function has a random stream; else graphs need not be searched.
_streams_exist = False


class _Thread(threading.local):
    first_stream = 0
    # Set while the thread records a graph of CUDA.
    add: Callable[[int, int], None] | None = None


_thread = _Thread()


def draw_seed(x: Any) -> int:
    """53 bits from NumPy's global generator, so seeding NumPy reproduces a run.

    Ranks with the same generator state draw the same seed for a replicated variable
    ``x``, and different seeds for a sharded one.
    """
    stream = _own_stream_of(x)
    seed = _seed_of_stream(stream)
    if _thread.add is not None:
        _thread.add(seed, stream)
    return seed


def draw_seeds(streams: Sequence[int]) -> list[int]:
    """What as many calls of ``draw_seed`` would draw."""
    return [_seed_of_stream(stream) for stream in streams]


def record_seeds(add: Callable[[int, int], None] | None) -> None:
    """Has this thread's ``draw_seed`` call ``add(seed, stream)``; None ends that."""
    _thread.add = add


def generator(x: Any) -> Any:
    """What draws random numbers of the shape of ``x``: NumPy's global generator.

    For a sharded variable, one with a seed drawn from it: else the shards would get
    the same numbers, and shards of different sizes leave the ranks' global generators
    in different states.

    Raises:
        RuntimeError: a graph of CUDA is recorded, which would repeat these numbers.
    """
    if _thread.add is not None:
        raise RuntimeError("random numbers of the host cannot be recorded")
    stream = _own_stream_of(x)
    if stream == 0:
        return numpy.random
    return numpy.random.RandomState(numpy.random.MT19937(_seed_of_stream(stream)))


def copy_stream(leaf: Any, x: Any) -> None:
    """Gives ``leaf``, which has no graph, the random stream of ``x``."""
    if _streams_exist:
        leaf.random_stream = _stream_of(x)


def enable_random_streams() -> None:
    """Makes ``draw_seed`` search graphs for a ``random_stream`` from now on."""
    global _streams_exist
    _streams_exist = True


@contextlib.contextmanager
def random_streams(first: int) -> Iterator[None]:
    """A context in which the streams of this thread's functions count from ``first``.

    Functions of ranks with other samples draw other random numbers in it.

    Args:
        first: differs between them by more than there are streams; above 0.
    """
    enable_random_streams()
    before, _thread.first_stream = _thread.first_stream, first
    try:
        yield
    finally:
        _thread.first_stream = before


def _own_stream_of(x: Any) -> int:
    return _thread.first_stream + _stream_of(x) if _streams_exist else 0


def _seed_of_stream(stream: int) -> int:
    seed = int(numpy.random.random_sample() * 2**53)
    return (seed + stream * _STRIDE) % 2**53


def _stream_of(x: Any) -> int:
    """The ``random_stream`` of the nearest function or leaf before ``x`` that has one.

    The number differs between ranks for a sharded variable; it is 0 on all ranks for a
    replicated one.
    """
    own = getattr(x, "random_stream", None)
    if own is not None:
        return own
    open_nodes = [getattr(x, "creator_node", None)]
    visited: dict[int, Any] = {}
    while open_nodes:
        node = open_nodes.pop()
        if node is None or id(node) in visited:
            continue
        visited[id(node)] = node
        leaves = [x for x in node.inputs if x.creator_node is None]
        for owner in (node, *(leaf.get_variable_or_none() for leaf in leaves)):
            stream = getattr(owner, "random_stream", None)
            if stream is not None:
                return stream
        open_nodes += [x.creator_node for x in reversed(node.inputs)]
    return 0
