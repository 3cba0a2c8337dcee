"""Multi-node optimizers."""

from __future__ import annotations

from unittest import mock

import numpy

from renga.distributed import create_multi_node_optimizer
from renga.distributed.compression import Compressor
from renga.parallel.data import buckets
from renga.parallel.data.overlap import OverlapTrial
from tests.combinations.column import Column, Parts
from tests.combinations.reference import Formula, apply, distinct, total


class MultiNode(Column):
    """``create_multi_node_optimizer``."""

    name = "multi-node optimizer"
    in_processes = True
    covers = ("create_multi_node_optimizer",)
    options: dict = {}
    zero_fill = True

    def wrap(self, comm, model, optimizer, example, row):
        optimizer = create_multi_node_optimizer(optimizer, comm, **self.options)
        return model, model, optimizer.setup(model)

    def finish(self, run):
        for each in run.trained:
            each.optimizer.join()


class Simulated(MultiNode):
    name = "multi-node optimizer, simulated ranks"
    covers = ("simulated ranks",)
    is_simulated = True
    in_processes = False


class ThreeRanks(MultiNode):
    name = "multi-node optimizer, 3 ranks"
    ranks = 3
    in_processes = False


class ByMessages(MultiNode):
    name = "multi-node optimizer, by messages"
    covers = ("messages",)
    shared_memory = False
    in_processes = False


class WithoutZeroFill(MultiNode):
    name = "zero_fill=False"
    covers = ("zero_fill",)
    options = {"zero_fill": False}
    in_processes = False
    zero_fill = False


class Overlapping(MultiNode):
    """Gradients are averaged during the backward pass."""

    name = "with overlap"
    covers = ("with overlap", "nodes")
    nodes = 2
    in_processes = False
    choice = True

    def on_ranks(self, *args):
        choice = mock.PropertyMock(return_value=self.choice)
        with mock.patch.object(OverlapTrial, "choice", choice):
            with mock.patch.object(OverlapTrial, "overlaps", choice):
                return super().on_ranks(*args)


class NotOverlapping(Overlapping):
    name = "without overlap"
    covers = ("without overlap",)
    choice = False


class Delayed(Formula):
    """Gradients are used one update late."""

    def __init__(self, zero_fill):
        super().__init__(zero_fill)
        self.late = {}

    def step(self, parts):
        first = parts[0][0]
        late = self.late.get(id(first.trained.model))
        mean = total([part for own in parts for part in own])
        self.late[id(first.trained.model)] = mean, first.scale
        if late is not None:
            ratio = first.scale / late[1]
            late = {name: scaled(g, ratio) for name, g in late[0].items()}
            for own in parts:
                apply(own[0], late, self.zero_fill)


def scaled(gradient, ratio):
    """A gradient with another loss scale; None stays None."""
    return None if gradient is None else numpy.asarray(gradient * ratio)


class DoubleBuffering(MultiNode):
    name = "double buffering"
    covers = ("double_buffering",)
    options = {"double_buffering": True}
    formula = Delayed
    saves_more = True


class States(MultiNode):
    name = 'shard="states"'
    covers = ("shard=states",)
    options = {"shard": "states"}


class Gradients(MultiNode):
    name = 'shard="gradients"'
    covers = ("shard=gradients",)
    options = {"shard": "gradients"}


class Parameters(MultiNode):
    name = 'shard="parameters"'
    covers = ("shard=parameters",)
    options = {"shard": "parameters"}


class GatheredParameters(Parameters):
    """Ranks that share no memory gather parameters before they read them."""

    name = 'shard="parameters", 2 nodes'
    covers = ("shard=parameters", "nodes")
    nodes = 2
    in_processes = False

    def on_ranks(self, *args):
        with mock.patch.object(buckets, "BUCKET_BYTES", 160):  # several units
            return super().on_ranks(*args)


class Everything(Compressor):
    """Sends all elements."""

    error_feedback = False

    def encode(self, x, state):
        return (numpy.array(x),)

    def decode(self, payload, out):
        out[...] = payload[0]


class Compressed(MultiNode):
    name = "compressed between nodes"
    covers = ("compression",)
    nodes = 2
    in_processes = False
    dtype = numpy.float32  # the only one that is compressed
    saves_more = True

    @property
    def options(self):
        return {"compression": Everything()}


class Half(Compressor):
    """Sends half of what there is, and keeps the rest."""

    def encode(self, x, state):
        return (numpy.asarray(x / 2),)

    def decode(self, payload, out):
        out[...] = payload[0]


class Kept(Formula):
    """Half of what there is counts; the rest is added to the next gradients.

    A step that overflows is skipped, and counts for nothing.
    """

    def __init__(self, zero_fill):
        super().__init__(zero_fill)
        self.kept = {}  # by the first replica's model and the parameter's name

    def step(self, parts):
        first = parts[0][0]
        params, scale = dict(distinct(first.trained.model)), first.scale
        mean = total([part for own in parts for part in own])
        mean = {k: g for k, g in mean.items() if params[k].array is not None}
        whole = {k: self.whole(first, k, g, params[k]) for k, g in mean.items()}
        half = {k: numpy.asarray(g / 2) for k, g in whole.items()}
        used = {k: g for k, g in half.items() if mean[k] is not None or g.any()}
        for own in parts:
            apply(own[0], {**dict.fromkeys(params), **used}, self.zero_fill)
        if first.trained.optimizer.is_safe_to_update():
            model = id(first.trained.model)
            self.kept.update({(model, k): g / scale for k, g in half.items()})

    def whole(self, part, name, mean, param):
        """A mean gradient and what was kept, in float32 as it is compressed."""
        mean = numpy.zeros(param.shape) if mean is None else mean
        kept = self.kept.get((id(part.trained.model), name), 0)
        return numpy.asarray(mean + kept * part.scale, numpy.float32)


class Lossy(Compressed):
    """Compression that keeps something back."""

    name = "compressed between nodes, with error feedback"
    formula = Kept
    # A file has what one node has kept back.
    agrees_on = frozenset({"rank 0 loads"})

    @property
    def options(self):
        return {"compression": Half()}

    def on_ranks(self, *args):
        with mock.patch.object(buckets, "BUCKET_BYTES", 160):  # several buckets
            return super().on_ranks(*args)


class Accumulating(MultiNode, Parts):
    """``accumulate(2)``."""

    name = "accumulate(2)"
    covers = ("accumulate",)
    parts = 2
    lacks = {"gradients by hand": "accumulate() adds up the gradients of losses"}

    def wrap(self, comm, model, optimizer, example, row):
        model, program, optimizer = super().wrap(comm, model, optimizer, example, row)
        return model, program, optimizer.accumulate(2)


COLUMNS = [
    *(MultiNode(), Simulated(), ThreeRanks(), ByMessages(), WithoutZeroFill()),
    *(Overlapping(), NotOverlapping(), DoubleBuffering(), States(), Gradients()),
    *(Parameters(), GatheredParameters(), Compressed(), Lossy(), Accumulating()),
]
