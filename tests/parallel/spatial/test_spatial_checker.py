"""Functions in models of sharded images: correct, or refused."""

import copy
import threading

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.links.parallel import spatial as S
from renga.parallel.parallelize import parallelize
from renga.utils.type_check import InvalidType

IMAGE = (2, 3, 13, 9)


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(0, 1, shape)


class Functions(renga.Chain):
    """Functions that are replaced, and functions that are allowed."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)

        def init(a):
            a[...] = random.uniform(-0.4, 0.4, a.shape)

        self.broadcast = self.gather = lambda x: x
        with self.init_scope():
            self.conv = L.Convolution2D(3, 4, 3, pad=1, initialW=init)
            self.bn = L.BatchNormalization(4)
            self.mix = L.Convolution2D(8, 4, 1, initialW=init)
            self.gate = L.Linear(4, 4, initialW=init)
            self.fc = L.Linear(100, 3, initialW=init)
            self.last = L.Linear(4, 3, initialW=init)

    def forward(self, x):
        h = F.average_pooling_2d(x, 3, 1, 1)
        h = F.elu(self.bn(self.conv(h)))
        h = F.local_response_normalization(F.max_pooling_2d(h, 2) + 0.5)
        # A gate for each channel, of the whole image.
        gate = F.sigmoid(self.gate(F.average(h, (2, 3))))
        h = h * F.reshape(self.broadcast(gate), (len(h), 4, 1, 1))
        h = F.dropout(self.mix(F.concat([h, F.tanh(h[:, ::-1])])), 0.0)
        mean = F.mean(F.average_pooling_nd(h, (2, 3), 1, 0), axis=(2, 3), keepdims=True)
        mean = F.reshape(mean, (len(h), 4))
        h = F.resize_images(F.unpooling_2d(h, 2, cover_all=False), (5, 5))
        y = self.fc(F.reshape(self.gather(h), (len(h), 100)))
        return y + self.last(mean), F.mean_squared_error(h, F.relu(h))


def train(net, xs):
    optimizer = renga.optimizers.MomentumSGD(0.1).setup(net)
    for x in xs:
        optimizer.update(lambda x: F.average(F.square(net(x)[0] - 1)) + net(x)[1], x)
    with renga.using_config("train", False), renga.no_backprop_mode():
        y = net(xs[0])[0].array
    return {name: p.array for name, p in net.namedparams()} | {"y": y}


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (2, 2)])
def test_three_steps_equal_those_of_one_process(shape):
    xs = [numbers(seed, *IMAGE) for seed in range(3)]
    with renga.using_config("dtype", np.float64):
        serial = Functions()
        expected = train(copy.deepcopy(serial), xs)

    def on_rank(comm):
        renga.config.dtype = np.float64
        grid = S.SpatialGrid(comm, shape)
        net = parallelize(serial, grid, "spatial", xs[0], input="sharded")
        net.broadcast = lambda x: S.spatial_broadcast(grid, x)
        net.gather = lambda x: S.gather_image(grid, x)
        return train(net, [S.scatter_image(grid, x).array for x in xs])

    for found in local.run(on_rank, ranks=int(np.prod(shape))):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-9, 1e-10, err_msg=name)


@pytest.mark.parametrize("strategy", ["channel", "spatial"])
def test_the_report_shows_communication_as_far_as_it_is_known(strategy, capsys):
    x = np.zeros((2, 3, 12, 8), "f")

    def on_rank(comm, *example):
        net = renga.Sequential(L.Convolution2D(None, 4, 3), L.Linear(None, 2))
        parallelize(net, comm, strategy, *example)

    local.run(on_rank, ranks=2)
    report = capsys.readouterr().out
    assert "pass an example of the input" in report
    local.run(on_rank, x, ranks=2)
    report = capsys.readouterr().out
    assert "each rank receives 0.0 MB per step, about 0." in report
    assert "known" not in report and "example" not in report


REFUSED = {
    "flatten": lambda h: F.flatten(h),
    "reshape.*gather_image": lambda h: F.reshape(h, (len(h), -1)),
    "reshape": lambda h: F.linear(h, np.ones((2, h.size // len(h)))),
    "sum.*spatial_sum": lambda h: F.sum(h, axis=2, keepdims=True),
    "sum": lambda h: F.sum(h, axis=1),
    "sum.*spatial_average": lambda h: F.average(h, axis=2),
    "softmax.*gather_image": lambda h: F.softmax(h, axis=2),
    "concat": lambda h: F.concat([h, h], axis=2),
    "slice.*gather_image": lambda h: h[:, :, 1:],
    "slice": lambda h: F.flip(h, 3),
    "take": lambda h: h[:, [0, 2]],
    "swapaxes": lambda h: F.swapaxes(h, 2, 3),
    "pad": lambda h: F.pad(h, [(0, 0), (0, 0), (1, 0), (0, 0)], "constant"),
    "convolution_2d.*spatial_convolution": lambda h: F.convolution_2d(h, h, pad=1),
    "batch_normalization.*link": lambda h: F.batch_normalization(h, *np.ones((2, 4))),
    "spatial_pyramid_pooling_2d": lambda h: F.spatial_pyramid_pooling_2d(h, 1, "max"),
    "matmul": lambda h: F.matmul(h, h, transb=True),
    "pad_value 0": lambda h: F.average_pooling_nd(h, 3, 1, 1, None),
}


class Refused(renga.Chain):
    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.conv = L.Convolution2D(4, 4, 3, pad=1)
            self.fc = L.Linear(3, 8)

    def forward(self, x):
        return self.function(self.conv(x))


def raised_by(function, error=ValueError, ranks=2):
    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(Refused(function), comm, "spatial", input="sharded")
        with pytest.raises(error) as raised:
            net(numbers(comm.rank, 2, 4, 3, 4))
        # Functions outside of the model are not checked.
        assert F.flatten(np.ones((1, 2, 3, 4))).size == 24
        return net, str(raised.value)

    (_, message), *_ = local.run(on_rank, ranks=ranks)
    return message


@pytest.mark.parametrize("message", REFUSED)
def test_functions_that_need_more_than_a_shard(message):
    found = raised_by(REFUSED[message])
    assert all(word in found for word in message.split(".*")), found


def test_spatial_links_take_their_shard_of_replicated_images():
    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(Refused(None), comm, "spatial", input="sharded")

        def from_replicated(h):
            pooled = F.tile(F.average(h, (1, 2, 3))[:, None], (1, 24))
            return net.conv(F.reshape(pooled, (2, 4, 3, 2)))

        def from_gathered(h):
            return net.conv(S.scatter_image(comm, S.gather_image(comm, h)))

        def from_broadcast(h):
            return net.conv(S.spatial_broadcast(comm, np.ones((2, 4, 3, 4))))

        net.function = from_replicated
        y = S.gather_image(comm, net(numbers(comm.rank, 2, 4, 3, 4)))
        pooled = np.concatenate([numbers(i, 2, 4, 3, 4) for i in range(2)], 2)
        pooled = S.gather_image(comm, net.conv(pooled[:, :, comm.rank * 3 :][:, :, :3]))
        pooled = pooled.array.mean((1, 2, 3))[:, None, None, None] * np.ones((4, 3, 2))
        expected = F.convolution_2d(pooled, net.conv.W, net.conv.b, pad=1)
        np.testing.assert_allclose(y.array, expected.array, 1e-9)
        net.function = from_gathered
        assert net(numbers(0, 2, 4, 3, 4)).shape == (2, 4, 3, 4)
        net.function = from_broadcast
        with pytest.raises(InvalidType, match="spatial_broadcast"):
            net(numbers(0, 2, 4, 3, 4))

    local.run(on_rank, ranks=2)


RANDOM_FUNCTIONS = {
    "dropout": F.dropout,
    "gaussian": lambda h: F.gaussian(h, h * 0),
    "gaussian, eps": lambda h: F.gaussian(h, h * 0, return_eps=True)[0],
    "gumbel_softmax": F.gumbel_softmax,
    "rrelu": lambda h: F.rrelu(-abs(h)),
    "zoneout": lambda h: F.zoneout(h, h + 1),
}


@pytest.mark.parametrize("name", RANDOM_FUNCTIONS)
@pytest.mark.parametrize("rows", [16, 5])
def test_noise_differs_between_shards_and_agrees_on_replicated_images(
    monkeypatch, name, rows
):
    # Every rank's generator is in the same state, as after parallelize().
    states = threading.local()

    def draw(method):
        def of_rank(*args, **kwargs):
            if not hasattr(states, "state"):
                states.state = np.random.RandomState(5)
            return getattr(states.state, method)(*args, **kwargs)

        return of_rank

    for method in ("random_sample", "uniform", "gumbel"):
        monkeypatch.setattr(np.random, method, draw(method))

    def on_rank(comm):
        h = S.SpatialConvolution2D(comm, 2, 20, 1)(np.ones((1, 2, rows, 16), "f"))
        noise = RANDOM_FUNCTIONS[name]
        return noise(h).array, noise(S.gather_image(comm, h)).array

    (one, whole), (other, again) = local.run(on_rank, ranks=2)
    height = min(one.shape[2], other.shape[2])
    one, other = one[:, :, :height], other[:, :, :height]
    # Half of the numbers that have two values agree by chance.
    assert np.mean(one == other) < 0.6
    np.testing.assert_array_equal(whole, again)
