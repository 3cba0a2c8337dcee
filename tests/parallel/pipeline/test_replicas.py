"""Grids of data × stages, of which replicas differ, against one process."""

import io

import numpy as np
import pytest

import renga
from renga.communicators import local
from renga.distributed import create_groups, create_multi_node_optimizer
from renga.optimizers import Adam, MomentumSGD
from renga.pipeline import Pipeline
from renga.serializers import load_npz
from tests.files import saved
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    pipeline,
    whole,
)

DATA = batches((8, 8, 8, 8))
LABELS = [
    (x, np.where(np.arange(8) < n, -1, t)) for n, (x, t) in zip((0, 5, 3, 7), DATA)
]


def values_of(model):
    return {path: np.array(p.array) for path, p in model.namedparams()}


def one_process(data, make=lambda: MomentumSGD(0.1)):
    model = Layers()
    optimizer = make().setup(model)
    for batch in data:
        optimizer.update(model, *batch)
    return values_of(model)


def on_grid(act, data, sizes, make=lambda: MomentumSGD(0.1), **options):
    """Trains on 2 × 2 ranks, whose networks have other weights at first."""

    def run(comm):
        groups = create_groups(comm, stage=2)
        example = tuple(x[:2] for x in data[0])
        network = Layers(seed=comm.rank)
        model = Pipeline(network, groups.stage, *example, micro_batches=2, **options)
        optimizer = create_multi_node_optimizer(make(), groups.data).setup(model)
        act(comm, model, optimizer)
        for (x, t), size in zip(data, sizes):
            own = slice(size) if groups.data.rank == 0 else slice(size, None)
            model.train_batch(optimizer, model.model, (x[own], t[own]))
        return whole(model)

    return local.run(run, ranks=4)


def nothing(comm, model, optimizer):
    pass


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (1, 6, 3, 2), (8, 0, 5, 8)])
def test_replicas_are_weighted_by_samples(sizes):
    """From the first update on; a replica may have no samples."""
    for found in on_grid(nothing, DATA, sizes):
        assert_close(found, one_process(DATA))


def test_replicas_are_weighted_by_labels_that_count():
    def count(x, t):
        return np.sum(t >= 0)

    for found in on_grid(nothing, LABELS, (1, 6, 5, 7), samples=count):
        assert_close(found, one_process(LABELS))


@pytest.mark.parametrize("target", ["both", "model"])
def test_rank_0_alone_loads(target):
    """Its stage's ranks and all replicas get what it has loaded."""
    first = Layers(seed=9)
    optimizer = Adam(0.01).setup(first)
    for batch in DATA[:2]:
        optimizer.update(first, *batch)
    files = []
    for each in (first, optimizer):
        files.append(io.BytesIO())
        renga.serializers.save_npz(files[-1], each)
    if target == "model":
        optimizer = Adam(0.01).setup(first)
    for batch in DATA[2:]:
        optimizer.update(first, *batch)

    def load(comm, model, optimizer):
        if comm.rank == 0:
            load_npz(io.BytesIO(files[0].getvalue()), model)
            if target == "both":
                load_npz(io.BytesIO(files[1].getvalue()), optimizer)

    for found in on_grid(load, DATA[2:], (3, 5), lambda: Adam(0.01)):
        assert_close(found, values_of(first))


class Drawing(Layers):
    """Draws random numbers in each pass, and skips a layer in some."""

    def predict(self, x):
        h = renga.functions.tanh(self.a(x))
        if np.random.rand() < 0.5:
            h = renga.functions.tanh(self.b(h))
        h = renga.functions.dropout(renga.functions.tanh(self.c(h)), 0.3)
        return self.d(h)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_layers_skipped_at_random_and_noise(ranks_with_own_random_numbers, schedule):
    """Every micro-batch has other messages; noise is drawn for all stages."""

    def noisy(optimizer):
        optimizer.add_hook(renga.optimizer_hooks.GradientNoise(0.01))
        np.random.seed(3)

    one = Drawing()
    optimizer = MomentumSGD(0.1).setup(one)
    noisy(optimizer)
    for x, t in DATA:
        one.cleargrads()
        for part in (slice(3), slice(3, 6), slice(6, 8)):
            loss = one(x[part], t[part])
            loss.grad = np.full((), len(x[part]) / 8)
            loss.backward()
        optimizer.update()

    def run(comm):
        if comm.size > 2:
            return values_of(one)
        model, optimizer = pipeline(Drawing, comm, DATA, schedule=schedule)
        noisy(optimizer)
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
        return whole(model)

    for found in ranks_with_own_random_numbers(run):
        assert_close(found, values_of(one))


class Normalized(Layers):
    """Statistics on stages that have none of the links' parameters."""

    def __init__(self):
        super().__init__()
        options = {"dtype": np.float64}
        with self.init_scope():
            self.free = renga.links.BatchNormalization(
                8, use_gamma=False, use_beta=False, **options
            )
            self.n0 = renga.links.BatchNormalization(8, **options)
            self.n1 = renga.links.BatchNormalization(8, **options)
        with self.n1.init_scope():
            self.n1.gamma = self.n0.gamma

    def predict(self, x):
        h = self.n0(self.b(self.a(x)))
        return self.d(self.n1(self.free(self.c(h))))


def test_running_statistics_of_links_without_parameters_of_their_own(several_ranks):
    one = Normalized()
    optimizer = MomentumSGD(0.1).setup(one)
    for batch in DATA:
        optimizer.update(one, *batch)

    def run(comm):
        model, optimizer = pipeline(Normalized, comm, DATA, 1)
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
        return saved(model)

    for found in several_ranks(run):
        assert_close(found, saved(one))


def test_an_optimizer_that_accumulates_is_refused():
    """It would update by every batch: a pipeline computes gradients itself."""

    def accumulate(comm, model, optimizer):
        optimizer.accumulate(2)

    with pytest.raises(ValueError, match="accumulate: expected a count of 1"):
        on_grid(accumulate, DATA, (4,))
