"""The compressor that sends one bit per element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga import _core
from renga.core.types import Array
from renga.parallel.compression.compressor import KernelCompressor
from renga.parallel.compression.state import State

_kernels = _core.compression


class OneBit(KernelCompressor):
    """Sends the signs, and the mean of each sign in every block of 4096 elements.

    Source: Seide et al., 1-bit stochastic gradient descent and its application to
    data-parallel distributed training of speech DNNs, Interspeech 2014.
    """

    def take(self, x: Array, state: State) -> Sequence[Array]:
        signs = numpy.empty(-(-x.size // 8), numpy.uint8)
        blocks = -(-x.size // _kernels.SIGN_BLOCK)
        means = numpy.empty((blocks, 2), numpy.float32)
        _kernels.take_signs(x, signs, means)
        return means, signs

    def add_decoded(self, payload: Sequence[Array], out: Array) -> None:
        means, signs = payload
        _kernels.add_signs(out, signs, means)
