"""Batch normalization and batch renormalization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from renga import initializers
from renga.core.configuration import config
from renga.core.dtypes import get_dtype
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, DTypeLike, Initial
from renga.core.variable import Variable
from renga.functions import (
    batch_normalization,
    batch_renormalization,
    fixed_batch_normalization,
)
from renga.functions.array.cast import with_cast_params
from renga.initializers import with_dtype
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.utils.extents import check_sizes
from renga.utils.type_check import InvalidType

TEST = "test: use renga.using_config('train', False)"


class BatchNormalization(Link):
    """Normalizes by batch statistics in training, by running statistics otherwise.

    ``y = gamma (x - mean) / √(variance + eps) + beta``. The running statistics
    follow those of the batches: ``avg = decay avg + (1 - decay) statistic``, with the
    unbiased variance. ``axis`` are the axes to average over, all but the second by
    default; without ``size`` it must be given, and the sizes of the others are taken
    from the first input.

    Shapes:
        x, y: any
        gamma, beta, avg_mean, avg_var: the axes of x that are not averaged over

    Source: Ioffe and Szegedy, ICML 2015.
    """

    gamma: Parameter | None = None
    beta: Parameter | None = None
    avg_mean: Any
    avg_var: Any

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: DTypeLike | None = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
        axis: int | tuple[int, ...] | None = None,
        initial_avg_mean: Initial | None = None,
        initial_avg_var: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, size=size)
        if size is None and axis is None:
            raise RuntimeError("BatchNormalization: expected size or axis, got neither")
        self.decay = decay
        self.eps = eps
        self.axis = (axis,) if isinstance(axis, int) else axis
        # The statistics of float16 data would be too coarse in float16.
        self._highprec_dtype = get_dtype(dtype, map_mixed16=numpy.float32)
        self._initial_avg_mean = initial_avg_mean
        self._initial_avg_var = initial_avg_var
        with self.init_scope():
            if use_gamma:
                self.gamma = self._parameter(initial_gamma, 1)
            if use_beta:
                self.beta = self._parameter(initial_beta, 0)
        self.N = 0
        self.avg_mean = self.avg_var = None
        for name in ("N", "avg_mean", "avg_var"):
            self.register_persistent(name)
        if size is not None:
            self._initialize_params(size)

    def _parameter(self, initial: Any, default: float) -> Parameter:
        initial = default if initial is None else initial
        return Parameter(with_dtype(initial, self._highprec_dtype))

    def _initialize_params(self, shape: Any) -> None:
        for param in self.params():
            param.initialize(shape)
        self.avg_mean = self._init_array(self._initial_avg_mean, 0, shape)
        self.avg_var = self._init_array(self._initial_avg_var, 1, shape)

    # Subclasses of Chainer's link call and override it by this name.
    def _init_array(self, initializer: Any, default_value: float, size: Any) -> Any:
        initial = default_value if initializer is None else initializer
        return initializers.generate_array(
            with_dtype(initial, self._highprec_dtype),
            size,
            self.xp,
            device=self.device,
        )

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
        yield "size", None if self.avg_mean is None else self.avg_mean.shape[0]
        yield "decay", self.decay
        yield "eps", self.eps
        yield "dtype", self._highprec_dtype
        yield "use_gamma", self.gamma is not None
        yield "use_beta", self.beta is not None

    def forward(
        self, x: ArrayLike, *, finetune: bool = False, **kwargs: object
    ) -> Variable:
        """The normalized ``x``.

        With ``finetune`` the running statistics become the mean of those of all
        batches since ``start_finetuning``.
        """
        check_unexpected_kwargs(kwargs, test=TEST)
        assert_kwargs_empty(kwargs)
        if self.avg_mean is None:
            self._initialize_params(self._parameter_shape(x.shape))
        gamma = self._scale() if self.gamma is None else self.gamma
        beta = self._shift() if self.beta is None else self.beta
        if not config.train:
            return self._fixed(x, gamma, beta)
        decay = self.decay
        if finetune:
            self.N += not config.in_recomputing
            decay = 1 - 1 / self.N
        return self._normalize(x, gamma, beta, decay)

    def _fixed(self, x: Any, gamma: Any, beta: Any) -> Variable:
        """Normalizes by the running statistics."""
        params = gamma, beta, self.avg_mean, self.avg_var
        try:
            return fixed_batch_normalization(x, *params, eps=self.eps, axis=self.axis)
        except InvalidType as error:
            options = {"eps": self.eps, "axis": self.axis}
            function = fixed_batch_normalization
            return with_cast_params(error, function, x, *params, **options)

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        """Normalizes over the batch, and updates the running statistics."""
        return batch_normalization(
            x,
            gamma,
            beta,
            eps=self.eps,
            running_mean=self.avg_mean,
            running_var=self.avg_var,
            decay=decay,
            axis=self.axis,
        )

    def start_finetuning(self) -> None:
        """Resets the averages of ``finetune``."""
        self.N = 0

    def _parameter_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        averaged = {axis % len(shape) for axis in self.axis or ()}
        return tuple(n for axis, n in enumerate(shape) if axis not in averaged)

    def _scale(self) -> Any:
        return self.xp.ones(self.avg_mean.shape, self._highprec_dtype)

    def _shift(self) -> Any:
        return self.xp.zeros(self.avg_mean.shape, self._highprec_dtype)


class BatchRenormalization(BatchNormalization):
    """Batch normalization corrected towards the running statistics in training.

    The ratio of the deviations is kept in [1 / rmax, rmax], the difference of the means
    over the running deviation in [-dmax, dmax]; otherwise as ``BatchNormalization``.

    Source: Ioffe, Batch renormalization, 2017.
    """

    def __init__(
        self,
        size: int | tuple[int, ...],
        rmax: float = 1,
        dmax: float = 0,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: DTypeLike | None = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
        initial_avg_mean: Initial | None = None,
        initial_avg_var: Initial | None = None,
    ) -> None:
        affine = use_gamma, use_beta, initial_gamma, initial_beta
        averages = None, initial_avg_mean, initial_avg_var
        super().__init__(size, decay, eps, dtype, *affine, *averages)
        self.rmax = rmax
        self.dmax = dmax
        # Attributes that old scripts read; the function sets neither.
        self.r: Any = None
        self.d: Any = None

    def forward(self, x: ArrayLike, finetune: bool = False) -> Variable:  # type: ignore[override]
        """The normalized ``x``; ``finetune`` as in ``BatchNormalization``."""
        return super().forward(x, finetune=finetune)

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        limits, averages = (self.rmax, self.dmax), (self.avg_mean, self.avg_var)
        return batch_renormalization(
            x, gamma, beta, *limits, self.eps, *averages, decay, update_statistics=True
        )
