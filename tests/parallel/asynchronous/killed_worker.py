"""Training on several ranks, of which some are killed.

    mpiexec --enable-recovery -n 4 python killed_worker.py \
        METHOD FOLDER TIMEOUT RANK:STEP ...

Kills each RANK after STEP updates, where ranks share memory while it has the lock of
the first shard. The others write into FOLDER how many ranks they
have left at the end, and their parameters.
"""

import os
import pathlib
import signal
import sys
import time
import warnings

import numpy as np

from renga.distributed import create_communicator, create_multi_node_optimizer
from renga.distributed.asynchronous import (
    Complete,
    create_elastic_averaging_optimizer,
    create_gossip_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import SGD
from tests.parallel.asynchronous.quadratics import Point, targets

SYNCHRONOUS = {
    "synchronous": create_multi_node_optimizer,
    "local": lambda opt, comm: create_local_sgd_optimizer(opt, comm, 4),
    "elastic": lambda opt, comm: create_elastic_averaging_optimizer(opt, comm, 4),
}
SHARED = {"shared 2": "2", "shared inf": "inf"}  # by their staleness


def kill(method, optimizer):
    if method in SHARED:
        optimizer._client._shared[0].__enter__()
    os.kill(os.getpid(), signal.SIGKILL)


def make(method, optimizer, comm, timeout):
    if method in SYNCHRONOUS:
        return SYNCHRONOUS[method](optimizer, comm)
    if method in ("0", "2", "inf"):  # staleness
        return create_server_optimizer(
            optimizer, comm, float(method), servers=1, timeout=timeout
        )
    if method in SHARED:
        return create_server_optimizer(
            optimizer, comm, float(SHARED[method]), timeout=timeout
        )
    method = method.removeprefix("shared ")
    return create_gossip_optimizer(
        optimizer, comm, method, Complete(), timeout=timeout, probability=0.5
    )


def main():
    method, folder, timeout = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    deaths = dict(map(int, death.split(":")) for death in sys.argv[4:])
    warnings.simplefilter("ignore")  # each loss
    comm = create_communicator("mpi" if method.startswith("shared") else "messages")
    model = Point()
    optimizer = make(method, SGD(0.1).setup(model), comm, float(timeout))
    if getattr(optimizer, "is_server", False) and not optimizer.is_worker:
        optimizer.serve()
        left = optimizer.observe()["workers_left"] + 1
    else:
        for i, target in enumerate(targets(comm.rank, 40)):
            if deaths.get(comm.rank) == i:
                kill(method, optimizer)
            optimizer.update(model, target)
            time.sleep(0.002)
        if hasattr(optimizer, "join"):
            optimizer.join()
        left = optimizer.observe().get("workers_left", -1)
        left = getattr(optimizer, "ranks_left", left)
    np.savez(folder / f"{comm.rank}.npz", left=left, x=model.vector())
    os._exit(0)  # MPI_Finalize would wait for the ranks that are gone


main()
