"""Redistribution: values, and gradients of every order."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.parallel.placement import LAYOUTS
from renga.parallel.placement.shard_ranges import as_slice, shard_range
from renga.parallel.redistribute import redistribute
from renga.utils.type_check import InvalidType
from tests.links.parallel.differentiate import array

SHAPE = (3, 5, 6, 2)


def shard(comm, layout, x):
    if layout == "replicated":
        return x
    axis = LAYOUTS[layout].axis % x.ndim
    own = as_slice(shard_range(x.shape[axis], comm.size, comm.rank))
    return x[(slice(None),) * axis + (own,)]


@pytest.mark.parametrize("extent_is_given", [True, False])
@pytest.mark.parametrize("source", LAYOUTS)
def test_values_and_gradients(ranks, source, extent_is_given):
    whole, weight, weight2 = array(1, *SHAPE), array(2, *SHAPE), array(3, *SHAPE)
    extent = None
    if extent_is_given and source != "replicated":
        extent = SHAPE[LAYOUTS[source].axis]

    def differentiate(comm, target):
        x = renga.Variable(shard(comm, source, whole))
        y = redistribute(x, comm, source, target, extent)
        loss = F.sum(shard(comm, target, weight) * y**3)
        (gx,) = renga.grad([loss], [x], enable_double_backprop=True)
        F.sum(shard(comm, source, weight2) * gx**2).backward()
        return (
            (y.array, shard(comm, target, whole)),
            (gx.array, shard(comm, source, 3 * weight * whole**2)),
            (x.grad, shard(comm, source, 36 * weight2 * weight**2 * whole**3)),
        )

    def on_rank(comm):
        return {target: differentiate(comm, target) for target in LAYOUTS}

    for found in ranks(on_rank):
        for target, pairs in found.items():
            for actual, expected in pairs:
                np.testing.assert_allclose(actual, expected, 1e-12, 1e-12, True, target)


def test_a_shard_of_another_size(ranks):
    def on_rank(comm):
        if comm.size == 1:
            return True
        with pytest.raises(InvalidType, match=f"of 9 along axis 1 on rank {comm.rank}"):
            redistribute(np.zeros((2, 1), "f4"), comm, "channel", "replicated", 9)
        return True

    assert all(ranks(on_rank))


def test_unknown_layout(ranks):
    def on_rank(comm):
        with pytest.raises(ValueError, match="expected one of replicated, batch"):
            redistribute(np.zeros((2, 1), "f4"), comm, "channels", "replicated")
        return True

    assert all(ranks(on_rank))
