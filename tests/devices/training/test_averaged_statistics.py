"""Running statistics on devices are averaged over ranks as those in main memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import renga
import renga.links as L
from renga.backends import cuda
from renga.communicators import local
from renga.communicators.nccl.staged import StagedCommunicator
from renga.distributed import extensions
from renga.distributed.asynchronous import create_gossip_optimizer

if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )


def test_statistics_are_averaged(kind):
    cuda.load_plugin()

    def rank(comm):
        comm = StagedCommunicator(comm.native)
        device = renga.get_device(f"@cupy:{comm.rank}")
        device.use()
        link = L.BatchNormalization(3)
        link.to_device(device)
        link.avg_mean[...] = comm.rank + 1
        optimizer = create_gossip_optimizer(renga.optimizers.SGD().setup(link), comm)
        with optimizer.averaged():
            inside = cuda.to_cpu(link.avg_mean)
        after = cuda.to_cpu(link.avg_mean)
        extensions.AllreducePersistent(link, comm)()
        return inside, after, cuda.to_cpu(link.avg_mean)

    for own, (inside, after, replaced) in enumerate(local.run(rank, ranks=2), 1):
        np.testing.assert_array_equal(inside, [1.5] * 3)
        np.testing.assert_array_equal(after, [own] * 3)
        np.testing.assert_array_equal(replaced, [1.5] * 3)
