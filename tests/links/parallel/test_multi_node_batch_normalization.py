"""Batch normalization over ranks against one process with all batches together."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_multi_node_optimizer
from renga.distributed.links import MultiNodeBatchNormalization, create_mnbn_model

CHANNELS = 3
# How many of 12 samples the ranks get, for 1 to 4 of them.
EVEN = {1: [12], 2: [6, 6], 3: [4, 4, 4], 4: [3, 3, 3, 3]}
UNEVEN = {1: [12], 2: [1, 11], 3: [5, 0, 7], 4: [0, 8, 1, 3]}
SHAPES = [(12, CHANNELS), (12, CHANNELS, 4, 5)]


def array(seed, *shape):
    return np.random.default_rng(seed).normal(3, 2, shape)


def own_samples(comm, counts, x):
    """This rank's samples."""
    stop = np.cumsum(counts[comm.size])[comm.rank]
    return x[stop - counts[comm.size][comm.rank] : stop]


def differentiate(link, x, weight, order):
    """Outputs, gradients and statistics for the loss Σ weight y²."""
    x = renga.Variable(x)
    y = link(x)
    targets = [x, link.gamma, link.beta]
    loss = F.sum(weight * F.square(y))
    link.cleargrads()
    if order == 2:
        gradients = renga.grad([loss], [x], enable_double_backprop=True)
        loss = F.sum(weight * F.square(gradients[0]))
    loss.backward()
    return y.array, [t.grad for t in targets], (link.avg_mean, link.avg_var)


def make(new, dtype):
    options = dict(decay=0.7, eps=1e-3, dtype=dtype)
    gamma, beta = array(1, CHANNELS), array(2, CHANNELS)
    return new(CHANNELS, initial_gamma=gamma, initial_beta=beta, **options)


PRECISIONS = [  # order of derivatives, dtype, tolerance
    (1, "f8", 1e-9),
    (2, "f8", 1e-9),
    (1, "f4", 1e-4),
    (2, "f4", 2e-3),
    (1, "f2", 1e-2),
]


@pytest.mark.parametrize("counts", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("shape", SHAPES, ids=["matrix", "images"])
def test_values_gradients_and_statistics(ranks, shape, counts):
    def on_rank(comm):
        def new(size, **options):
            return MultiNodeBatchNormalization(size, comm, **options)

        def differentiated(order, dtype):
            arrays = [array(seed, *shape).astype(dtype) for seed in (3, 4)]
            own = [own_samples(comm, counts, a) for a in arrays]
            return differentiate(make(new, dtype), *own, order)

        return [differentiated(order, dtype) for order, dtype, _ in PRECISIONS]

    by_precision = zip(*ranks(on_rank))
    for (order, dtype, rtol), results in zip(PRECISIONS, by_precision):
        check_differentiated(results, shape, order, dtype, rtol)


def check_differentiated(results, shape, order, dtype, rtol):
    x, weight = array(3, *shape).astype(dtype), array(4, *shape).astype(dtype)
    # Half precision is compared with what its own rounded inputs would give exactly.
    exact = make(L.BatchNormalization, "f8")
    for param in exact.params():
        param.array[...] = param.array.astype(dtype)
    y, (gx, *gparams), statistics = differentiate(
        exact, x.astype("f8"), weight.astype("f8"), order
    )

    def check(actual, expected):
        atol = rtol * abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)

    check(np.concatenate([r[0] for r in results]), y)
    check(np.concatenate([r[1][0] for r in results]), gx)
    for i, expected in enumerate(gparams):
        if expected is not None:
            check(sum(r[1][1 + i] for r in results), expected)
    for result in results:
        for i in range(2):
            check(result[2][i], statistics[i])
            np.testing.assert_array_equal(result[2][i], results[0][2][i])


ACTIVATIONS = {"relu": F.relu, "leaky_relu": lambda h: F.leaky_relu(h, 0.1)}


def to_bfloat16(x):
    """What products hand on."""
    with renga.using_config("dtype", renga.mixed_bfloat16):
        return F.convolution_2d(x, np.eye(CHANNELS, dtype="f4")[:, :, None, None])


def activated(link, activation, x, weight, look=lambda h: None, before=lambda x: x * 1):
    """Outputs, gradients and statistics with an activation right after the link.

    The link's input is an operation's output, as that of a convolution, and large:
    what is done to it may be deferred until it is read.
    """
    x = renga.Variable(x)
    h = link(before(x))
    y = activation(h)
    look(h)
    link.cleargrads()
    F.sum(weight * (y * 1.0)).backward()
    gparams = [link.gamma.grad, link.beta.grad]
    return y.array, x.grad, gparams, (link.avg_mean, link.avg_var)


