"""Sharded updates against updates that each rank computes whole."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.distributed import create_multi_node_optimizer
from renga.optimizer import FusedRule
from tests.catalogue import OPTIMIZERS
from tests.parallel.data.training_steps import (
    STEPS,
    UNEVEN,
    Net,
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
    update,
)


def can_shard(comm):
    return comm.size > 1 and comm.inter_size == 1 and comm.shares_memory()


def read_gradients(optimizer):
    """A hook that might read gradients: it excludes sharded updates."""


def all_arrays(model):
    arrays = parameters(model)
    for name, param in model.namedparams():
        arrays[name + "/grad"] = param.grad.copy()
        for key, state in param.update_rule.state.items():
            arrays[f"{name}/{key}"] = state.copy()
    return arrays


def serial(steps=STEPS, **options):
    model, optimizer = make(**options)
    for x, t in zip(X[:steps], T[:steps]):
        optimizer.update(model, x, t)
    return parameters(model)


@pytest.mark.parametrize(("external", "decay"), [(False, 0.01), (True, 0)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_bits_for_every_rule(some_ranks, name, external, decay):
    check_same(some_ranks, OPTIMIZERS[name].make, external, decay)


@pytest.mark.parametrize("decay", [0, 0.01])
@pytest.mark.parametrize("external", [False, True])
def test_same_bits_as_unsharded_updates(ranks, external, decay):
    check_same(ranks, OPTIMIZERS["Adam"].make, external, decay)


def check_same(ranks, rule, external, decay):
    is_fused = isinstance(rule().create_update_rule(), FusedRule)

    def train(comm, with_hook):
        model = Net(seed=comm.rank)
        optimizer = rule().setup(model)
        if decay:
            optimizer.add_hook(renga.optimizer_hooks.WeightDecay(decay))
        if with_hook:
            optimizer.add_hook(read_gradients, timing="post")
        optimizer = create_multi_node_optimizer(optimizer, comm)
        comm.bcast_data(model)
        for x, t in zip(X, T):
            if external:
                model.cleargrads()
                model(own_samples(comm, x), own_samples(comm, t)).backward()
                optimizer.update()
            else:
                optimizer.update(
                    model, own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
                )
        assert optimizer.is_sharded == (can_shard(comm) and is_fused and not with_hook)
        return all_arrays(model)

    for sharded, whole in zip(ranks(train, False), ranks(train, True)):
        assert sharded.keys() == whole.keys()
        for name, value in whole.items():
            np.testing.assert_array_equal(sharded[name], value, name)


def test_parameters_that_the_user_refers_to_are_not_moved(some_ranks):
    def train(comm):
        model, optimizer = make(comm)
        held = model.layers[1].W.array if comm.rank == 0 else None
        for x, t in zip(X, T):
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        assert not optimizer.is_sharded
        assert comm.rank > 0 or held is model.layers[1].W.array
        return parameters(model)

    check(some_ranks(train), serial())


REFERENCES = {
    "array": lambda v: v,
    "view": lambda v: v[:1],
    "Variable": lambda v: renga.Variable(v),
    "memoryview": lambda v: memoryview(v),
    "iterator": lambda v: iter(v),
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_states_that_the_user_refers_to_are_not_moved(some_ranks, reference):
    def train(comm):
        model, optimizer = make(comm)
        rule = model.layers[1].W.update_rule
        rule.init_state = lambda param: (
            type(rule).init_state(rule, param),
            held.append(REFERENCES[reference](rule.state["v"])),
            addresses.append(rule.state["v"].ctypes.data),
        )
        held, addresses = [], []
        for x, t in zip(X, T):
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        assert not optimizer.is_sharded
        assert rule.state["v"].ctypes.data == addresses[0]
        assert reference != "array" or rule.state["v"] is held[0]
        return parameters(model)

    check(some_ranks(train), serial())


@pytest.mark.parametrize("where", ["parameter", "state", "rules"])
def test_arrays_that_one_rank_replaces(some_ranks, where):
    def train(comm):
        model, optimizer = make(comm)
        W = model.layers[2].W
        for i, (x, t) in enumerate(zip(X, T)):
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
            if i == 1 and comm.rank == comm.size - 1:
                if where == "parameter":
                    W.array = W.array.copy()
                elif where == "state":
                    W.update_rule.state["v"] = W.update_rule.state["v"].copy()
        if where == "rules":
            optimizer.setup(model)
            optimizer.update(model, own_samples(comm, X[0]), own_samples(comm, T[0]))
        return parameters(model)

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    if where == "rules":
        optimizer.setup(model)
        optimizer.update(model, X[0], T[0])
    check(some_ranks(train), parameters(model))


def test_parameters_that_every_rank_writes_to(some_ranks):
    def train(comm=None):
        model, optimizer = make(comm)
        for x, t in zip(X, T):
            if comm is not None:
                x, t = own_samples(comm, x), own_samples(comm, t)
            optimizer.update(model, x, t)
            for param in model.params():
                param.array *= np.float32(0.5)
                param.update_rule.state["v"] *= np.float32(0.25)
        return parameters(model)

    check(some_ranks(train), train())


def test_a_hook_that_is_added_later_sees_means(some_ranks):
    def train(comm=None):
        seen = []
        model, optimizer = make(comm)
        for i, (x, t) in enumerate(zip(X, T)):
            if comm is not None:
                x, t = own_samples(comm, x), own_samples(comm, t)
            if i == STEPS - 1:
                optimizer.add_hook(
                    lambda opt: seen.extend(p.grad.copy() for p in model.params()),
                    name="look",
                )
            optimizer.update(model, x, t)
        return seen

    expected = train()
    for seen in some_ranks(train):
        for g, mean in zip(seen, expected):
            np.testing.assert_allclose(g, mean, rtol=0, atol=1e-6)


def test_two_gradients_that_are_one_array(some_ranks):
    def train(comm=None):
        model, optimizer = make(comm, kind=renga.optimizers.SGD)
        if comm is not None:
            comm.bcast_data(model)
        for i in range(STEPS):
            g = np.full((5, 5), i + (0.5 if comm is None else comm.rank), "float32")
            for param in model.params():
                param.grad = g if param.ndim == 2 else g[0].copy()
            if comm is None:
                for param in model.params():
                    param.grad = param.grad + np.float32((size - 2) / 2)
            optimizer.update()
        return parameters(model)

    results = some_ranks(train)
    size = len(results)
    check(results, train())


def test_a_communication_dtype_that_is_set_later(some_ranks):
    def train(comm):
        model, optimizer = make(comm)
        for i, (x, t) in enumerate(zip(X, T)):
            if i == 2:
                comm.set_config("allreduce_grad_dtype", value="float16")
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        comm.set_config("allreduce_grad_dtype", value=None)
        return parameters(model)

    check(some_ranks(train), serial(), atol=2e-3)


def test_gradients_of_a_loss_and_of_the_caller_in_turn(some_ranks):
    def train(comm):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        for i, (x, t) in enumerate(zip(X, T)):
            x, t = own_samples(comm, x), own_samples(comm, t)
            if i % 2 == 1:
                optimizer.update(model, x, t)
            else:
                model.cleargrads()
                model(x, t).backward()
                optimizer.update()
        assert optimizer.is_sharded == can_shard(comm)
        return parameters(model)

    check(some_ranks(train), serial())


def test_nothing_else_refers_to_moved_parameters(some_ranks):
    # So that another optimizer can move them, and evaluation can cache packed weights.
    def train(comm):
        model, first = make(comm)
        second = create_multi_node_optimizer(first.actual_optimizer, comm)
        for optimizer in (first, second):
            for x, t in zip(X, T):
                optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
            assert optimizer.is_sharded == can_shard(comm)

    some_ranks(train)


def test_evaluation_between_updates_sees_the_new_filters(some_ranks):
    x = np.random.RandomState(0).uniform(-1, 1, (4, 32, 8, 8)).astype("float32")

    def train(comm=None):
        random = np.random.RandomState(1)
        W = random.uniform(-0.1, 0.1, (32, 32, 3, 3)).astype("float32")
        model = renga.links.Convolution2D(32, 32, 3, pad=1, initialW=W.copy())
        optimizer = renga.optimizers.SGD(0.1).setup(model)
        if comm is not None:
            optimizer = create_multi_node_optimizer(optimizer, comm)
        results = []
        for _ in range(3):
            optimizer.update(lambda x: F.mean(F.square(model(x))) * 100, x)
            with renga.using_config("train", False), renga.no_backprop_mode():
                results += [model(x).array.copy() for _ in range(3)]
        return results

    expected = train()
    for results in some_ranks(train):
        for y, right in zip(results, expected):
            np.testing.assert_allclose(y, right, rtol=0, atol=1e-5)


def test_a_rank_that_has_joined(ranks):
    def train(comm):
        model, optimizer = make(comm)
        if comm.rank == comm.size - 1 and comm.size > 1:
            optimizer.update(model, X[0][:0], T[0][:0])
        else:
            shown = own_of_all_but_last(comm, X[0]), own_of_all_but_last(comm, T[0])
            optimizer.update(model, *shown)
            for x, t in zip(X[1:], T[1:]):
                batch = own_of_all_but_last(comm, x), own_of_all_but_last(comm, t)
                optimizer.update(model, *batch)
        optimizer.join()
        return parameters(model)

    def own_of_all_but_last(comm, batch):
        return batch[comm.rank :: max(1, comm.size - 1)]

    check(ranks(train), serial())


@pytest.mark.parametrize("external", [False, True])
def test_a_parameter_that_replaces_another(some_ranks, external):
    def train(comm=None):
        model, optimizer = make(comm)
        if comm is not None:
            comm.bcast_data(model)
        for i, (x, t) in enumerate(zip(X, T)):
            if comm is not None:
                x, t = own_samples(comm, x), own_samples(comm, t)
            if i == STEPS - 1:
                layer = model.layers[2]
                rule = layer.W.update_rule
                with layer.init_scope():
                    layer.W = renga.Parameter(layer.W.array.copy())
                layer.W.update_rule = rule
            update(model, optimizer, x, t, external)
        return parameters(model)

    check(some_ranks(train), train())


@pytest.mark.parametrize("tied", ["links", "arrays", "arrays later"])
def test_tied_parameters(some_ranks, tied):
    def train(comm=None):
        model, optimizer = make(comm)
        first, second = model.layers[0], model.layers[2]
        if tied == "links":
            with model.init_scope():
                model.again = first
            optimizer.setup(model)
        elif tied == "arrays":
            second.W.array = first.W.array
        for i, (x, t) in enumerate(zip(X, T)):
            if i == STEPS - 1 and tied == "arrays later":
                second.W.array = first.W.array
            if comm is not None:
                x, t = own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
            optimizer.update(model, x, t)
        return parameters(model)

    check(some_ranks(train), train())
