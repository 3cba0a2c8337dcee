"""Workers of one server that pull a point to targets, on virtual ranks."""

from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizers import SGD
from tests.parallel.asynchronous.quadratics import Point, targets


def speeds(rank, task):
    """Seconds of a step: rank 1 is the slowest."""
    return 0.4 if rank == 1 else 0.1 + 0.01 * rank


def points(
    comm, staleness, steps=20, shards=1, aware=True, make=lambda: SGD(0.1), **options
):
    """Training on virtual ranks of which the first serves; and what it did."""
    model = Point()
    optimizer = create_server_optimizer(
        make().setup(model),
        comm,
        staleness,
        shards,
        servers=1,
        staleness_aware=aware,
        timeout=5.0,
        **options,
    )
    if optimizer.is_server:
        optimizer.serve()
        return optimizer.logs, optimizer.observe(), model.vector()
    for target in targets(comm.rank, steps):
        comm.advance("step")
        optimizer.update(model, target)
    histogram = optimizer.staleness_histogram()
    optimizer.join()
    return histogram, optimizer.t, model.vector()
