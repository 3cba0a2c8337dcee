"""Empty, 0-d and shared parameters, in each way to reduce gradients."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.distributed import compression, create_multi_node_optimizer
from renga.distributed.compression import CompressionHook
from tests import files
from tests.parallel.compression.nodes import on_nodes

STEPS = 4
RANDOM = np.random.RandomState(2)
X = RANDOM.uniform(-1, 1, (STEPS, 12, 3))
WAYS = {
    "plain": {},
    "double buffering": {"double_buffering": True},
    "states": {"shard": "states"},
    "gradients": {"shard": "gradients"},
    "compressed": {},
    "accumulated": {},
}


class Unusual(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.empty = renga.Parameter(np.zeros((0, 3)))
            self.scale = renga.Parameter(np.array(1.5))
            self.vector = renga.Parameter(np.array([0.5, -1.0, 2.0]))
            self.other = renga.Chain()
        with self.other.init_scope():
            self.other.again = self.vector

    def forward(self, x):
        rest = F.sum(self.empty)
        y = F.sum(x * self.vector, 1) + F.sum(self.other.again**2)
        return F.mean((y * F.broadcast_to(self.scale, y.shape) + rest - 1) ** 2)


def saved(model, optimizer):
    return {
        f"{i}/{key}": x
        for i, target in enumerate((model, optimizer))
        for key, x in files.saved(target).items()
        if not key.startswith(("under_way", "gradient_", "loss_scale", "bucket_hook"))
    }


def serial(is_late):
    model = Unusual()
    optimizer = renga.optimizers.Adam(0.1).setup(model)
    late = None
    for x in X:
        model.cleargrads()
        model(x).backward()
        found = [param.grad for param in model.params()]
        if is_late:
            found, late = late, found
        if found is not None:
            for param, grad in zip(model.params(), found):
                param.grad = grad
            optimizer.update()
    return saved(model, optimizer)


@pytest.mark.parametrize("way", WAYS)
def test_files_are_those_of_one_process(ranks, way):
    def run(comm):
        model = Unusual()
        optimizer = renga.optimizers.Adam(0.1).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, comm, **WAYS[way])
        if way == "compressed":
            hook = CompressionHook(compression.TopK(1.0), on_nodes(comm))
            optimizer.add_bucket_hook(hook)
        count = 2 if way == "accumulated" else 1
        optimizer.accumulate(count)
        for x in X:
            own = x[comm.rank :: comm.size]
            for part in np.split(own, [1] if count == 2 else []):
                optimizer.update(model, part)
        return saved(model, optimizer)

    expected = serial(way == "double buffering")
    results = ranks(run)
    for found in results:
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert found[key].shape == value.shape
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-9)
            np.testing.assert_array_equal(found[key], results[0][key])
