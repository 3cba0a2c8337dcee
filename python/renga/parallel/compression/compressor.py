"""The interface of compression: what a node sends of each gradient, and how."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.communicators.work import Work
from renga.core.types import Array
from renga.parallel.compression.state import Arrays, State, States

_ALIGNMENT = 8


class PackedPayloads:
    """The payloads of several parameters as bytes.

    All ranks send the same number of bytes.

    Raises:
        TypeError: if a payload is not a sequence of arrays.
    """

    def __init__(self, payloads: Sequence[Sequence[Array]]) -> None:
        self._layout = [
            [(x.shape, x.dtype) for x in checked_payload(p)] for p in payloads
        ]
        parts: list[Array] = []
        for x in (x for payload in payloads for x in payload):
            parts.append(numpy.ascontiguousarray(x).reshape(-1).view(numpy.uint8))
            parts.append(numpy.zeros(-x.nbytes % _ALIGNMENT, numpy.uint8))
        self.bytes = numpy.concatenate(parts) if parts else numpy.zeros(0, numpy.uint8)

    def unpack(self, row: Array) -> list[tuple[Array, ...]]:
        """The payloads in a message of a rank, as views of it."""
        payloads, begin = [], 0
        for layout in self._layout:
            arrays = []
            for shape, dtype in layout:
                size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
                arrays.append(row[begin : begin + size].view(dtype).reshape(shape))
                begin += size + -size % _ALIGNMENT
            payloads.append(tuple(arrays))
        return payloads


def checked_payload(payload: Sequence[Array]) -> Sequence[Array]:
    if not isinstance(payload, (list, tuple)) or not all(
        isinstance(x, numpy.ndarray) and not x.dtype.hasobject for x in payload
    ):
        raise TypeError(
            "Compressor.encode: expected a list or tuple of arrays of numbers, got "
            f"{type(payload).__name__}"
        )
    return payload


class Compressor:
    """Sends gradients between nodes in fewer bytes than they have.

    A subclass defines :meth:`encode` and :meth:`decode`. With error feedback, what a
    payload does not hold is kept, and added to the next gradient of that parameter.

    Source: Karimireddy et al., Error feedback fixes SignSGD and other gradient
    compression schemes, ICML 2019.
    """

    error_feedback = True
    # States that are the same on all nodes; node 0's are sent when training begins.
    shared_states: frozenset[str] = frozenset()
    # States in the unit of gradients, which loss scaling changes.
    scaled_states: frozenset[str] = frozenset({"residual"})

    def encode(self, x: Array, state: State) -> Sequence[Array]:
        """What is sent of ``x``: arrays whose shapes and dtypes all ranks agree on.

        Args:
            x: a gradient, float32 in row-major order; it must not be changed.
            state: of this parameter on this node; arrays put into it are kept, and
                saved with the optimizer.
        """
        raise NotImplementedError(f"{type(self).__name__} has no encode")

    def decode(self, payload: Sequence[Array], out: Array) -> None:
        """Writes into ``out`` what ``encode`` has returned on one of the nodes."""
        raise NotImplementedError(f"{type(self).__name__} has no decode")

    def add_decoded(self, payload: Sequence[Array], out: Array) -> None:
        """Adds to ``out`` what :meth:`decode` would write."""
        x = numpy.empty_like(out)
        self.decode(payload, x)
        out += x

    def take(self, x: Array, state: State) -> Sequence[Array]:
        """Encodes ``x`` and leaves in it what the payload does not hold."""
        payload = checked_payload(self.encode(x, state))
        sent = numpy.empty_like(x)
        self.decode(payload, sent)
        x -= sent
        return payload

    def compress(self, x: Array, state: State) -> Sequence[Array]:
        """The payload of a gradient, with error feedback.

        A gradient that is not finite, or has elements of 2^100, is sent as NaN and
        leaves the state as it was, so that loss scaling can skip the step.
        """
        if not self.error_feedback:
            return self.encode(x, state)
        residual = state.zeros_like("residual", x)
        if _core.compression.accumulate(x, residual):
            return self.take(residual, state)
        return self.encode(numpy.full_like(x, numpy.nan), copy.deepcopy(state))

    def reduce(self, xs: Arrays, states: States, comm: Communicator) -> Work:
        """Starts to replace arrays by their sums over the ranks of ``comm``.

        Args:
            xs: gradients of several parameters, float32 in row-major order.
            states: of the same parameters.
            comm: one rank of each node.
        """
        message = PackedPayloads([self.compress(x, s) for x, s in zip(xs, states)])
        work = comm.all_gather(message.bytes, wait=False)
        decoded: Work = work.then(
            lambda received: self._decode_sums(message, received, xs)
        )
        return decoded

    def _decode_sums(
        self, message: PackedPayloads, received: Array, xs: Arrays
    ) -> None:
        nodes = [message.unpack(row) for row in received]
        for i, x in enumerate(xs):
            sum_of_payloads(self, [payloads[i] for payloads in nodes], x)

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v!r}" for k, v in self._options().items())
        return f"{type(self).__name__}({values})"

    def _options(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}


class KernelCompressor(Compressor):
    """One whose kernels take from an array what is sent, and add it to another.

    A subclass defines :meth:`take`, or :meth:`encode`, and :meth:`add_decoded`.
    """

    def encode(self, x: Array, state: State) -> Sequence[Array]:
        return self.take(x.copy(), state)

    def decode(self, payload: Sequence[Array], out: Array) -> None:
        out.fill(0)
        self.add_decoded(payload, out)


def sum_of_payloads(
    compressor: Compressor, payloads: Sequence[Sequence[Array]], out: Array
) -> None:
    """Writes the sum of the ranks' payloads into ``out``.

    It has the bits of an all-reduce: operands are added pairwise in rank order, and
    where their number is not a power of two, the first ones are combined in pairs.
    """
    leaves = 1 << (len(payloads).bit_length() - 1)
    pairs = len(payloads) - leaves
    groups = [list(payloads[2 * i : 2 * i + 2]) for i in range(pairs)]
    _sum(compressor, groups + [[p] for p in payloads[2 * pairs :]], out)


def _sum(
    compressor: Compressor, groups: Sequence[Sequence[Sequence[Array]]], out: Array
) -> None:
    if len(groups) == 1:
        compressor.decode(groups[0][0], out)
        for payload in groups[0][1:]:
            compressor.add_decoded(payload, out)
        return
    half = len(groups) // 2
    _sum(compressor, groups[:half], out)
    if half == 1 and len(groups[1]) == 1:
        compressor.add_decoded(groups[1][0], out)
    else:
        right = numpy.empty_like(out)
        _sum(compressor, groups[half:], right)
        out += right
