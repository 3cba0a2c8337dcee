"""What the function refuses, and what the ranks may call."""

import numpy as np
import pytest

from renga.communicators import local, simulated
from renga.distributed import create_communicator
from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizer_hooks import GradientClipping
from renga.optimizers import SGD, AdaDelta
from tests.parallel.asynchronous.quadratics import Point


@pytest.mark.parametrize(
    "make, options, message",
    [
        (SGD, {"servers": 2}, "a rank that computes"),
        (AdaDelta, {}, "learning rate for staleness_aware"),
    ],
)
def test_invalid_options_are_refused(make, options, message):
    def act(comm):
        with pytest.raises(ValueError, match=message):
            create_server_optimizer(make().setup(Point()), comm, **options)

    local.run(act, ranks=2)


def test_what_cannot_be_divided_is_refused():
    comm = create_communicator("local")
    model = Point()
    optimizer = SGD().setup(model)
    optimizer.add_hook(GradientClipping(1.0))
    served = create_server_optimizer(optimizer, comm, shards=2)
    with pytest.raises(ValueError, match="one shard for the hook GradientClipping"):
        served.update(model, np.zeros(11))


def test_roles():
    def act(comm):
        with pytest.raises(ValueError, match="virtual rank has one thread"):
            create_server_optimizer(SGD().setup(Point()), comm)
        optimizer = create_server_optimizer(SGD().setup(Point()), comm, servers=1)
        if comm.rank == 0:
            for call in (
                lambda: optimizer.update(Point(), np.zeros(11)),
                lambda: optimizer.averaged().__enter__(),
                optimizer.consensus_distance,
            ):
                with pytest.raises(RuntimeError, match="got a rank that only serves"):
                    call()
        else:
            with pytest.raises(RuntimeError, match="serve: expected a rank that only"):
                optimizer.serve()

    simulated.run(act, 2)
