"""Eight stages on virtual ranks, against a single process."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local, simulated
from renga.optimizers import MomentumSGD
from renga.pipeline import Pipeline
from tests.parallel.pipeline import networks, oracles

RANKS = 8


def trained(batches, m, **options):
    """The parameters of all ranks, and the stages of the links."""

    def run(comm):
        parts = [x[: -(-len(x) // m)] for x in batches[0]]
        model = Pipeline(networks.Deep(), comm, *parts, micro_batches=m, **options)
        optimizer = MomentumSGD(0.05).setup(model)
        for batch in batches:
            model.train_batch(optimizer, model.model, batch)
        model.drain()
        return oracles.arrays(model), model.partition.stage_of

    results = simulated.run(run, RANKS).results
    whole = {path: x for found, _ in results for path, x in found.items()}
    assert sum(len(found) for found, _ in results) == len(whole)
    return whole, results[0][1]


def assert_same(found, expected):
    assert sorted(found) == sorted(expected)
    for path, x in found.items():
        np.testing.assert_array_equal(x, expected[path], err_msg=path)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
@pytest.mark.parametrize("m", [1, 3, 8])
def test_schedules_equal_a_process_that_accumulates(schedule, m):
    batches = networks.vectors(batches=2)
    expected = oracles.accumulated(networks.Deep(), MomentumSGD(0.05), batches, m)
    found, stage_of = trained(batches, m, schedule=schedule)
    assert max(stage_of.values()) + 1 == RANKS * (1 + (schedule == "interleaved"))
    assert_same(found, expected)


@pytest.mark.parametrize(
    "weights,m",
    [
        *((kind, 1) for kind in ("flush", "stash", "spectrain", "pipeoptim")),
        *((kind, 3) for kind in ("stash", "spectrain", "pipeoptim")),
        ("two_versions", 8),
    ],
)
def test_streams_equal_a_process_with_delayed_gradients(weights, m):
    batches = networks.vectors(batches=20 if m == 1 else 5)
    found, stage_of = trained(batches, m, schedule="pipedream", weights=weights)
    serial = networks.Deep()
    stages = {p: stage_of[p.rsplit("/", 1)[0]] for p, _ in serial.namedparams()}
    expected = oracles.delayed(
        serial, MomentumSGD(0.05), batches, m, stages, RANKS, weights
    )
    assert_same(found, expected)


def test_bfloat16_activations_and_a_hook_equal_those_of_threads():
    x = np.random.RandomState(0).normal(size=(6, 5, 8)).astype("f")

    class Doubling:
        name, call_for_each_param, timing = "Doubling", True, "pre"

        def __call__(self, rule, param):
            param.grad *= 2

    def run(comm):
        with renga.using_config("dtype", renga.mixed_bfloat16):
            draw = np.random.RandomState(1)
            weights = [draw.normal(0, 0.4, (8, 8)) for _ in range(3)]
            linear = [L.Linear(8, 8, initialW=W) for W in weights]
            serial = renga.Sequential(*[f for link in linear for f in (link, F.tanh)])
            model = Pipeline(serial, comm, x[0, :2], micro_batches=2, stages=["/1"])
            optimizer = MomentumSGD(0.05).setup(model)
            optimizer.add_hook(Doubling())
            for batch in x:
                loss = lambda x: F.mean(model.model(x) ** 2)  # noqa: E731
                model.train_batch(optimizer, loss, (batch,))
            return oracles.arrays(model)

    threads, virtual = local.run(run, ranks=2), simulated.run(run, 2).results
    for expected, found in zip(threads, virtual):
        assert_same(found, expected)
