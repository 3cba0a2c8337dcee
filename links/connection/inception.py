"""Inception: convolutions of several sizes and a pooling side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from renga.core.link import Chain
from renga.core.types import ArrayLike, DTypeLike, Initial
from renga.core.variable import Variable
from renga.functions import average_pooling_2d, concat, max_pooling_2d, relu
from renga.links.convolution.convolution import Convolution2D
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.utils.extents import check_sizes


class Inception(Chain):
    """1 × 1, 3 × 3 and 5 × 5 convolutions and a pooling of the same image.

    The larger convolutions come after projections to ``proj3`` and ``proj5``
    channels, the projection to ``proj_pool`` channels after the pooling. ReLU follows
    every convolution.

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out1 + out3 + out5 + proj_pool, H, W)

    Source: Szegedy et al., Going deeper with convolutions, 2014.
    """

    conv1: Convolution2D
    proj3: Convolution2D
    conv3: Convolution2D
    proj5: Convolution2D
    conv5: Convolution2D
    projp: Convolution2D

    def __init__(
        self,
        in_channels: int | None,
        out1: int,
        proj3: int,
        out3: int,
        proj5: int,
        out5: int,
        proj_pool: int,
        conv_init: Initial | None = None,
        bias_init: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, proj3=proj3, proj5=proj5, proj_pool=proj_pool)
        check_sizes(self, in_channels=in_channels, out1=out1, out3=out3, out5=out5)
        init: dict[str, Any] = {"initialW": conv_init, "initial_bias": bias_init}
        with self.init_scope():
            self.conv1 = Convolution2D(in_channels, out1, 1, **init)
            self.proj3 = Convolution2D(in_channels, proj3, 1, **init)
            self.conv3 = Convolution2D(proj3, out3, 3, pad=1, **init)
            self.proj5 = Convolution2D(in_channels, proj5, 1, **init)
            self.conv5 = Convolution2D(proj5, out5, 5, pad=2, **init)
            self.projp = Convolution2D(in_channels, proj_pool, 1, **init)

    def forward(self, x: ArrayLike) -> Variable:
        """The four outputs, one after the other, for ``x``."""
        ways = (
            self.conv1(x),
            self.conv3(relu(self.proj3(x))),
            self.conv5(relu(self.proj5(x))),
            self.projp(max_pooling_2d(x, 3, stride=1, pad=1)),
        )
        return relu(concat(ways, axis=1))


class InceptionBN(Chain):
    """1 × 1, 3 × 3 and double 3 × 3 convolutions and a pooling of the same image.

    Batch normalization and ReLU follow every convolution. ``out1`` 0 leaves out the
    first branch, ``proj_pool`` None the convolution after the pooling, which is of the
    maximum (``pooltype`` ``"max"``) or the mean (``"avg"``). ``stride`` is that of
    the 3 × 3 convolutions at the end of their branches and of the pooling.

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out1 + out3 + out33 + (proj_pool or in_channels), H / stride, W / stride)

    Raises:
        NotImplementedError: another ``pooltype``.
        AssertionError: ``out1`` with a stride, or without ``proj_pool``.

    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """

    def __init__(
        self,
        in_channels: int | None,
        out1: int,
        proj3: int,
        out3: int,
        proj33: int,
        out33: int,
        pooltype: str,
        proj_pool: int | None = None,
        stride: int = 1,
        conv_init: Initial | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, proj3=proj3, proj33=proj33, proj_pool=proj_pool)
        check_sizes(self, in_channels=in_channels, out1=out1, out3=out3, out33=out33)
        self.out1 = out1
        self.proj_pool = proj_pool
        self.stride = stride
        self.pooltype = pooltype
        if pooltype not in ("max", "avg"):
            raise NotImplementedError(
                f"InceptionBN: expected pooltype 'max' or 'avg', got {pooltype!r}"
            )
        assert out1 == 0 or stride == 1, "InceptionBN: out1 must be 0 with a stride"
        assert out1 == 0 or proj_pool is not None, "InceptionBN: out1 needs a proj_pool"

        def conv(inputs: int | None, outputs: int, ksize: int, step: int = 1) -> Any:
            return Convolution2D(
                inputs, outputs, ksize, step, ksize // 2, True, conv_init
            )

        with self.init_scope():
            self.proj3 = conv(in_channels, proj3, 1)
            self.conv3 = conv(proj3, out3, 3, stride)
            self.proj33 = conv(in_channels, proj33, 1)
            self.conv33a = conv(proj33, out33, 3)
            self.conv33b = conv(out33, out33, 3, stride)
            if out1 > 0:
                self.conv1 = conv(in_channels, out1, 1)
            if proj_pool is not None:
                self.poolp = conv(in_channels, proj_pool, 1)
        for name in sorted(self._children):
            size = getattr(self, name).out_channels
            self.add_link(name + "n", BatchNormalization(size, dtype=dtype))

    def forward(self, x: ArrayLike) -> Variable:
        """The concatenated outputs of all branches for ``x``."""
        return concat(tuple(self._branches(x)), axis=1)

    def _branches(self, x: Any) -> Iterator[Variable]:
        if self.out1 > 0:
            yield self._apply("conv1", x)
        yield self._apply("conv3", self._apply("proj3", x))
        h = self._apply("conv33a", self._apply("proj33", x))
        yield self._apply("conv33b", h)
        if self.pooltype == "max":
            pooled = max_pooling_2d(x, 3, self.stride, pad=1, cover_all=False)
        else:
            pooled = average_pooling_2d(x, 3, self.stride, pad=1)
        yield pooled if self.proj_pool is None else self._apply("poolp", pooled)

    def _apply(self, name: str, x: Any) -> Variable:
        return relu(self[name + "n"](self[name](x)))
