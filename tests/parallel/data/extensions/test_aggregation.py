"""Extensions that make one value of all ranks'."""

import time

import numpy as np
import pytest

import renga
import renga.links as L
from renga import serializers
from renga.communicators import local
from renga.distributed import (
    create_multi_node_evaluator,
    extensions,
    scatter_dataset,
)
from renga.distributed.asynchronous import (
    CommunicationReport,
    create_average_evaluator,
    create_gossip_optimizer,
)
from renga.iterators import SerialIterator
from renga.optimizers import SGD
from renga.parallel.data.extensions import rounds


class Trainer:
    """What extensions see of one, at an iteration."""

    def __init__(self, iteration, **observation):
        self.observation = observation
        self.updater = self
        self.iteration = iteration
        self.epoch_detail = iteration / 2


def test_persistent_arrays_become_their_mean(ranks):
    def act(comm):
        model = renga.Sequential(L.BatchNormalization(3), L.BatchNormalization(2))
        model[1].add_persistent("count", np.array([comm.rank]))
        for link in model:
            link.avg_mean[...] = comm.rank + 1
            link.avg_var[...] = (comm.rank + 1) ** 2
        gamma = model[0].gamma.array
        gamma[...] = comm.rank
        extensions.AllreducePersistent(model, comm)()
        assert model[1].count == gamma[0] == comm.rank
        return [(link.avg_mean, link.avg_var) for link in model]

    results = ranks(act)
    numbers = np.arange(1, len(results) + 1)
    for pairs in results:
        for mean, var in pairs:
            np.testing.assert_allclose(mean, np.full(mean.shape, numbers.mean()))
            np.testing.assert_allclose(var, np.full(var.shape, (numbers**2).mean()))


def test_observations_since_the_last_time_are_averaged(some_ranks):
    def act(comm):
        aggregator = extensions.ObservationAggregator(
            comm, "loss", "loss of all", comm_trigger=(2, "iteration")
        )
        seen = []
        for iteration in range(1, 5):
            # A rank may have nothing to say at times.
            observed = {"loss": np.float32(iteration + 10 * comm.rank)}
            trainer = Trainer(iteration, **(observed if iteration != 3 else {}))
            aggregator(trainer)
            seen.append(trainer.observation.get("loss of all"))
        return seen

    results = some_ranks(act)
    middle = 10 * (len(results) - 1) / 2
    for seen in results:
        assert seen == [None, 1.5 + middle, None, 4 + middle]


def test_an_aggregator_of_ones_own(some_ranks):
    def act(comm):
        aggregator = extensions.ObservationAggregator(comm, "x", aggregator=list)
        trainer = Trainer(1, x=comm.rank)
        aggregator(trainer)

        def fail(gathered):
            raise ArithmeticError("too much")

        failing = extensions.ObservationAggregator(comm, "x", aggregator=fail)
        with pytest.raises(ArithmeticError, match="too much"):
            failing(Trainer(1, x=0))
        return trainer.observation["x"]

    results = some_ranks(act)
    assert results == [[[r] for r in range(len(results))]] * len(results)


def test_an_unfinished_aggregation_is_resumed(some_ranks):
    def act(comm):
        def new():
            return extensions.ObservationAggregator(
                comm, "x", comm_trigger=(2, "iteration")
            )

        before, after = new(), new()
        before(Trainer(1, x=comm.rank))
        state = serializers.DictionarySerializer()
        before.serialize(state)
        after.serialize(serializers.NpzDeserializer(state.target))
        trainer = Trainer(2, x=comm.rank + 1)
        after(trainer)
        return trainer.observation["x"]

    results = some_ranks(act)
    assert results == [len(results) / 2] * len(results)


