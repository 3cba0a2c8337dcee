"""The pass that gives parameters their shapes leaves nothing else behind; grids."""

import io

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_groups, create_multi_node_optimizer, parallelize
from renga.link.traces import traces_of, without_traces
from tests.parallel.compression.test_training import both
from tests.parallel.data.training_steps import (
    STEPS,
    T,
    X,
    check,
    own_samples,
    parameters,
)


def uniform(seed):
    random = np.random.RandomState(seed)

    def fill(array):
        array[...] = random.uniform(-1, 1, array.shape)

    return fill


class Recurrent(renga.Chain):
    """A recurrent link that keeps its states between batches."""

    def __init__(self, size, seed=0):
        super().__init__()
        with self.init_scope():
            self.memory = L.StatelessLSTM(
                size, 6, lateral_init=uniform(seed), upward_init=uniform(seed + 1)
            )
            self.out = L.Linear(6, 5, initialW=uniform(seed + 2))
        self.state = None, None
        self.passes = 0

    def forward(self, x):
        c, h = self.memory(*self.state, x)
        self.state = c.array, h.array
        self.passes += 1
        return self.out(h)


def loss_of(model, penalty):
    def loss(x, t):
        x = renga.Variable(x)
        y = model(x)
        value = F.softmax_cross_entropy(y, t)
        if penalty:
            (g,) = renga.grad([y], [x], enable_double_backprop=True)
            value += 0.1 * F.sum(g**2) / len(t)
        return value

    return loss


def serial(penalty=False, steps=STEPS):
    model = Recurrent(5)
    optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
    for step in range(steps):
        optimizer.update(loss_of(model, penalty), X[step], T[step])
    return model, optimizer


@pytest.mark.parametrize("penalty", [False, True])
def test_states_of_links_are_those_of_one_process(several_ranks, penalty):
    def run(comm):
        model = Recurrent(None, seed=comm.rank)
        optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, comm)
        for x, t in zip(X, T):
            x, t = own_samples(comm, x), own_samples(comm, t)
            optimizer.update(loss_of(model, penalty), x, t)
        return parameters(model), model.passes

    results = several_ranks(run)
    check([found for found, _ in results], parameters(serial(penalty)[0]), atol=1e-5)
    assert {passes for _, passes in results} == {STEPS}


@pytest.mark.parametrize("penalty", [False, True])
def test_a_grid_runs_the_program_once_for_each_update(ranks, penalty):
    def run(comm):
        groups = create_groups(comm, channel=2 if comm.size % 2 == 0 else 1)
        model = parallelize(Recurrent(5, seed=0), groups.channel, "channel", X[0][:2])
        model.state, model.passes = (None, None), 0
        optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, groups.data)
        for x, t in zip(X, T):
            x, t = own_samples(groups.data, x), own_samples(groups.data, t)
            optimizer.update(loss_of(model, penalty), x, t)
        return model.passes

    assert set(ranks(run)) == {STEPS}


def test_a_grid_of_images_calls_the_loss_function_once_for_each_update():
    x = np.ones((2, 3, 8, 4), np.float32)

    def run(comm):
        groups = create_groups(comm, spatial=2)
        model = L.Convolution2D(3, 3, 3, pad=1, initialW=uniform(comm.rank))
        model = parallelize(model, groups.spatial, "spatial", x)
        optimizer = renga.optimizers.SGD(0.1).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, groups.data)
        calls = []

        def loss(x):
            calls.append(x.shape)
            return F.mean(model(x) ** 2)

        optimizer.update(loss, x)
        return calls

    assert local.run(run, ranks=4) == [[x.shape]] * 4


@pytest.mark.parametrize("loads", [[0, 1, 2, 3], [0, 1], [0]])
def test_ranks_of_a_grid_that_load(loads):
    def run(comm):
        groups = create_groups(comm, channel=2)
        model = L.Linear(5, 5, initialW=np.full((5, 5), 0.1))
        model = parallelize(model, groups.channel, "channel", X[0][:2])
        optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, groups.data)
        if comm.rank in loads:
            renga.serializers.load_npz(
                io.BytesIO(file.getvalue()), both(model, optimizer)
            )
        rows = slice(6 * groups.data.rank, 6 * groups.data.rank + 6)
        for x, t in zip(X[1:], T[1:]):
            optimizer.update(loss_of(model, False), x[rows], t[rows])
        found = io.BytesIO()
        renga.serializers.save_npz(found, model)
        return found.getvalue()

    model = L.Linear(5, 5, initialW=np.eye(5))
    optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
    optimizer.update(loss_of(model, False), X[0], T[0])
    file = io.BytesIO()
    renga.serializers.save_npz(file, both(model, optimizer))
    for x, t in zip(X[1:], T[1:]):
        optimizer.update(loss_of(model, False), x, t)
    for found in local.run(run, ranks=4):
        got = np.load(io.BytesIO(found))
        np.testing.assert_allclose(got["W"], model.W.array, rtol=0, atol=1e-5)
        np.testing.assert_allclose(got["b"], model.b.array, rtol=0, atol=1e-5)


