"""Base classes of the convolutions: filters and options."""

from __future__ import annotations

from typing import Any, ClassVar

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import Extents, Initial
from renga.functions.connection.convolution import DETERMINISTIC
from renga.functions.window import Window, as_pair
from renga.initializers import get_initializer
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import MOST_IMAGE_AXES, check_count, check_sizes


class Filters(Link):
    """A link with filters ``W`` and a bias ``b``, which is None with ``nobias``.

    Their shapes depend on the input's channels, so they may be set by the first input.
    """

    W: Parameter
    b: Parameter | None
    ksize: Any

    def _make_filters(
        self,
        in_channels: int | None,
        nobias: bool,
        initialW: Any,
        initial_bias: Any,
        bias_shape: int | None = None,
    ) -> None:
        check_sizes(self, in_channels=in_channels, out_channels=bias_shape)
        bias = 0 if initial_bias is None else initial_bias
        with self.init_scope():
            self.W = Parameter(get_initializer(initialW))
            self.b = None if nobias else Parameter(get_initializer(bias))
        if in_channels is not None:
            self._initialize_params(in_channels)
        if self.b is not None and bias_shape is not None:
            self.b.initialize(bias_shape)

    def _initialize_params(self, in_channels: int) -> None:
        shape = self._weight_shape(in_channels)
        for extent in shape[2:]:
            check_count(type(self).__name__, "ksize", extent)
        self.W.initialize(shape)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        raise NotImplementedError

    def _kernel_extents(self) -> tuple[int, ...]:
        return self._pair("ksize", self.ksize)

    def _pair(self, what: str, value: Extents) -> tuple[int, int]:
        return as_pair(value, type(self).__name__, what)

    def _ensure_filters(self, x: Any) -> None:
        """Initializes the filters for the channels of the first input ``x``."""
        if not self.W.is_initialized:
            self._initialize_params(x.shape[1])


class GroupedFilters(Filters):
    """Filters of a convolution, or of its transpose, whose channels are in groups."""

    _transposed: ClassVar[bool] = False

    out_channels: Any
    groups: int

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        require_groups(self, in_channels, self.out_channels, self.groups)
        kernel = self._kernel_extents()
        if self._transposed:
            return (in_channels, self.out_channels // self.groups, *kernel)
        return (self.out_channels, in_channels // self.groups, *kernel)


class GroupedFilters2D(GroupedFilters):
    """Grouped filters over rows and columns.

    ``channels_and_ksize`` is (in_channels, out_channels, ksize), or
    (out_channels, ksize, None): then the first input gives in_channels. ``initial``
    holds the initializers of ``W`` and ``b``; ``unexpected`` raises TypeError unless
    empty, ValueError for ``deterministic``.
    """

    def __init__(
        self,
        channels_and_ksize: tuple[int | None, int | None, Extents | None],
        window: Window,
        nobias: bool,
        initial: tuple[Initial | None, Initial | None],
        unexpected: dict[str, object],
    ) -> None:
        check_unexpected_kwargs(unexpected, deterministic=DETERMINISTIC)
        assert_kwargs_empty(unexpected)
        super().__init__()
        in_channels, out_channels, ksize = with_in_channels(*channels_and_ksize)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.ksize = ksize
        self.stride, self.pad, self.dilate, groups = window
        self.groups = int(groups)
        self._make_filters(in_channels, nobias, *initial, out_channels)


class GroupedFiltersND(GroupedFilters):
    """Grouped filters over ``ndim`` axes.

    ``window`` is (stride, pad, dilate, groups), with numbers or one number per axis;
    the other arguments are those of ``GroupedFilters2D``.
    """

    # The number of axes of a subclass whose constructor does not take it.
    _axes: ClassVar[int | None] = None

    def __init__(
        self,
        ndim: int,
        channels_and_ksize: tuple[int | None, int | None, Extents | None],
        window: tuple[Extents, Extents, Extents, int],
        nobias: bool,
        initial: tuple[Initial | None, Initial | None],
    ) -> None:
        super().__init__()
        in_channels, out_channels, ksize = with_in_channels(*channels_and_ksize)
        self.out_channels = out_channels
        ndim = check_count(type(self).__name__, "ndim", ndim, 1, MOST_IMAGE_AXES)
        self.ksize = as_tuple(ksize, ndim, type(self).__name__, "ksize")
        self.stride, self.pad, dilate, groups = window
        self.dilate = as_tuple(dilate, ndim, type(self).__name__, "dilate")
        self.groups = int(groups)
        self._make_filters(in_channels, nobias, *initial, out_channels)

    def _kernel_extents(self) -> tuple[int, ...]:
        return self.ksize


def with_in_channels(in_channels: object, out_channels: object, ksize: object) -> Any:
    """(in_channels, out_channels, ksize), where the first may have been left out."""
    if ksize is None:
        return None, in_channels, out_channels
    return in_channels, out_channels, ksize


def require_groups(
    link: object, in_channels: int, out_channels: int, groups: int
) -> None:
    """Checks that a link's channels divide evenly into ``groups``.

    Raises:
        TypeError: ``groups`` is no integer.
        ValueError: they do not, or ``groups`` is below 1.
    """
    name = type(link).__name__
    check_count(name, "groups", groups)
    for kind, channels in (("output", out_channels), ("input", in_channels)):
        if channels % groups != 0:
            raise ValueError(
                f"{name}: expected {kind} channels divisible by the number of "
                f"groups, got {channels} and {groups}"
            )
