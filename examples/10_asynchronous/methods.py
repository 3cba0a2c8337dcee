"""The ways to train that compare.py compares."""

import math
from typing import Any, Callable, NamedTuple

from renga.distributed import create_multi_node_optimizer
from renga.distributed.asynchronous import (
    create_elastic_averaging_optimizer,
    create_gossip_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import NesterovAG


class Method(NamedTuple):
    """How to make an optimizer of one for a single process, and what it needs."""

    make: Callable[[Any, Any], Any]
    servers: int = 0
    waits: bool = True  # whether all ranks have to make equally many updates


def served(staleness, **options):
    return Method(
        lambda opt, comm: create_server_optimizer(
            opt, comm, staleness, servers=1, **options
        ),
        servers=1,
        waits=False,
    )


def gossip(method, waits):
    return Method(
        lambda opt, comm: create_gossip_optimizer(opt, comm, method, probability=0.5),
        waits=waits,
    )


METHODS = {
    "synchronous": Method(create_multi_node_optimizer),
    "SSP(4)": served(4),
    "A-SGD": served(math.inf),
    "local SGD": Method(lambda opt, comm: create_local_sgd_optimizer(opt, comm, 16)),
    "DiLoCo": Method(
        lambda opt, comm: create_local_sgd_optimizer(
            opt, comm, 16, outer=NesterovAG(0.7, 0.5)
        )
    ),
    "EASGD": Method(lambda opt, comm: create_elastic_averaging_optimizer(opt, comm, 4)),
    "D-PSGD": gossip("dpsgd", True),
    "SGP": gossip("sgp", True),
    "AD-PSGD": gossip("adpsgd", False),
    "GoSGD": gossip("gosgd", False),
}
