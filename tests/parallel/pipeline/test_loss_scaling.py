"""Loss scaling in a pipeline, against a process that scales the loss."""

import numpy as np
import pytest

from renga.optimizers import MomentumSGD
from renga.pipeline import Pipeline
from tests.parallel.pipeline import networks, oracles


def scaled(**options):
    optimizer = MomentumSGD(0.05)
    optimizer.loss_scaling(**options)
    return optimizer


def trained(comm, network, batches, optimizer, **options):
    """This rank's parameters, the stages of the links, and the last loss scale."""
    m = options.get("micro_batches", 1)
    parts = [x[: -(-len(x) // m)] if np.ndim(x) else 1.0 for x in batches[0]]
    model = Pipeline(network(), comm, *parts, **options)
    optimizer.setup(model)
    for batch in batches:
        model.train_batch(optimizer, model.model, batch)
    model.drain()
    return oracles.arrays(model), model.partition.stage_of, optimizer.loss_scale


def assert_bits(results, expected):
    assert sum(len(found) for found, _, _ in results) == len(expected)
    for found, _, _ in results:
        for path, x in found.items():
            np.testing.assert_array_equal(x, expected[path], err_msg=path)


@pytest.mark.parametrize("scale", [1024.0, 1000.0])
def test_a_constant_scale(some_ranks, scale):
    batches = networks.images()
    expected = oracles.accumulated(networks.Residual(), scaled(scale=scale), batches, 3)

    def run(comm):
        return trained(
            comm, networks.Residual, batches, scaled(scale=scale), micro_batches=3
        )

    assert_bits(some_ranks(run), expected)


@pytest.mark.parametrize("weights", ["flush", "stash", "spectrain"])
def test_a_constant_scale_without_a_flush(some_ranks, weights):
    """The weights of a pass, stashed or predicted, are no parameters themselves."""
    batches = networks.images(batches=6)

    def run(comm):
        options = {"schedule": "pipedream", "weights": weights}
        optimizer = scaled(scale=1000.0)
        return trained(comm, networks.Residual, batches, optimizer, **options)

    results = some_ranks(run)
    stage_of, serial = results[0][1], networks.Residual()
    stages = {p: stage_of[p.rsplit("/", 1)[0]] for p, _ in serial.namedparams()}
    expected = oracles.delayed(
        serial, scaled(scale=1000.0), batches, 1, stages, len(results), weights
    )
    assert_bits(results, expected)


def test_all_stages_skip_an_update_of_which_one_overflows(some_ranks):
    batches = [
        (*batch, factor)
        for batch, factor in zip(
            networks.images(batches=6), [1.0, 1.0, np.inf, 1.0, np.inf, 1.0]
        )
    ]
    optimizer = scaled(interval=2)
    expected = oracles.accumulated(networks.Overflowing(), optimizer, batches, 2)
    # Doubled twice, halved, times the square root of 2, halved, and so again.
    assert optimizer.loss_scale == pytest.approx(2.0)
    assert all(np.isfinite(x).all() for x in expected.values())

    def run(comm):
        options = {"micro_batches": 2}
        optimizer = scaled(interval=2)
        return trained(comm, networks.Overflowing, batches, optimizer, **options)

    results = some_ranks(run)
    assert_bits(results, expected)
    assert {scale for _, _, scale in results} == {optimizer.loss_scale}


def test_a_dynamic_scale_needs_a_flush(some_ranks):
    """Of a stream, the last stage updates first, and so is the one to say it."""
    batches = networks.images(batches=1)

    def run(comm):
        model = Pipeline(networks.Residual(), comm, *batches[0], schedule="pipedream")
        optimizer = scaled(interval=2).setup(model)
        if comm.rank < comm.size - 1:
            model.train_batch(optimizer, model.model, batches[0])
            return
        with pytest.raises(RuntimeError, match="expected a schedule that flushes"):
            model.train_batch(optimizer, model.model, batches[0])

    some_ranks(run)