@pytest.mark.parametrize("counts", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype, rtol", [("f8", 1e-9), ("f4", 2e-4), ("f2", 3e-2)])
def test_an_activation_in_the_same_pass(some_ranks, name, counts, dtype, rtol):
    shape = (12, CHANNELS, 48, 48)
    x, weight = array(8, *shape).astype(dtype), (array(9, *shape) / 10).astype(dtype)
    activation = ACTIVATIONS[name]

    def on_rank(comm, look=lambda h: None):
        def new(size, **options):
            return MultiNodeBatchNormalization(size, comm, **options)

        own = [own_samples(comm, counts, a) for a in (x, weight)]
        return activated(make(new, dtype), activation, *own, look)

    results = some_ranks(on_rank)
    # Looked at in between, the two are computed one after the other: the same bits.
    for one, other in zip(results, some_ranks(on_rank, lambda h: h.array)):
        for i in range(2):
            np.testing.assert_array_equal(one[i], other[i])
            np.testing.assert_array_equal(one[2][i], other[2][i])
    exact = make(L.BatchNormalization, "f8")
    for param in exact.params():
        param.array[...] = param.array.astype(dtype)
    y, gx, gparams, statistics = activated(
        exact, activation, x.astype("f8"), weight.astype("f8")
    )

    # Rounding takes some numbers over the kink: there the slope may be the other one.
    away = abs(y) > (3e-2 if dtype == "f2" else 1e-4)

    def check(actual, expected, where=...):
        atol = rtol * abs(expected).max()
        np.testing.assert_allclose(actual[where], expected[where], rtol=rtol, atol=atol)

    check(np.concatenate([r[0] for r in results]), y)
    check(np.concatenate([r[1] for r in results]), gx, away)
    for i in range(2):
        check(sum(r[2][i].astype("f8") for r in results), gparams[i])
        for result in results:
            check(result[3][i], statistics[i])


@pytest.mark.parametrize(
    "before", [lambda x: x * 1, to_bfloat16], ids=["float32", "bfloat16"]
)
def test_one_rank_computes_what_the_serial_link_does(some_ranks, before):
    x, weight = (array(seed, 6, CHANNELS, 48, 48).astype("f4") for seed in (10, 11))

    def on_rank(comm):
        comm = comm.split(comm.rank, 0)  # alone

        def new(size, **options):
            return MultiNodeBatchNormalization(size, comm, **options)

        return activated(make(new, "f4"), F.relu, x, weight, before=before)

    y, gx, gparams, statistics = activated(
        make(L.BatchNormalization, "f4"), F.relu, x, weight, before=before
    )
    for result in some_ranks(on_rank):
        np.testing.assert_array_equal(result[0], y)
        np.testing.assert_array_equal(result[1], gx)
        for i in range(2):
            np.testing.assert_array_equal(result[2][i], gparams[i])
            np.testing.assert_array_equal(result[3][i], statistics[i])


def test_statistics_far_from_zero(some_ranks):
    # Squares of these have no digits left for the variance.
    x = (1e4 + array(5, 12, CHANNELS)).astype("f4")

    def on_rank(comm):
        link = MultiNodeBatchNormalization(CHANNELS, comm, decay=0)
        y = link(own_samples(comm, UNEVEN, x)).array
        return y, link.avg_var

    results = some_ranks(on_rank)
    exact = x.astype("f8")
    expected = (exact - exact.mean(0)) / np.sqrt(exact.var(0) + 2e-5)
    y = np.concatenate([r[0] for r in results])
    np.testing.assert_allclose(y, expected, atol=2e-3)
    # A mean of 1e4 is known to 1e-3 in float32.
    np.testing.assert_allclose(results[-1][1], exact.var(0, ddof=1), rtol=1e-3)


def test_no_samples_at_all_leave_the_statistics_alone(ranks):
    def on_rank(comm):
        link = MultiNodeBatchNormalization(CHANNELS, comm)
        x = renga.Variable(np.empty((0, CHANNELS, 2), "f4"))
        link.cleargrads()
        F.sum(link(x)).backward()
        return x.grad.shape, link.gamma.grad, link.avg_mean, link.avg_var

    for shape, ggamma, mean, var in ranks(on_rank):
        assert shape == (0, CHANNELS, 2)
        for actual, expected in ((ggamma, 0), (mean, 0), (var, 1)):
            np.testing.assert_array_equal(actual, np.full(CHANNELS, expected))


def test_without_training_it_needs_no_other_rank(some_ranks):
    x = array(6, 4, CHANNELS).astype("f4")

    def on_rank(comm):
        link = MultiNodeBatchNormalization(CHANNELS, comm)
        link(own_samples(comm, EVEN, array(7, 12, CHANNELS).astype("f4")))
        with renga.using_config("train", False):
            return link(x).array if comm.rank == 0 else None

    serial = L.BatchNormalization(CHANNELS)
    serial(array(7, 12, CHANNELS).astype("f4"))
    with renga.using_config("train", False):
        expected = serial(x).array
    np.testing.assert_allclose(some_ranks(on_rank)[0], expected, rtol=1e-4, atol=1e-5)


def test_finetuning_averages_every_batch(some_ranks):
    batches = [array(seed, 12, CHANNELS) for seed in range(3)]

    def on_rank(comm):
        link = MultiNodeBatchNormalization(CHANNELS, comm, dtype="f8")
        link.start_finetuning()
        for x in batches:
            link(own_samples(comm, EVEN, x), True)
        return link.N, link.avg_mean

    for n, mean in some_ranks(on_rank):
        assert n == 3
        np.testing.assert_allclose(mean, np.mean(batches, axis=(0, 1)))


def test_unknown_backend(some_ranks):
    def on_rank(comm):
        with pytest.raises(ValueError, match="expected communication_backend"):
            MultiNodeBatchNormalization(3, comm, communication_backend="gloo")
        return True

    assert all(some_ranks(on_rank))


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)

        def uniform(a):
            a[...] = random.uniform(-0.5, 0.5, a.shape)

        with self.init_scope():
            self.conv = L.Convolution2D(2, 3, 3, initialW=uniform)
            self.tail = renga.Sequential(
                L.BatchNormalization(axis=(0, 2, 3)),
                F.relu,
                L.Linear(48, 4, initialW=uniform),
                L.BatchNormalization(4, use_gamma=False),
            )

    def forward(self, x, t):
        return F.softmax_cross_entropy(self.tail(self.conv(x)), t)


