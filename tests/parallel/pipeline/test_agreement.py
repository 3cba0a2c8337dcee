"""Calls that do not go together are errors on every rank, before anything changes."""

import io

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.communicators import local
from renga.serializers import load_npz, save_npz
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    pipeline,
    whole,
)

DATA = batches()


def check_refused(several_ranks, act, message):
    """Trains a batch, then every rank raises in ``act``; nothing changes."""

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)
        model.train_batch(optimizer, model.model, DATA[0])
        before = whole(model)
        with pytest.raises(RuntimeError, match=message):
            act(comm, model, optimizer)
        optimizer.lr = 0.1
        assert_close(whole(model), before)
        model.train_batch(optimizer, model.model, DATA[1])
        return True

    assert all(several_ranks(run))


def test_rank_0_alone_saves(several_ranks):
    def act(comm, model, optimizer):
        if comm.rank == 0:
            save_npz(io.BytesIO(), model)
        else:
            model.train_batch(optimizer, model.model, DATA[1])

    message = "gathered_parameters on rank 0 and train_batch on rank 1"
    check_refused(several_ranks, act, message)


def test_rank_0_alone_changes_the_rate(some_ranks):
    def act(comm, model, optimizer):
        if comm.rank == 0:
            optimizer.lr = 0.5
        model.train_batch(optimizer, model.model, DATA[1])

    check_refused(some_ranks, act, r"\('lr', 0.5\).*on rank 0 and.*\('lr', 0.1\)")


def test_ranks_have_other_batches(several_ranks):
    def act(comm, model, optimizer):
        batch = tuple(x[: 5 + (comm.rank == 0)] for x in DATA[1])
        model.train_batch(optimizer, model.model, batch)

    check_refused(several_ranks, act, r"\(6, 6\).*on rank 0 and.*\(5, 6\)")


def test_gradients_inside_of_a_loss(some_ranks):
    def act(comm, model, optimizer):
        def penalized(x, t):
            x = renga.Variable(x)
            loss = model.model(x, t)
            (gx,) = renga.grad([loss], [x], enable_double_backprop=True)
            return loss + F.sum(gx**2)

        model.train_batch(optimizer, penalized, DATA[1])

    check_refused(some_ranks, act, "grad: expected a graph on one rank")


@pytest.mark.parametrize(
    "backward", [lambda y: y.backward(), lambda y: renga.backward([y], [y])]
)
def test_a_backward_pass_inside_of_a_loss(some_ranks, backward):
    """As that of an adversarial example, which has no gradient on any rank."""

    def act(comm, model, optimizer):
        def adversarial(x, t):
            x = renga.Variable(x)
            backward(model.model(x, t))
            return model.model(x + 0.1 * F.sign(x.grad_var), t)

        model.train_batch(optimizer, adversarial, DATA[1])

    check_refused(some_ranks, act, "backward: expected a graph on one rank")


def test_a_backward_pass_of_another_model_inside_of_a_loss(some_ranks):
    """Every rank has the whole graph of a model that is no part of the pipeline."""
    x, t = DATA[1]
    serial = Layers()

    def loss(model):
        def adversarial(x, t):
            x = renga.Variable(x)
            other = Layers(seed=1)
            other(x, t).backward()
            return model(x.array + 0.1 * np.sign(x.grad), t)

        return adversarial

    optimizer = renga.optimizers.MomentumSGD(0.1).setup(serial)
    optimizer.update(loss(serial), x, t)
    expected = {path: param.array for path, param in serial.namedparams()}

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)
        model.train_batch(optimizer, loss(model.model), (x, t))
        return whole(model)

    for found in some_ranks(run):
        assert_close(found, expected)


def test_a_backward_pass_from_a_direct_call(some_ranks):
    """As of a serial program whose model has become a pipeline."""

    def act(comm, model, optimizer):
        optimizer.update(model, *DATA[1])

    check_refused(some_ranks, act, r"backward pass by train_batch\(\)")


@pytest.mark.parametrize("wrap", [lambda f, x: f(x), F.forget], ids=["", "forget"])
def test_a_cut_between_the_calls_of_a_normalization(wrap):
    """Whose running statistics one stage has to have."""

    class Twice(Layers):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.norm = renga.links.BatchNormalization(8, dtype=np.float64)

        def predict(self, x):
            h = F.tanh(self.b(self.norm(self.a(x))))
            return self.d(wrap(self.norm, self.c(h)))

    def run(comm):
        with pytest.raises(ValueError, match="no cut between the calls of /norm"):
            pipeline(Twice, comm, DATA, stages=["/c"])
        model, _ = pipeline(Twice, comm, DATA)
        return model.partition.stages[1].links[0]

    starts = renga.communicators.local.run(run, ranks=2)
    assert set(starts) <= {"/norm", "/d"}


@pytest.mark.parametrize("what", ["frozen", "rate", "hook"])
def test_rank_0_alone_sets_a_parameter_of_another_stage(some_ranks, what):
    def act(comm, model, optimizer):
        if comm.rank == 0:
            rule = model.model.d.W.update_rule
            if what == "frozen":
                rule.enabled = False
            elif what == "rate":
                rule.hyperparam.lr = 0.3
            else:
                rule.add_hook(renga.optimizer_hooks.WeightDecay(0.1))
        try:
            model.train_batch(optimizer, model.model, DATA[1])
        finally:
            rule = optimizer.create_update_rule()
            for param in model.model.params():
                if param.is_meta:
                    param.update_rule = rule

    message = r"rule of W \(5, 8\) to be set on rank \d.* as on rank 0, got nothing"
    check_refused(some_ranks, act, message)


def test_ranks_that_set_only_their_own_parameters(some_ranks):
    """As a loop over ``model.params()`` does."""

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA)
        for param in model.params():
            param.update_rule.hyperparam.lr = 0.0
        model.model.d.disable_update()
        model.train_batch(optimizer, model.model, DATA[0])
        for param in model.params():
            param.update_rule.enabled = True
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
        assert_close(whole(model), whole(pipeline(Layers, comm, DATA)[0]))
        return True

    assert all(some_ranks(run))


FILE = io.BytesIO()
save_npz(FILE, Layers(seed=3))


def rank_0_loads(comm, model, optimizer):
    if comm.rank == 0:
        load_npz(io.BytesIO(FILE.getvalue()), model)
    else:
        model.train_batch(optimizer, model.model, DATA[2])


def rank_0_saves(comm, model, optimizer):
    if comm.rank == 0:
        save_npz(io.BytesIO(), model)
    else:
        model.train_batch(optimizer, model.model, DATA[2])


def rank_1_evaluates(comm, model, optimizer):
    if comm.rank == 1:
        model(*DATA[2])
    else:
        model.train_batch(optimizer, model.model, DATA[2])
        model.train_batch(optimizer, model.model, DATA[2])


@pytest.mark.parametrize(
    ("act", "call"),
    [
        (rank_0_loads, r"what completes them \(a load.* on rank 0"),
        (rank_0_saves, r"what completes them \(a load.* on rank 0"),
        (rank_1_evaluates, "the model on rank 1 and train_batch on another"),
    ],
)
def test_one_rank_leaves_a_stream(act, call):
    """No rank waits for the others until a time-out."""

    def run(comm):
        model, optimizer = pipeline(
            Layers, comm, DATA, schedule="pipedream", weights="stash"
        )
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
        act(comm, model, optimizer)

    with pytest.raises(RuntimeError, match=f"while batches are on their way.*{call}"):
        local.run(run, ranks=2)
