"""Dropout and batch normalization in a pipeline, against a single process.

A pipeline's ranks draw the random numbers of all stages, so that their generators stay
equal: where each rank has generators of its own, which threads of one process do not.
"""

import numpy as np
import pytest

from renga.optimizers import MomentumSGD
from renga.parallel.pipeline.batches.micro_batches import split
from renga.pipeline import Pipeline
from tests.files import saved
from tests.parallel.pipeline import networks


def accumulated(batches, m):
    """Of a process that adds up the gradients of micro-batches."""
    model = networks.Normalized()
    optimizer = MomentumSGD(0.05).setup(model)
    np.random.seed(7)
    for batch in batches:
        model.cleargrads()
        for size, part in split(batch, m):
            loss = model(*part)
            loss.grad = np.full((), size / len(batch[0]), loss.dtype)
            loss.backward()
        optimizer.update()
    return saved(model), np.random.randint(2**31)


@pytest.mark.parametrize(
    "schedule,m,recompute",
    [
        *(("gpipe", 1, "none"), ("gpipe", 8, "none"), ("gpipe", 3, "all")),
        *(("1f1b", 3, "none"), ("1f1b", 3, "all")),
        *(("interleaved", 8, "none"), ("interleaved", 3, "all")),
    ],
)
def test_equal_a_process_that_accumulates(
    ranks_with_own_random_numbers, schedule, m, recompute
):
    batches = networks.images(batches=2)
    expected, drawn = accumulated(batches, m)

    def run(comm):
        if schedule == "interleaved" and comm.size > 3:
            return None  # the model has seven links
        network = networks.Normalized()
        np.random.seed(7)
        model = Pipeline(
            network,
            comm,
            *(x[: -(-len(x) // m)] for x in batches[0]),
            micro_batches=m,
            schedule=schedule,
            recompute=recompute,
        )
        optimizer = MomentumSGD(0.05).setup(model)
        for batch in batches:
            model.train_batch(optimizer, model.model, batch)
        return saved(model), np.random.randint(2**31)

    for result in ranks_with_own_random_numbers(run):
        if result is None:
            continue
        found, number = result
        assert sorted(found) == sorted(expected)
        for name, x in found.items():
            np.testing.assert_array_equal(x, expected[name], err_msg=name)
        assert number == drawn  # as many were drawn
