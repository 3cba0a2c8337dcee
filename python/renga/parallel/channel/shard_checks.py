"""A check that functions between parallel links compute of shards what they may.

The layouts of activations are those of the functions that a model has called with an
example. Later it may call others, such as in training only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from renga._core import Locality
from renga.communicators import Communicator
from renga.core.around_call import FunctionCall, HandledCall, inner_handler
from renga.core.configuration import no_backprop_mode
from renga.core.link import Link
from renga.core.operations import operation_of
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.convolution import ParallelConvolution
from renga.parallel.conversion.tracing import kept_axes
from renga.parallel.placement import BATCH, REPLICATE, Shard
from renga.parallel.placement.activation_shard import ReadingSite, become_shards
from renga.parallel.placement.whole_reads import WholeReads
from renga.parallel.redistribute import all_gather_size, redistribute
from renga.utils.type_check import InvalidType


class ShardChecks(WholeReads):
    """Knows which variables of one call of a model are shards, and along which axis.

    It does not know those that links keep from call to call. What the program reads of
    those that it knows is the whole.

    Args:
        comm: the communicator of the ranks that have the shards.

    Raises:
        ValueError: from a function whose result would be another one than that of the
            whole, or of whose operands some would get the gradient of a shard.
    """

    def __init__(self, comm: Communicator) -> None:
        super().__init__({})
        self._comm = comm
        # The variables are kept, so that their ids are not reused.
        self._shards: dict[int, tuple[Variable, int]] = {}
        self._whole: dict[int, Variable] = {}  # what is computed of parameters alone
        self._is_paused = False

    @contextlib.contextmanager
    def within_link(self) -> Iterator[None]:
        """A context of a parallel link, which knows what it has."""
        before, self._is_paused = self._is_paused, True
        try:
            yield
        finally:
            self._is_paused = before

    def note(self, y: Variable, axis: int) -> None:
        """Takes note of a shard."""
        self._shards[id(y)] = y, axis
        become_shards(y)

    def whole_of(self, x: Variable, _: ReadingSite) -> WholeActivation | None:
        """What reads the whole of a shard; None of others, and within functions."""
        if self._is_paused or id(x) not in self._shards:
            return None
        return WholeActivation(self, self._comm, x, self._shards[id(x)][1])

    def __call__(self, call: HandledCall) -> None:
        operands = [] if self._is_paused else list(call.operands)
        axes = {self._shards[id(x)][1] for x in operands if id(x) in self._shards}
        try:
            super().__call__(call)
        except InvalidType as error:
            if axes and not all(id(x) in self._shards for x in operands):
                raise _another_call(call, operands) from error  # as of a whole shape
            raise
        if axes and not (isinstance(call, FunctionCall) and call.node is None):
            self._check(call, operands, axes)
        elif not axes and any(map(self._is_trained, operands)):
            self._whole.update((id(y), y) for y in call.results)

    def _is_trained(self, x: Variable) -> bool:
        """Whether it is the same on every rank, and a parameter's gradient its own."""
        is_leaf = isinstance(x, Parameter) and x.requires_grad
        return is_leaf or id(x) in self._whole

    def _check(self, call: HandledCall, xs: list[Any], axes: set[int]) -> None:
        ys = [y for y in call.results if id(y) not in self._shards]
        xs = [x for x in xs if x.requires_grad or not set(x.shape) <= {1}]
        is_summed = any(map(self._is_trained, xs))  # its gradient, over shards
        axis = min(axes)
        are_kept = len(axes) == 1 and axis in _kept_axes(call, [*xs, *ys])
        if ys and (is_summed or not are_kept):
            raise _another_call(call, xs)
        for y in ys:
            self.note(y, axis)


def _another_call(call: HandledCall, xs: list[Any]) -> ValueError:
    shapes = ", ".join(str(x.shape) for x in xs)
    return ValueError(
        f"{call.label}: expected functions that the model has called with the example "
        f"of parallelize, got another one of shards, {shapes}: give an example and a "
        "mode in which it is called, or none"
    )


class WholeActivation(NamedTuple):
    """Reads the whole of which each rank has a shard, as every rank has to."""

    checks: ShardChecks
    comm: Communicator
    own: Variable
    axis: int

    def shape(self) -> tuple[int, ...]:
        """The shape of the whole."""
        with self.checks.within_link():
            shape = list(self.own.shape)
            shape[self.axis] = sum(all_gather_size(self.own, self.comm, self.axis))
        return tuple(shape)

    def array(self) -> Array:
        """The elements of the whole: a copy, into which nothing can be written."""
        with self.checks.within_link(), no_backprop_mode():
            source = Shard(self.axis)
            array: Array = redistribute(self.own, self.comm, source, REPLICATE).array
        if hasattr(array, "setflags"):
            array.setflags(write=False)
        return array


def _kept_axes(call: HandledCall, values: list[Any]) -> Collection[int]:
    """The axes along which the result is a shard if all operands are."""
    operation = operation_of(getattr(call, "node", None) or call)
    if operation and operation.takes_arrays:  # such as those of random numbers
        if operation.locality != Locality.pointwise:
            return ()
    return kept_axes(operation, values).values()


class CheckedLink(Link):
    """A parallel link of a model whose functions are checked."""

    def forward(self, *args: object, **kwargs: object) -> Variable:
        checks = inner_handler()
        run: Callable[..., Variable] = super().forward  # type: ignore[misc]
        if not isinstance(checks, ShardChecks):
            return run(*args, **kwargs)
        with checks.within_link():
            y = run(*args, **kwargs)
        target = vars(self).get("_target", REPLICATE)
        if target != REPLICATE:
            of_images = isinstance(self, (ParallelConvolution, BatchNormalization))
            checks.note(y, 0 if target == BATCH else 1 if of_images else y.ndim - 1)
        return y
