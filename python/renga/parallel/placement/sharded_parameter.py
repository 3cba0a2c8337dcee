"""A parameter of which each rank has a block."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from renga import initializers
from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.backend import get_array_types
from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer, Deserializer, Serializer
from renga.core.types import Array, Extents, Initial, Shape
from renga.core.variable import Variable, as_number
from renga.functions.noise.seed import give_stream
from renga.parallel.placement.loaded_values import UnknownWhole
from renga.parallel.placement.whole_reads import (
    GatherBlocks,
    gather_shards_for_functions,
    is_function_asking,
)
from renga.utils.type_check import InvalidType


class Block(NamedTuple):
    """What one rank has of an array: ranges along some axes, and all of the others."""

    ranges: Mapping[int, Sequence[range]]

    def index_in(self, shape: Sequence[int]) -> tuple[Array, ...]:
        """The index of the block in an array of ``shape``."""
        positions = (
            [i for elements in self.ranges.get(axis, (range(n),)) for i in elements]
            for axis, n in enumerate(shape)
        )
        return numpy.ix_(*[numpy.array(p, numpy.intp) for p in positions])


class _Whole:
    """What is seen in the place of a block's values and gradient within a context.

    What is done to them is done to the block at its end. They are gathered when they
    are first read, which every rank has to do.
    """

    def __init__(self, param: ShardedParameter) -> None:
        self._param = param
        self._seen: dict[str, Array | None] = {}

    def __enter__(self) -> None:
        self._param.seen = self

    def __exit__(self, *_: object) -> None:
        param = self._param
        param.seen = None
        array = self._seen.get("array")
        if array is not None:
            param.array[...] = param.part_of(array)
        if "grad" in self._seen:
            grad = self._seen["grad"]
            param.grad = None if grad is None else param.part_of(grad)

    def get(self, name: str) -> Array | None:
        """The whole ``array`` or ``grad``."""
        if name not in self._seen:
            param = self._param
            param.seen = None
            try:
                own = getattr(param, name)
                whole = None if own is None else like(own, param.whole(own))
            finally:
                param.seen = self
            self._seen[name] = whole
        return self._seen[name]

    def set(self, name: str, value: Array | None) -> None:
        """Replaces one of them."""
        self._seen[name] = value


class ShardedParameter(Parameter):
    """A parameter of which each rank of ``comm`` has a block.

    Initial values are drawn for the whole array on every rank and then cut, so that
    ranks with the same seed have the blocks of what a single rank would draw. Files
    hold the whole array: every rank has to take part in saving and loading. A whole
    array that is assigned, or copied from another parameter, is cut likewise. Functions
    outside of the parameter's link get the whole array (:class:`WholeReads`).

    Args:
        blocks: of the ranks; they do not overlap and make up the whole array, or each
            is the whole array.
        shape: of the whole array, None where it is not known yet.
        groups: if above 1, the whole array is the weight (I, O / groups, ...) of a
            grouped deconvolution, and blocks are of (O, I / groups, ...).
    """

    blocks: tuple[Block, ...] = ()
    whole_shape: tuple[int, ...] | None = None
    seen: _Whole | None = None  # in a context of seen_whole()

    def __init__(
        self,
        comm: Communicator,
        initializer: Initial | None,
        blocks: Sequence[Block] = (),
        shape: Sequence[int] | None = None,
        groups: int = 1,
    ) -> None:
        super().__init__(None)
        self.comm = comm
        self.initializer = initializers.get_initializer(initializer)
        self.groups = groups
        # Whole arrays by the keys of states, None for the parameter. They are kept on
        # rank 0 until all ranks have loaded them; None where the whole is not known.
        self._loaded: dict[str | None, numpy.ndarray | None] = {}
        give_stream(self, comm)
        gather_shards_for_functions()
        if shape is not None:
            self.set_blocks(blocks, shape)
            self.initialize(shape)

    def set_blocks(self, blocks: Sequence[Block], shape: Sequence[int]) -> None:
        """Sets the shape of the whole array and the block of each rank."""
        self.blocks = tuple(blocks)
        self.whole_shape = tuple(shape)

    def initialize(self, shape: Extents) -> None:
        """Draws the whole array and keeps this rank's block.

        Args:
            shape: of the whole array or of the block.
        """
        whole = initializers.generate_array(
            self.initializer, self.whole_shape or shape, numpy
        )
        self.array = self.block_of(whole)
        if self._first_grad is None:
            self.grad = None
        else:
            self.grad = numpy.full_like(self.array, self._first_grad)

    def _get_array(self) -> Any:
        if self.seen is not None:
            return self.seen.get("array")
        return Variable.array.fget(self)  # type: ignore[attr-defined]

    def _set_array(self, value: Any) -> None:
        if self.seen is not None:
            self.seen.set("array", value)
            return
        if self.is_initialized and isinstance(value, get_array_types()):
            value = self._part_of(value)
        Variable.array.fset(self, value)  # type: ignore[attr-defined]

    def keep_loaded(self, key: str | None, whole: numpy.ndarray | None) -> None:
        """Keeps a whole array that this rank has loaded, for ranks that have not.

        Args:
            key: of the state; None for the parameter.
            whole: None if only the block is known.
        """
        if self.comm.rank == 0 and self.shard_of is not None:
            self._loaded[key] = whole

    def forget_loaded(self) -> None:
        self._loaded.clear()

    def loaded_array(self) -> Array | None:
        if self.shard_of is None:
            return super().loaded_array()
        return self._whole_of(None, self.array) if None in self._loaded else None

    def loaded_state(self, key: str, value: Any) -> Array:
        is_shard = self.shard_of is not None and self._is_block(value)
        return self._whole_of(key, value) if is_shard else value

    def loaded_statistic(self, key: str, value: object) -> Array | None:
        """The same of a persistent value of a link; None if it has not been loaded."""
        is_loaded = self.shard_of is None or key in self._loaded
        is_array = isinstance(value, get_array_types())
        return self.loaded_state(key, value) if is_loaded or not is_array else None

    def _whole_of(self, key: str | None, block: Any) -> numpy.ndarray:
        """The whole array that was loaded, of which ``block`` still is a part."""
        whole, block = self._loaded.get(key), cuda.to_cpu(block)
        if whole is not None:
            own = self.block_of(whole).astype(block.dtype)
            if numpy.array_equal(own, block, equal_nan=True):
                return whole
        what = self.name or "a parameter"
        raise UnknownWhole(
            f"rank 0 has a shard of {what if key is None else f'{key} of {what}'} that "
            "no file or serial link has given it"
        )

    def part_of(self, array: Array) -> Array:
        is_whole = array.shape == self.whole_shape
        return like(array, self.block_of(cuda.to_cpu(array))) if is_whole else array

    def _part_of(self, array: Any) -> Any:
        """A block itself, or this rank's block of a whole array."""
        if self._is_block(array):
            return array
        return like(array, self.block_of(cuda.to_cpu(array)))

    def _get_grad(self) -> Any:
        if self.seen is not None:
            return self.seen.get("grad")
        return Variable.grad.fget(self)  # type: ignore[attr-defined]

    def _set_grad(self, value: Any) -> None:
        if self.seen is not None:
            self.seen.set("grad", value)
            return
        if isinstance(value, get_array_types()):
            value = self._part_of(value)
        Variable.grad.fset(self, value)  # type: ignore[attr-defined]

    def whole_gradient(self, gradient: Variable) -> Variable:
        if self.shard_of is None:
            return gradient
        return GatherBlocks(self).gathered(gradient)

    def cleargrad(self) -> None:
        """Clears the gradient."""
        super().cleargrad()
        if self.seen is not None:
            self.seen.set("grad", None)

    def seen_whole(self) -> contextlib.AbstractContextManager[None]:
        if self.shard_of is None or not self.is_initialized or self.seen is not None:
            return super().seen_whole()
        return _Whole(self)

    grad = property(
        _get_grad,
        _set_grad,
        doc="That of this rank's block. A whole array that is assigned is cut.",
    )

    array = property(
        _get_array,
        _set_array,
        doc="This rank's block. A whole array that is assigned is cut.",
    )
    data = array

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the block; for functions, which get the whole array, that of it."""
        own: tuple[int, ...] = Variable.shape.fget(self)  # type: ignore[attr-defined]
        if self.whole_shape in (None, own):
            return own
        is_asked = self.seen is not None or is_function_asking()
        return self.whole_shape if is_asked else own

    @property
    def size(self) -> int:
        """The number of elements, of what ``shape`` is the shape of."""
        if self.shard_of is not None and is_function_asking():
            return math.prod(self.whole_shape or ())
        return math.prod(self.shape)

    def __len__(self) -> int:
        if self.shard_of is not None and is_function_asking():
            return (self.whole_shape or ())[0]
        return self.shape[0]

    @property
    def model_comm(self) -> Communicator:
        """The communicator of ranks that compute the model together."""
        return self.comm

    @property
    def is_divided(self) -> bool:
        """Whether the ranks' blocks differ; else each is the whole array."""
        return any(block.ranges for block in self.blocks)

    @property
    def shard_of(self) -> ShardedParameter | None:
        """Itself, if it has to be gathered for functions outside of its link."""
        is_shard = self.comm.size > 1 and self.is_divided
        return self if is_shard or self.groups > 1 else None  # in another order

    def copydata(self, var: Parameter) -> None:
        """Copies ``var``'s values, or this rank's block of a whole array.

        Raises:
            InvalidType: ``var`` has neither the shape of the block nor of the whole.
        """
        if self.is_initialized and not var.is_initialized:
            var.initialize(self.whole_shape)  # type: ignore[arg-type]
        if not (self.is_initialized and var.is_initialized):
            super().copydata(var)
        elif isinstance(var, ShardedParameter) and var.blocks == self.blocks:
            self.array[...] = var.array
            self.loads += 1
            self.keep_loaded(None, None)
        else:
            array = var.full_array() if isinstance(var, Parameter) else var.array
            is_whole = array.shape == self.whole_shape
            whole = cuda.to_cpu(array)
            block = self.block_of(whole) if is_whole else array
            self.array[...] = like(self.array, self._part_of(block))
            self.loads += 1
            self.keep_loaded(None, numpy.array(whole) if is_whole else None)

    def block_of(self, whole: numpy.ndarray) -> numpy.ndarray:
        """A copy of this rank's block of a whole array.

        Raises:
            InvalidType: the array has not the shape of the whole.
        """
        if whole.shape != self.whole_shape:
            raise InvalidType(
                f"{self.name or 'parameter'} on rank {self.comm.rank} of "
                f"{self.comm.size}: expected a whole array of {self.whole_shape} "
                f"to take a block of, got {whole.shape}"
            )
        whole = _regrouped(whole, self.groups)
        return numpy.array(whole[self._index(self.comm.rank, whole)], order="C")

    def whole(self, own: numpy.ndarray | None = None) -> numpy.ndarray:
        """The whole array; every rank has to call it.

        Args:
            own: this rank's block, of the values by default.
        """
        own = cuda.to_cpu(self.array if own is None else own)
        empty = numpy.empty(self.whole_shape or (), own.dtype)
        whole = numpy.empty_like(_regrouped(empty, self.groups))
        for rank, block in enumerate(self.comm.allgather(own)):
            whole[self._index(rank, whole)] = block
        # Regrouping is its own inverse.
        return _regrouped(whole, self.groups)

    def full_array(self) -> Array:
        """The whole array, on this rank's device; every rank has to call it."""
        return like(self.array, self.whole())

    def _index(self, rank: int, whole: numpy.ndarray) -> Any:
        return self.blocks[rank].index_in(whole.shape)

    def full_array_serializer(
        self, serializer: AbstractSerializer
    ) -> AbstractSerializer:
        """A serializer that reads and writes whole arrays for this parameter."""
        loads = isinstance(serializer, Deserializer)
        return (_Loading if loads else _Saving)(serializer, self)

    def draw(self, numbers: Callable[[Shape], Array]) -> Array:
        """This rank's block of the whole array of random numbers of rank 0."""
        whole = self.comm.broadcast(cuda.to_cpu(numbers(self.whole_shape or ())))
        return like(self.array, self.block_of(whole))

    def sum_over_shards(self, value: float) -> float:
        """The sum of all ranks' values, one where all have the whole array.

        Every rank has to call it.
        """
        if not self.is_divided or self.seen is not None:
            return value
        return float(self.comm.all_reduce(numpy.array([as_number(value)]))[0])

    def _is_block(self, value: Any) -> bool:
        is_array = isinstance(value, get_array_types())
        return is_array and bool(value.shape == self.shape)


