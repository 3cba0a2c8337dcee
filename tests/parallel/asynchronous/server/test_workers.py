"""Workers that come and go."""

import math
import warnings

import numpy as np
import pytest

from renga.communicators import simulated
from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizers import SGD
from tests.parallel.asynchronous.quadratics import Point, targets
from tests.parallel.asynchronous.server.points import speeds


def kill_some(seed, staleness):
    """Workers of six stop at random moments; the rest ends with one model."""
    chance = np.random.RandomState(seed)
    killed = chance.choice(np.arange(1, 7), chance.randint(1, 5), replace=False)
    deaths = {int(rank): int(chance.randint(1, 15)) for rank in killed}

    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(
            SGD(0.1).setup(model), comm, staleness, servers=1, timeout=2.0
        )
        if optimizer.is_server:
            optimizer.serve()
            return optimizer.observe()["workers_left"]
        for step, target in enumerate(targets(comm.rank, 20)):
            if deaths.get(comm.rank) == step:
                return None
            comm.advance("step")
            optimizer.update(model, target)
        optimizer.join()
        return model.vector()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        left, *workers = simulated.run(act, 7, seconds_of=speeds).results
    assert sum("has lost worker" in str(one.message) for one in told) == len(deaths)
    assert f"{left} of 6 workers are left" in str(told[-1].message)
    assert left == 6 - len(deaths)
    survivors = [x for x in workers if x is not None]
    assert len(survivors) == left
    for x in survivors:
        np.testing.assert_array_equal(x, survivors[0])
        assert np.isfinite(x).all()


@pytest.mark.parametrize("staleness", [0, 3, math.inf])
def test_training_goes_on_without_killed_workers(staleness):
    for seed in range(8):
        kill_some(seed, staleness)


def test_a_new_worker_takes_the_place_of_a_lost_one():
    """Rank 2 stops, and later begins anew with a model that knows nothing."""

    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(
            SGD(0.1).setup(model), comm, 2, servers=1, timeout=1.0
        )
        if optimizer.is_server:
            optimizer.serve()
            return optimizer.observe()["workers_left"]
        steps = targets(comm.rank, 60)
        for step, target in enumerate(steps):
            if comm.rank == 2 and step == 5:
                break
            comm.advance("step")
            optimizer.update(model, target)
        if comm.rank == 2:
            comm.compute(3.0)
            model = Point(value=9.0)
            optimizer.setup(model)
            optimizer.enter()
            entered = model.vector()
            assert abs(entered).max() < 1  # the servers', not its own
            for target in steps[:5]:
                comm.advance("step")
                optimizer.update(model, target)
        optimizer.join()
        return optimizer.t, model.vector()

    with pytest.warns(UserWarning, match="rank 0 has lost worker 2; 2 of 3 workers"):
        left, *workers = simulated.run(act, 4, seconds_of=speeds).results
    assert left == 3
    assert [t for t, _ in workers] == [60, 5, 60]
    for _, x in workers:
        np.testing.assert_array_equal(x, workers[0][1])
