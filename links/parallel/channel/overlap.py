"""A layer computed piece by piece of the batch, while other pieces travel."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy

from renga._core import backprop_enabled
from renga.function_node import FunctionNode, grad
from renga.functions.noise.seed import enable_random_streams
from renga.links.parallel.channel.cost import Cost
from renga.links.parallel.moves import Finish, empty_image, split
from renga.links.parallel.relayout import REPLICATED, Change
from renga.links.parallel.shard import as_slice, shares
from renga.variable import Variable

# By the number of samples; None where nothing has to travel.
Travel = Callable[[int], Optional[Change]]
_PIECES = 4
_CORES = os.cpu_count() or 1  # asking takes as long as a short message


def run(
    compute: Callable[..., Variable],
    x: Variable,
    W: Any,
    b: Any,
    before: Travel,
    after: Travel,
    pieces: int,
) -> Variable:
    """``after(compute(before(x), W, b))``, in so many pieces of the batch.

    With 0 nothing is computed while something travels.
    """
    if pieces > 0:
        inputs = (x, W) if b is None else (x, W, b)
        return Overlapped(compute, before, after, pieces).apply(inputs)[0]
    samples = len(x)
    return _apply(after(samples), compute(_apply(before(samples), x), W, b))


def pieces_of_batch(comm: Any, cost: Cost) -> int:
    """Into how many pieces to cut the batch; 0 where nothing can go on meanwhile.

    Ranks that share memory copy with the cores that they compute with: without as
    many again, what travels in the background takes longer than it does at once.
    Cutting costs time too; 1 still lets gradients travel meanwhile.
    """
    one_node = comm.intra_size == comm.size
    if one_node and _CORES < 2 * comm.intra_size:
        return 0
    return _PIECES if cost.communication > cost.computation / 4 else 1


class Overlapped(FunctionNode):
    """What ``run`` computes, of inputs (x, W, b) or (x, W).

    Pieces of x and gy travel while others are computed, and what the gradient of x
    has to add up travels while those of W and b are computed.
    """

    def __init__(
        self,
        compute: Callable[..., Variable],
        before: Travel,
        after: Travel,
        count: int,
    ) -> None:
        self.compute, self.before, self.after = compute, before, after
        self.count = count
        change = after(0) or before(0)
        if change is not None:
            whole = change.target == REPLICATED
            self.random_stream = 0 if whole else change.comm.rank + 1
            enable_random_streams()

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x, *weights = inputs
        self.retain_inputs(range(len(inputs)))
        self.batch = [part for part in shares(len(x), self.count) if len(part)]
        self.batch = self.batch or [range(0)]
        self.weights = [Variable(w) for w in weights]
        self.graphs: list[tuple[Variable, Variable]] = []
        # A single piece is waited for at once.
        alone = len(self.batch) == 1
        coming = [
            _start(self.before(len(p)), x[as_slice(p)], alone) for p in self.batch
        ]
        going = []
        for part, arrive in zip(self.batch, coming):
            block = Variable(arrive())
            y = self.compute(block, *self.weights)
            if backprop_enabled():
                self.graphs.append((block, y))
            going.append(_start(self.after(len(part)), y.array, alone))
        return (_joined([finish() for finish in going]),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        if backprop_enabled():
            return self._composed(target_input_indexes, grad_outputs)
        gy = grad_outputs[0].array
        alone = len(self.batch) == 1
        coming = [
            _start(_adjoint(self.after(len(p))), gy[as_slice(p)], alone)
            for p in self.batch
        ]
        gys, going = [], []
        for part, arrive, (block, y) in zip(self.batch, coming, self.graphs):
            gys.append(Variable(arrive()))
            if 0 in target_input_indexes:
                (gx,) = grad([y], [block], [gys[-1]])
                going.append(_start(_adjoint(self.before(len(part))), gx.array))
        found: dict[int, Any] = {}
        wanted = [i for i in target_input_indexes if i > 0]
        for gy_piece, (_, y) in zip(gys, self.graphs):
            pieces = grad([y], [self.weights[i - 1] for i in wanted], [gy_piece])
            for i, g in zip(wanted, pieces):
                found[i] = found[i] + g if i in found else g
        if going:
            found[0] = Variable(_joined([finish() for finish in going]))
        return tuple(found[i] for i in target_input_indexes)

    def _composed(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The same computed again with functions, for derivatives of higher order."""
        x, W, *b = self.get_retained_inputs()
        travel = self.before, self.after
        y = run(self.compute, x, W, b[0] if b else None, *travel, pieces=0)
        targets = [(x, W, *b)[i] for i in target_input_indexes]
        return tuple(grad([y], targets, grad_outputs, enable_double_backprop=True))


def _start(change: Change | None, x: numpy.ndarray, wait: bool = False) -> Finish:
    return (lambda: x) if change is None else change.start(x, wait)


def _adjoint(change: Change | None) -> Change | None:
    return None if change is None else change.adjoint()


def _apply(change: Change | None, x: Variable) -> Variable:
    return x if change is None else change.apply(x)


def _joined(parts: Sequence[numpy.ndarray]) -> numpy.ndarray:
    """Pieces of a batch one after another, images with their channels last."""
    if len(parts) == 1:
        return parts[0]
    y = empty_image((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    for place, part in zip(split(y, 0, [len(part) for part in parts]), parts):
        place[...] = part
    return y
