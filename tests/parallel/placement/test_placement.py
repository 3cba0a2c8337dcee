"""Placements and their gradients' placements."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.distributed import Partial, Replicate, Shard, redistribute


def test_placements_of_gradients():
    for placement in (Replicate(), Shard(1)):
        assert placement.gradient == placement
    summed = Replicate(summed_gradient=True)
    assert summed.gradient == Partial("sum") and Partial("sum").gradient == summed
    assert summed != Replicate()


def test_other_reductions_than_sums_are_refused():
    with pytest.raises(ValueError, match="expected op to be 'sum', got 'max'"):
        Partial("max")


SOURCES = [Replicate(), Shard(0), Partial()]
TARGETS = [Replicate(), Replicate(summed_gradient=True), Shard(0)]


@pytest.mark.parametrize("source", SOURCES)
def test_values_and_gradients(ranks, source):
    whole = np.arange(6.0)

    def place(comm, x, placement):
        if isinstance(placement, Shard):
            return np.array_split(x, comm.size)[comm.rank]
        share = comm.size if isinstance(placement, Partial) else 1
        return x / share

    def differentiate(comm, target):
        x = renga.Variable(place(comm, whole, source))
        y = redistribute(x, comm, source, target)
        np.testing.assert_allclose(y.array, place(comm, whole, target))
        # The gradient of the sum of y * 3, of which each rank finds a part where the
        # gradient is summed.
        is_summed = target == Replicate(summed_gradient=True)
        weight = 3.0 / comm.size if is_summed else 3.0
        F.sum(y * weight).backward()
        if comm.size > 1:
            np.testing.assert_allclose(x.grad, np.full(x.shape, 3.0))

    def on_rank(comm):
        for target in TARGETS:
            differentiate(comm, target)

    ranks(on_rank)


@pytest.mark.parametrize(
    ("source", "target"),
    [(Replicate(), Partial()), (Replicate(summed_gradient=True), Shard(0))],
)
def test_impossible_redistributions(ranks, source, target):
    def on_rank(comm):
        with pytest.raises(ValueError, match="redistribute: expected"):
            redistribute(np.ones(4), comm, source, target)

    ranks(on_rank)
