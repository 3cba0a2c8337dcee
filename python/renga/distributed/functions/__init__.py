"""Differentiable communication, by ChainerMN's names."""

from renga.distributed.functions.collective_communication import (
    allgather,
    allreduce,
    alltoall,
    bcast,
    gather,
    reduce_scatter,
    scatter,
)
from renga.distributed.functions.point_to_point_communication import recv, send
from renga.distributed.functions.pseudo_connect import pseudo_connect

__all__ = [
    "allgather",
    "allreduce",
    "alltoall",
    "bcast",
    "gather",
    "pseudo_connect",
    "recv",
    "reduce_scatter",
    "scatter",
    "send",
]
