"""Norms of parameters and gradients that ranks compute together, in float32.

Gradients are exact in any order of summation, so that norms are what may differ.
"""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizer_hooks
from renga.communicators import local
from renga.distributed import create_groups, create_multi_node_optimizer, parallelize

WIDTH, STEPS, BATCH = 768, 5, 4


def weight(kind):
    """One element that is far larger than the rest, at the end of a shard's first row.

    A float32 sum of the squares that has reached its square takes in no other one.
    """
    w = np.full((WIDTH, WIDTH), 1 / 64)
    w[1, 5] = 64
    if kind == "cancelling":
        w[::2] *= -1
    return w


def batch(kind):
    """Powers of two; cancelling ones give half of the weights no gradient at all."""
    x = np.full((BATCH, WIDTH), 0.5)
    if kind == "cancelling":
        x[::2, ::2] *= -1
    return x, np.where(np.arange(WIDTH) % 3, 0.25, 4) * np.ones((BATCH, 1))


def lamb():
    return renga.optimizers.LAMB(0.5)


def lars():
    return renga.optimizers.MomentumSGD(0.05)


def clipped():
    return renga.optimizers.SGD(0.5)


HOOKS = {lars: optimizer_hooks.GradientLARS, clipped: lambda: CLIPPING}
CLIPPING = optimizer_hooks.GradientClipping(1.0)
SHARDED = {
    shard: lambda comm, model, optimizer, x, shard=shard: (
        model,
        create_multi_node_optimizer(optimizer, comm, shard=shard),
    )
    for shard in (None, "states", "gradients", "parameters")
}


def by_channel(comm, model, optimizer, x):
    return parallelize(model, comm, "channel", x), optimizer


def by_grid(comm, model, optimizer, x):
    groups = create_groups(comm, channel=2)
    model = parallelize(model, groups.channel, "channel", x)
    return model, create_multi_node_optimizer(optimizer, groups.data, shard="states")


WAYS = {**SHARDED, "channel": by_channel, "grid": by_grid}


def train(comm, kind, rule, way=None, dtype=np.float32):
    x, t = (array.astype(dtype) for array in batch(kind))
    optimizer = rule()
    with renga.using_config("dtype", dtype):
        layer = L.Linear(WIDTH, WIDTH, initialW=weight(kind).astype(dtype))
    model = renga.Sequential(layer)
    if way is not None:
        model, optimizer = WAYS[way](comm, model, optimizer, x)
        ranks = {"channel": 1, "grid": 2}.get(way, comm.size)
        own = comm.rank // (comm.size // ranks)
        x, t = x[own::ranks], t[own::ranks]
    optimizer.setup(model)
    if rule in HOOKS:
        optimizer.add_hook(HOOKS[rule]())
    for _ in range(STEPS):
        optimizer.update(lambda x: F.sum(model(x) * t) / len(x), x)
    return {name: p.full_array() for name, p in model.namedparams()}


@pytest.mark.parametrize("rule", [lamb, lars, clipped], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["one large element", "cancelling"])
def test_norms_are_those_of_float64(kind, rule):
    expected = train(None, kind, rule, dtype=np.float64)

    def check(found):
        for name, x in expected.items():
            np.testing.assert_allclose(found[name], x, rtol=1e-5, atol=1e-5)

    check(train(None, kind, rule))
    for way in WAYS:
        ranks = 4 if way == "grid" else 2
        for found in local.run(lambda c, w=way: train(c, kind, rule, w), ranks=ranks):
            check(found)
