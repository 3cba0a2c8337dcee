"""What the caller changes between updates, against the same program in one process."""

import io

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_communicator
from renga.distributed.asynchronous import (
    create_elastic_averaging_optimizer,
    create_gossip_optimizer,
    create_hogwild_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import SGD, Adam, MomentumSGD, NesterovAG
from renga.serializers import load_npz, save_npz
from tests.parallel.asynchronous import programs

HOOKED_BY_NORM = {programs.clip_later, programs.lars_later}
HOOKS = {*HOOKED_BY_NORM, programs.decay_later, programs.decay_changes}


def check(program, wrap, ranks, make=MomentumSGD, **options):
    expected = programs.train(program, make=make)
    results = local.run(
        lambda comm: programs.train(program, comm, make, wrap, seed=comm.rank),
        ranks=ranks,
        **options,
    )
    for found in results:
        programs.assert_equal_files(found, expected)
        for name, x in found[0].items():
            assert x.tobytes() == results[0][0][name].tobytes(), name


@pytest.mark.parametrize("make", [MomentumSGD, Adam])
@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda p: p.__name__)
def test_servers_without_staleness(program, make):
    if make is Adam and program in (programs.own_settings, programs.rates):
        pytest.skip("Adam's rate has another name")
    check(program, lambda opt, comm: create_server_optimizer(opt, comm, 0), 2, make)


@pytest.mark.parametrize(
    "program",
    [p for p in programs.PROGRAMS if p is not programs.decay_changes],
    ids=lambda p: p.__name__,
)
def test_a_server_in_shared_memory_of_one_worker(program):
    """It is never stale, unless a hook of the caller's makes it send messages."""
    check(program, lambda opt, comm: create_server_optimizer(opt, comm, 3), 1)


@pytest.mark.parametrize(
    "program",
    [p for p in programs.PROGRAMS if p not in HOOKED_BY_NORM],
    ids=lambda p: p.__name__,
)
def test_local_sgd_with_an_average_in_every_update(program):
    """Hooks that see norms see those of each rank's gradients."""
    expected = programs.train(program)
    results = local.run(
        lambda comm: programs.train(
            program,
            comm,
            wrap=lambda opt, comm: create_local_sgd_optimizer(opt, comm, 1),
            seed=comm.rank,
        ),
        ranks=2,
    )
    for found in results:
        programs.assert_equal_files(found[:1], expected[:1])


ALONE = {
    "elastic": lambda opt, comm: create_elastic_averaging_optimizer(opt, comm, 9),
    "dpsgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "dpsgd"),
    "sgp": lambda opt, comm: create_gossip_optimizer(opt, comm, "sgp"),
    "adpsgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "adpsgd"),
    "gosgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "gosgd"),
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda p: p.__name__)
def test_a_rank_alone_is_its_optimizer(program, name):
    check(program, ALONE[name], 1)


@pytest.mark.parametrize(
    "program",
    [p for p in programs.PROGRAMS if p not in (*HOOKS, programs.own_settings)],
    ids=lambda p: p.__name__,
)
def test_hogwild_of_one_rank(program):
    check(program, create_hogwild_optimizer, 1, SGD)


@pytest.mark.parametrize(
    "program, shards, refused",
    [(programs.clip_later, 2, True), (programs.lars_later, 1, False)],
    ids=["clipping, two shards", "norms of parameters, one shard"],
)
def test_what_servers_cannot_have_is_refused_before_anything_changes(
    program, shards, refused
):
    """Of a division that the caller has asked for."""
    with programs.float64():
        model = programs.Net()
    comm = create_communicator("local")
    served = create_server_optimizer(SGD(0.1).setup(model), comm, 3, shards=shards)
    x, t = programs.data(0)
    with programs.float64():
        served.update(model.loss, x, t)
        before = programs.saved(model)
        for step in (2, 3):
            program(step, model, served)
        if refused:
            with pytest.raises(ValueError, match="one shard for the hook GradientClip"):
                served.update(model.loss, x, t)
            for name, array in programs.saved(model).items():
                assert array.tobytes() == before[name].tobytes()
            served.remove_hook("GradientClipping")
        served.update(model.loss, x, t)
        served.join()
    assert served.t == 2


