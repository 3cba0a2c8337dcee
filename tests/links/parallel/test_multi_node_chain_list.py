"""Models that lie on several ranks against the same links on one."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed.links import MultiNodeChainList

X = np.random.default_rng(0).normal(size=(3, 5, 4))


def layer(seed, inputs=1):
    """tanh of a linear map of the sum of its inputs."""
    weights = np.random.default_rng(seed).normal(size=(4, 4))
    with renga.using_config("dtype", np.float64):
        linear = L.Linear(4, 4, initialW=weights, initial_bias=weights[0])
    first = [add] * (inputs > 1)
    return renga.Sequential(*first, linear, F.tanh)


def add(*xs):
    return sum(xs[1:], xs[0])


def pair(factor, x):
    return [x, factor * x]


def add_pair(xs):
    return xs[0] + xs[1]


def ring(model, rank, size):
    """Rank 0 begins and ends; the others lie in between."""
    before, after = (rank - 1) % size, (rank + 1) % size
    if rank == 0:
        model.add_link(layer(100), rank_out=after)
        model.add_link(layer(101), rank_in=before)
    else:
        model.add_link(layer(rank), rank_in=before, rank_out=after)


def serial_ring(links, x, size):
    for name in (100, *range(1, size), 101):
        x = links[name](x)
    return x


def fan(model, rank, size):
    """Rank 0 gives to all, itself among them, and adds up what they return."""
    if rank == 0:
        model.add_link(layer(100), rank_out=range(size))
    model.add_link(layer(rank), rank_in=0, rank_out=[0])
    if rank == 0:
        model.add_link(layer(101, size), rank_in=list(range(size)))


def serial_fan(links, x, size):
    x = links[100](x)
    return links[101](*[links[r](x) for r in range(size)])


def seeds(rank, plan):
    own = [rank] if rank > 0 or plan is fan else []
    return [100, *own, 101] if rank == 0 else own


def links_of_all_ranks(plan, size):
    names = [name for rank in range(size) for name in seeds(rank, plan)]
    return {n: layer(n, size if n == 101 and plan is fan else 1) for n in names}


def train(model, optimizer, forward):
    gradients = []
    for x in X:
        x = renga.Variable(x)
        y = forward(x)
        model.cleargrads()
        F.sum(y**2).backward() if y.size else y.backward()
        gradients.append(x.grad)
        optimizer.update()
    return y.array, gradients


@pytest.mark.parametrize(
    ("plan", "serial"), [(ring, serial_ring), (fan, serial_fan)], ids=["ring", "fan"]
)
def test_three_steps_equal_those_of_one_process(ranks, plan, serial):
    def on_rank(comm):
        model = MultiNodeChainList(comm)
        plan(model, comm.rank, comm.size)
        optimizer = renga.optimizers.SGD(lr=0.05).setup(model)
        result = train(model, optimizer, model)
        parameters = [[p.array for p in link.params()] for link in model]
        return result, dict(zip(seeds(comm.rank, plan), parameters))

    results = ranks(on_rank)
    size = len(results)
    links = links_of_all_ranks(plan, size)
    model = renga.ChainList(*links.values())
    optimizer = renga.optimizers.SGD(lr=0.05).setup(model)
    y, gradients = train(model, optimizer, lambda x: serial(links, x, size))

    np.testing.assert_allclose(results[0][0][0], y, rtol=1e-9)
    np.testing.assert_allclose(results[0][0][1], gradients, rtol=1e-9)
    for (own_y, _), parameters in results:
        assert own_y.size == 0 or own_y.shape == y.shape
        for name, arrays in parameters.items():
            for array, param in zip(arrays, links[name].params()):
                np.testing.assert_allclose(array, param.array, rtol=1e-9)


@pytest.mark.parametrize(
    ("plan", "serial"), [(ring, serial_ring), (fan, serial_fan)], ids=["ring", "fan"]
)
def test_serial_model(some_ranks, plan, serial):
    def on_rank(comm):
        model = MultiNodeChainList(comm)
        plan(model, comm.rank, comm.size)
        whole = model.serial_model()
        return whole(X[0]).array, len(whole)

    results = some_ranks(on_rank)
    size = len(results)
    links = links_of_all_ranks(plan, size)
    expected = serial(links, X[0], size)
    for y, count in results:
        np.testing.assert_allclose(y, expected.array, rtol=1e-12)
        assert count == len(links)


def test_serial_models_with_several_outputs(some_ranks):
    """Pairs are one argument; each rank computes an output of the model."""

    def on_rank(comm):
        model = MultiNodeChainList(comm)
        first = renga.Sequential(functools.partial(pair, comm.rank + 2))
        total = renga.Sequential(add_pair)
        model.add_link(first, rank_out=(comm.rank + 1) % comm.size)
        model.add_link(total, rank_in=(comm.rank - 1) % comm.size)
        ys = model.serial_model()(renga.Variable(np.arange(3.0)))
        for rank, y in enumerate(ys):
            factor = (rank - 1) % comm.size + 3
            np.testing.assert_array_equal(y.array, factor * np.arange(3.0))
        return True

    assert all(some_ranks(on_rank))


def test_errors_of_serial_models(some_ranks):
    def on_rank(comm):
        own = comm.rank
        model = MultiNodeChainList(comm)
        model.add_link(layer(0), rank_in=[own], rank_out=own)
        with pytest.raises(ValueError, match="wait: rank 0 for rank 0"):
            model.serial_model()
        model = MultiNodeChainList(comm)
        model.add_link(layer(0), rank_out=[own, own])
        model.add_link(layer(0), rank_in=own)
        with pytest.raises(ValueError, match="output of rank 0, got 1 unused"):
            model.serial_model()
        with pytest.raises(ValueError, match="without rank_out, got none"):
            MultiNodeChainList(comm).serial_model()
        return True

    assert all(some_ranks(on_rank))


def test_errors(some_ranks):
    def on_rank(comm):
        model = MultiNodeChainList(comm)
        model.add_link(layer(0), rank_in=comm.rank)
        with pytest.raises(ValueError, match="one link without rank_out"):
            model.add_link(layer(1))
        with pytest.raises(RuntimeError, match="got nothing"):
            model()
        unused = MultiNodeChainList(comm)
        unused.add_link(layer(0), rank_out=comm.rank)
        unused.add_link(layer(0))
        with pytest.raises(ValueError, match="got 1 unused"):
            unused(np.ones((2, 4)))
        return True

    assert all(some_ranks(on_rank))


def test_several_outputs_are_one_argument(some_ranks):
    def on_rank(comm):
        model = MultiNodeChainList(comm)
        pair = renga.Sequential(lambda x: (x, 2 * x))
        total = renga.Sequential(lambda xs: xs[0] + xs[1])
        model.add_link(pair, rank_out=(comm.rank + 1) % comm.size)
        model.add_link(total, rank_in=(comm.rank - 1) % comm.size)
        x = renga.Variable(np.arange(3.0))
        y = model(x)
        F.sum(y**2).backward()
        np.testing.assert_array_equal(y.array, 3 * x.array)
        np.testing.assert_array_equal(x.grad, 18 * x.array)
        return True

    assert all(some_ranks(on_rank))


def test_links_without_outputs_and_ranks_without_links(several_ranks):
    def on_rank(comm):
        model = MultiNodeChainList(comm)
        x = renga.Variable(np.arange(3.0))
        if comm.rank == 0:
            model.add_link(renga.Sequential(lambda x: []), rank_out=1)
        if comm.rank == 1:
            model.add_link(renga.Sequential(lambda xs: x * (1 + len(xs))), rank_in=0)
        y = model(x)
        if comm.rank > 1:
            return y
        y.backward() if comm.rank == 0 else F.sum(y**2).backward()
        return y.shape, x.grad

    (first, _), (second, gradient), *others = several_ranks(on_rank)
    assert first == (0,) and second == (3,) and set(others) <= {None}
    np.testing.assert_array_equal(gradient, [0, 2, 4])
