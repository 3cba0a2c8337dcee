"""Parameters whose gradients are summed over ranks with different samples."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.around_call import HandledCall, surrounding
from renga.core.function_node import FunctionNode
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.types import Array, Grads, Indexes, Variables
from renga.core.variable import Variable
from renga.parallel.placement import PARTIAL, REPLICATE
from renga.parallel.placement.activation_shard import ReadingSite
from renga.parallel.placement.tracker import PlacementTracker
from renga.parallel.placement.whole_reads import WholeReads, reads_own_shards
from renga.parallel.redistribute import Redistribution

# Gradients with fewer bytes are sent together; larger ones alone, without a copy.
LARGE = 1 << 18


class SummedGradients(FunctionNode):
    """The identity, whose backward pass sums the gradients of all inputs over ranks.

    However often a model uses a parameter, such as in each time step of a recurrent
    layer, its gradient is sent once.
    """

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return inputs

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        gys = [grad_outputs[i] for i in target_input_indexes]
        if _core.backprop_enabled():
            change = Redistribution(self.comm, PARTIAL, REPLICATE)
            return tuple(None if gy is None else change.apply(gy) for gy in gys)
        used = [gy.array for gy in gys if gy is not None]
        sums = iter(summed_arrays(self.comm, used))
        return tuple(None if gy is None else Variable(next(sums)) for gy in gys)


def summed_arrays(
    comm: Communicator, arrays: Sequence[numpy.ndarray]
) -> list[numpy.ndarray]:
    """The sums of arrays over the ranks, which call it with the same shapes."""
    sums: dict[int, numpy.ndarray] = {}
    small: dict[numpy.dtype, list[int]] = {}
    for i, x in enumerate(arrays):
        if x.nbytes < LARGE:
            small.setdefault(x.dtype, []).append(i)
        else:
            x = numpy.ascontiguousarray(x)
            sums[i] = comm.all_reduce(x, out=_core.empty(x.shape, x.dtype))
    for indexes in small.values():
        packed = numpy.concatenate([arrays[i].ravel() for i in indexes])
        total = comm.all_reduce(packed)
        ends = numpy.cumsum([arrays[i].size for i in indexes])
        for i, part in zip(indexes, numpy.split(total, ends[:-1])):
            sums[i] = part.reshape(arrays[i].shape)
    return [sums[i] for i in range(len(arrays))]


@reads_own_shards
def _summed(comm: Communicator, params: Sequence[Any]) -> dict[int, Variable]:
    """By the ``id`` of each parameter, its value with a gradient that is summed."""
    ys = SummedGradients(comm).apply(tuple(params)) if params else ()
    for param, y in zip(params, ys):
        vars(y)["shard_of"] = getattr(param, "shard_of", None)
    return {id(param): y for param, y in zip(params, ys)}


@contextlib.contextmanager
def summing_gradients(
    comm: Communicator, model: Link, tracker: PlacementTracker
) -> Iterator[None]:
    """A context in which functions read parameters with gradients summed over ranks.

    However a model refers to a parameter: by a link, or in a list of its own. Variables
    that its links have as attributes get gradients alike.

    Args:
        tracker: told of the results of functions, which are this rank's samples.
    """
    trained: list[Variable] = [
        each.param
        for each in distinct_params(model, include_uninit=False)
        if each.param.requires_grad
    ]
    trained += _leaves_of(model)
    replaced = {}
    if trained and _core.backprop_enabled():
        replaced = _summed(comm, trained)
    with surrounding(SampleReads(replaced, tracker)):
        yield


def _leaves_of(model: Link) -> list[Variable]:
    """The Variables that links have as attributes, and whose gradients may be read.

    Those that are marked as shards are activations of an earlier call.
    """
    values = (value for link in model.links() for value in vars(link).values())
    found = {id(x): x for x in values if type(x) is Variable}
    return [
        x
        for x in found.values()
        if x.requires_grad and x.creator_node is None and x.dtype.kind == "f"
    ]


class SampleReads(WholeReads):
    """Tells a tracker of this rank's samples, and where the program reads of them."""

    def __init__(
        self, replaced: Mapping[int, Variable], tracker: PlacementTracker
    ) -> None:
        super().__init__(replaced)
        self._tracker = tracker

    def __call__(self, call: HandledCall) -> None:
        super().__call__(call)
        self._tracker.note_shards(call.results)

    def whole_of(self, x: Variable, site: ReadingSite) -> None:
        """Takes note of where the program reads, which gets numbers of a shard."""
        self._tracker.note_read(site)