def test_a_hook_that_cannot_be_pickled_is_added_before_the_first_update():
    """Servers then have their own; later they would not get it."""

    def act(comm):
        with programs.float64():
            model = programs.Net()
        optimizer = MomentumSGD(0.1).setup(model)
        seen = []
        optimizer.add_hook(lambda opt: seen.append(opt.t), "see")
        served = create_server_optimizer(optimizer, comm, 0)
        x, t = programs.data(0)
        with programs.float64():
            served.update(model.loss, x, t)
            served.add_hook(lambda opt: seen.append(-1), "late")
            before = programs.saved(model)
            with pytest.raises(TypeError, match="can be pickled, .* got 'late'"):
                served.update(model.loss, x, t)
            for name, array in programs.saved(model).items():
                assert array.tobytes() == before[name].tobytes()
            served.remove_hook("late")
            served.update(model.loss, x, t)
        served.join()
        return seen

    # All parameters are in the shard of the first rank.
    assert local.run(act, ranks=2) == [[0, 1], []]


@pytest.mark.parametrize("frozen", ["a", "b"])
@pytest.mark.parametrize("outer", [None, 0.5])
def test_a_frozen_parameter_with_the_array_of_a_trained_one(frozen, outer):
    """An average after each update with SGD is an update by the mean gradient."""
    x = np.random.RandomState(2).normal(0, 1, (6, 4))

    def made():
        with renga.using_config("dtype", np.float64):
            link = L.Linear(4, 4, initialW=np.eye(4) / 2)
            chain = renga.Chain(a=link, b=link.copy("share"))
        return chain

    def train(model, optimizer, x):
        optimizer.setup(model)
        model[frozen].disable_update()
        for _ in range(4):
            optimizer.update(lambda x: F.mean(model.b(F.tanh(model.a(x))) ** 2), x)
        return model.a.W.array.copy(), model.b.W.array.copy()

    def run(comm):
        rule = None if outer is None else renga.optimizers.SGD(outer)
        optimizer = create_local_sgd_optimizer(
            renga.optimizers.SGD(0.2), comm, every=1, outer=rule
        )
        return train(made(), optimizer, x[comm.rank :: 2])

    expected = train(made(), renga.optimizers.SGD(0.2 * (outer or 1.0)), x)
    for found in local.run(run, ranks=2):
        for own, other in zip(found, expected):
            np.testing.assert_allclose(own, other, rtol=0, atol=1e-12)


TARGETS = np.random.RandomState(3).normal(0, 1, (2, 2, 5))  # by rank and parameter
OUTER = dict(lr=0.7, momentum=0.9)


class Quadratics(renga.Chain):
    """Half the squared distance of each parameter from its target."""

    def __init__(self, shares):
        super().__init__()
        with self.init_scope():
            self.a = renga.Parameter(np.arange(5.0))
            self.b = renga.Parameter(np.arange(5.0))
        if shares:
            self.b.array = self.a.array

    def forward(self, targets):
        a, b = (p - t for p, t in zip((self.a, self.b), targets))
        return (F.sum(a * a) + F.sum(b * b)) / 2


def elastic(comm):
    return create_elastic_averaging_optimizer(SGD(0.2), comm, 2)


def with_momentum(comm):
    outer = NesterovAG(**OUTER)
    return create_local_sgd_optimizer(SGD(0.2), comm, every=2, outer=outer)


def pull(w, begin, v):
    """The elastic average of two ranks with beta 0.9: w by rank, and the center."""
    pulls = 0.45 * (w - begin)
    w -= pulls
    begin += pulls.sum(axis=0)


