"""Benchmarked steps train: parameters change, stay finite, are equal on all ranks."""

import numpy as np
import pytest

import renga
from renga.communicators import local
from tests.benchmarks.steps import (
    data_parallel_steps,
    recurrent_steps,
    renga_steps,
)
from tests.benchmarks.training import measure


class CalledLinks(renga.LinkHook):
    """Collects the parameters of the links that this thread calls."""

    def __init__(self):
        self.by_id = {}

    def forward_postprocess(self, args):
        self.by_id.update((id(p), p) for p in args.link.params())

    def arrays(self):
        return [p.array.copy() for p in self.by_id.values()]


def arrays_of_two_steps(step):
    """The parameters after the first and after the second step."""
    with CalledLinks() as links:
        step()
        first = links.arrays()
        step()
    return first, links.arrays()


def check_trained(first, second):
    assert len(first) == len(second) > 0
    for before, after in zip(first, second):
        assert np.isfinite(after).all()
        assert (before != after).any()


# Smaller than those that are timed.
SMALLER = {"mlp": {}, "vgg": {"batch": 4}, "dcgan": {"batch": 4}}
SMALLER |= {"resnet": {"batch": 2}, "gpt": {"batch": 1}, "long_gpt": {"tokens": 64}}
SMALLER |= {"resnet20": {"batch": 2}, "mobilenet": {"batch": 2}, "unet": {"batch": 1}}
SMALLER |= {"vit": {"batch": 1}, "gru": {"batch": 2}, "densenet": {"batch": 2}}
SMALLER |= {
    "resnet_3d": {"frames": 8, "size": 64},
    "wavenet": {"batch": 1, "samples": 16},
}
SMALLER |= {"graph": {"nodes": 100}, "bert": {"batch": 1}, "recommender": {"batch": 64}}


@pytest.mark.parametrize("model", sorted(SMALLER))
def test_a_step_trains(model):
    check_trained(*arrays_of_two_steps(renga_steps.STEPS[model](**SMALLER[model])))


def test_every_step_is_tested():
    assert {*renga_steps.STEPS} == {*SMALLER, "small"}


def test_a_step_of_static_networks_trains():
    check_trained(*arrays_of_two_steps(renga_steps.dcgan(4, renga_steps.static)))


def test_small_operations_are_those_of_the_identity():
    step = renga_steps.small()
    np.testing.assert_array_equal(step(), np.ones((4, 4), "f"))


def test_times_are_medians_in_milliseconds():
    assert 0.01 < measure("renga_steps", "mlp", 3) < 10_000


@pytest.mark.parametrize("model, synchronized", [("dcgan", False), ("vgg", True)])
def test_a_data_parallel_step_trains_all_ranks_alike(model, synchronized):
    def on_rank(comm):
        return arrays_of_two_steps(
            data_parallel_steps.STEPS[model](2, comm, synchronized)
        )

    first, second = local.run(on_rank, ranks=2)
    check_trained(*first)
    for mine, other in zip(first[1], second[1]):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn", "cell"])
def test_a_recurrent_step_gives_the_same_loss_again(kind):
    step = recurrent_steps.renga_step(kind, "many")
    _, n, units, _ = recurrent_steps.SIZES["many"]
    elements = units * sum(map(len, recurrent_steps.sequences("many")))
    if kind == "cell":
        elements = 35 * n * units
    loss = step()
    assert 0 < loss < elements  # every output is within (-1, 1)
    assert step() == loss
