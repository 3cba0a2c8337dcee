"""Models called with whole images: the script and the results are the serial ones."""

import copy

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.exporters.onnx import export
from renga.links.parallel import spatial as S
from renga.parallel.parallelize import parallelize
from renga.pipeline import Pipeline
from renga.utils.type_check import InvalidType


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(0, 1, shape)


class Classes(renga.Chain):
    """Images to classes."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 4, 3, 2, 1)
            self.bn = L.BatchNormalization(4)
            self.conv2 = L.Convolution2D(4, 5, 3, pad=2, dilate=2)
            self.fc = L.Linear(None, 3)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.bn(self.conv1(x))), 2, 1)
        return self.fc(F.tanh(self.conv2(h)))


class Pixels(renga.Chain):
    """Images to images, with a residual connection."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.down = L.Convolution2D(3, 4, 4, 2, 1)
            self.bn = L.BatchNormalization(4)
            self.up = L.Deconvolution2D(4, 3, 4, 2, 1)

    def forward(self, x):
        h = F.leaky_relu(self.bn(self.down(x)))
        h = self.up(h)
        h = F.resize_images(h, x.shape[2:]) if h.shape != x.shape else h
        return {"image": h + x, "mean": F.average(h, (2, 3))}


class Called(renga.Chain):
    """With a __call__ instead of forward, and another method."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 4, 3, pad=1)
            self.last = renga.Sequential(L.Convolution2D(4, 2, 3), F.sigmoid)

    def __call__(self, x):
        return F.max_pooling_2d(self.conv(x), 2)

    def other(self, x):
        return self.last(F.max_pooling_2d(self.conv(x), 2, 1))


class Generator(renga.Chain):
    """Vectors to images."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l0 = L.Linear(6, 4 * 3 * 2)
            self.bn = L.BatchNormalization(4)
            self.dc = L.Deconvolution2D(4, 2, 4, 2, 1)

    def forward(self, z):
        h = F.reshape(self.l0(z), (len(z), 4, 3, 2))
        return F.tanh(self.dc(F.relu(self.bn(h))))


class Sequences(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.ConvolutionND(1, 3, 4, 3, pad=1)
            self.fc = L.Linear(None, 2)

    def forward(self, x):
        return self.fc(F.max_pooling_nd(F.tanh(self.conv(x)), 2))


def by_both(net, x):
    return F.sum(net(x)) * 0.1 + F.average(F.square(net.other(x)))


def of_all(net, x):
    ys = net(x)
    ys = list(ys.values()) if isinstance(ys, dict) else [ys]
    return sum(F.average(F.square(y - 0.3)) * y.shape[-1] for y in ys)


CASES = {  # the model, its loss and the shape of what it is called with
    "classes": (Classes, of_all, (2, 3, 9, 8)),
    "pixels": (Pixels, of_all, (2, 3, 8, 6)),
    "called": (Called, by_both, (2, 3, 7, 6)),
    "generator": (Generator, of_all, (5, 6)),
    "sequences": (Sequences, of_all, (2, 3, 11)),
    "two rows": (Pixels, of_all, (2, 3, 2, 6)),
    "three rows": (Classes, of_all, (2, 3, 3, 8)),
}


def train(net, loss_of, xs):
    """Losses, gradients and parameters of three steps, and the loss of a test."""
    optimizer = renga.optimizers.MomentumSGD(0.1).setup(net)
    found = {}
    for i, data in enumerate(xs):
        x = renga.Variable(data)
        loss = loss_of(net, x)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        found |= {f"loss {i}": loss.array, f"gx {i}": x.grad}
        found |= {f"{name} {i}": p.grad for name, p in net.namedparams()}
    with renga.using_config("train", False), renga.no_backprop_mode():
        found["test"] = loss_of(net, xs[0]).array
    return found | {name: p.array for name, p in net.namedparams()}


def in_float64(make):
    with renga.using_config("dtype", np.float64):
        np.random.seed(0)
        return make()


# A grid has at most as many axes as the images.
GRIDS = [
    (case, shape)
    for case in CASES
    for shape in ((1,), (2,), (3,), (4,), (2, 2))
    if case != "sequences" or len(shape) == 1
]


@pytest.mark.parametrize("case, shape", GRIDS)
def test_the_serial_script_has_the_serial_results(case, shape):
    make, loss_of, image = CASES[case]
    xs = [numbers(i, *image) for i in range(3)]
    serial = in_float64(make)
    with renga.using_config("dtype", np.float64):
        with renga.using_config("train", False):
            loss_of(serial, xs[0])
        expected = train(copy.deepcopy(serial), loss_of, xs)

    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(serial, S.SpatialGrid(comm, shape), "spatial")
        return train(net, loss_of, xs)

    for found in local.run(on_rank, ranks=int(np.prod(shape))):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-9, 1e-10, err_msg=name)


