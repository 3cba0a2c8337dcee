"""Links for sharded sequences that compute each token by itself, and their base."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import embed_id, layer_normalization, linear, rms_normalization
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.normalization.layer_normalization import (
    LayerNormalization,
    RMSNormalization,
)
from renga.links.parallel.forms import ReplicatedLink, parallel_form
from renga.links.parallel.sequence.tokens import TOKENS
from renga.parallel.placement.tracker import current_tracker
from renga.parallel.redistribute import with_summed_gradient
from renga.utils.type_check import InvalidType


class SequenceLink(ReplicatedLink):
    """A link with replicated parameters that is applied to this rank's tokens.

    The gradients of parameters are summed over the ranks. Arguments after the
    communicator are those of the serial link, whose name follows ``Sequence``.
    """

    algorithm = "summed gradients"
    input_layout = output_layout = "sequence"

    def _summed(self, param: Any) -> Any:
        """A parameter whose gradient is summed over the ranks."""
        return None if param is None else with_summed_gradient(self.comm, param)


def is_sharded(x: ArrayLike, least_axes: int = 3) -> bool:
    """Whether ``x`` has this rank's tokens; outside of a tracked model, it always has.

    Args:
        least_axes: an array of unknown placement is taken for tokens if it has at least
            this many axes.
    """
    tracker = current_tracker()
    return tracker is None or tracker.placement_of(x, least_axes) == TOKENS


def unchecked() -> contextlib.AbstractContextManager[None]:
    """A context in which the model's functions are not checked."""
    tracker = current_tracker()
    return contextlib.nullcontext() if tracker is None else tracker.paused()


@parallel_form(Linear, "sequence")
class SequenceLinear(SequenceLink, Linear):
    """``Linear`` of this rank's tokens.

    Shapes:
        x: (N, tokens of this rank, in_size), with ``n_batch_axes`` 2
        y: (N, tokens of this rank, out_size)

    Raises:
        InvalidType: the axis of tokens is among the features.
    """

    def forward(self, x: ArrayLike, n_batch_axes: int = 1) -> Variable:
        """The output for ``x``."""
        if not is_sharded(x):
            return super().forward(x, n_batch_axes)
        if n_batch_axes < 2:
            raise InvalidType(
                f"SequenceLinear {self.name or ''}: expected n_batch_axes of 2 for "
                f"this rank's tokens, got {n_batch_axes} for {x.shape}"
            )
        if not self.W.is_initialized:
            self._initialize_params(math.prod(x.shape[n_batch_axes:]))
        with unchecked():
            W, b = self._summed(self.W), self._summed(self.b)
            return linear(x, W, b, n_batch_axes=n_batch_axes)


class _SequenceNormalization(SequenceLink):
    """A normalization over axes after that of tokens."""

    gamma: Parameter
    eps: float

    def _normalized(
        self, function: Callable[..., Variable], x: Any, *params: Parameter
    ) -> Variable:
        """``function`` of this rank's tokens; what the serial link gives for others."""
        if not is_sharded(x) or not self.gamma.is_initialized:
            y: Variable = super().forward(x)  # type: ignore[misc]
            return y
        if self.gamma.ndim > x.ndim - 2:
            raise InvalidType(
                f"{type(self).__name__}: expected to normalize axes after that of "
                f"tokens, got {x.shape} and gamma of {self.gamma.shape}"
            )
        with unchecked():
            return function(x, *map(self._summed, params), self.eps)


@parallel_form(LayerNormalization, "sequence")
class SequenceLayerNormalization(_SequenceNormalization, LayerNormalization):
    """``LayerNormalization`` of this rank's tokens.

    Shapes:
        x, y: (N, tokens of this rank, size)

    Raises:
        InvalidType: the axis of tokens is among those that are normalized.
    """

    def forward(self, x: ArrayLike) -> Variable:
        """The normalized ``x``."""
        return self._normalized(layer_normalization, x, self.gamma, self.beta)


@parallel_form(RMSNormalization, "sequence")
class SequenceRMSNormalization(_SequenceNormalization, RMSNormalization):
    """``RMSNormalization`` of this rank's tokens.

    Shapes:
        x, y: (N, tokens of this rank, size)

    Raises:
        InvalidType: the axis of tokens is among those that are normalized.
    """

    def forward(self, x: ArrayLike) -> Variable:
        """The normalized ``x``."""
        return self._normalized(rms_normalization, x, self.gamma)


@parallel_form(EmbedID, "sequence")
class SequenceEmbedID(SequenceLink, EmbedID):
    """``EmbedID`` of this rank's tokens.

    Shapes:
        x: (N, tokens of this rank) of integers
        y: (N, tokens of this rank, out_size)
    """

    def forward(self, x: ArrayLike) -> Variable:
        """The rows with the indices ``x``."""
        if not is_sharded(x, 2):
            return super().forward(x)
        with unchecked():
            return embed_id(x, self._summed(self.W), ignore_label=self.ignore_label)

    def _attend(self, x: Variable) -> Variable:
        if not is_sharded(x):
            return super()._attend(x)
        with unchecked():
            return linear(x, self._summed(self.W), n_batch_axes=x.ndim - 1)
