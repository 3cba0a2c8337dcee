"""What links have that a pipeline, of which each rank has some stages, overrides."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer


class OneStage:
    """A link whose rank has all of its parameters."""

    parallel_run: Any = None  # how ranks run it together; None: each by itself

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """The parameters of this rank."""
        raise NotImplementedError

    def params_of_all_stages(self) -> Iterator[Parameter]:
        """The parameters of this rank and of other stages."""
        return self.params()

    def require_all_params(self, hook: str) -> None:
        """Refuses a hook that reads all parameters where this rank has some of them."""

    def sum_over_stages(self, value: float) -> float:
        """The sum of the values of all stages."""
        return value

    def note_optimizer(
        self, optimizer: object, serializer: AbstractSerializer | None = None
    ) -> None:
        """Takes note of an optimizer, which has been set up for a model with this link.

        Args:
            serializer: by which the optimizer is loaded now, if it is.
        """

    def serialized_parameters(
        self, serializer: AbstractSerializer, optimizer: object = None
    ) -> contextlib.AbstractContextManager[None]:
        """A context in which this rank has the parameters of all stages.

        Args:
            serializer: saves or loads in it.
            optimizer: that does so, if it is not the link.
        """
        return contextlib.nullcontext()
