"""Asynchronous optimizers under a Trainer: reports, evaluation, snapshots."""

import math

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.communicators import local
from renga.distributed import create_multi_node_evaluator, scatter_dataset
from renga.distributed.asynchronous import (
    CommunicationReport,
    Complete,
    StalenessPlot,
    create_average_evaluator,
    create_elastic_averaging_optimizer,
    create_gossip_optimizer,
    create_hogwild_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import SGD
from renga.training import extensions

MAKE = {
    "servers": lambda opt, comm: create_server_optimizer(opt, comm, 2),
    "A-SGD": lambda opt, comm: create_server_optimizer(opt, comm, math.inf),
    "local": lambda opt, comm: create_local_sgd_optimizer(
        opt, comm, 4, begin=(1, "epoch")
    ),
    "elastic": lambda opt, comm: create_elastic_averaging_optimizer(opt, comm, 2),
    "dpsgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "dpsgd", Complete()),
    "sgp": lambda opt, comm: create_gossip_optimizer(opt, comm, "sgp"),
    "adpsgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "adpsgd"),
    "gosgd": lambda opt, comm: create_gossip_optimizer(
        opt, comm, "gosgd", probability=0.5
    ),
    "hogwild": create_hogwild_optimizer,
}


def blobs(samples=240):
    """Two classes around two points."""
    random = np.random.RandomState(1)
    t = (np.arange(samples) % 2).astype("int32")
    x = random.normal(size=(samples, 4)) + 1.5 * (2 * t[:, None] - 1)
    return list(zip(x.astype("float32"), t))


def trainer_of(comm, name, out, epochs):
    model = L.Classifier(
        renga.Sequential(
            L.Linear(4, 8), F.tanh, L.BatchNormalization(8), L.Linear(8, 2)
        )
    )
    optimizer = MAKE[name](SGD(0.05).setup(model), comm)
    data = scatter_dataset(blobs(), comm)
    iterator = renga.iterators.SerialIterator(data, 10)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (epochs, "epoch"), out=str(out))
    test = renga.iterators.SerialIterator(data, 40, repeat=False, shuffle=False)
    evaluator = create_multi_node_evaluator(extensions.Evaluator(test, model), comm)
    trainer.extend(create_average_evaluator(evaluator, optimizer))
    consensus = name not in ("servers", "A-SGD")
    trainer.extend(CommunicationReport(optimizer, consensus))
    return trainer, optimizer


@pytest.mark.parametrize("name", MAKE)
def test_a_trainer_reports_evaluates_and_learns(name, tmp_path):
    def act(comm):
        trainer, optimizer = trainer_of(comm, name, tmp_path / str(comm.rank), 4)
        log = extensions.LogReport(trigger=(1, "epoch"))
        trainer.extend(log)
        trainer.run()
        optimizer.join()
        return log.log

    # Ranks that share memory average without messages.
    for log in local.run(act, ranks=2, shared_memory=name == "hogwild"):
        assert len(log) == 4
        last = log[-1]
        assert last["validation/main/accuracy"] > 0.95
        assert last["validation/main/loss"] < log[0]["validation/main/loss"]
        if name == "hogwild":
            assert last["consensus_distance"] == 0
        else:
            assert last["bytes"] > log[0]["bytes"] > 0
        if name == "servers":
            assert last["staleness_max"] <= 2
            assert 0 <= last["staleness"] <= last["staleness_max"]
            assert last["version_lag"] >= 0 and last["workers_left"] == 2


def test_plots_of_staleness_and_of_the_distance_to_the_mean(tmp_path):
    Figure = pytest.importorskip("matplotlib.figure").Figure

    def act(comm):
        out = tmp_path / str(comm.rank)
        trainer, optimizer = trainer_of(comm, "servers", out, 2)
        plot = StalenessPlot(optimizer, "staleness.svg")
        trainer.extend(plot)
        trainer.run()
        axes = Figure().add_subplot()
        plot.draw(axes)
        bars = {round(b.get_center()[0]): b.get_height() for b in axes.patches}
        assert bars == optimizer.staleness_histogram()
        assert sum(bars.values()) == trainer.updater.iteration
        optimizer.join()
        assert "staleness in updates" in (out / "staleness.svg").read_text()

        trainer, optimizer = trainer_of(comm, "elastic", out, 2)
        report = extensions.PlotReport("consensus_distance", filename="distance.png")
        trainer.extend(report)
        log = extensions.LogReport(["consensus_distance"])
        trainer.extend(log)
        trainer.run()
        assert ["consensus_distance" in entry for entry in log.log] == [True, True]
        return (out / "distance.png").stat().st_size

    assert min(local.run(act, ranks=2)) > 0


def resumed(comm, name, tmp_path):
    """Trains for three epochs, and again from what each rank saved after two."""
    whole, optimizer = trainer_of(comm, name, tmp_path / "whole", 3)
    folder = tmp_path / str(comm.rank)
    folder.mkdir()
    whole.extend(
        lambda trainer: renga.serializers.save_npz(folder / "saved", trainer),
        trigger=(2, "epoch"),
        name="save",
        priority=-100,  # after the log, as snapshots are
    )
    logs = [extensions.LogReport(trigger=(1, "epoch")) for _ in range(2)]
    whole.extend(logs[0], "log")
    whole.run()
    optimizer.join()
    second, other = trainer_of(comm, name, tmp_path / "resumed", 3)
    second.extend(logs[1], "log")
    renga.serializers.load_npz(folder / "saved", second, strict=False)
    assert second.updater.epoch == 2 and other.t == second.updater.iteration
    second.run()
    other.join()
    assert other.t == optimizer.t == whole.updater.iteration
    return optimizer, other, *(log.log for log in logs)


@pytest.mark.parametrize("name", ["local", "elastic", "dpsgd", "sgp"])
def test_resumed_training_has_the_same_bits(name, tmp_path):
    def act(comm):
        return [
            [p.array.tobytes() for _, p in sorted(o.target.namedparams())]
            for o in resumed(comm, name, tmp_path)[:2]
        ]

    for expected, got in local.run(act, ranks=2):
        assert got == expected


@pytest.mark.parametrize(
    "name, shares_memory",
    [
        ("servers", False),
        ("servers", True),
        ("A-SGD", False),
        ("A-SGD", True),
        ("adpsgd", False),
        ("gosgd", False),
        ("hogwild", True),
    ],
)
def test_training_without_a_barrier_resumes_where_it_was(name, shares_memory, tmp_path):
    """The order of messages is another, so bits are too."""

    def act(comm):
        *_, whole, again = resumed(comm, name, tmp_path)
        return [[row["validation/main/loss"] for row in log] for log in (whole, again)]

    for whole, again in local.run(act, ranks=2, shared_memory=shares_memory):
        first, second, third = again
        assert [first, second] == whole[:2]
        assert third < (first + second) / 2  # who begins anew has the first loss again
