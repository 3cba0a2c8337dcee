"""Rows about the samples of ranks, and how a batch is written."""

from __future__ import annotations

import collections

import numpy

import renga
import renga.functions as F
from tests.combinations.row import Row

Batch = collections.namedtuple("Batch", "x t")


class Uneven(Row):
    """Ranks have different numbers of samples."""

    name = "uneven batches"
    traits = frozenset({"sizes", "uneven"})

    def shares(self, step, ranks):
        return [5] if ranks == 1 else [2, 5, 3, 4][:ranks]


class Without(Row):
    """A rank has no samples in some steps."""

    name = "a rank without samples"
    traits = frozenset({"own samples", "sizes", "uneven"})

    def shares(self, step, ranks):
        return [6, 0, 5, 2][:ranks] if step % 2 else [4, 3, 0, 2][:ranks]


class Ignored(Row):
    """Labels that do not count: the loss is a mean over the others."""

    name = "ignored labels"
    kinds = ("vectors",)
    traits = frozenset({"told samples"})

    def data(self, network, step, samples):
        x, _ = super().data(network, step, samples)
        t = numpy.random.RandomState(step).randint(0, 3, samples)
        t[: samples // 3] = -1
        return x, t.astype("i4")

    def loss(self, model, x, t):
        return F.softmax_cross_entropy(model(x), t)

    def weight(self, x, t):
        return int((t >= 0).sum())

    def update(self, run, x, t, index):
        run.optimizer.samples = self.weight(x, t)
        super().update(run, x, t, index)


class Dict(Uneven):
    """A batch is one dictionary."""

    name = "dict batches"

    def arguments(self, x, t):
        return ({"x": x, "t": t},), {}

    def inputs(self, batch):
        return batch["x"], batch["t"]


class Keywords(Uneven):
    """A batch is keyword arguments."""

    name = "keyword arguments"

    def arguments(self, x, t):
        return (), {"x": x, "t": t}


class Tuple(Uneven):
    """A batch is one tuple."""

    name = "tuple batches"

    def arguments(self, x, t):
        return ((x, t),), {}

    def inputs(self, batch):
        return batch


class NamedTuple(Uneven):
    """A batch is one named tuple."""

    name = "namedtuple batches"

    def arguments(self, x, t):
        return (Batch(x, t),), {}

    def inputs(self, batch):
        return batch.x, batch.t


class List(Uneven):
    """A batch is a list of samples."""

    name = "list batches"

    def arguments(self, x, t):
        return (list(zip(x, t)),), {}

    def inputs(self, batch):
        return tuple(numpy.stack(each) for each in zip(*batch))


class TextFirst(Uneven):
    """The first argument is a text."""

    name = "a text before the batch"

    def arguments(self, x, t):
        return ("train", x, t), {}

    def inputs(self, text, x, t):
        return x, t


class TimeMajor(Uneven):
    """Axis 0 of the inputs is time; the number of samples is told."""

    name = "time-major batches"
    kinds = ("sequences",)
    traits = frozenset({"sizes", "told samples"})
    batch_axis = 1

    def update(self, run, x, t, index):
        run.optimizer.samples = len(x)
        super().update(run, x, t, index)

    def arguments(self, x, t):
        return (x.swapaxes(0, 1), t.swapaxes(0, 1)), {}

    def inputs(self, x, t):
        return x.swapaxes(0, 1), t.swapaxes(0, 1)


class Closure(Row):
    """The loss function closes over the batch."""

    name = "closures"
    traits = frozenset({"closure"})

    def update(self, run, x, t, index):
        run.update(lambda: self.whole_loss(run.program, x, t))


class ClosedTargets(Row):
    """The loss function closes over the targets, and gets the inputs."""

    name = "targets in a closure"

    def update(self, run, x, t, index):
        run.update(lambda x: self.whole_loss(run.program, x, t), x)


class ToldClosure(Closure):
    """The loss function closes over an uneven batch, whose samples are told."""

    name = "closures over uneven batches"
    traits = frozenset({"closure", "sizes", "told samples"})

    def shares(self, step, ranks):
        return Uneven.shares(self, step, ranks)

    def update(self, run, x, t, index):
        run.optimizer.samples = len(x)
        super().update(run, x, t, index)


class Float32(Row):
    """Parameters and data of float32."""

    name = "float32"
    dtype = numpy.float32
    tolerance = 1e-5


class Mixed16(Row):
    """Half precision with a dynamic loss scale, and an overflow on one rank."""

    name = "mixed16 with an overflow on one rank"
    dtype = renga.mixed16
    tolerance = 2e-2

    def start(self, run):
        run.optimizer.loss_scaling(2)

    def loss(self, model, x, t):
        loss = F.mean_squared_error(F.cast(model(x), numpy.float32), t)
        return loss

    def data(self, network, step, samples):
        x, t = super().data(network, step, samples)
        if step == 2:
            t[0] *= 1e30
        return x.astype(numpy.float16), t


class BFloat16(Row):
    """Products of bfloat16."""

    name = "bfloat16"
    traits = frozenset({"rounded"})
    dtype = renga.mixed_bfloat16
    tolerance = 2e-2
