"""Parallel models that read of their activations what only shards have."""

import copy

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import RankFailed, local
from renga.distributed import parallelize

X = np.random.RandomState(0).normal(0, 1, (8, 4))


class Between(renga.Chain):
    """A function between two links."""

    def __init__(self, function):
        super().__init__()
        draw = np.random.RandomState(1).normal
        self.function = function
        with self.init_scope():
            self.first = L.Linear(4, 6, initialW=draw(0, 1, (6, 4)))
            self.last = L.Linear(6, 3, initialW=draw(0, 1, (3, 6)))

    def forward(self, x):
        return {"y": (self.last(self.function(self.first(x))),)}


def made(function, *inputs):
    """The outputs of the parallel model on each of two ranks."""

    def rank(comm):
        with renga.using_config("dtype", np.float64):
            model = parallelize(Between(function), comm, "channel", *inputs)
            return model(X)["y"][0].array

    return local.run(rank, ranks=2)


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize(
    "read",
    [
        lambda h: h.size,
        lambda h: len(h) * h.shape[1],
        lambda h: np.abs(h.array).max(),
        lambda h: np.abs(renga.as_array(h)).max(),
        lambda h: np.abs(np.asarray(h)).max() + np.array(h.data, "f").sum(),
    ],
    ids=["size", "shape", "elements", "as_array", "asarray"],
)
def test_what_is_read_from_a_shard_is_that_of_the_whole(read, is_later):
    def outputs(model, reading):
        found = [model(X)["y"][0].array for _ in range(4)]
        reading.append(True)
        return [*found, model(X)["y"][0].array]

    def network(reading):
        return Between(lambda h: h if is_later and not reading else h / read(h))

    with renga.using_config("dtype", np.float64):
        reading = []
        expected = outputs(network(reading), reading)

    def rank(comm):
        reading = []
        with renga.using_config("dtype", np.float64):
            model = parallelize(network(reading), comm, "channel", X)
            return outputs(model, reading)

    for found in local.run(rank, ranks=2):
        np.testing.assert_allclose(found, expected, 1e-12)


def test_nothing_is_written_into_what_is_read_from_a_shard():
    def zeroed(h):
        h.array[...] = 0
        return h

    with pytest.raises((ValueError, RankFailed), match="read-only"):
        made(zeroed, X)


def test_a_function_of_a_shard_that_was_not_in_the_example_is_refused():
    with pytest.raises((ValueError, RankFailed), match="another one of shards"):
        made(lambda h: h - len(h[0]), X)


class Statistics(Between):
    """Keeps a mean over its activations in a persistent value."""

    def __init__(self):
        super().__init__(self.note)
        self.add_persistent("mean", np.zeros(()))

    def note(self, h):
        self.mean[...] = h.array.mean()
        return h


class Reporting(Between):
    """Reports a mean over its activations."""

    def __init__(self):
        super().__init__(self.tell)

    def tell(self, h):
        renga.report({"mean": h.array.mean()})
        return h


@pytest.mark.parametrize("kind", [Statistics, Reporting])
def test_what_is_saved_or_reported_of_a_shard_is_that_of_the_whole(kind):
    def noted(divide):
        with renga.using_config("dtype", np.float64), renga.Reporter() as reporter:
            model = divide(kind())
            model(X)
        return float(getattr(model, "mean", 0) + sum(reporter.observation.values()))

    expected = noted(lambda model: model)
    for found in local.run(
        lambda comm: noted(lambda model: parallelize(model, comm, "channel", X)),
        ranks=2,
    ):
        assert found == pytest.approx(expected, 1e-12)


class Recurrent(Between):
    """Adds its last activation to the next one."""

    def __init__(self):
        super().__init__(self.step)
        self.state = self.pair = self.size = None

    def step(self, h):
        self.state = F.tanh(h if self.state is None else h + self.state)
        self.pair, self.size = (self.state, {"h": h}), len(h)
        return self.state


def test_activations_that_a_model_keeps_are_read_by_its_next_call_alone():
    def steps(model):
        found = []
        for _ in range(3):
            y = model(X)["y"][0]
            model.state.unchain_backward()
            found.append(y.array)
            model = copy.deepcopy(model)
        return model, found

    def rank(comm):
        with renga.using_config("dtype", np.float64):
            expected = steps(Recurrent())[1]
            model, found = steps(parallelize(Recurrent(), comm, "channel", X))
        np.testing.assert_allclose(found, expected, 1e-12)
        assert model.size == len(X)
        read = "Recurrent.state: expected it to be read within the model"
        for call in (lambda h: h.array, lambda h: h.shape, lambda h: 2 * h, F.relu):
            with pytest.raises((RuntimeError, TypeError), match=f"{read}|PartKept"):
                call(model.state)
        with pytest.raises(RuntimeError, match="Recurrent.pair: expected it"):
            model.pair[0]
        model.state = None
        model(X)

    local.run(rank, ranks=2)


def test_other_models_are_as_the_serial_one():
    with renga.using_config("dtype", np.float64):
        expected = Between(F.tanh)(X)["y"][0].array
    for found in made(F.tanh, X):
        np.testing.assert_allclose(found, expected, 1e-12)


