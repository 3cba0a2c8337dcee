"""Batch normalization over the batches of all ranks together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from renga import functions as F
from renga._core import backprop_enabled, ops
from renga.function_node import FunctionNode
from renga.links.parallel.relayout import EACH, PARTIAL, REPLICATED, change_layout
from renga.variable import Variable


class MultiNodeBatchNormalization(FunctionNode):
    """Of inputs (token, x, gamma, beta).

    The token, an empty array, is a variable: by it each rank comes back even where
    nothing else asks for a gradient.

    ``count``, ``mean`` and ``var`` are the statistics over all ranks after the call.
    """

    def __init__(self, comm: Any, eps: float, axis: tuple[int, ...]) -> None:
        self.comm = comm
        self.eps = eps
        self.axis = axis

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        _, x, gamma, beta = inputs
        self.retain_inputs((1, 2))
        self.beta_dtype, self.shape = beta.dtype, beta.shape
        gamma, beta = self._merge(x, gamma, beta)
        mean, var = self.mean, self.var
        self.inv_std = 1 / numpy.sqrt(var + self.eps)
        scale = gamma.reshape(-1) * self.inv_std
        return (ops.channel_normalize(x, mean, scale, beta.reshape(-1), self.axis),)

    def _merge(self, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
        """Finds the statistics, and returns the gamma and beta of all channels."""
        self.count, self.mean, self.var, _ = merge_moments(self.comm, x, self.axis)
        return gamma, beta

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        x, gamma = self.get_retained_inputs()
        way = self._composed if backprop_enabled() else self._fused
        gradients = (token(), *way(x, gamma, grad_outputs[0]))
        return tuple(gradients[i] for i in target_input_indexes)

    def _fused(self, x: Variable, gamma: Variable, gy: Variable) -> tuple[Any, ...]:
        """Two passes over x and gy, between which the ranks add up their sums."""
        sums = ops.channel_gradient_sums(x.array, gy.array, self.mean, self.axis)
        own_gy, own_gy_x = (s.astype(numpy.float64) for s in sums)
        own = numpy.stack([own_gy, own_gy_x * self.inv_std])
        gbeta, ggamma = total = self.comm.all_reduce(own)
        share = 1 / max(1, self.count)
        scale = gamma.array.reshape(-1) * self.inv_std
        shift, slope = gbeta * share, scale * ggamma * self.inv_std * share
        gx = ops.channel_input_grad(
            x.array, gy.array, self.mean, scale, shift, slope, self.axis
        )
        gbeta, ggamma = self._wanted(own, total)
        ggamma = ggamma.reshape(self.shape).astype(gamma.dtype)
        gbeta = gbeta.reshape(self.shape).astype(self.beta_dtype)
        return Variable(gx), Variable(ggamma), Variable(gbeta)

    def _wanted(self, own: numpy.ndarray, total: numpy.ndarray) -> numpy.ndarray:
        """Which of the sums are the gradients of beta and gamma."""
        return own

    def _composed(self, x: Variable, gamma: Variable, gy: Variable) -> tuple[Any, ...]:
        """The same written with functions, for derivatives of higher order."""
        x_dtype, dtype = x.dtype, numpy.promote_types(x.dtype, numpy.float32)
        x, gy = F.cast(x, dtype), F.cast(gy, dtype)
        share = 1 / max(1, self.count)

        def own_sum(a: Variable) -> Variable:
            return F.sum(a, self.axis, keepdims=True)

        def together(a: Variable) -> Variable:
            return change_layout(a, self.comm, PARTIAL, EACH)

        def total(a: Variable) -> Variable:
            return together(own_sum(a))

        centred = x - total(x) * share
        inv_std = F.rsqrt(total(F.square(centred)) * share + self.eps)
        x_hat = centred * inv_std
        gbeta, ggamma = own_sum(gy), own_sum(gy * x_hat)
        common = together(gbeta) + x_hat * together(ggamma)
        scale = F.cast(F.reshape(gamma, inv_std.shape), dtype) * inv_std
        gx = scale * (gy - common * share)
        shape = gamma.shape
        return (
            F.cast(gx, x_dtype),
            F.cast(F.reshape(ggamma, shape), gamma.dtype),
            F.cast(F.reshape(gbeta, shape), self.beta_dtype),
        )


class CommonBatchNormalization(MultiNodeBatchNormalization):
    """The same where the gradients of gamma and beta are to be those of all ranks.

    They are the sums that the gradient of x takes anyway.
    """

    def _wanted(self, own: numpy.ndarray, total: numpy.ndarray) -> numpy.ndarray:
        return total

    def _composed(self, x: Variable, gamma: Variable, gy: Variable) -> tuple[Any, ...]:
        gamma = change_layout(gamma, self.comm, REPLICATED, EACH)
        gx, *own = super()._composed(x, gamma, gy)
        way = self.comm, PARTIAL, REPLICATED
        return (gx, *(change_layout(g, *way) for g in own))


def token() -> Variable:
    """The first input."""
    return Variable(numpy.empty(0, numpy.float32))


def merge_moments(
    comm: Any,
    x: numpy.ndarray,
    axis: tuple[int, ...],
    added: Iterable[numpy.ndarray] = (),
) -> tuple[int, numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """The number, mean and variance of all ranks' elements of each channel.

    Every rank tells its own in one message of float64 and merges all, by their
    distance from the common mean, in rank order: nothing cancels, all get the same
    bits, and a rank may have no elements. Last come the sums over the ranks of what is
    ``added`` to the message.

    Source: Chan, Golub and LeVeque, The American Statistician 37, 1983.
    """
    count = int(numpy.prod([x.shape[i] for i in axis], dtype=numpy.int64))
    own = ops.channel_moments(x, axis)
    rows = numpy.array([numpy.full(own[0].shape, count), *own, *added])
    packed = comm.all_gather(rows)
    counts, means, variances = packed[:, 0], packed[:, 1], packed[:, 2]
    total = counts[:, :1].sum()
    weights = counts / max(1, total)
    mean = (weights * means).sum(0)
    var = (weights * (variances + (means - mean) ** 2)).sum(0)
    return int(total), mean, var, packed[:, 3:].sum(0)