def train_classes(comm, serial, xs):
    with renga.using_config("dtype", np.float64):
        return train(parallelize(serial, comm, "spatial", xs[0]), of_all, xs)


def test_processes_and_ranks_without_shared_memory(ranks):
    xs = [numbers(i, 2, 3, 9, 8) for i in range(3)]
    with renga.using_config("dtype", np.float64):
        serial = in_float64(Classes)
        of_all(serial, xs[0])
        expected = train(copy.deepcopy(serial), of_all, xs)
    for found in ranks(train_classes, serial, xs):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-9, 1e-10, err_msg=name)


def test_results_are_replicated_and_known_to_be():
    x = numbers(0, 2, 3, 8, 6)

    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(in_float64(Pixels), comm, "spatial")
        y = net(x)["image"]
        assert S.gather_image(comm, y) is y
        with renga.no_backprop_mode():
            tested = net(x)["image"]
            assert S.gather_image(comm, tested) is tested
        for function in (S.spatial_sum, S.spatial_average):
            with pytest.raises(InvalidType, match="expected this rank's shard"):
                function(comm, F.square(y - x))
        with pytest.raises(InvalidType, match="expected this rank's shard"):
            S.SpatialConvolution2D(comm, 3, 2, 3)(y)
        return y.shape

    assert local.run(on_rank, ranks=3) == [(2, 3, 8, 6)] * 3


def test_copies_train_and_test_as_the_model_does():
    x = numbers(0, 2, 3, 9, 8)
    serial = in_float64(Classes)

    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(serial, comm, "spatial", x)
        found = []
        for other in (net, net.copy("copy"), copy.deepcopy(net)):
            with renga.using_config("train", False):
                found.append(other(x).array)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        with pytest.raises(ValueError, match="serial model"):
            parallelize(net, comm, "spatial")

    local.run(on_rank, ranks=2)


def by_rank(*values):
    """A value for each rank."""
    return lambda comm: values[comm.rank]


X = numbers(9, 2, 3, 8, 6)
DIFFERENT_CALLS = {
    "other rows": by_rank((X,), (X[:, :, :7],)),
    "other samples": by_rank((X,), (X[:1],)),
    "other axes": by_rank((X,), (X[0],)),
    "other dtypes": by_rank((X,), (X.astype("f"),)),
    "other numbers": by_rank((X,), (X + 1,)),
    "other count": by_rank((X,), (X, X)),
}


@pytest.mark.parametrize("name", DIFFERENT_CALLS)
def test_ranks_that_call_a_model_differently(name):
    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(in_float64(Pixels), comm, "spatial")
        with pytest.raises(InvalidType, match="the same inputs") as raised:
            net(*DIFFERENT_CALLS[name](comm))
        assert net(X)["image"].shape == X.shape  # and go on afterwards
        return str(raised.value)

    one, other = local.run(on_rank, ranks=2)
    assert one == other


@pytest.mark.parametrize("option", ["train", "enable_backprop"])
@pytest.mark.parametrize("input", ["replicated", "sharded"])
def test_ranks_in_different_modes(option, input):
    def on_rank(comm):
        net = parallelize(in_float64(Pixels), comm, "spatial", input=input)
        with renga.using_config(option, comm.rank == 0):
            with pytest.raises(InvalidType, match="rank 0 and .* on rank 1"):
                net(X)

    local.run(on_rank, ranks=2)


class Returned(renga.Chain):
    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.conv = L.Convolution2D(3, 4, 3, pad=1)

    def forward(self, x):
        return self.function(self.conv(x))


@pytest.mark.parametrize("kind", ["array", "summed gradient"])
def test_results_of_unknown_placement(kind):
    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(in_float64(lambda: Returned(None)), comm, "spatial")
        results = {
            "array": lambda h: h.array,
            "summed gradient": lambda h: S.spatial_broadcast(comm, np.ones((2, 3))),
        }
        net.function = results[kind]
        with pytest.raises(ValueError, match="expected it to return"):
            net(X)

    local.run(on_rank, ranks=2)


