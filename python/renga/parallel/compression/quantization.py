"""Compressors to fewer bits of each element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.communicators.work import Work
from renga.core.types import Array
from renga.parallel.compression.compressor import Compressor, KernelCompressor
from renga.parallel.compression.state import Arrays, State, States
from renga.utils.argument import check_count

_kernels = _core.compression


class QSGD(KernelCompressor):
    """Rounds each element at random to a multiple of a unit, so that its mean is right.

    The unit is the largest magnitude of a block of 512 elements over 2^(bits-1) - 1.
    The expectation of what is sent is the gradient, so that there is no error feedback.

    Args:
        bits: per element, sign included: 2, 4 or 8.

    Source: Alistarh et al., QSGD: communication-efficient SGD via gradient quantization
    and encoding, NIPS 2017.
    """

    error_feedback = False

    def __init__(self, bits: int = 4) -> None:
        check_count("QSGD: bits", bits)
        if bits not in (2, 4, 8):
            raise ValueError(f"QSGD: bits: expected 2, 4 or 8, got {bits}")
        self.bits = bits

    def encode(self, x: Array, state: State) -> Sequence[Array]:
        codes = numpy.empty(-(-x.size * self.bits // 8), numpy.uint8)
        blocks = -(-x.size // _kernels.QUANTIZATION_BLOCK)
        scales = numpy.empty(blocks, numpy.float32)
        _kernels.quantize(x, self.bits, state.seed(), codes, scales)
        return scales, codes

    def add_decoded(self, payload: Sequence[Array], out: Array) -> None:
        scales, codes = payload
        _kernels.add_dequantized(out, self.bits, codes, scales)


class TernGrad(QSGD):
    """Sends -1, 0 or 1 times the largest magnitude of a block, in 2 bits.

    It is QSGD with one level; the paper's scale is that of a layer.

    Source: Wen et al., TernGrad: ternary gradients to reduce communication in
    distributed deep learning, NIPS 2017.
    """

    def __init__(self) -> None:
        super().__init__(bits=2)


_DTYPES = ("float16", "bfloat16")


class Cast(Compressor):
    """Sends gradients rounded to a 16-bit dtype; they are added in float32.

    Args:
        dtype: ``"bfloat16"`` or ``"float16"``.
    """

    def __init__(self, dtype: str = "bfloat16") -> None:
        if dtype not in _DTYPES:
            raise ValueError(f"Cast: expected a dtype of {_DTYPES}, got {dtype!r}")
        self.dtype = dtype

    def reduce(self, xs: Arrays, states: States, comm: Communicator) -> Work:
        work: Work = comm.all_reduce(xs, "sum", out=xs, wait=False, dtype=self.dtype)
        return work


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
