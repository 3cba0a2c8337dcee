"""Arrays on devices that a program holds of parameters whose ranks share the work."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.backends import cuda
from renga.communicators import local
from renga.communicators.nccl.staged import StagedCommunicator
from renga.distributed import create_multi_node_optimizer

if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
X = np.random.RandomState(0).normal(0, 1, (4, 3)).astype("f")


@pytest.mark.parametrize("shard", [None, "states", "gradients", "parameters"])
def test_arrays_and_views_of_before_the_first_update_see_updates(kind, shard):
    cuda.load_plugin()

    def rank(comm):
        comm = StagedCommunicator(comm.native)
        device = renga.get_device(f"@cupy:{comm.rank}")
        device.use()
        model = renga.Sequential(L.Linear(3, 4), F.tanh, L.Linear(4, 2))
        model.to_device(device)
        array, view = model[0].W.array, model[2].W.array[:1]
        adam = renga.optimizers.Adam(0.1)
        optimizer = create_multi_node_optimizer(adam, comm, shard=shard).setup(model)
        x = cuda.to_gpu(X)
        before = cuda.to_cpu(array).copy()
        for _ in range(2):
            optimizer.update(lambda x: F.mean(model(x) ** 2), x)
        after = cuda.to_cpu(model[0].W.array)
        assert not (before == after).any()
        np.testing.assert_array_equal(cuda.to_cpu(array), after)
        np.testing.assert_array_equal(
            cuda.to_cpu(view), cuda.to_cpu(model[2].W.array)[:1]
        )
        return cuda.to_cpu(model[2].b.array)

    first, second = local.run(rank, ranks=2)
    np.testing.assert_array_equal(first, second)
