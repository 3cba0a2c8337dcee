"""Rank 0 alone loads a parallel model, its optimizer, or both."""

import io

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizers, serializers
from renga.communicators import local
from renga.distributed import (
    create_groups,
    create_multi_node_optimizer,
    parallelize,
)
from renga.optimizer_hooks import WeightDecay

RANDOM = np.random.RandomState(5)
VECTORS = RANDOM.randn(3, 4, 6)
TARGETS = RANDOM.randn(3, 4, 7)


class Normalized(renga.Chain):
    def __init__(self, seed):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(6, 5)
            self.norm = L.BatchNormalization(5)
            self.b = L.Linear(5, 7)
        random = np.random.RandomState(seed)
        for param in self.params():
            param.array[...] = random.randn(*param.shape)

    def forward(self, x):
        return self.b(F.relu(self.norm(self.a(x))))


class Regressor(renga.Chain):
    """A model around the parallel one, as ``L.Classifier`` is."""

    def __init__(self, predictor, **links):
        super().__init__(predictor=predictor, **links)

    def forward(self, x, t):
        return F.mean_squared_error(self.predictor(x), t)


def saved(*objects):
    files = [io.BytesIO() for _ in objects]
    for file, each in zip(files, objects):
        serializers.save_npz(file, each)
    return [file.getvalue() for file in files]


def load(content, target):
    serializers.load_npz(io.BytesIO(content), target)


def steps(model, optimizer, numbers):
    for i in numbers:
        optimizer.update(model, VECTORS[i % 3], TARGETS[i % 3])


def numbers_in(contents):
    return [dict(np.load(io.BytesIO(content))) for content in contents]


def assert_equal_files(found, expected):
    for own, wanted in zip(numbers_in(found), numbers_in(expected)):
        assert own.keys() == wanted.keys()
        for key in wanted:
            np.testing.assert_allclose(own[key], wanted[key], 1e-9, 1e-9, err_msg=key)


@pytest.fixture(autouse=True)
def float64():
    with renga.using_config("dtype", np.float64):
        yield


def run(act, ranks):
    """What ``act(comm)`` returns on each rank."""

    def act_in_float64(comm):
        with renga.using_config("dtype", np.float64):
            return act(comm)

    return local.run(act_in_float64, ranks=ranks)


@pytest.fixture
def trained():
    """Files of a model and its optimizer after two and after five steps."""
    model = Regressor(Normalized(0))
    optimizer = optimizers.Adam(0.05).setup(model)
    steps(model, optimizer, range(2))
    before = saved(model, optimizer)
    steps(model, optimizer, range(2, 5))
    return before, saved(model, optimizer)


@pytest.mark.parametrize("has_example", [True, False])
@pytest.mark.parametrize("ranks", [2, 3])
def test_rank_0_alone_resumes(trained, ranks, has_example):
    before, after = trained

    def act(comm):
        inputs = [VECTORS[0]] * has_example
        model = Normalized(1 + comm.rank)
        model = Regressor(parallelize(model, comm, "channel", *inputs))
        optimizer = optimizers.Adam(0.05).setup(model)
        if comm.rank == 0:
            load(before[0], model)
            load(before[1], optimizer)
        steps(model, optimizer, range(2, 5))
        return saved(model, optimizer)

    for files in run(act, ranks):
        assert_equal_files(files, trained[1])


def test_rank_0_alone_loads_between_updates_and_evaluates_first(trained):
    before, after = trained

    def act(comm):
        model = parallelize(Normalized(1), comm, "channel", VECTORS[0])
        model = Regressor(model)
        optimizer = optimizers.Adam(0.05).setup(model)
        steps(model, optimizer, range(3))
        if comm.rank == 0:
            load(before[1], optimizer)
            load(before[0], model)
        with renga.using_config("train", False), renga.no_backprop_mode():
            model.predictor(VECTORS[0])
        steps(model, optimizer, range(2, 5))
        return saved(model, optimizer)

    for files in run(act, 2):
        assert_equal_files(files, after)


@pytest.mark.parametrize("channel", [1, 2])
def test_one_rank_of_a_grid_loads_between_updates(trained, channel):
    before, after = trained

    def act(comm):
        groups = create_groups(comm, channel=channel)
        model = Normalized(1)
        model = Regressor(parallelize(model, groups.channel, "channel", VECTORS[0]))
        optimizer = create_multi_node_optimizer(optimizers.Adam(0.05), groups.data)
        optimizer.setup(model)
        steps(model, optimizer, range(3))
        if comm.rank == 0:
            load(before[0], model)
            load(before[1], optimizer)
        steps(model, optimizer, range(2, 5))
        return saved(model, optimizer)

    for files in run(act, 4):
        assert_equal_files(files, after)


@pytest.mark.parametrize("strategy", ["channel", "sequence"])
def test_a_model_that_is_one_link(strategy):
    serial = L.Linear(6, 7)
    serial.b.array[...] = range(7)
    x = VECTORS if strategy == "sequence" else VECTORS[0]

    def act(comm):
        model = parallelize(L.Linear(6, 7), comm, strategy)
        optimizer = optimizers.SGD().setup(model)
        if comm.rank == 0:
            model.copyparams(serial)
        assert optimizer.target is model
        return model(x, n_batch_axes=x.ndim - 1).array

    for y in run(act, 2):
        expected = x @ serial.W.array.T + serial.b.array
        np.testing.assert_allclose(y, expected, 1e-9, 1e-9)


def loads_more(comm, model):
    if comm.rank == 0:
        load(saved(Normalized(2))[0], model.predictor)
    if comm.rank == 1:
        load(saved(L.Linear(6, 5))[0], model.predictor.a)
        load(saved(L.Linear(5, 7))[0], model.predictor.b)
    if comm.rank == 2:
        model.predictor.b.copyparams(L.Linear(5, 7))


