"""A parameter of which every rank has the whole array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import Array, Shape
from renga.parallel.placement.sharded_parameter import like


class ReplicatedParameter(Parameter):
    """A parameter of which every rank of ``comm`` has the whole, with the same values.

    Initial values and other random numbers are those of rank 0.
    """

    comm: Communicator

    @classmethod
    def replace_parameters(cls, model: Link, comm: Communicator) -> None:
        """Makes each parameter of a model one, unless it is a shard."""
        for param in model.params():
            if type(param) is Parameter:
                param.__class__ = cls
                param.comm = comm  # type: ignore[attr-defined]

    def initialize(self, shape: int | Sequence[int]) -> None:
        super().initialize(shape)
        # With shapes of shards, the link itself says what it expects.
        if len(set(self.comm.allgather_obj(self.shape))) == 1:
            self.array = self._of_rank_0(self.array)

    def allocate(self, shape: int | Sequence[int]) -> None:
        super().initialize(shape)

    @property
    def model_comm(self) -> Communicator:
        """The communicator of ranks that compute the model together."""
        return self.comm

    def draw(self, numbers: Callable[[Shape], Array]) -> Array:
        drawn: Array = self._of_rank_0(numbers(self.shape))
        return drawn

    def _of_rank_0(self, array: Any) -> Any:
        return like(array, self.comm.broadcast(cuda.to_cpu(array)))
