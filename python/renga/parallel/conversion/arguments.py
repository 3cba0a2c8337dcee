"""The arguments with which the ranks call a model, the same on all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy

from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.backend import get_array_types
from renga.core.configuration import config
from renga.core.link import Link
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.parallel.conversion.loads import Loads
from renga.utils.containers import leaves, map_leaves
from renga.utils.type_check import InvalidType


def require_same_on_all_ranks(
    comm: Communicator,
    caller: str,
    what: str,
    error: type[Exception],
    text: str,
    data: bytes = b"",
) -> None:
    """Raises the same error on every rank unless all have the same text and data.

    Every rank calls it. It costs a message of 8 bytes.

    Args:
        caller: the function that the error names.
        what: the text and the data are, for the error.
        error: the type of the error.
        text: what this rank has, as the error shows it.
        data: bytes that are compared, too, but not shown.

    Raises:
        error: the ranks differ.
    """
    if comm.size == 1:
        return
    digest = hashlib.blake2b(text.encode(), digest_size=8)
    digest.update(data)
    own = numpy.frombuffer(digest.digest(), numpy.int64)
    if (comm.all_gather(own) == own).all():  # on all ranks, or on none
        return
    texts = comm.allgather_obj(text)
    for rank, other in enumerate(texts):
        if other != texts[0]:
            raise error(
                f"{caller}: expected the same {what} on every rank, got {texts[0]} on "
                f"rank 0 and {other} on rank {rank}"
            )
    raise error(
        f"{caller}: expected the same {what} on every rank, got other values of "
        f"{texts[0]} on some"
    )


_COMPARED = 4  # positions along each axis of an array


def require_same_call(
    comm: Communicator,
    model: Link,
    loads: Loads,
    arguments: object,
    is_replicated: bool,
) -> None:
    """Checks that all ranks call the model with arrays of the same shapes and dtypes.

    Some numbers of replicated arrays are compared, too, unless they were computed: with
    a different batch on each rank, the shards would be those of different arrays. While
    training, so are rates and hooks of the model's optimizers. What rank 0 alone has
    loaded since the last call, all ranks get.

    Raises:
        InvalidType: on all ranks, if the calls differ.
        RuntimeError: on all ranks, if others than rank 0 alone have loaded the model.
    """
    name, arrays = type(model).__name__, arrays_in(arguments)
    text = ", ".join(_describe(x, is_replicated) for x in arrays) or "no array"
    text += f" {'while training' if config.train else 'while testing'}"
    text += "" if config.enable_backprop else ", without gradients"
    settings = loads.settings() if config.train else ""
    text += settings
    data = b"".join(map(_compared_bytes, arrays)) if is_replicated else b""
    data += "".join(loads.places()).encode()
    what = 'inputs (input="sharded" takes shards)' if is_replicated else "inputs"
    what += " and settings of optimizers" if settings else ""
    try:
        require_same_on_all_ranks(comm, name, what, InvalidType, text, data)
    except InvalidType:  # on all ranks
        if not loads.share(comm, name):
            raise
        require_same_call(comm, model, loads, arguments, is_replicated)
    else:
        loads.agree()


def arrays_in(value: object) -> list[ArrayLike]:
    """The arrays and Variables in lists, tuples and dictionaries, in order."""
    kinds = (Variable, *get_array_types())
    found: list[Any] = [leaf for leaf in leaves(value) if isinstance(leaf, kinds)]
    return found


def map_arrays(function: Callable[..., object], value: object) -> Any:
    """``value`` with ``function(x)`` in place of each array and Variable in it."""
    kinds = (Variable, *get_array_types())
    return map_leaves(lambda x: function(x) if isinstance(x, kinds) else x, value)


def _describe(x: Any, is_replicated: bool) -> str:
    if is_replicated or x.ndim < 3:
        return f"{x.dtype} {x.shape}"
    return f"{x.dtype} {x.shape[:2]} with {x.ndim - 2} more axes"


def _compared_bytes(x: Any) -> bytes:
    if isinstance(x, Variable):
        if x.creator_node is not None:
            return b""  # computed values may differ in the last bits between machines
        x = x.array
    steps = tuple(slice(None, None, max(1, n // _COMPARED)) for n in x.shape)
    return cuda.to_cpu(x[steps]).tobytes() if x.dtype != object else b""
