"""Settings of optimizers that differ between ranks are named, and nothing changes."""

import numpy as np
import pytest

import renga
from renga import optimizer_hooks
from renga.parallel.data.replicas.settings import fingerprint_of
from tests.parallel.data.training_steps import (
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
)

WAYS = [{}, {"double_buffering": True}, {"shard": "states"}, {"shard": "gradients"}]


def set_rate(optimizer, model):
    optimizer.lr = 0.025


def set_momentum_of_one(optimizer, model):
    model.layers[2].b.update_rule.hyperparam.momentum = 0.5


def freeze(optimizer, model):
    model.layers[1].disable_update()


def add_hook(optimizer, model):
    optimizer.add_hook(optimizer_hooks.WeightDecay(0.125))


def add_hook_of_one(optimizer, model):
    model.layers[0].W.update_rule.add_hook(optimizer_hooks.Lasso(0.125))


def scale_losses(optimizer, model):
    optimizer.set_loss_scale(8.0)


def other_rule(optimizer, model):
    model.layers[3].W.update_rule = renga.optimizers.Adam().create_update_rule()


CHANGES = {
    set_rate: "lr = 0.1 on rank 0 and 0.025 on rank 1",
    set_momentum_of_one: "/layers/2/b: momentum = nothing on rank 0 and 0.5 on rank 1",
    freeze: "/layers/1/W: enabled = True on rank 0 and False on rank 1",
    add_hook: "WeightDecay = nothing on rank 0 and ('WeightDecay', 'pre', {'rate'",
    add_hook_of_one: "/layers/0/W: Lasso = nothing on rank 0 and ('Lasso'",
    scale_losses: "loss scale = nothing on rank 0 and 8.0 on rank 1",
    other_rule: "/layers/3/W: update rule = 'MomentumSGDRule' on rank 0 and 'AdamRule'",
}


def change_on_rank_1(comm, change, steps, options):
    """The parameters before and after the step that fails, and its error."""
    model, optimizer = make(comm, **options)
    for step in range(steps):
        optimizer.update(model, own_samples(comm, X[step]), own_samples(comm, T[step]))
    if comm.rank == 1:
        change(optimizer, model)
    comm.barrier()
    before = parameters(model)
    with pytest.raises(ValueError) as error:
        optimizer.update(model, own_samples(comm, X[0]), own_samples(comm, T[0]))
    return before, parameters(model), str(error.value)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_settings_in_the_first_step(some_ranks, change):
    for before, after, error in some_ranks(change_on_rank_1, change, 0, {}):
        assert CHANGES[change] in error
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value)


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize(
    "change",
    [set_rate, set_momentum_of_one, freeze, add_hook],
    ids=lambda c: c.__name__,
)
def test_settings_that_are_changed_later(some_ranks, change, options):
    for before, after, error in some_ranks(change_on_rank_1, change, 2, options):
        assert CHANGES[change] in error
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value)


def test_hooks_of_the_user_may_be_on_one_rank(some_ranks):
    def run(comm):
        model, optimizer = make(comm)
        seen = []
        if comm.rank == 1:
            optimizer.add_hook(lambda opt: seen.append(opt.t), name="look")
        for x, t in zip(X, T):
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        return parameters(model), seen

    results = some_ranks(run)
    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    check([params for params, _ in results], parameters(model))
    assert [seen for _, seen in results][:2] == [[], [0, 1, 2]]


def test_ranks_that_have_joined_take_over_the_rates_of_the_others(some_ranks):
    """A rank without more data has no extensions that change its rate."""

    def run(comm):
        model, optimizer = make(comm)
        steps = 1 if comm.rank == 0 else 3
        for step in range(steps):
            if step == 1:
                optimizer.lr = 0.025
            if step == 2:
                model.layers[1].disable_update()
            x, t = X[step], T[step]
            if step == 0:
                x, t = own_samples(comm, x), own_samples(comm, t)
            elif comm.rank > 1:
                x, t = x[:0], t[:0]
            optimizer.update(model, x, t)
        optimizer.join()
        return parameters(model), optimizer.lr

    results = some_ranks(run)
    model, optimizer = make()
    optimizer.update(model, X[0], T[0])
    optimizer.lr = 0.025
    optimizer.update(model, X[1], T[1])
    model.layers[1].disable_update()
    optimizer.update(model, X[2], T[2])
    check([params for params, _ in results], parameters(model))
    assert {rate for _, rate in results} == {0.025}


def test_debug_mode_names_arrays_that_differ(some_ranks):
    def run(comm):
        # Ranks that are threads have a configuration each.
        with renga.using_config("debug", True):
            model, optimizer = make(comm, double_buffering=True)
            for _ in range(11):
                if optimizer.t == 4 and comm.rank == 1:
                    model.layers[2].b.array[0] += 1
                optimizer.update(model, X[0], T[0])

    with pytest.raises(ValueError, match="/layers/2/b of rank 1 differs"):
        some_ranks(run)


def test_fingerprints_are_the_same_in_all_processes():
    """Hashes of texts and of None differ between processes, those of numbers do not."""
    model, optimizer = make()
    optimizer.add_hook(optimizer_hooks.GradientClipping(0.5))
    model.layers[0].W.update_rule = None
    optimizer.hyperparam.name, optimizer.hyperparam.rest = "a name", None
    first = fingerprint_of(optimizer, model.params())
    assert first == fingerprint_of(optimizer, model.params())
    assert -(2**63) <= first < 2**63
    optimizer.hyperparam.name = "another one"
    assert first == fingerprint_of(optimizer, model.params())
    optimizer.lr = 0.2
    assert first != fingerprint_of(optimizer, model.params())
