"""Updates that ranks share out, against those that each makes alone."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.distributed import create_multi_node_optimizer
from tests.distributed.averaged_steps import (
    STEPS,
    UNEVEN,
    Net,
    T,
    X,
    check,
    make,
    own,
    parameters,
)

RULES = [
    renga.optimizers.SGD,
    renga.optimizers.MomentumSGD,
    renga.optimizers.NesterovAG,
    renga.optimizers.RMSprop,
    renga.optimizers.Adam,
    renga.optimizers.AMSGrad,
    renga.optimizers.AdaGrad,
    renga.optimizers.AdaDelta,
    renga.optimizers.SMORMS3,
    renga.optimizers.RMSpropGraves,
    renga.optimizers.MSVAG,
    renga.optimizers.CorrectedMomentumSGD,
]


def can_share(comm):
    return comm.size > 1 and comm.inter_size == 1 and comm.shares_memory()


def shares(optimizer):
    return bool(optimizer._shares.places)


def nothing(optimizer):
    """A hook that somebody might look at gradients in."""


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


@pytest.mark.parametrize("decay", [0, 0.01])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_same_bits_as_updates_by_each_rank_alone(ranks, rule, given, decay):
    def train(comm, watched):
        model = Net(seed=comm.rank)
        optimizer = rule().setup(model)
        if decay:
            optimizer.add_hook(renga.optimizer_hooks.WeightDecay(decay))
        if watched:
            optimizer.add_hook(nothing, timing="post")
        optimizer = create_multi_node_optimizer(optimizer, comm)
        comm.bcast_data(model)
        for x, t in zip(X, T):
            if given:
                model.cleargrads()
                model(own(comm, x), own(comm, t)).backward()
                optimizer.update()
            else:
                optimizer.update(model, own(comm, x, UNEVEN), own(comm, t, UNEVEN))
        assert shares(optimizer) == (can_share(comm) and not watched)
        return all_arrays(model)

    for together, alone in zip(ranks(train, False), ranks(train, True)):
        assert together.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_array_equal(together[name], value, name)


def test_arrays_that_somebody_holds_stay_where_they_are(ranks):
    def train(comm):
        model, optimizer = make(comm)
        held = model.layers[1].W.array if comm.rank == 0 else None
        for x, t in zip(X, T):
            optimizer.update(model, own(comm, x), own(comm, t))
        assert not shares(optimizer)
        assert comm.rank > 0 or held is model.layers[1].W.array
        return parameters(model)

    check(ranks(train), serial())


def test_states_that_somebody_holds_stay_where_they_are(ranks):
    def train(comm):
        model, optimizer = make(comm)
        rule = model.layers[1].W.update_rule
        rule.init_state = lambda param: (
            type(rule).init_state(rule, param),
            held.append(rule.state["v"]),
        )
        held = []
        for x, t in zip(X, T):
            optimizer.update(model, own(comm, x), own(comm, t))
        assert not shares(optimizer)
        assert held[0] is rule.state["v"]
        return parameters(model)

    check(ranks(train), serial())


@pytest.mark.parametrize("where", ["parameter", "state", "rules"])
def test_arrays_that_one_rank_replaces(ranks, where):
    def train(comm):
        model, optimizer = make(comm)
        W = model.layers[2].W
        for i, (x, t) in enumerate(zip(X, T)):
            optimizer.update(model, own(comm, x), own(comm, t))
            if i == 1 and comm.rank == comm.size - 1:
                if where == "parameter":
                    W.array = W.array.copy()
                elif where == "state":
                    W.update_rule.state["v"] = W.update_rule.state["v"].copy()
        if where == "rules":
            optimizer.setup(model)
            optimizer.update(model, own(comm, X[0]), own(comm, T[0]))
        return parameters(model)

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    if where == "rules":
        optimizer.setup(model)
        optimizer.update(model, X[0], T[0])
    check(ranks(train), parameters(model))


def test_parameters_that_every_rank_writes_to(ranks):
    def train(comm=None):
        model, optimizer = make(comm)
        for x, t in zip(X, T):
            if comm is not None:
                x, t = own(comm, x), own(comm, t)
            optimizer.update(model, x, t)
            for param in model.params():
                param.array *= np.float32(0.5)
                param.update_rule.state["v"] *= np.float32(0.25)
        return parameters(model)

    check(ranks(train), train())


def test_a_hook_that_is_added_later_sees_means(ranks):
    def train(comm=None):
        seen = []
        model, optimizer = make(comm)
        for i, (x, t) in enumerate(zip(X, T)):
            if comm is not None:
                x, t = own(comm, x), own(comm, t)
            if i == STEPS - 1:
                optimizer.add_hook(
                    lambda opt: seen.extend(p.grad.copy() for p in model.params()),
                    name="look",
                )
            optimizer.update(model, x, t)
        return seen

    expected = train()
    for seen in ranks(train):
        for g, mean in zip(seen, expected):
            np.testing.assert_allclose(g, mean, rtol=0, atol=1e-6)


def test_gradients_of_which_two_are_one_array(ranks):
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

    results = ranks(train)
    size = len(results)
    check(results, train())


def test_a_way_of_travelling_that_is_chosen_later(ranks):
    def train(comm):
        model, optimizer = make(comm)
        for i, (x, t) in enumerate(zip(X, T)):
            if i == 2:
                comm.set_config("allreduce_grad_dtype", value="float16")
            optimizer.update(model, own(comm, x), own(comm, t))
        comm.set_config("allreduce_grad_dtype", value=None)
        return parameters(model)

    check(ranks(train), serial(), atol=2e-3)


def test_updates_of_the_two_kinds_in_turn(ranks):
    def train(comm):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        for i, (x, t) in enumerate(zip(X, T)):
            x, t = own(comm, x), own(comm, t)
            if i % 2 == 1:
                optimizer.update(model, x, t)
            else:
                model.cleargrads()
                model(x, t).backward()
                optimizer.update()
        assert shares(optimizer) == can_share(comm)
        return parameters(model)

    check(ranks(train), serial())


def test_moved_parameters_are_nobody_elses(ranks):
    # So that what evaluation keeps of filters can be kept.
    def train(comm):
        model, optimizer = make(comm)
        for x, t in zip(X, T):
            optimizer.update(model, own(comm, x), own(comm, t))
        return all(param._owns_array for param in model.params())

    assert all(ranks(train))


def test_evaluation_between_updates_sees_the_new_filters(ranks):
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
    for results in ranks(train):
        for y, right in zip(results, expected):
            np.testing.assert_allclose(y, right, rtol=0, atol=1e-5)


def test_a_rank_that_joins(ranks):
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


@pytest.mark.parametrize("given", [False, True])
def test_a_parameter_in_the_place_of_another(ranks, given):
    def train(comm=None):
        model, optimizer = make(comm)
        if comm is not None:
            comm.bcast_data(model)
        for i, (x, t) in enumerate(zip(X, T)):
            if comm is not None:
                x, t = own(comm, x), own(comm, t)
            if i == STEPS - 1:
                layer = model.layers[2]
                rule = layer.W.update_rule
                with layer.init_scope():
                    layer.W = renga.Parameter(layer.W.array.copy())
                layer.W.update_rule = rule
            if given:
                model.cleargrads()
                model(x, t).backward()
                optimizer.update()
            else:
                optimizer.update(model, x, t)
        return parameters(model)

    check(ranks(train), train())


@pytest.mark.parametrize("tied", ["links", "arrays", "arrays later"])
def test_parameters_that_are_one(ranks, tied):
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
                x, t = own(comm, x, UNEVEN), own(comm, t, UNEVEN)
            optimizer.update(model, x, t)
        return parameters(model)

    check(ranks(train), train())
