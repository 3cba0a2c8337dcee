"""Normalization of each sample: its layer, groups of channels, or root mean square."""

from __future__ import annotations

import numpy

from renga.core.dtypes import get_dtype
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import group_normalization, layer_normalization, rms_normalization
from renga.initializers import get_initializer, with_dtype
from renga.utils.extents import check_sizes


class LayerNormalization(Link):
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over the last axes.

    ``size`` is the extent of the last axis, or a tuple of those of the last axes; None
    is the last axis of the first input.

    Shapes:
        x, y: (…, size)
        gamma, beta: (size,)

    Source: Ba et al., Layer normalization, 2016.
    """

    gamma: Parameter
    beta: Parameter

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        eps: float = 1e-6,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, size=size)
        self.eps = eps
        gamma = 1 if initial_gamma is None else initial_gamma
        beta = 0 if initial_beta is None else initial_beta
        with self.init_scope():
            self.gamma = Parameter(get_initializer(gamma))
            self.beta = Parameter(get_initializer(beta))
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, size: int | tuple[int, ...]) -> None:
        self.gamma.initialize(size)
        self.beta.initialize(size)

    def forward(self, x: ArrayLike) -> Variable:
        """The normalized ``x``."""
        if not self.gamma.is_initialized:
            self._initialize_params(x.shape[-1])
        return layer_normalization(x, self.gamma, self.beta, self.eps)


class GroupNormalization(Link):
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over each group.

    The channels are divided into ``groups``: 1 makes this layer normalization, one
    group for each channel instance normalization. ``size`` None is taken from the
    first input.

    Shapes:
        x, y: (N, size, …)
        gamma, beta: (size,)

    Raises:
        ValueError: the input has fewer than two axes, or the groups do not fit.

    Source: Wu and He, Group normalization, 2018.
    """

    gamma: Parameter
    beta: Parameter

    def __init__(
        self,
        groups: int,
        size: int | None = None,
        eps: float = 1e-5,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, size=size)
        self.groups = groups
        self.eps = eps
        dtype = get_dtype(None, map_mixed16=numpy.float32)
        gamma = 1 if initial_gamma is None else initial_gamma
        beta = 0 if initial_beta is None else initial_beta
        with self.init_scope():
            self.gamma = Parameter(with_dtype(gamma, dtype))
            self.beta = Parameter(with_dtype(beta, dtype))
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, size: int) -> None:
        self.gamma.initialize(size)
        self.beta.initialize(size)

    def forward(self, x: ArrayLike) -> Variable:
        """The normalized ``x``; TypeError if ``groups`` is no integer."""
        if not self.gamma.is_initialized:
            if x.ndim < 2:
                raise ValueError(
                    f"GroupNormalization: expected (N, C, …), got {x.shape}"
                )
            self._initialize_params(x.shape[1])
        return group_normalization(x, self.groups, self.gamma, self.beta, self.eps)


class RMSNormalization(Link):
    """``x / sqrt(mean of x² + eps) gamma``, the mean over the last axes.

    ``size`` is the extent of the last axis, or a tuple of those of the last axes; None
    is the last axis of the first input.

    Shapes:
        x, y: (…, size)
        gamma: (size,)

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """

    gamma: Parameter

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        eps: float = 1e-6,
        initial_gamma: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, size=size)
        self.eps = eps
        gamma = 1 if initial_gamma is None else initial_gamma
        with self.init_scope():
            self.gamma = Parameter(get_initializer(gamma), size)

    def forward(self, x: ArrayLike) -> Variable:
        """The normalized ``x``."""
        if not self.gamma.is_initialized:
            self.gamma.initialize(x.shape[-1])
        return rms_normalization(x, self.gamma, self.eps)