def step_outside(w, begin, v):
    """Nesterov's momentum on the ranks' mean move, which all ranks get."""
    move = begin - w.mean(axis=0)
    v[...] = OUTER["momentum"] * v - OUTER["lr"] * move
    begin += OUTER["momentum"] ** 2 * v
    begin -= (1 + OUTER["momentum"]) * OUTER["lr"] * move
    w[...] = begin


@pytest.mark.parametrize("frozen", ["a", "b"])
@pytest.mark.parametrize("updates", [range(0, 8), range(2, 4), range(3, 6)])
def test_momentum_of_an_array_of_which_one_parameter_is_frozen(frozen, updates):
    """The array is trained as long as one of its parameters is."""

    def run(comm):
        model = Quadratics(shares=True)
        optimizer = with_momentum(comm).setup(model)
        for step in range(8):
            getattr(model, frozen).update_rule.enabled = step not in updates
            optimizer.update(lambda: model(TARGETS[comm.rank]))
        return model.a.array, model.b.array

    w, begin, v = np.tile(np.arange(5.0), (2, 1)), np.arange(5.0), np.zeros(5)
    for step in range(8):
        gradients = {"a": w - TARGETS[:, 0], "b": w - TARGETS[:, 1]}
        if step in updates:
            del gradients[frozen]
        w -= 0.2 * sum(gradients.values())
        if step % 2:
            step_outside(w, begin, v)
    for rank, found in enumerate(local.run(run, ranks=2)):
        for x in found:
            np.testing.assert_allclose(x, w[rank], rtol=0, atol=1e-12)


@pytest.mark.parametrize("loads_model_first", [True, False])
@pytest.mark.parametrize("saved", [2, 3])
@pytest.mark.parametrize(
    "create, combine", [(elastic, pull), (with_momentum, step_outside)]
)
def test_some_elements_changed_after_loading(create, combine, saved, loads_model_first):
    """They count for the center or the last average, too, and no others do."""

    def run(comm):
        files = {}
        for steps in (range(saved), range(saved, 8)):
            model = Quadratics(shares=False)
            both = {"model": model, "optimizer": create(comm).setup(model)}
            for name in files if loads_model_first else reversed(files):
                load_npz(io.BytesIO(files[name]), both[name])
            if files:
                model.a.array[1:3] = 7
            for _ in steps:
                both["optimizer"].update(model, TARGETS[comm.rank])
            for name in both:
                file = io.BytesIO()
                save_npz(file, both[name])
                files[name] = file.getvalue()
        return model.a.array, model.b.array

    def expected(which):
        w, begin, v = np.tile(np.arange(5.0), (2, 1)), np.arange(5.0), np.zeros(5)
        for step in range(8):
            if step == saved and which == 0:
                w[:, 1:3] = begin[1:3] = 7
            w -= 0.2 * (w - TARGETS[:, which])
            if step % 2:
                combine(w, begin, v)
        return w

    for rank, found in enumerate(local.run(run, ranks=2)):
        for which, x in enumerate(found):
            np.testing.assert_allclose(x, expected(which)[rank], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "create, combine", [(elastic, pull), (with_momentum, step_outside)]
)
def test_loading_on_the_way_goes_back(create, combine):
    """The center or the last average is that of the file, and so is the momentum."""

    def run(comm):
        model = Quadratics(shares=False)
        optimizer = create(comm).setup(model)
        files = [io.BytesIO(), io.BytesIO()]
        for step in range(8):
            optimizer.update(model, TARGETS[comm.rank])
            for file, saved in zip(files, (model, optimizer)):
                if step == 2:
                    save_npz(file, saved)
                elif step == 5:
                    file.seek(0)
                    load_npz(file, saved)
        return model.a.array

    w, begin, v = np.tile(np.arange(5.0), (2, 1)), np.arange(5.0), np.zeros(5)
    for step in range(5):
        w -= 0.2 * (w - TARGETS[:, 0])
        if step % 2:
            combine(w, begin, v)
    for rank, found in enumerate(local.run(run, ranks=2)):
        np.testing.assert_allclose(found, w[rank], rtol=0, atol=1e-12)
