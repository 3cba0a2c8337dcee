"""Accumulated gradients and sharded states on 64 virtual ranks."""

import numpy as np

import renga
from renga.communicators import simulated
from tests.parallel.data.training_steps import (
    STEPS,
    WIDTH,
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
    update,
)

RANKS = 64
MACHINE = simulated.Machine(intra_size=8)


def run_64(function):
    return simulated.run(function, RANKS, MACHINE).results


def test_accumulation_is_one_batch():
    # 12 samples for 64 ranks: most have none. The batches are halves of them.
    def run(comm):
        model, optimizer = make(comm)
        optimizer.accumulate(2)
        for x, t in zip(X, T):
            for half in (slice(0, 6), slice(6, 12)):
                own = own_samples(comm, x[half]), own_samples(comm, t[half])
                update(model, optimizer, *own, False)
        return parameters(model)

    model, optimizer = make()
    for x, t in zip(X, T):
        update(model, optimizer, x, t, False)
    check(run_64(run), parameters(model), atol=1e-6)


def test_sharded_states_have_the_same_bits():
    random = np.random.RandomState(3)
    x = random.uniform(-1, 1, (STEPS, RANKS, WIDTH)).astype("float32")
    t = random.randint(0, WIDTH, (STEPS, RANKS)).astype("int32")

    def run(shard):
        def act(comm):
            model, optimizer = make(comm, renga.optimizers.Adam, shard=shard)
            for step in range(STEPS):
                own = own_samples(comm, x[step]), own_samples(comm, t[step])
                update(model, optimizer, *own, False)
            return parameters(model)

        return run_64(act)

    whole = run(None)[0]
    for shard in ("states", "gradients"):
        for params in run(shard):
            for name, value in whole.items():
                np.testing.assert_array_equal(params[name], value)
