"""Graphs of a loss that the program cuts off, where several stages have their parts."""

import pytest

import renga.functions as F
from renga.communicators import local
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    serial,
    trained,
)

DATA = batches()


def backward(one, two):
    two.unchain_backward()


def single(one, two):
    one.unchain()


def single_and_backward(one, two):
    one.unchain()
    two.unchain_backward()


def twice(one, two):
    one.unchain_backward()
    two.unchain_backward()


def make(cut):
    """A network with two branches, of which one is cut off after or before another."""

    class Branches(Layers):
        def predict(self, x):
            h = F.tanh(self.a(x))
            one = F.tanh(self.b(h))
            two = F.tanh(self.c(one))
            kept = F.tanh(self.b(h))
            cut(one, two)
            later = F.tanh(self.c(F.tanh(self.b(h))))
            return self.d(one + two + kept + later)

    return Branches


@pytest.mark.parametrize("cut", [backward, single, single_and_backward, twice])
@pytest.mark.parametrize("recompute", ["none", "all"])
@pytest.mark.parametrize(
    "schedule,ranks", [("gpipe", 2), ("1f1b", 3), ("1f1b", 4), ("interleaved", 2)]
)
def test_other_branches_are_cut_off_where_one_process_cuts_them_off(
    schedule, ranks, recompute, cut
):
    network = make(cut)
    options = {"schedule": schedule, "recompute": recompute}
    for found in local.run(
        lambda comm: trained(network, comm, DATA, **options), ranks=ranks
    ):
        assert_close(found, serial(network, DATA, m=3))