def test_an_unfinished_aggregation_of_arrays_is_resumed(some_ranks):
    def act(comm):
        def new():
            return extensions.ObservationAggregator(
                comm, "x", comm_trigger=(2, "iteration"), aggregator=np.sum
            )

        before, after = new(), new()
        before(Trainer(1, x=np.array([comm.rank, 1])))
        state = serializers.DictionarySerializer()
        before.serialize(state)
        after.serialize(serializers.NpzDeserializer(state.target))
        trainer = Trainer(2, x=np.array([2, 3]))
        after(trainer)
        return trainer.observation["x"]

    results = some_ranks(act)
    size = len(results)
    assert results == [6 * size + size * (size - 1) // 2] * size


def test_a_rank_whose_training_has_ended_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(rounds, "_SECONDS", 0.01)

    def act(comm):
        aggregator = extensions.ObservationAggregator(comm, "x")
        aggregator(Trainer(1, x=1.0))
        if comm.rank > 0:
            aggregator.finalize()
            comm.recv_obj(0)
        aggregator(Trainer(2, x=1.0))

    expected = "got 2 times on rank 0 and 1 times on rank [12], where it has ended"
    with pytest.raises(RuntimeError, match=expected):
        local.run(act, ranks=3)


def test_early_stopping_by_the_mean_of_all_ranks(some_ranks):
    # One rank's loss falls, the others' rise: together they do not get better.
    def act(comm):
        trigger = extensions.MultiNodeEarlyStoppingTrigger(
            comm,
            check_trigger=(1, "iteration"),
            patience=2,
            max_trigger=(9, "iteration"),
        )
        assert trigger.get_training_length() == (9, "iteration")
        slope = -1.0 if comm.rank == 0 else 2.0
        for iteration in range(1, 10):
            if trigger(Trainer(iteration, **{"main/loss": 5 + slope * iteration})):
                return iteration
        return None

    results = some_ranks(act)
    assert results == [3] * len(results)


class Longest(extensions.GenericMultiNodeEvaluator):
    def calc_local(self, x):
        assert not renga.config.train and not renga.config.enable_backprop
        return x.tolist()

    def aggregate(self, results):
        self.results = results
        return {"longest": max(map(len, results))}


def test_results_of_all_batches_reach_the_root(some_ranks):
    def act(comm):
        root = comm.size - 1
        data = [np.float32(10 * comm.rank + i) for i in range(comm.rank + 2)]
        model = L.Linear(1, 1)
        hooked = []
        evaluator = Longest(
            comm,
            SerialIterator(data, 2, repeat=False, shuffle=False),
            model,
            root=root,
            progress_hook=hooked.append,
        )
        evaluator.name = "test"
        observation = {}
        for _ in range(2):  # it starts over each time
            with renga.Reporter().scope(observation):
                result = evaluator(None)
        assert len(hooked) == (
            2 * len(range(0, len(data), 2)) if comm.rank == root else 0
        )
        return result, observation, getattr(evaluator, "results", None)

    results = some_ranks(act)
    size = len(results)
    expected = [
        [float(10 * r + i) for i in range(begin, min(begin + 2, r + 2))]
        for begin in range(0, size + 1, 2)
        for r in range(size)
        if begin < r + 2
    ]
    *others, (result, observation, seen) = results
    assert others == [(None, {}, None)] * (size - 1)
    assert result == {"longest": 2} and observation == {"test/main/longest": 2}
    assert seen == expected


def test_examples_that_overlap_are_in_one_result(some_ranks):
    def act(comm):
        shard = scatter_dataset(np.arange(11, dtype="f"), comm)
        iterator = SerialIterator(shard, 2, repeat=False, shuffle=False)
        evaluator = Longest(comm, iterator, L.Linear(1, 1))
        evaluator(None)
        return sum(evaluator.results, []) if comm.rank == 0 else list(range(11))

    for found in some_ranks(act):
        assert sorted(found) == list(range(11))


KINDS = ["generic", "mean", "average", "consensus"]


def evaluator_of(kind, comm):
    iterator = SerialIterator(np.ones((2, 1), "f"), 2, repeat=False)
    if kind == "generic":
        return Longest(comm, iterator, L.Linear(1, 1))
    model = L.Linear(1, 1)
    evaluator = renga.training.extensions.Evaluator(iterator, model)
    if kind == "mean":
        return create_multi_node_evaluator(evaluator, comm)
    optimizer = create_gossip_optimizer(SGD().setup(model), comm, "gosgd")
    if kind == "consensus":
        return CommunicationReport(optimizer, consensus=True)
    return create_average_evaluator(evaluator, optimizer)


@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluator_does_not_wait_for_a_rank_whose_training_has_ended(
    monkeypatch, kind
):
    monkeypatch.setattr(rounds, "_SECONDS", 0.01)

    def act(comm):
        evaluator = evaluator_of(kind, comm)
        evaluator(Trainer(1))
        if comm.rank == 1:
            evaluator.finalize()
            comm.recv_obj(0)
        evaluator(Trainer(1))

    expected = "got [23] times on rank 0 and [12] times on rank 1, where it has ended"
    with pytest.raises(RuntimeError, match=expected):
        local.run(act, ranks=2)


@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluator_waits_for_slow_ranks_after_training(monkeypatch, kind):
    monkeypatch.setattr(rounds, "_SECONDS", 0.01)

    def act(comm):
        evaluator = evaluator_of(kind, comm)
        evaluator(Trainer(1))
        evaluator.finalize()
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.1)
        evaluator(Trainer(1))

    local.run(act, ranks=2)