def loads_on_rank_2(comm, model):
    if comm.rank == 2:
        model.predictor.copyparams(Normalized(2))


def loads_a_larger_model(comm, model):
    if comm.rank == 0:
        other = Regressor(Normalized(2), head=L.Linear(2, 2))
        load(saved(other)[0], model)


def changes_after_loading(comm, model):
    if comm.rank == 0:
        load(saved(Normalized(2))[0], model.predictor)
        model.predictor.b.W.array[...] += 1


def loads_a_copy(comm, model):
    copied = model.copy("copy")
    if comm.rank == 0:
        load(saved(Normalized(2))[0], copied.predictor)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (loads_on_rank_2, r"got \[0, 0, 4\] links .* others"),
        (loads_a_larger_model, r"got \[4, 0, 0\] .* a larger model"),
        (changes_after_loading, r"a shard of W that no file"),
        (loads_a_copy, r"copies of the model, have loaded more"),
    ],
)
def test_what_rank_0_cannot_give_is_refused_before_anything_changes(change, reason):
    def act(comm):
        model = parallelize(Normalized(1), comm, "channel", VECTORS[0])
        model = Regressor(model, head=L.Linear(2, 2))
        change(comm, model)
        values = [param.array.copy() for param in model.params()]
        with pytest.raises(RuntimeError, match=reason):
            model(VECTORS[0], TARGETS[0])
        for param, value in zip(model.params(), values):
            np.testing.assert_array_equal(param.array, value)
        if comm.rank > 0:  # then the others load, too
            change(type("Rank", (), {"rank": 0})(), model)
        return True

    assert all(run(act, 3))


def test_others_that_load_a_part_of_what_rank_0_loads():
    expected = Normalized(2)

    def act(comm):
        model = Regressor(parallelize(Normalized(1), comm, "channel", VECTORS[0]))
        optimizer = optimizers.SGD().setup(model)
        loads_more(comm, model)
        with renga.using_config("train", False):
            return model.predictor(VECTORS[0]).array, optimizer.t

    with renga.using_config("train", False):
        wanted = expected(VECTORS[0]).array
    for y, _ in run(act, 3):
        np.testing.assert_allclose(y, wanted, 1e-9, 1e-9)


def test_parameters_without_statistics():
    """``copyparams(..., copy_persistent=False)`` leaves those of all ranks alone."""

    def act(comm):
        model = parallelize(Normalized(1), comm, "channel", VECTORS[0])
        optimizer = optimizers.SGD().setup(model)
        model(VECTORS[0])
        if comm.rank == 0:
            model.copyparams(Normalized(2), copy_persistent=False)
        with renga.using_config("train", False):
            return model(VECTORS[0]).array, optimizer.t

    serial = Normalized(1)
    serial(VECTORS[0])
    serial.copyparams(Normalized(2), copy_persistent=False)
    with renga.using_config("train", False):
        wanted = serial(VECTORS[0]).array
    for y, _ in run(act, 3):
        np.testing.assert_allclose(y, wanted, 1e-9, 1e-9)


def test_rank_0_loads_once_more_than_the_others():
    first, second = saved(Normalized(2))[0], saved(Normalized(3))[0]

    def act(comm):
        model = parallelize(Normalized(1), comm, "channel", VECTORS[0])
        load(first, model)
        if comm.rank == 0:
            load(second, model)
        with renga.using_config("train", False):
            found = model(VECTORS[0]).array
        load(first, model)
        if comm.rank == 1:
            load(second, model)
        with pytest.raises(RuntimeError, match="others"):
            model(VECTORS[0])
        return found

    with renga.using_config("train", False):
        wanted = Normalized(3)(VECTORS[0]).array
    for y in run(act, 2):
        np.testing.assert_allclose(y, wanted, 1e-9, 1e-9)


def test_a_failed_load_is_none():
    broken = saved(renga.Chain(a=L.Linear(6, 5)))[0]

    def act(comm):
        model = parallelize(Normalized(0), comm, "channel", VECTORS[0])
        if comm.rank == 0:
            with pytest.raises(KeyError):
                load(broken, model)
        with renga.using_config("train", False):
            return model(VECTORS[0]).array

    with renga.using_config("train", False):
        wanted = Normalized(0)(VECTORS[0]).array
    for y in run(act, 2):
        np.testing.assert_allclose(y, wanted, 1e-9, 1e-9)


def test_hooks_and_states_of_two_optimizers():
    def train(models, optimizer_of, loads=lambda *_: None):
        first, second = (optimizer_of(model) for model in models)
        second.add_hook(WeightDecay(0.1))
        loads(first, second)

        def loss(x, t):
            return F.mean_squared_error(models[1](F.tanh(models[0](x))), t)

        for i in range(3):
            first.update(loss, VECTORS[i], TARGETS[i])
            second.update(loss, VECTORS[i], TARGETS[i])
        return saved(*models, first, second)

    def serial(seed):
        random = np.random.RandomState(seed)
        return [
            L.Linear(n, m, initialW=random.randn(m, n)) for n, m in ((6, 4), (4, 7))
        ]

    def momentum(model):
        return optimizers.MomentumSGD(0.1).setup(model)

    models = serial(0)
    begun = train(models, momentum)

    def load_all(models, optimizers):
        for content, target in zip(begun, (*models, *optimizers)):
            load(content, target)

    again = serial(1)
    expected = train(again, momentum, lambda *both: load_all(again, both))

    def act(comm):
        own = [parallelize(model, comm, "channel") for model in serial(2)]

        def loads(*both):
            if comm.rank == 0:
                load_all(own, both)

        return train(own, momentum, loads)

    for files in run(act, 2):
        assert_equal_files(files, expected)
