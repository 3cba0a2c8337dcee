"""Layouts of activations: by sample in early layers, by channel in late ones."""

import itertools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizers, serializers
from renga.communicators import simulated
from renga.links.parallel.channel.batch_normalization import ParallelBatchNormalization
from renga.parallel.channel.layout_search import cost_of_call
from renga.parallel.conversion.tracing import trace
from renga.parallel.parallelize import parallelize
from renga.utils.type_check import InvalidType
from tests.links.parallel.differentiate import array, in_float64

LAYOUTS = ["replicated", "channel", "batch"]


class Images(renga.Chain):
    """Large images with few channels, pooled to vectors with many."""

    def __init__(self, ratio=0.0):
        super().__init__()
        random = np.random.RandomState(0)
        self.ratio = ratio

        def init(a):
            a[...] = random.uniform(-0.3, 0.3, a.shape)

        with self.init_scope():
            self.first = L.Convolution2D(2, 5, 3, 2, 1, initialW=init)
            self.bn = L.BatchNormalization(5, initial_gamma=init)
            self.second = L.Convolution2D(5, 5, 3, 1, 1, initialW=init)
            self.narrow = L.Convolution2D(5, 3, 8, 8, initialW=init)
            self.hidden = L.Linear(147, 600, initialW=init)
            self.last = L.Linear(600, 3, initialW=init)

    def forward(self, x):
        h = F.elu(self.bn(self.first(x)))
        h = F.dropout(F.elu(self.second(h) + h), self.ratio)
        return self.last(F.tanh(self.hidden(F.tanh(self.narrow(h)))))


def batches():
    random = np.random.RandomState(1)
    for size in (6, 5, 6):  # of which a rank has more or less
        yield random.normal(size=(size, 2, 112, 112)), random.randint(0, 3, size)


def train(model):
    optimizer = optimizers.MomentumSGD(0.1).setup(model)
    for x, t in batches():
        optimizer.update(
            lambda x, t: F.softmax_cross_entropy(model(x), t), x, t.astype("i4")
        )
    state = {}
    serializers.DictionarySerializer(state).save(model)
    with renga.using_config("train", False), renga.no_backprop_mode():
        return state, model(x).array


def network_of(size):
    """What the choice of layouts depends on: 20 µs and 4 GB/s within a node."""
    return simulated.Machine(size, node_latency=2e-5, node_bandwidth=4e9)


def test_three_steps(ranks):
    with renga.using_config("dtype", np.float64):
        expected, last = train(Images())

    @in_float64
    def on_rank(comm):
        return train(parallelize(Images(), comm, "channel", next(batches())[0]))

    for values, y in ranks(on_rank):
        np.testing.assert_allclose(y, last, rtol=1e-7, atol=1e-9)
        assert values.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(values[name], value, 1e-7, 1e-9, err_msg=name)


@pytest.mark.parametrize("size", [2, 3])
def test_layouts_for_a_given_network(size):
    @in_float64
    def on_rank(comm):
        model = parallelize(Images(), comm, "channel", next(batches())[0])
        return {
            path: (link.input_layout, link.output_layout)
            for path, link in model.namedlinks(skipself=True)
        }

    for layouts in simulated.run(on_rank, size, network_of(size)).results:
        assert layouts["/first"] == ("replicated", "batch")
        assert layouts["/bn"] == layouts["/second"] == ("batch", "batch")
        assert layouts["/last"] == ("channel", "replicated")


@pytest.mark.parametrize("layouts", list(itertools.product(LAYOUTS, repeat=2))[1:])
def test_a_normalization_sends_the_bytes_that_its_layouts_cost(layouts):
    # A message takes a second, and its bytes no time.
    machine = simulated.Machine(4, node_latency=1.0, node_bandwidth=2.0**80)
    serial, x = L.BatchNormalization(8), np.zeros((12, 8, 3), np.float32)
    (call,) = trace(serial, (x,), (L.BatchNormalization,)).calls
    shapes = dict(replicated=(12, 8, 3), channel=(12, 2, 3), batch=(3, 8, 3))

    def act(comm):
        link = ParallelBatchNormalization(
            comm, 8, input_layout=layouts[0], output_layout=layouts[1]
        )
        messages, sent = comm.traffic.messages, comm.traffic.bytes
        y = link(renga.Variable(np.zeros(shapes[layouts[0]], np.float32)))
        y.grad = np.zeros_like(y.array)
        y.backward()
        messages, sent = comm.traffic.messages - messages, comm.traffic.bytes - sent
        if layouts[0] == "batch" != layouts[1]:  # ranks tell how many samples they have
            messages, sent = messages - 3, sent - 3 * 8
        cost = cost_of_call(serial, comm, layouts, call)
        assert (messages, sent) == (pytest.approx(cost.communication), cost.bytes)

    simulated.run(act, 4, machine)


def test_random_zeros_of_samples_differ():
    def on_rank(comm):
        x = next(batches())[0].astype("f4")
        model = parallelize(Images(0.5), comm, "channel", x)
        zeros = []

        def pooled(x):
            zeros.append(x.array == 0)  # of the samples of all ranks
            return narrow(x)

        narrow, model.narrow.forward = model.narrow.forward, pooled
        model(np.repeat(x[:1], 6, 0))
        return zeros[0]

    outcome = simulated.run(on_rank, 3, network_of(3))
    samples, *others = outcome.results
    assert len(samples) == 6 and all((samples == other).all() for other in others)
    assert 0.4 < samples.mean() < 0.6
    for other in samples[1:]:  # of the same image
        assert 0.4 < np.mean(samples[0] == other) < 0.6


def test_statistics_of_samples(ranks):
    x = array(1, 5, 7, 3)
    with renga.using_config("dtype", np.float64):
        serial = L.BatchNormalization(7, initial_gamma=array(2, 7))
        expected = serial(x).array, serial.avg_mean, serial.avg_var
        with renga.using_config("train", False):
            fixed = serial(x).array

    @in_float64
    def on_rank(comm):
        link = ParallelBatchNormalization(
            comm,
            7,
            initial_gamma=array(2, 7),
            input_layout="batch",
            output_layout="batch",
        )
        own = np.array_split(x, comm.size)[comm.rank]
        y = link(own).array
        with renga.using_config("train", False):
            return (y, link.avg_mean, link.avg_var), link(own).array

    results = ranks(on_rank)
    for i, wanted in enumerate(expected):
        parts = [found[i] for found, _ in results]
        np.testing.assert_allclose(np.concatenate(parts), wanted, 1e-10)
    parts = [y for _, y in results]
    np.testing.assert_allclose(np.concatenate(parts), fixed, 1e-10)


def test_batches_that_are_not_sharded_as_expected(ranks):
    def on_rank(comm):
        if comm.size == 1:
            return True
        link = ParallelBatchNormalization(comm, 3, input_layout="batch")
        link.name = "bn"
        message = rf"bn: expected x with samples 0 to 1 of .* \(rank 0 of {comm.size}\)"
        with pytest.raises(InvalidType, match=message):
            link(array(1, 1 if comm.rank == 0 else 2, 3))
        return True

    assert all(ranks(on_rank))