class _Saving(Serializer):
    """Writes the whole array in the place of one of the block's shape."""

    def __init__(self, serializer: Any, param: ShardedParameter) -> None:
        self.serializer = serializer
        self.param = param

    def __getitem__(self, key: str) -> _Saving:
        return type(self)(self.serializer[key], self.param)

    def __call__(self, key: str, value: Any) -> Any:
        if self.param._is_block(value):
            self.serializer(key, self.param.whole(value))
        else:
            self.serializer(key, value)
        return value


class _Loading(Deserializer):
    """Returns the block of a stored array that has the shape of the whole one."""

    def __init__(self, serializer: Any, param: ShardedParameter) -> None:
        self.serializer = serializer
        self.param = param

    def __getitem__(self, key: str) -> _Loading:
        return type(self)(self.serializer[key], self.param)

    def on_failure(self, undo: Callable[[], Any]) -> None:
        self.serializer.on_failure(undo)

    def __call__(self, key: str, value: Any) -> Any:
        is_block = self.param._is_block(value)
        loaded = self.serializer(key, None if is_block else value)
        if loaded is None:
            return value
        if is_block or getattr(loaded, "shape", None) == self.param.whole_shape:
            is_param = value is not None and value is self.param.array
            self.param.keep_loaded(None if is_param else key, loaded)
            self.on_failure(self.param.forget_loaded)
            return like(value, self.param.block_of(loaded))
        return loaded


def like(array: Array, block: numpy.ndarray) -> Array:
    """The block on the device of an array."""
    on_gpu = isinstance(array, cuda.ndarray)
    return cuda.to_gpu(block, array.device) if on_gpu else block


def _regrouped(whole: numpy.ndarray, groups: int) -> numpy.ndarray:
    """(I, O / groups, ...) as (O, I / groups, ...)."""
    if groups == 1:
        return whole
    inputs, outputs, *kernel = whole.shape
    by_group = whole.reshape(groups, inputs // groups, outputs, *kernel)
    return by_group.swapaxes(1, 2).reshape(groups * outputs, inputs // groups, *kernel)
