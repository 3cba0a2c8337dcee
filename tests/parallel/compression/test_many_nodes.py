"""Compression on many virtual ranks."""

import numpy as np
import pytest

from renga.communicators import simulated
from renga.distributed import compression
from renga.distributed.compression import CompressionHook
from renga.parallel.data.buckets import Bucket
from tests.parallel.compression.nodes import gradient


@pytest.mark.parametrize("ranks_of_node", [1, 8])
def test_64_ranks_have_the_mean(ranks_of_node):
    def run(comm):
        hook = CompressionHook(compression.TopK(1.0), comm)
        got = hook(Bucket(["W"], [gradient(comm.rank, (6, 5)).copy()])).wait()[0]
        expected = comm.all_reduce(gradient(comm.rank, (6, 5)), "mean")
        return got, expected

    machine = simulated.Machine(intra_size=ranks_of_node)
    for got, expected in simulated.run(run, 64, machine).results:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("compressor", "share"),
    [
        (compression.TopK(0.01), 0.02),
        (compression.OneBit(), 1 / 32),
        (compression.QSGD(4), 1 / 8),
        (compression.TernGrad(), 1 / 16),
        (compression.DGC(0.001), 0.002),
        (compression.RandomK(0.01), 0.01),
    ],
)
def test_bytes_between_two_nodes(compressor, share):
    def run(comm):
        hook = CompressionHook(compressor, comm)
        hook(Bucket(["W"], [gradient(comm.rank, (400, 300)).copy()])).wait()
        return comm.traffic.bytes_by_call["all_gather"]

    machine = simulated.Machine(intra_size=1)
    for sent in simulated.run(run, 2, machine).results:
        assert share <= sent / (4 * 400 * 300) < 1.1 * share + 0.0005
