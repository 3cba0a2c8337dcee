"""Parallel strategies: one process, or ranks that shard batches, channels or pixels."""

from renga.distributed import (
    create_communicator,
    create_multi_node_optimizer,
    parallelize,
)
from renga.distributed.links import create_mnbn_model


class Alone:
    """One process. The other strategies override what they have to."""

    rank, size = 0, 1

    def model(self, model, *example):
        """The model that this rank trains."""
        return model

    def optimizer(self, optimizer):
        return optimizer

    def batch(self, x):
        """This rank's samples of a batch."""
        return x

    def mean(self, loss):
        """The loss of the whole batch, from that of this rank's samples."""
        return loss


class OnRanks(Alone):
    def __init__(self):
        self.comm = create_communicator("mpi")
        self.rank, self.size = self.comm.rank, self.comm.size


class DataParallel(OnRanks):
    """Each rank has the whole model and a shard of every batch."""

    def model(self, model, *example):
        return create_mnbn_model(model, self.comm)

    def optimizer(self, optimizer):
        return create_multi_node_optimizer(optimizer, self.comm)

    def batch(self, x):
        return x[self.rank :: self.size]

    def mean(self, loss):
        return self.comm.allreduce_obj(loss) / self.size


class ChannelParallel(OnRanks):
    """Each rank has a shard of every layer's channels."""

    def model(self, model, *example):
        return parallelize(model, self.comm, "channel", *example)


class Spatial(OnRanks):
    """Each rank has a band of every image's rows."""

    def model(self, model, *example):
        return parallelize(model, self.comm, "spatial", *example)


STRATEGIES = {
    "alone": Alone,
    "data": DataParallel,
    "channel": ChannelParallel,
    "spatial": Spatial,
}
