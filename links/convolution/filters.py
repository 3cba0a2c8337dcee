"""Filters: what convolutions of all kinds share."""

from __future__ import annotations

from typing import Any

from renga.initializers import _get_initializer
from renga.link import Link
from renga.parameter import Parameter
from renga.utils.extents import check_count


class Filters(Link):
    """A link with filters ``W`` and a bias ``b``, which is None with ``nobias``.

    The shapes follow from the channels of the input, the bias's perhaps earlier.
    """

    W: Parameter
    b: Parameter | None

    def _make_filters(
        self,
        in_channels: int | None,
        nobias: bool,
        initialW: Any,
        initial_bias: Any,
        bias_shape: int | None = None,
    ) -> None:
        bias = 0 if initial_bias is None else initial_bias
        with self.init_scope():
            self.W = Parameter(_get_initializer(initialW))
            self.b = None if nobias else Parameter(_get_initializer(bias))
        if in_channels is not None:
            self._initialize_filters(in_channels)
        if self.b is not None and bias_shape is not None:
            self.b.initialize(bias_shape)

    def _initialize_filters(self, in_channels: int) -> None:
        shape = self._weight_shape(in_channels)
        for extent in shape[2:]:
            check_count(type(self).__name__, "ksize", extent)
        self.W.initialize(shape)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        raise NotImplementedError

    def _ensure_filters(self, x: Any) -> None:
        """Gives the filters the shape that the first input ``x`` asks for."""
        if not self.W.is_initialized:
            self._initialize_filters(x.shape[1])


def require_groups(in_channels: int, out_channels: int, groups: int) -> None:
    """Raises ValueError unless the channels divide evenly into ``groups``."""
    check_count("convolution", "groups", groups)
    for kind, channels in (("output", out_channels), ("input", in_channels)):
        if channels % groups != 0:
            raise ValueError(
                f"the number of {kind} channels must be divisible by the number of "
                f"groups, got {channels} and {groups}"
            )
