"""Pipelines against a single process."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed.links import MultiNodeChainList
from renga.optimizers import MomentumSGD
from renga.pipeline import Pipeline
from tests.parallel.pipeline import networks, oracles

SCHEDULES = ["gpipe", "1f1b", "interleaved"]


def trained(comm, network, batches, m, **options):
    """This rank's parameters after training by a pipeline."""
    parts = [x[: -(-len(x) // m)] for x in batches[0]]
    model = Pipeline(network(), comm, *parts, micro_batches=m, **options)
    optimizer = MomentumSGD(0.05).setup(model)
    for batch in batches:
        model.train_batch(optimizer, model.model, batch)
    model.drain()
    return oracles.arrays(model)


def merged(results):
    """The ranks' parameters together; no two ranks have the same one."""
    whole = {}
    for result in results:
        assert not set(whole) & set(result)
        whole.update(result)
    return whole


def assert_same(found, expected, exact=True):
    assert sorted(found) == sorted(expected)
    for path, x in found.items():
        if exact:
            np.testing.assert_array_equal(x, expected[path], err_msg=path)
        else:
            np.testing.assert_allclose(x, expected[path], 1e-4, 1e-6, err_msg=path)


def check_accumulation(ranks, schedule, m, recompute):
    """Bit by bit, with micro-batches of different sizes too."""
    batches = networks.images(batches=2)
    expected = oracles.accumulated(networks.Residual(), MomentumSGD(0.05), batches, m)

    def run(comm):
        options = {"schedule": schedule, "recompute": recompute}
        return trained(comm, networks.Residual, batches, m, **options)

    assert_same(merged(ranks(run)), expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_equals_a_process_that_accumulates(ranks, schedule):
    check_accumulation(ranks, schedule, 3, "none")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "m,recompute",
    [
        (1, "none"),
        (8, "none"),
        (3, "all"),
        (3, "except_last"),
    ],
)
def test_other_numbers_of_micro_batches_and_recomputing(
    some_ranks, schedule, m, recompute
):
    check_accumulation(some_ranks, schedule, m, recompute)


def test_equals_a_process_without_micro_batches(ranks):
    batches = networks.images()
    expected = oracles.accumulated(networks.Residual(), MomentumSGD(0.05), batches, 1)
    found = ranks(lambda comm: trained(comm, networks.Residual, batches, 4))
    assert_same(merged(found), expected, exact=False)


@pytest.mark.parametrize("schedule", [*SCHEDULES, "pipedream"])
@pytest.mark.parametrize("m,recompute", [(1, "none"), (3, "none"), (3, "all")])
def test_running_statistics_of_whole_batches(some_ranks, schedule, m, recompute):
    """Those of a process without micro-batches, whose weights do not change."""
    batches = networks.images(batches=2)
    serial = networks.Statistics()
    for batch in batches:
        serial(*batch)
    expected = {}
    renga.serializers.DictionarySerializer(expected).save(serial)

    def run(comm):
        options = dict(schedule=schedule, recompute=recompute, deferred_batch_norm=True)
        parts = [x[: -(-len(x) // m)] for x in batches[0]]
        model = Pipeline(
            networks.Statistics(), comm, *parts, micro_batches=m, **options
        )
        optimizer = MomentumSGD(0.0).setup(model)
        for batch in batches:
            model.train_batch(optimizer, model.model, batch)
        found = {}
        with model.gathered_parameters():
            renga.serializers.DictionarySerializer(found).save(model.model)
        return found

    for found in some_ranks(run):
        assert_same(found, expected, exact=False)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_multi_node_chain_list(some_ranks, schedule):
    """Every rank adds two layers; rank 0 the first and the last ones."""
    batches = networks.vectors()

    def layer(i):
        weights = np.random.default_rng(i).normal(size=(6, 6)).astype("f")
        return renga.Sequential(L.Linear(6, 6, initialW=weights), F.tanh)

    def run(comm):
        size = comm.size
        model = MultiNodeChainList(comm)
        for i in range(0, 2 * size, size):
            before = None if comm.rank + i == 0 else (comm.rank - 1) % size
            after = None if comm.rank + i == 2 * size - 1 else (comm.rank + 1) % size
            model.add_link(layer(comm.rank + i), before, after)
        x = batches[0][0][:3]
        options = dict(micro_batches=3, schedule=schedule)
        pipeline = Pipeline(model, comm, x, **options)
        optimizer = MomentumSGD(0.05).setup(pipeline)

        def loss(x, t):
            return F.softmax_cross_entropy(pipeline.model(x), t)

        for batch in batches:
            pipeline.train_batch(optimizer, loss, batch)
        return oracles.arrays(pipeline)

    results = some_ranks(run)
    layers = renga.ChainList(*map(layer, range(2 * len(results))))
    layers.forward = lambda x: functools.reduce(lambda h, link: link(h), layers, x)
    serial = L.Classifier(layers)
    expected = oracles.accumulated(serial, MomentumSGD(0.05), batches, 3)
    expected = {path[len("/predictor") :]: x for path, x in expected.items()}
    assert_same(merged(results), expected)


def test_a_part_of_a_multi_node_chain_list(some_ranks):
    """Each rank would have other links in it."""

    def run(comm):
        model = MultiNodeChainList(comm)
        model.add_link(L.Linear(6, 5))
        x, t = networks.vectors()[0]
        with pytest.raises(ValueError, match=r"/predictor.*serial_model\(\)"):
            Pipeline(L.Classifier(model), comm, x, t)
        return True

    assert all(some_ranks(run))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_weights_of_the_first_stage_used_by_the_last(some_ranks, schedule):
    batches = networks.words()
    expected = oracles.accumulated(networks.Tied(), MomentumSGD(0.05), batches, 2)

    def run(comm):
        return trained(comm, networks.Tied, batches, 2, schedule=schedule)

    # The gradients of the two uses are added in another order.
    assert_same(merged(some_ranks(run)), expected, exact=False)


@pytest.mark.parametrize(
    "weights", ["flush", "stash", "two_versions", "spectrain", "pipeoptim"]
)
@pytest.mark.parametrize("m", [1, 4])
def test_streams_equal_a_process_with_delayed_gradients(some_ranks, weights, m):
    batches = networks.images(batches=7)

    def run(comm):
        if weights == "two_versions" and m < comm.size:
            return None
        options = {"schedule": "pipedream", "weights": weights, "micro_batches": m}
        parts = [x[: -(-len(x) // m)] for x in batches[0]]
        model = Pipeline(networks.Residual(), comm, *parts, **options)
        optimizer = MomentumSGD(0.05).setup(model)
        for batch in batches:
            model.cleargrads()  # of no account, as before an update by a loss
            model.train_batch(optimizer, model.model, batch)
        model.drain()
        return oracles.arrays(model), model.partition.stage_of, comm.size

    results = some_ranks(run)
    if results[0] is None:
        return
    _, links, size = results[0]
    serial = networks.Residual()
    stages = {p: links[p.rsplit("/", 1)[0]] for p, _ in serial.namedparams()}
    expected = oracles.delayed(
        serial, MomentumSGD(0.05), batches, m, stages, size, weights
    )
    assert_same(merged([found for found, _, _ in results]), expected)


def test_parameters_of_own_stages_are_not_copied_into_a_serial_model(some_ranks):
    x, t = networks.images()[0]

    def run(comm):
        model, serial = Pipeline(networks.Residual(), comm, x, t), networks.Residual()
        with pytest.raises(RuntimeError, match=r"context of its gathered_parameters"):
            serial.copyparams(model)
        with model.gathered_parameters():
            serial.copyparams(model)
        return oracles.arrays(model), oracles.arrays(serial)

    results = some_ranks(run)
    expected = merged([own for own, _ in results])
    for _, copied in results:
        assert_same(copied, expected)


def test_results_and_reports_are_on_every_rank(some_ranks):
    """In evaluation, without a graph; and what training reports."""
    x, t = networks.images()[0]
    serial = networks.Residual()
    with renga.using_config("train", False):
        expected = serial(x, t)

    def run(comm):
        model = Pipeline(networks.Residual(), comm, x[:2], t[:2], micro_batches=4)
        with renga.using_config("train", False):
            y = model(x, t)
        optimizer = MomentumSGD(0.05).setup(model)
        observer = renga.Reporter()
        observer.add_observer("main", model)
        with observer:
            model.train_batch(optimizer, model.model, (x, t))
        return y.array, y.creator_node, observer.observation

    for y, creator, observation in some_ranks(run):
        np.testing.assert_allclose(y, expected.array, 1e-5)
        assert creator is None
        assert sorted(observation) == ["main/accuracy", "main/loss"]
        np.testing.assert_allclose(observation["main/loss"], expected.array, 1e-5)


def test_a_stream_reports_every_batch_on_every_rank(some_ranks):
    """In order; ranks of early stages some batches later."""
    batches = networks.images(batches=6)

    def run(comm):
        options = {"schedule": "pipedream", "weights": "stash"}
        model = Pipeline(networks.Residual(), comm, *batches[0], **options)
        optimizer = MomentumSGD(0.05).setup(model)
        observer, losses = renga.Reporter(), []
        observer.add_observer("main", model)
        for batch in batches:
            observer.observation = {}
            with observer:
                model.train_batch(optimizer, model.model, batch)
            losses.append(observer.observation.get("main/loss"))
        model.drain()
        return losses

    results = some_ranks(run)
    last = results[-1]
    assert None not in last
    for rank, losses in enumerate(results):
        late = len(results) - 1 - rank
        assert losses == [None] * late + last[: len(last) - late]


def test_other_ranks_parameters_take_no_memory(some_ranks):
    batches = networks.images(batches=1)

    def run(comm):
        model = Pipeline(networks.Residual(), comm, *batches[0])
        everywhere = list(model.model.params())
        with pytest.raises(RuntimeError, match="of this rank of a Pipeline, got one"):
            next(p for p in everywhere if p.is_meta).array  # noqa: B018
        return len(list(model.params())), len(everywhere)

    found = some_ranks(run)
    assert sum(own for own, _ in found) == found[0][1]


class Branching(renga.Chain):
    """Reads a value of the first stage, which other ranks do not have."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b = renga.links.Linear(4, 4), renga.links.Linear(4, 4)
            self.c, self.d = renga.links.Linear(4, 4), renga.links.Linear(4, 4)

    def forward(self, x):
        h = self.a(x)
        if float(renga.functions.sum(h).array) > 1e9:
            h = h * 2
        return renga.functions.sum(self.d(self.c(self.b(h))))


@pytest.mark.parametrize("size", [2, 4])
def test_control_flow_on_values_of_another_stage_is_an_error(size):
    """It ends all ranks."""
    x = np.ones((4, 4), "f")

    def run(comm):
        model = Pipeline(Branching(), comm, x, reduce="sum")
        optimizer = MomentumSGD(0.05).setup(model)
        model.train_batch(optimizer, model.model, (x,))

    with pytest.raises(RuntimeError, match="Branching.*stage"):
        local.run(run, ranks=size)


@pytest.mark.parametrize(
    "options,message",
    [
        ({"schedule": "zigzag"}, "schedule to be one of gpipe, 1f1b"),
        ({"weights": "old"}, "weights to be one of flush, stash"),
        ({"recompute": "some"}, "recompute to be one of none"),
        ({"micro_batches": 0}, "at least 1 micro-batch"),
        ({"weights": "stash"}, "weights='flush' for 1f1b"),
        ({"stages": ["/nothing"]}, "expected|stages"),
        ({"stages": 7}, "stages for 1f1b"),
    ],
)
def test_bad_options(some_ranks, options, message):
    x, t = networks.images()[0]

    def run(comm):
        with pytest.raises(ValueError, match=message):
            Pipeline(networks.Residual(), comm, x, t, **options)

    some_ranks(run)


def test_a_model_that_is_no_link(some_ranks):
    def run(comm):
        with pytest.raises(TypeError, match="Pipeline: expected a Link"):
            Pipeline(lambda x: x, comm)

    some_ranks(run)


class Checkpointed(networks.Deep):
    """A function of layers of several stages that is recomputed."""

    def forward(self, x, t):
        def several(h):
            for layer in self.layers[:8]:
                h = F.tanh(layer(h)) + h
            return h

        return F.softmax_cross_entropy(self.last(F.forget(several, x)), t)


class Skipping(networks.Deep):
    """Uses two layers alone in the example, whose batch has one sample."""

    def forward(self, x, t):
        h = F.tanh(self.layers[0](x))
        for layer in self.layers[1:] if len(x) > 1 else []:
            h = F.tanh(layer(h)) + h
        return F.softmax_cross_entropy(self.last(h), t)


@pytest.mark.parametrize("network", [Checkpointed, Skipping])
def test_a_recomputed_function_and_layers_unused_in_the_example(some_ranks, network):
    batches = networks.vectors()
    expected = oracles.accumulated(network(), MomentumSGD(0.05), batches, 2)

    def run(comm):
        x, t = batches[0]
        model = Pipeline(network(), comm, x[:1], t[:1], micro_batches=2)
        optimizer = MomentumSGD(0.05).setup(model)
        for batch in batches:
            model.train_batch(optimizer, model.model, batch)
        return oracles.arrays(model)

    assert_same(merged(some_ranks(run)), expected, exact=False)
