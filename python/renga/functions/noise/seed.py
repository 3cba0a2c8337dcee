"""Random numbers of functions, which agree between ranks where their inputs do."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Union

import numpy

from renga.core.computational_graph import functions_before
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable

RandomState = Iterable[Union[str, Array, float]]
"""The state of NumPy's global generator."""

# An odd number near 2**53 / the golden ratio: multiples are far apart.
_STRIDE = 5566755282872655
# Whether any function has a random stream; else graphs need not be searched.
_streams_exist = False


class _StreamsOfThread(threading.local):
    first_stream = 0
    # The communicator whose ranks run one model; None outside of such a model.
    comm: Any = None
    # Set while the thread records a graph of CUDA.
    add: Callable[[int, int], None] | None = None
    drawn: list[int] | None = None  # seeds, if they are noted
    repeated: Sequence[int] = ()  # to be drawn first


_thread = _StreamsOfThread()


def draw_seed(x: ArrayLike) -> int:
    """53 bits from NumPy's global generator, so seeding NumPy reproduces a run.

    Ranks that compute ``x`` together use what rank 0 draws, whatever the states of
    their own generators are. They get the same seed for a replicated variable, and
    different seeds for a sharded one.
    """
    stream, comm = _stream_and_comm_of(x)
    seed = _seed_of_stream(stream, comm)
    if _thread.add is not None:
        _thread.add(seed, stream)
    return seed


def draw_seeds(streams: Sequence[int]) -> list[int]:
    """What as many calls of ``draw_seed`` would draw."""
    return [_seed_of_stream(stream) for stream in streams]


def record_seeds(add: Callable[[int, int], None] | None) -> None:
    """Has this thread's ``draw_seed`` call ``add(seed, stream)``; None ends that."""
    _thread.add = add


def is_same_state(state: RandomState, other: RandomState) -> bool:
    """Whether two states of NumPy's global generator are the same."""
    return all(map(numpy.array_equal, state, other))


@contextlib.contextmanager
def unchanged_generator() -> Iterator[None]:
    """A block after which NumPy's global generator draws what it would have before."""
    state = numpy.random.get_state()
    try:
        yield
    finally:
        numpy.random.set_state(state)


def generator(x: ArrayLike) -> Any:
    """What draws random numbers of the shape of ``x``: NumPy's global generator.

    For a replicated variable, all ranks get the numbers of rank 0. For a sharded one,
    it is a generator with a seed drawn from the global one: else the shards would get
    the same numbers, and shards of different sizes leave the ranks' global generators
    in different states.

    Raises:
        RuntimeError: a graph of CUDA is recorded, which would repeat these numbers.
    """
    if _thread.add is not None:
        raise RuntimeError("random numbers of the host cannot be recorded")
    stream, comm = _stream_and_comm_of(x)
    if stream == 0:
        return numpy.random if comm is None else _Rank0Generator(comm)
    seed = _seed_of_stream(stream, comm)
    return numpy.random.RandomState(numpy.random.MT19937(seed))


class _Rank0Generator:
    """Draws on every rank, as one process does, and returns what rank 0 has drawn."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    def __getattr__(self, name: str) -> Callable[..., Any]:
        draw = getattr(numpy.random, name)

        def draw_on_rank_0(*args: object, **kwargs: object) -> Any:
            return self._comm.broadcast(numpy.asarray(draw(*args, **kwargs)))

        return draw_on_rank_0


def copy_stream(leaf: Any, x: ArrayLike) -> None:
    """Gives ``leaf``, which has no graph, the random stream of ``x``."""
    if _streams_exist:
        owner = _owner_of(x)
        leaf.random_stream = getattr(owner, "random_stream", 0)
        leaf.random_comm = getattr(owner, "random_comm", None)


def give_stream(owner: Any, comm: Any, is_replicated: bool = False) -> None:
    """Sets what random numbers are drawn for the results of a function, or for a leaf.

    Those for shards differ between the ranks of ``comm``.
    """
    owner.random_comm = comm
    owner.random_stream = 0 if is_replicated else comm.rank + 1
    enable_random_streams()


def enable_random_streams() -> None:
    """Makes ``draw_seed`` search graphs for a ``random_stream`` from now on."""
    global _streams_exist
    _streams_exist = True


def noted_seeds(
    drawn: list[int], repeated: Sequence[int] = ()
) -> contextlib.AbstractContextManager[None]:
    """A context in which ``draw_seed`` appends what it draws from the generator.

    Args:
        drawn: an empty list.
        repeated: seeds to be drawn first, instead of others.
    """
    return _set_in_thread(drawn=drawn, repeated=repeated)


def random_streams(
    comm: object, first: int = 0
) -> contextlib.AbstractContextManager[None]:
    """A context in which the ranks of ``comm`` use what its rank 0 draws.

    Args:
        comm: the communicator of the ranks that run a model together.
        first: the number from which this rank's streams count. Ranks with other samples
            have other ones, which differ by more than there are streams.
    """
    enable_random_streams()
    return _set_in_thread(first_stream=first, comm=comm)


@contextlib.contextmanager
def _set_in_thread(**values: Any) -> Iterator[None]:
    before = {name: getattr(_thread, name) for name in values}
    vars(_thread).update(values)
    try:
        yield
    finally:
        vars(_thread).update(before)


def _stream_and_comm_of(x: Any) -> tuple[int, Any]:
    """The number of the stream, and the ranks that use what their rank 0 draws."""
    if not _streams_exist:
        return 0, None
    owner = _owner_of(x)
    comm = getattr(owner, "random_comm", None)
    is_alone = comm is not None and comm.size == 1
    stream = 0 if is_alone else getattr(owner, "random_stream", 0)
    comm = _thread.comm or comm
    if comm is not None and comm.size == 1:
        comm = None
    return _thread.first_stream + stream, comm


def _seed_of_stream(stream: int, comm: Any = None) -> int:
    seed = _draw()
    if comm is not None:
        seed = int(comm.broadcast(numpy.array(seed)))
    return (seed + stream * _STRIDE) % 2**53


def _draw() -> int:
    drawn = _thread.drawn
    if drawn is None:
        return int(numpy.random.random_sample() * 2**53)
    if len(drawn) < len(_thread.repeated):
        seed = _thread.repeated[len(drawn)]
    else:
        seed = int(numpy.random.random_sample() * 2**53)
    drawn.append(seed)
    return seed


def _owner_of(x: Any) -> Any:
    """The nearest function or leaf before ``x`` with a ``random_stream``, or None.

    The number differs between ranks for a sharded variable; it is 0 on all ranks for a
    replicated one. ``random_comm`` is the communicator of these ranks.
    """
    if hasattr(x, "random_stream"):
        return x
    for function in functions_before([x.node] if isinstance(x, Variable) else []):
        leaves = [x for x in function.inputs if x.creator_node is None]
        for owner in (function, *(leaf.get_variable_or_none() for leaf in leaves)):
            if hasattr(owner, "random_stream"):
                return owner
    return None
