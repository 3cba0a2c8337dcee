"""Ranks with different numbers of samples against one process with all of them."""

import numpy as np

import renga
from tests.parallel.data.training_steps import (
    STEPS,
    UNEVEN,
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
)


def test_uneven_batches_are_weighted_by_samples(ranks, reduction):
    def train(comm):
        model, optimizer = make(comm)
        for x, t in zip(X, T):
            optimizer.update(
                model, own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
            )
        return parameters(model)

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    check(ranks(train), parameters(model))


def test_uneven_batches_with_double_buffering(some_ranks):
    def train(comm):
        model, optimizer = make(comm, renga.optimizers.SGD, double_buffering=True)
        for x, t in zip(X, T):
            optimizer.update(
                model, own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
            )
        return parameters(model)

    model, _ = make()
    late = []
    for x, t in zip(X, T):
        model.cleargrads()
        model(x, t).backward()
        late.append({name: param.grad for name, param in model.namedparams()})
        if len(late) > 1:
            for name, param in model.namedparams():
                param.array[...] -= np.float32(0.1) * late[-2][name]
    check(some_ranks(train), parameters(model))


def batches(rank, size):
    """Two samples a step; the first ranks run out of them, or have none at all."""
    count = STEPS * (rank + 1) // size
    span = slice(2 * rank, 2 * rank + 2)
    return [(X[step][span], T[step][span]) for step in range(count)]


def steps_of_all(size):
    model, optimizer = make()
    every = [batches(rank, size) for rank in range(size)]
    for step in range(STEPS):
        active = [own[step] for own in every if step < len(own)]
        optimizer.update(model, *(np.concatenate(parts) for parts in zip(*active)))
    return parameters(model)


def test_ranks_without_more_data_join(ranks, reduction):
    def train(comm):
        model, optimizer = make(comm)
        for x, t in batches(comm.rank, comm.size):
            optimizer.update(model, x, t)
        optimizer.join()
        return parameters(model), optimizer.t

    results = ranks(train)
    check([params for params, _ in results], steps_of_all(len(results)))
    assert {t for _, t in results} == {STEPS}


def test_ranks_join_while_others_set_gradients(some_ranks):
    def train(comm):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        for x, t in batches(comm.rank, comm.size):
            model.cleargrads()
            active_ranks = sum(
                optimizer.t < len(batches(r, comm.size)) for r in range(comm.size)
            )
            (model(x, t) * (comm.size / active_ranks)).backward()
            optimizer.update()
        optimizer.join()
        return parameters(model)

    results = some_ranks(train)
    check(results, steps_of_all(len(results)))


def test_trainers_whose_epochs_end_at_different_times(some_ranks):
    def train(comm):
        model, optimizer = make(comm)
        # The last rank has three times as many samples as the first.
        n = 4 + 8 * (comm.rank == comm.size - 1)
        data = list(zip(X[0][:n], T[0][:n]))
        iterator = renga.iterators.SerialIterator(data, 2, shuffle=False)
        updater = renga.training.updaters.StandardUpdater(iterator, optimizer)
        while updater.epoch < 1:
            updater.update()
        optimizer.join()
        return parameters(model), optimizer.t, updater.iteration

    results = some_ranks(train)
    size = len(results)
    model, optimizer = make()
    for step in range(6):
        span = slice(2 * step, 2 * step + 2)
        # At first all ranks have the same samples, then only one has some.
        optimizer.update(model, X[0][span], T[0][span])
    check([params for params, _, _ in results], parameters(model))
    assert {t for _, t, _ in results} == {6}
    assert [i for _, _, i in results] == [2] * (size - 1) + [6]
