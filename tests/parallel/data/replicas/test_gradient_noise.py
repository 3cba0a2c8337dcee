"""Noise of gradients on ranks whose random generators are in different states."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizer_hooks
from renga.communicators import local, simulated
from renga.distributed import create_groups, create_multi_node_optimizer, parallelize
from renga.optimizers import MomentumSGD

X = np.random.RandomState(0).normal(0, 1, (4, 3)).astype(np.float32)


def made():
    model = L.Linear(3, 2, initialW=np.full((2, 3), 0.1, np.float32))
    return model, MomentumSGD(0.1)


def noisy(shape, dtype, hook, rule):
    return np.random.standard_normal(shape).astype(dtype)


def train(model, optimizer, seed, own_noise=False):
    func = (lambda xp, *args: noisy(*args)) if own_noise else None
    options = {} if func is None else {"noise_func": func}
    optimizer.add_hook(optimizer_hooks.GradientNoise(0.3, **options))
    np.random.seed(seed)
    for _ in range(3):
        optimizer.update(lambda x: F.mean(model(x) ** 2), X)
    return np.concatenate([p.full_array().ravel() for p in model.params()])


def serial(own_noise=False):
    model, optimizer = made()
    return train(model, optimizer.setup(model), 7, own_noise)


SHARDS = [{"shard": shard} for shard in ("states", "gradients", "parameters")]


@pytest.mark.parametrize("options", [{}, {"zero_fill": False}, *SHARDS], ids=str)
@pytest.mark.parametrize("own_noise", [False, True])
def test_all_ranks_add_the_noise_of_rank_0(
    ranks_with_own_random_numbers, options, own_noise
):
    def act(comm):
        model, optimizer = made()
        optimizer = create_multi_node_optimizer(optimizer, comm, **options)
        return train(model, optimizer.setup(model), 7 + comm.rank, own_noise)

    found, expected = ranks_with_own_random_numbers(act), serial(own_noise)
    for x in found:
        np.testing.assert_array_equal(x, found[0])
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{}, *SHARDS], ids=str)
def test_noise_of_one_parameter_by_its_own_rule(ranks_with_own_random_numbers, options):
    def act(comm):
        model, optimizer = made()
        if comm is not None:
            optimizer = create_multi_node_optimizer(optimizer, comm, **options)
        optimizer.setup(model)
        model.W.update_rule.add_hook(optimizer_hooks.GradientNoise(0.3))
        model.b.update_rule.add_hook(optimizer_hooks.GradientNoise(0.2))
        np.random.seed(3 if comm is None else 3 + comm.rank)
        for _ in range(3):
            optimizer.update(lambda x: F.mean(model(x) ** 2), X)
        return np.concatenate([p.array.ravel() for p in model.params()])

    found, expected = ranks_with_own_random_numbers(act), act(None)
    for x in found:
        np.testing.assert_array_equal(x, found[0])
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-6)


def test_ranks_that_are_threads_agree():
    def act(comm):
        model, optimizer = made()
        optimizer = create_multi_node_optimizer(optimizer, comm)
        return train(model, optimizer.setup(model), 7 + comm.rank)

    first, second = local.run(act, ranks=2)
    np.testing.assert_array_equal(first, second)


def test_a_grid_adds_the_noise_of_its_first_rank():
    def act(comm):
        model, optimizer = made()
        groups = create_groups(comm, channel=2)
        model = parallelize(model, groups.channel, "channel", X)
        optimizer = create_multi_node_optimizer(optimizer, groups.data)
        return train(model, optimizer.setup(model), 7 + comm.rank)

    for x in simulated.run(act, 4, simulated.Machine(intra_size=4)).results:
        np.testing.assert_allclose(x, serial(), rtol=0, atol=1e-6)


def test_noise_of_a_0d_parameter():
    def act(comm):
        link = renga.Link()
        with link.init_scope():
            link.x = renga.Parameter(np.array(1.0))
        optimizer = create_multi_node_optimizer(MomentumSGD(0.1), comm).setup(link)
        optimizer.add_hook(optimizer_hooks.GradientNoise(0.3))
        optimizer.update(lambda x: link.x * 2.0, X)
        return link.x.array

    first, second = local.run(act, ranks=2)
    assert type(first) is np.ndarray and first.shape == () and first == second