@pytest.mark.parametrize("strategy", ["channel", "spatial"])
@pytest.mark.parametrize("loads", [[2, 3], [0, 1], [0], [0, 2], [3]])
def test_ranks_of_a_grid_that_load_between_updates(strategy, loads):
    """All ranks of a model may, or the first, of which that of rank 0 counts."""
    x = np.random.RandomState(0).normal(0, 1, (4, 1, 6, 6)).astype(np.float32)

    def run(comm, notes):
        groups = create_groups(comm, **{strategy: 2})
        model = L.Convolution2D(1, 2, 3, pad=1, initialW=0.1)
        model = parallelize(model, getattr(groups, strategy), strategy, x[:2])
        optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, groups.data)
        own = x[2 * groups.data.rank :][:2]
        file = io.BytesIO()
        for step in range(3):
            if step == 1:
                renga.serializers.save_npz(file, both(model, optimizer))
            if step == 2 and comm.rank in loads:
                renga.serializers.load_npz(
                    io.BytesIO(file.getvalue()), both(model, optimizer)
                )
            before = model.b.array.copy()
            try:
                optimizer.update(lambda x: F.sum(model(x)), own)
            except Exception:
                notes.append((before == model.b.array).all())
                raise
        return model.b.full_array()

    notes = []
    if loads != [3]:
        # Rank 0 replaces what other ranks have loaded.
        steps = 1 + 1.9 if 0 in loads else 1 + 1.9 + 2.71
        for b in local.run(run, notes, ranks=4):
            np.testing.assert_allclose(b, -0.3 * steps * 36 * 2, rtol=1e-5)
        return
    with pytest.raises(RuntimeError, match="every rank to load .* or rank 0 alone"):
        local.run(run, notes, ranks=4)
    assert notes and all(notes)


def test_attributes_are_restored_but_for_links_and_parameters():
    chain = renga.Chain()
    chain.number, chain.items = 1, [1, 2]
    with without_traces(chain):
        chain.number, chain.items, chain.new = 2, [3], 4
        with chain.init_scope():
            chain.link = L.Linear(2, 3)
            chain.param = renga.Parameter(np.zeros(2))
    assert chain.number == 1 and chain.items == [1, 2] and not hasattr(chain, "new")
    assert [name for name, _ in chain.namedparams()] == ["/param", "/link/W", "/link/b"]


@pytest.mark.parametrize("has_size", [True, False])
def test_running_statistics_are_restored_or_initialized(has_size):
    x = np.arange(6, dtype="f").reshape(3, 2)
    link = L.BatchNormalization(*([2] if has_size else []), axis=0)
    with without_traces(link), renga.using_config("train", has_size):
        link(x)
    np.testing.assert_array_equal(link.avg_mean, np.zeros(2))
    undo = traces_of(link)
    link(x)
    np.testing.assert_allclose(link.avg_mean, [0.2, 0.3], rtol=1e-6)  # 0.1 of x's
    undo()
    np.testing.assert_array_equal(link.avg_mean, np.zeros(2))


@pytest.mark.parametrize("user", [0, 1])
def test_a_rank_does_not_use_a_parameter_without_a_shape(user):
    """It trains from the second step on, as in one process."""

    class Optional(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.first = L.Linear(None, 3, initialW=0.5)
                self.second = L.Linear(None, 2, initialW=0.25)

        def loss(self, x, uses_second):
            h = self.first(x)
            return F.mean(h**2) + (F.mean(self.second(h)) if uses_second else 0.0)

    x = np.arange(8, dtype=np.float32).reshape(4, 2) / 8

    def run(comm):
        model = Optional()
        optimizer = renga.optimizers.SGD(0.1).setup(model)
        if comm is None:
            for users in ([user], [0, 1]):

                def loss(users=users):
                    halves = [model.loss(x[r::2], r in users) for r in (0, 1)]
                    return (halves[0] + halves[1]) / 2

                optimizer.update(loss)
        else:
            optimizer = create_multi_node_optimizer(optimizer, comm)
            optimizer.update(model.loss, x[comm.rank :: 2], comm.rank == user)
            optimizer.update(model.loss, x[comm.rank :: 2], True)
        return {name: np.array(p.array) for name, p in model.namedparams()}

    expected = run(None)
    for found in local.run(run, ranks=2):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6)
