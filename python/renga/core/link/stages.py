"""What links have that a pipeline, of which each rank has some stages, overrides."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer

# The pipelines of whose models links are a part.
_pipelines: weakref.WeakKeyDictionary[OneStage, weakref.ref[OneStage]]
_pipelines = weakref.WeakKeyDictionary()


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

    def note_stages(self, links: Iterator[OneStage]) -> None:
        """Has :meth:`require_all_stages` of a pipeline's links ask this pipeline."""
        _pipelines.update((link, weakref.ref(self)) for link in links)

    def require_all_stages(self, operation: str) -> None:
        """Refuses what needs all parameters of this link where ranks have some of them.

        Raises:
            RuntimeError: on every rank, as one that has those of this link would go on
                while another one cannot.
        """
        pipeline = _pipelines.get(self, lambda: None)()
        if pipeline is not None:
            pipeline.require_all_stages(operation)

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
