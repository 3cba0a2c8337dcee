"""Batches that raise on one stage, which ends the job, or on all, which may go on."""

import functools
import threading

import pytest

import renga
from renga import training
from renga.communicators import local
from renga.parallel.pipeline import agreement
from renga.pipeline import PipelineUpdater
from renga.training import extensions
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    pipeline,
    serial,
    whole,
)

BROKEN = 9  # a label
DATA = batches()
DATA[1][1][-1] = BROKEN  # in the last micro-batch
STREAM = {"schedule": "pipedream", "weights": "stash"}


def loss(model):
    def lossfun(x, t):
        if (t == BROKEN).any():
            raise KeyError("on purpose")
        return model(x, t)

    return lossfun


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared memory", "messages"])
def test_training_goes_on_after_a_batch_that_all_ranks_refuse(schedule, shared):
    def run(comm):
        options = {"schedule": schedule, "reduce": "mean"}
        model, optimizer = pipeline(Layers, comm, DATA, **options)
        program = loss(model.model)
        model.train_batch(optimizer, program, DATA[0])
        with pytest.raises(KeyError, match="on purpose"):
            model.train_batch(optimizer, program, DATA[1])
        model.train_batch(optimizer, program, DATA[2])
        return whole(model)

    for found in local.run(run, ranks=2, shared_memory=shared):
        assert_close(found, serial(Layers, [DATA[0], DATA[2]], 3))


def test_batches_that_were_on_their_way_are_lost():
    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, reduce="mean", **STREAM)
        program = loss(model.model)
        model.train_batch(optimizer, program, DATA[0])
        with pytest.raises(KeyError, match="on purpose"):
            model.train_batch(optimizer, program, DATA[1])
        for act in (
            lambda: model.train_batch(optimizer, program, DATA[2]),
            lambda: whole(model),
        ):
            with pytest.raises(RuntimeError, match="lost by it, got KeyError"):
                act()

    local.run(run, ranks=2)


def test_batches_on_their_way_go_on_after_an_evaluation_that_all_ranks_refuse():
    def run(comm, fails):
        options = {"reduce": "mean", "stages": ["/c"], **STREAM}
        model, optimizer = pipeline(Layers, comm, DATA, **options)

        class Refusal(renga.LinkHook):
            def forward_preprocess(self, args):
                raise KeyError("on purpose")

        for step in range(4):
            model.train_batch(optimizer, model.model, DATA[0])
            if fails and step == 1:
                model.model.c.add_hook(Refusal(), "refusal")
                with pytest.raises(KeyError, match="on purpose"):
                    model(*DATA[0])
                model.model.c.delete_hook("refusal")
            if step == 2:
                model(*DATA[0])
        return whole(model)

    for found, expected in zip(*(local.run(run, x, ranks=2) for x in (True, False))):
        assert_close(found, expected)


@pytest.mark.parametrize("options", [{}, STREAM], ids=["1f1b", "pipedream"])
@pytest.mark.parametrize("failing", [0, 1])
def test_a_stage_that_fails_alone_ends_the_job(
    monkeypatch, tmp_path, capsys, options, failing
):
    """Also where what is left would be saved."""
    monkeypatch.setattr(agreement, "_SECONDS", 0.1)

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, reduce="mean", **options)
        data = [(x, t) for x, t in zip(*DATA[0])]
        iterator = renga.iterators.SerialIterator(data, 7)

        def fails(x, t):
            if updater.iteration == 1 and comm.rank == failing:
                raise KeyError("on one stage")
            return model.model(x, t)

        updater = PipelineUpdater(iterator, optimizer, loss_func=fails)
        trainer = training.Trainer(updater, (3, "iteration"), tmp_path)
        trainer.extend(extensions.snapshot(snapshot_on_error=True))
        trainer.run()

    with pytest.raises(KeyError, match="on one stage"):
        local.run(run, ranks=2)
    refusal = "lost by it" if options else "after a batch has failed on this one"
    assert refusal in capsys.readouterr().err


@pytest.mark.parametrize("options", [{}, STREAM], ids=["1f1b", "pipedream"])
@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("place", ["loss", "update", "evaluation"])
def test_a_loop_that_passes_over_an_error_of_one_rank_trains_no_more(
    monkeypatch, options, failing, place
):
    """Nor do ranks wait for each other, or take messages of other batches."""
    monkeypatch.setattr(agreement, "_SECONDS", 0.1)

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, reduce="mean", **options)
        step = 0

        def fail(at):
            if (step, comm.rank, at) == (1, failing, place):
                raise KeyError("on one stage")

        class Hook:
            name, timing, call_for_each_param = "Hook", "pre", True

            def __call__(self, rule, param):
                fail("update")

        def program(x, t):
            fail("loss")
            return model.model(x, t)

        class Layer(renga.LinkHook):
            def forward_preprocess(self, args):
                fail("evaluation")

        optimizer.add_hook(Hook())
        model.model.c.add_hook(Layer())
        outcomes = []
        for step in range(6):
            call = functools.partial(model.train_batch, optimizer, program, DATA[0])
            if place == "evaluation" and step == 1:
                call = functools.partial(model, *DATA[0])
            outcomes.append(outcome_of(call))
        assert outcomes[0] is None
        assert all(outcomes[3:])
        assert isinstance(outcomes[-1], agreement.LostBatches)
        finished.wait()
        raise EOFError  # ends what still waits in the background

    finished = threading.Barrier(3, timeout=30)
    with pytest.raises(EOFError):
        local.run(run, ranks=3)


def outcome_of(call):
    try:
        call()
    except Exception as error:
        return error