def train(model, optimizer, own, ignored=0):
    random = np.random.RandomState(1)
    for _ in range(3):
        x = random.normal(size=(12, 2, 6, 6)).astype("f4")
        t = random.randint(0, 4, 12).astype("i4")
        t[:ignored] = -1
        optimizer.samples = int((own(t) >= 0).sum()) if ignored else None
        optimizer.update(model, own(x), own(t))
    values = {name: p.array for name, p in model.namedparams()}
    for name, link in model.namedlinks():
        if isinstance(link, L.BatchNormalization):
            values[f"{name}/avg_mean"] = link.avg_mean
            values[f"{name}/avg_var"] = link.avg_var
    return values


@pytest.mark.parametrize(
    ("shard", "ignored"), [(None, 0), (None, 7), ("states", 7), ("parameters", 7)]
)
def test_three_steps_equal_those_of_one_process(some_ranks, shard, ignored):
    """Also where no label of rank 0 counts: others' losses depend on its samples."""

    def on_rank(comm):
        original = Net()
        model = create_mnbn_model(original, comm)
        assert not isinstance(original.tail[0], MultiNodeBatchNormalization)
        for i in (0, 3):
            assert isinstance(model.tail[i], MultiNodeBatchNormalization)
        optimizer = renga.optimizers.MomentumSGD(lr=0.1).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, comm, shard=shard)
        own = functools.partial(own_samples, comm, EVEN)
        values = train(model, optimizer, own, ignored)
        return {name: np.array(value) for name, value in values.items()}

    model = Net()
    optimizer = renga.optimizers.MomentumSGD(lr=0.1).setup(model)
    expected = train(model, optimizer, lambda a: a, ignored)
    results = some_ranks(on_rank)
    for values in results:
        assert values.keys() == expected.keys()
        for name, value in values.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(value, results[0][name])


def test_create_mnbn_model_of_a_single_link(some_ranks):
    def on_rank(comm):
        link = L.BatchNormalization(CHANNELS, decay=0.5, initial_gamma=2)
        new = create_mnbn_model(link, comm)
        assert new.gamma is not link.gamma
        return type(new), new.decay, new.gamma.array

    for kind, decay, gamma in some_ranks(on_rank):
        assert (kind, decay) == (MultiNodeBatchNormalization, 0.5)
        np.testing.assert_array_equal(gamma, np.full(CHANNELS, 2))