def test_outputs_that_depend_on_random_numbers_are_not_compared():
    made(lambda h: h * np.random.uniform(0.5, 1.0), X)


@pytest.mark.parametrize("raising", ["serial", "parallel"])
def test_a_call_is_not_compared_if_only_one_of_the_links_raises(raising):
    """The program's call is the first one, the serial link's the second."""
    with renga.using_config("dtype", np.float64):
        expected = Between(F.tanh)(X)["y"][0].array

    def rank(comm):
        calls = []

        def function(h):
            calls.append(h)
            if len(calls) == {"serial": 2, "parallel": 3}[raising]:
                raise RuntimeError("the data are used up")
            return F.tanh(h)

        with renga.using_config("dtype", np.float64):
            model = parallelize(Between(function), comm, "channel")
            return [model(X)["y"][0].array for _ in range(2)], len(calls)

    for found, calls in local.run(rank, ranks=2):
        assert calls == 4
        np.testing.assert_allclose(found, [expected] * 2, 1e-12)


class Images(renga.Chain):
    """A function between convolutions, of which the last gets its shape in a call."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.first = L.Convolution2D(2, 3, 3, pad=1)
            self.norm = L.BatchNormalization(3)
            self.last = L.Convolution2D(None, 2, 3, pad=1)

    def forward(self, x):
        return self.last(self.function(self.norm(self.first(x))))


class Tokens(renga.Chain):
    """A function between linear maps of sequences."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.first, self.last = L.Linear(4, 6), L.Linear(None, 2)

    def forward(self, x):
        h = self.function(self.first(x, n_batch_axes=2))
        return self.last(h, n_batch_axes=2)


MODELS = {"spatial": (Images, (2, 2, 8, 6)), "sequence": (Tokens, (2, 6, 4))}
READS = {
    "extent": lambda h: h / h.shape[-2 if h.ndim == 4 else 1],
    "size": lambda h: h / h.size,
    "elements": lambda h: h * float(np.abs(h.array).sum()),
}


@pytest.mark.parametrize("strategy", MODELS)
@pytest.mark.parametrize("has_example", [False, True])
@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_first_calls_that_read_are_compared(strategy, has_example, is_later, read):
    """Before a parameter changes, also where only a later call reads."""
    make, shape = MODELS[strategy]
    x = np.random.RandomState(0).normal(0, 1, shape).astype("f")

    def rank(comm):
        calls = []
        model = make(lambda h: read(h) if calls or not is_later else h)
        model = parallelize(model, comm, strategy, *[x] * has_example)
        optimizer = renga.optimizers.SGD(0.1).setup(model)
        if is_later:
            optimizer.update(lambda: F.sum(model(x)))
            optimizer.update(lambda: F.sum(model(x)))
            calls.append(True)
        before = [p.array.copy() for p in model.first.params()]
        with pytest.raises(ValueError, match="it reads shapes or elements"):
            optimizer.update(lambda: F.sum(model(x)))
        for param, array in zip(model.first.params(), before):
            np.testing.assert_array_equal(param.array, array)

    local.run(rank, ranks=2)


@pytest.mark.parametrize("strategy", ["channel", *MODELS])
def test_comparing_leaves_nothing_behind(strategy):
    """Numbers that are the same for all shards are right."""
    make, shape = MODELS.get(strategy, MODELS["spatial"])
    x = np.random.RandomState(0).normal(0, 1, shape).astype("f")
    calls = []

    def divided(h):
        calls.append(len(h))
        return h / len(h)

    def serial():
        np.random.seed(0)
        model = make(divided)
        with renga.using_config("train", False):
            model(x)
        return model

    def trained(model):
        optimizer = renga.optimizers.SGD(0.01).setup(model)
        for _ in range(3):
            optimizer.update(lambda: F.mean(model(x) ** 2))
        calls.clear()
        file = renga.serializers.DictionarySerializer()
        file.save(model)
        return file.target

    expected = trained(serial())
    model = serial()

    def rank(comm):
        return trained(parallelize(model, comm, strategy))

    for found in local.run(rank, ranks=2):
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, 1e-4, 1e-5, err_msg=name)


def test_calls_are_compared_once():
    calls = []

    def function(h):
        calls.append(h.shape)
        return h

    def rank(comm):
        model = parallelize(Between(function), comm, "channel")
        for _ in range(3):
            model(X.astype("f"))

    local.run(rank, ranks=2)
    assert len(calls) == 2 * (3 + 2)  # the serial and the parallel model once more


@pytest.mark.parametrize("strategy", MODELS)
def test_one_rank_alone_may_read_for_a_log(strategy):
    make, shape = MODELS[strategy]
    x = np.random.RandomState(0).normal(0, 1, shape).astype("f")

    def rank(comm):
        shapes = []

        def noted(h):
            if len(shapes) > 2 and comm.rank == 1:
                shapes.append(h.shape)
            return h

        model = parallelize(make(noted), comm, strategy, x)
        found = []
        for _ in range(6):
            shapes.append(None)
            found.append(model(x).array)
        assert any(shapes) == (comm.rank == 1)
        np.testing.assert_array_equal(found, found[:1] * 6)

    local.run(rank, ranks=2)
