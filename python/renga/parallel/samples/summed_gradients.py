"""Parameters whose gradients are summed over ranks with different samples."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.around_call import HandledCall, surrounding, variables_in
from renga.core.function_node import FunctionNode
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.parameter import Parameter
from renga.core.types import Array, Grads, Indexes, Variables
from renga.core.variable import Variable
from renga.parallel.conversion.placement_checker import has_gradient
from renga.parallel.placement import PARTIAL, REPLICATE
from renga.parallel.placement.activation_shard import ActivationShard, ReadingSite
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


class LeafGradients(SummedGradients):
    """The same for a leaf that is no parameter, once it is known to be the program's.

    A leaf that a model makes in its call may be of this rank's samples. Its gradient is
    this rank's, too, for those who read it within the call.
    """

    is_summed = False

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        if not self.is_summed:
            return grad_outputs
        return super().backward(target_input_indexes, grad_outputs)


@reads_own_shards
def _summed(node: SummedGradients, params: Sequence[Any]) -> list[Variable]:
    """The values of parameters and Variables with gradients that are summed."""
    ys = node.apply(tuple(params))
    for param, y in zip(params, ys):
        vars(y)["shard_of"] = getattr(param, "shard_of", None)
    return list(ys)


@contextlib.contextmanager
def summing_gradients(
    comm: Communicator, model: Link, tracker: PlacementTracker, arguments: object
) -> Iterator[None]:
    """A context in which functions read parameters with gradients summed over ranks.

    However a model refers to a parameter: by a link, or in a list of its own. The same
    is true of Variables that are there before the call, which the model reads though
    they are no arguments, and of parameters of other models.

    Args:
        tracker: told of the results of functions, which are this rank's samples.
        arguments: those that the model is called with on this rank.
    """
    trained: list[Variable] = [
        each.param
        for each in distinct_params(model, include_uninit=False)
        if each.param.requires_grad
    ]
    replaced: dict[int, Variable] = {}
    if trained and _core.backprop_enabled():
        ys = _summed(SummedGradients(comm), trained)
        replaced = {id(param): y for param, y in zip(trained, ys)}
    reads = SampleReads(comm, replaced, tracker)
    reads.note_results([*replaced.values(), *variables_in(arguments)])
    with surrounding(reads):
        yield
    reads.settle()


class SampleReads(WholeReads):
    """Sums gradients of what the program has, and tells where it reads of samples.

    Args:
        comm: the ranks with other samples.
        tracker: told of this rank's samples, and where the program reads of them.
    """

    def __init__(
        self,
        comm: Communicator,
        replaced: Mapping[int, Variable],
        tracker: PlacementTracker,
    ) -> None:
        super().__init__(replaced)
        self._comm, self._tracker = comm, tracker
        self._computed: set[Any] = set()  # nodes of the graph of this call
        # By their nodes, values with gradients that are summed. Variables themselves
        # are not kept: a leaf that nobody has after the call needs no gradient.
        self._outer: dict[Any, Variable] = {}
        self._leaves: list[tuple[Any, LeafGradients]] = []

    def __call__(self, call: HandledCall) -> None:
        super().__call__(call)
        self.note_results(call.results)
        self._tracker.note_shards(call.results)

    def note_results(self, results: Iterable[Variable]) -> None:
        """Takes note of what is computed in the call, or was given to it."""
        self._computed.update(y.creator_node for y in results)

    def whole_of(self, x: Variable, site: ReadingSite) -> None:
        """Takes note of where the program reads, which gets numbers of a shard."""
        self._tracker.note_read(site)

    def settle(self) -> None:
        """After the call: sums gradients of leaves that are alike on all ranks.

        Every rank calls it, and has read as many.
        """
        if not self._leaves:
            return
        own = [
            (node.shape, node.get_variable_or_none() is not None)
            for node, _ in self._leaves
        ]
        of_ranks = zip(*self._comm.allgather_obj(own))
        for (_, gradients), of_rank in zip(self._leaves, of_ranks):
            shapes, are_kept = zip(*of_rank)
            gradients.is_summed = len(set(shapes)) == 1 and any(are_kept)

    def _read(self, x: Any) -> Any:
        is_known = isinstance(x, ActivationShard) or id(x) in self._replaced
        if not is_known and _core.backprop_enabled() and has_gradient(x):
            x = self._summing(x)
        return super()._read(x)

    def _summing(self, x: Variable) -> Variable:
        """``x``, or its value with a gradient that is summed if the program had it."""
        creator = x.creator_node
        if x.node in self._outer:
            return self._outer[x.node]
        if creator is not None and self._is_computed(creator):
            return x
        gradients = SummedGradients(self._comm)
        if creator is None and not isinstance(x, Parameter):
            gradients = LeafGradients(self._comm)
            self._leaves.append((x.node, gradients))
        (y,) = _summed(gradients, [x])
        self.note_results([y])
        self._outer[x.node] = y
        return y

    def _is_computed(self, creator: Any) -> bool:
        """Whether a node belongs to the call, or is computed of one that does.

        Not all are noted, such as those of gradients that a model computes.
        """
        found, nodes = {creator}, [creator]
        while nodes:
            node = nodes.pop()
            if node in self._computed:
                self._computed.add(creator)
                return True
            before = {x.creator_node for x in node.inputs} - {None} - found
            found |= before
            nodes += before
        return False
