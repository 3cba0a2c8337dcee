"""Training with double buffering that stops and goes on, against one that does not."""

import io

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_multi_node_optimizer
from tests.files import saved

STEPS = 5
RANDOM = np.random.RandomState(3)
X = RANDOM.uniform(-1, 1, (STEPS, 12, 6)).astype("float32")
T = RANDOM.randint(0, 4, (STEPS, 12)).astype("int32")


class Run:
    """A model, two layers of which one has no shape before the first batch."""

    def __init__(self, comm, zero_fill):
        self.comm = comm
        draw = renga.initializers.Uniform(0.5, rng=np.random.RandomState(0))
        self.model = renga.Sequential(
            L.Linear(None, 5, initialW=draw), F.tanh, L.Linear(5, 4, initialW=draw)
        )
        optimizer = renga.optimizers.MomentumSGD(0.3).setup(self.model)
        self.optimizer = create_multi_node_optimizer(
            optimizer, comm, double_buffering=True, zero_fill=zero_fill
        )

    def serialize(self, serializer):
        """In the order of an updater: the optimizer comes first."""
        self.optimizer.serialize(serializer["optimizer"])
        self.model.serialize(serializer["model"])

    def go(self, steps):
        rank, size = self.comm.rank, self.comm.size
        for i in steps:
            x, t = X[i, rank::size], T[i, rank::size]
            self.optimizer.update(
                lambda x, t: F.softmax_cross_entropy(self.model(x), t), x, t
            )
        return self

    def state(self):
        named = sorted(self.model.namedparams())
        return [self.optimizer.t] + [param.array.tobytes() for _, param in named]


@pytest.mark.parametrize("zero_fill", [True, False])
@pytest.mark.parametrize("stop", [2, 4])
def test_resumed_training_has_the_same_bits(some_ranks, zero_fill, stop):
    def train(comm):
        first = Run(comm, zero_fill).go(range(stop))
        file = io.BytesIO()
        renga.serializers.save_npz(file, first)
        # Saving changes nothing for the one that goes on.
        expected = first.go(range(stop, STEPS)).state()
        file.seek(0)
        second = Run(comm, zero_fill)
        renga.serializers.load_npz(file, second)
        return expected, second.go(range(stop, STEPS)).state()

    for expected, resumed in some_ranks(train):
        assert resumed == expected
        assert resumed[0] == STEPS - 1


def test_saving_changes_no_gradient_and_no_update(ranks):
    def train(comm, saves):
        run = Run(comm, True)
        for i in range(STEPS):
            run.go([i])
            before = [param.grad_var is None for param in run.model.params()]
            if saves:
                renga.serializers.save_npz(io.BytesIO(), run)
            assert [p.grad_var is None for p in run.model.params()] == before
        return run.state()

    for without, saving in ranks(lambda c: (train(c, False), train(c, True))):
        assert saving == without


def test_a_file_without_gradients_in_flight_loads(some_ranks):
    def train(comm):
        run = Run(comm, True).go(range(2))
        old = {k: v for k, v in saved(run).items() if "under_way" not in k}
        other = Run(comm, True)
        renga.serializers.NpzDeserializer(old).load(other)
        assert other.go([2]).optimizer.t == 1  # as it was: this update only sent
        return other.go([3]).optimizer.t

    assert set(some_ranks(train)) == {2}
