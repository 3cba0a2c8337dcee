"""Softmax cross entropy of scores whose classes, or rows, are sharded."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core, functions as F
from renga.communicators import Communicator
from renga.core.function_node import FunctionNode
from renga.core.gradients import grad_of_shards
from renga.core.types import Array, ArrayLike, Grads, Indexes, Variables
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.array.cast import in_nominal_dtype
from renga.parallel.placement import PARTIAL, REPLICATE, Placement, Shard, as_placement
from renga.parallel.redistribute import Redistribution, all_gather_size
from renga.utils.type_check import IndexOutOfRange, InvalidType


def softmax_cross_entropy(
    comm: Communicator,
    x: ArrayLike,
    t: ArrayLike,
    layout: str | Placement = "channel",
    normalize: bool = True,
    ignore_label: int = -1,
) -> Variable:
    """``F.softmax_cross_entropy`` of sharded scores; every rank calls it.

    With the layout ``channel`` each rank has the scores of some classes, and the ranks
    combine maxima, sums of exponentials and the scores of the labels: 3 numbers for
    each row. With ``batch`` each has the scores of some rows, as with tokens that are
    sharded. The result is the same on every rank.

    Shapes:
        x: (M, C), this rank's shard of it
        t: (M,) integers, all of them; with ``batch`` those of this rank
        result: (), the mean over the labels other than ``ignore_label``, or over M
            without ``normalize``

    Raises:
        InvalidType: shapes or dtypes do not fit.
        ValueError: the layout is another one.
        IndexOutOfRange: a label is no class.

    Source: Shoeybi et al., Megatron-LM, 2019.
    """
    x, t, placement = (
        in_nominal_dtype(as_variable(x)),
        as_array(t),
        as_placement(layout),
    )
    if placement not in (Shard(0), Shard(1), Shard(-1)):
        raise ValueError(
            f"softmax_cross_entropy: expected layout to be channel or batch, got "
            f"{layout!r}"
        )
    if x.ndim != 2 or t.shape != x.shape[:1] or t.dtype.kind not in "iu":
        raise InvalidType(
            "softmax_cross_entropy: expected x of shape (M, C) and integers t of shape "
            f"(M,), got {x.shape} and {t.dtype} {t.shape}"
        )
    count = numpy.array((t != ignore_label).sum() if normalize else t.size)
    if placement == Shard(0):
        losses = F.softmax_cross_entropy(x, t, ignore_label=ignore_label, reduce="no")
        count = comm.all_reduce(count)
        total = Redistribution(comm, PARTIAL, REPLICATE).apply(F.sum(losses))
    else:
        total = F.sum(_losses(comm, x, t, ignore_label))
    mean: Variable = total / max(int(count), 1)
    return mean


def _losses(comm: Communicator, x: Variable, t: Any, ignore_label: int) -> Variable:
    """Of each row, 0 where the label is ignored."""
    sizes = all_gather_size(x, comm, 1)
    wrong = t[((t < 0) | (t >= sum(sizes))) & (t != ignore_label)]
    if wrong.size:
        raise IndexOutOfRange(
            f"softmax_cross_entropy: expected labels from 0 to {sum(sizes) - 1}, got "
            f"{wrong[0]}"
        )
    own = numpy.where(t == ignore_label, -1, t - sum(sizes[: comm.rank]))
    own[(own < 0) | (own >= x.shape[1])] = -1
    return ShardedClassesLoss(comm, own, t == ignore_label).apply((x,))[0]


class ShardedClassesLoss(FunctionNode):
    """The losses of rows of which each rank has the scores of some classes.

    Args:
        own: each row's label among this rank's classes, -1 where it is another's.
        is_ignored: rows whose loss is 0.
    """

    random_stream = 0  # the same on every rank

    def __init__(
        self, comm: Communicator, own: numpy.ndarray, is_ignored: numpy.ndarray
    ) -> None:
        self.comm, self.own, self.is_ignored = comm, own, is_ignored
        self.random_comm = comm
        self.rows = numpy.flatnonzero(own >= 0)
        self.labels = own[self.rows]

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        (x,) = inputs
        self.retain_inputs((0,))
        top = x.max(1, initial=-numpy.inf)
        self.comm.all_reduce(top, "max", out=top)
        exponentials = x - top[:, None]
        labelled = numpy.zeros_like(top)
        labelled[self.rows] = exponentials[self.rows, self.labels]
        numpy.exp(exponentials, out=exponentials)
        sums = numpy.stack([exponentials.sum(1), labelled])
        self.comm.all_reduce(sums, out=sums)
        self.total, self.exponentials = sums[0], exponentials
        return (numpy.where(self.is_ignored, 0, numpy.log(sums[0]) - sums[1]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        if _core.backprop_enabled():
            (x,) = self.get_retained_inputs()
            y = self._composed(x)
            return tuple(
                grad_of_shards([y], [x], grad_outputs, enable_double_backprop=True)
            )
        gy = numpy.where(self.is_ignored, 0, grad_outputs[0].array)
        gx = self.exponentials * (gy / self.total)[:, None]
        gx[self.rows, self.labels] -= gy[self.rows]
        return (Variable(gx),)

    def _composed(self, x: Variable) -> Variable:
        """The losses by functions that can be differentiated any number of times."""
        comm = self.comm
        own = F.reshape(F.logsumexp(x, 1), (-1, 1))
        sizes = [1] * comm.size
        gather = Redistribution(comm, Shard(1), REPLICATE, sizes)
        labelled = F.where(
            self.own >= 0,
            F.select_item(x, numpy.maximum(self.own, 0)),
            numpy.zeros(len(self.own), x.dtype),
        )
        labelled = Redistribution(comm, PARTIAL, REPLICATE).apply(labelled)
        losses = F.logsumexp(gather.apply(own), 1) - labelled
        return F.where(self.is_ignored, numpy.zeros(losses.shape, x.dtype), losses)
