"""Arguments, results and losses of pipelines, against one process."""

import collections

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.communicators import local
from renga.optimizers import MomentumSGD
from renga.pipeline import PipelineUpdater
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    pipeline,
    serial,
    trained,
    whole,
)

Pair = collections.namedtuple("Pair", "first second")
DATA = batches()


class Outputs(Layers):
    """Several results, on several stages."""

    def forward(self, x, t):
        first = F.tanh(self.a(x))
        y = self.d(F.tanh(self.c(F.tanh(self.b(first)))))
        loss = F.softmax_cross_entropy(y, t)
        outputs = collections.OrderedDict(y=y, loss=loss)
        return Pair((first, None), [outputs, "text", {"size": 3, "loss": loss}])


def arrays_of(value):
    """Types of containers and arrays of a result, in order."""
    if isinstance(value, dict):
        items = [x for key, item in value.items() for x in (key, *arrays_of(item))]
        return [type(value), *items]
    if isinstance(value, (tuple, list)):
        return [type(value), *(x for item in value for x in arrays_of(item))]
    return [renga.as_array(value)]


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved"])
def test_results_in_containers(several_ranks, schedule):
    """Named tuples, dictionaries and None, on every rank, wherever arrays are."""
    x, t = DATA[0]
    expected = arrays_of(Outputs()(x, t))

    def run(comm):
        model, _ = pipeline(Outputs, comm, DATA, schedule=schedule)
        with renga.using_config("train", False):
            return arrays_of(model(x, t=t))

    for found in several_ranks(run):
        assert len(found) == len(expected)
        for value, other in zip(found, expected):
            if isinstance(other, np.ndarray):
                np.testing.assert_allclose(value, other, 1e-12)
            else:
                assert value == other


class Nested(Layers):
    def forward(self, batch, scale=1.0):
        values = batch.values() if isinstance(batch, dict) else batch
        return scale * super().forward(*values)


@pytest.mark.parametrize("kind", [tuple, list, lambda xt: Pair(*xt), dict])
def test_arguments_in_containers(some_ranks, kind):
    def packed(x, t):
        return ({"x": x, "t": t} if kind is dict else kind([x, t]), 2.0)

    data = [packed(*batch) for batch in DATA]
    example = packed(*(x[:2] for x in DATA[0]))

    def doubled():
        network = Layers()
        network.forward = lambda x, t: 2 * Layers.forward(network, x, t)
        return network

    expected = serial(doubled, DATA)
    for found in some_ranks(lambda comm: trained(Nested, comm, data, example=example)):
        assert_close(found, expected)


def test_keyword_arguments(some_ranks):
    data = [{"t": t, "x": x} for x, t in DATA]
    example = tuple(x[:2] for x in DATA[0])
    for found in some_ranks(lambda comm: trained(Layers, comm, data, example=example)):
        assert_close(found, serial(Layers, DATA))


def test_ignored_labels(some_ranks):
    """The mean over all labels of a batch, not of the means of micro-batches."""
    data = [(x, np.where(np.arange(7) < n, -1, t)) for n, (x, t) in zip((3, 6), DATA)]
    expected = serial(Layers, data)

    def run(comm):
        model, optimizer = pipeline(
            Layers, comm, data, samples=lambda x, t: np.sum(t >= 0)
        )
        for batch in data:
            model.train_batch(optimizer, model.model, batch)
        model.model.forward = lambda x: model.model.predict(x)
        return whole(model), model(data[0][0]).array

    one = Layers()
    for found, y in some_ranks(run):
        assert_close(found, expected)
        for path, param in one.namedparams():
            param.array[...] = expected[path]
        np.testing.assert_allclose(y, one.predict(data[0][0]).array, 1e-9)


class Summed(Layers):
    def forward(self, x, t):
        return super().forward(x, t) * len(x)


@pytest.mark.parametrize("options", [{}, {"reduce": "sum"}])
def test_sums(some_ranks, options):
    expected = serial(Summed, DATA, optimizer=MomentumSGD(0.01))
    x, t = DATA[0]
    total = float(Summed()(x, t).array)

    def run(comm):
        model, optimizer = pipeline(Summed, comm, DATA, **options)
        np.testing.assert_allclose(model(x, t).array, total, 1e-12)
        optimizer.lr = 0.01
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
        return whole(model)

    def one_process():
        model, rate = Summed(), MomentumSGD(0.01)
        rate.setup(model)
        for batch in DATA:
            rate.update(model, *batch)
        return {path: p.array for path, p in model.namedparams()}

    assert expected.keys() == one_process().keys()
    for found in some_ranks(run):
        assert_close(found, one_process())


class Sequences(renga.Chain):
    """Time-major sequences, a label for each step."""

    def __init__(self):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.first, self.second = L.LSTM(4, 6), L.LSTM(6, 6)
            self.last = L.Linear(6, 5)
        random = np.random.RandomState(2)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.3, param.shape)

    def predict(self, x):
        self.first.reset_state()
        self.second.reset_state()
        return F.stack([self.last(self.second(self.first(step))) for step in x])

    def forward(self, x, t):
        return F.softmax_cross_entropy(F.swapaxes(self.predict(x), 1, 2), t)


def test_time_major_sequences(some_ranks):
    random = np.random.RandomState(0)
    data = [(random.randn(3, 7, 4), random.randint(0, 5, (3, 7))) for _ in range(2)]
    example = tuple(x[:, :2] for x in data[0])
    expected = serial(Sequences, data)

    def run(comm):
        options = {"example": example, "batch_axis": 1}
        return trained(Sequences, comm, data, **options)

    for found in some_ranks(run):
        assert_close(found, expected)


def test_a_loss_that_closes_over_its_batch(some_ranks):
    """There is nothing to split, so that the batch is one micro-batch."""

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)
        for x, t in DATA:
            model.train_batch(optimizer, lambda: model.model(x, t), ())  # noqa: B023
        return whole(model)

    for found in some_ranks(run):
        assert_close(found, serial(Layers, DATA))


@pytest.mark.parametrize("ranks", [2, 3])
def test_an_updater_that_accumulates_batches(ranks):
    x, t = (np.concatenate(arrays) for arrays in zip(*batches((12,))))
    data = renga.datasets.TupleDataset(x, t)

    def updater_of(kind, model, optimizer):
        iterator = renga.iterators.SerialIterator(data, 3, shuffle=False)
        updater = kind(iterator, optimizer.setup(model), accumulate=2)
        training.Trainer(updater, (3, "iteration")).run()

    one = Layers()
    updater_of(training.updaters.StandardUpdater, one, MomentumSGD(0.1))

    def run(comm):
        model, optimizer = pipeline(Layers, comm, [(x, t)])
        updater_of(PipelineUpdater, model, optimizer)
        return whole(model)

    for found in local.run(run, ranks=ranks):
        assert_close(found, {path: p.array for path, p in one.namedparams()})


@pytest.mark.parametrize(
    "loss,message",
    [
        (lambda x, t: None, "NoneType"),
        (lambda x, t: (x, t), "tuple"),
    ],
)
def test_a_loss_that_is_no_number(loss, message):
    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)
        before = whole(model)
        with pytest.raises(TypeError, match=f"loss function, got {message}"):
            model.train_batch(optimizer, loss, DATA[0])
        assert_close(whole(model), before)

    local.run(run, ranks=2)