def test_containers_of_results():
    def on_rank(comm):
        renga.config.dtype = np.float64
        net = parallelize(in_float64(lambda: Returned(None)), comm, "spatial")
        net.function = lambda h: (h, [F.average(h), {"a": 2 * h}], None, 3)
        y, (mean, inner), nothing, three = net(X)
        assert y.shape == inner["a"].shape == (2, 4, 8, 6)
        np.testing.assert_array_equal(inner["a"].array, 2 * y.array)
        np.testing.assert_allclose(mean.array, y.array.mean())
        assert nothing is None and three == 3

    local.run(on_rank, ranks=2)


WRONG = {
    "no such strategy": (ValueError, lambda comm: ("channels", {})),
    "no such input": (ValueError, lambda comm: ("spatial", {"input": "shards"})),
    "shards of channels": (ValueError, lambda comm: ("channel", {"input": "sharded"})),
    "no grid of channels": (TypeError, lambda comm: ("channel", {})),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name):
    error, arguments = WRONG[name]

    def on_rank(comm):
        strategy, options = arguments(comm)
        where = S.SpatialGrid(comm) if name == "no grid of channels" else comm
        with pytest.raises(error, match="parallelize: expected"):
            parallelize(Pixels(), where, strategy, **options)

    local.run(on_rank, ranks=2)


@pytest.mark.parametrize("model, comm", [(F.relu, "comm"), (Pixels(), None)])
def test_neither_model_nor_communicator(model, comm):
    def on_rank(real):
        with pytest.raises(TypeError, match="parallelize: expected"):
            parallelize(model, real if comm else comm, "spatial")

    local.run(on_rank, ranks=2)


@pytest.mark.parametrize(
    "arguments",
    [
        by_rank((Classes, "spatial", ()), (Pixels, "spatial", ())),
        by_rank((Classes, "channel", ()), (Classes, "spatial", ())),
        by_rank((Pixels, "spatial", (X,)), (Pixels, "spatial", ())),
        by_rank((Pixels, "spatial", (X,)), (Pixels, "spatial", (X[:1],))),
    ],
)
def test_ranks_that_call_parallelize_differently(arguments):
    def on_rank(comm):
        make, strategy, inputs = arguments(comm)
        with pytest.raises(ValueError, match="the same models and arguments"):
            parallelize(make(), comm, strategy, *inputs)

    local.run(on_rank, ranks=2)


@pytest.mark.parametrize("strategy", ["channel", "spatial"])
@pytest.mark.parametrize("inputs", [None, 7])
def test_links_that_are_set_later_are_refused(strategy, inputs):
    """Also where each rank would take its shard for all channels."""
    x = numbers(1, 2, 3, 8, 8).astype("f")

    def run(comm):
        model = parallelize(Classes(), comm, strategy, x)
        before = model(x).array
        del model.fc
        with model.init_scope():
            model.fc = L.Linear(inputs, 3)
        with pytest.raises(
            ValueError, match="since parallelize, got another one at /fc"
        ):
            model(x)
        return before

    local.run(run, ranks=2)


class Reshaping(renga.Chain):
    """Knows the shape of an activation."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(4, 6)

    def forward(self, x):
        return F.reshape(F.tanh(self.a(x, n_batch_axes=2)), (3, 5, 6))


def test_errors_of_shapes_say_that_these_are_of_shards():
    def act(comm):
        x = np.ones((3, 5, 4), "f")
        model = parallelize(Reshaping(), comm, "sequence")
        with pytest.raises(InvalidType, match="reshape: .* those of shards: read"):
            model(x)

    local.run(act, ranks=2)


@pytest.mark.parametrize("kind", ["channel", "pipeline"])
def test_no_model_of_several_ranks_is_exported(kind):
    pytest.importorskip("onnx")

    def act(comm):
        x = np.ones((4, 4), "f")
        model = renga.Sequential(L.Linear(4, 6), F.tanh, L.Linear(6, 2))
        if kind == "channel":
            model = parallelize(model, comm, "channel", x)
        else:
            model = Pipeline(model, comm, x)
        with pytest.raises(ValueError, match="export: expected a model of one process"):
            export(model, x)
        comm.barrier()

    local.run(act, ranks=2)
