"""Training on several ranks, with ChainerMN's names."""

from renga import communicators
from renga.communicators import CommunicatorBase, create_communicator
from renga.distributed import (
    asynchronous,
    compression,
    datasets,
    elastic,
    extensions,
    functions,
    global_except_hook,
    iterators,
    links,
    optimizers,
)
from renga.distributed.datasets import DataSizeError, scatter_dataset, scatter_index
from renga.distributed.extensions import (
    create_multi_node_checkpointer,
    create_multi_node_evaluator,
)
from renga.distributed.links import MultiNodeChainList
from renga.distributed.optimizers import create_multi_node_optimizer
from renga.links.parallel.sequence import gather_sequence, scatter_sequence
from renga.links.parallel.spatial import SpatialGrid, gather_image, scatter_image
from renga.parallel.groups import create_groups
from renga.parallel.parallelize import parallelize
from renga.parallel.placement import Partial, Replicate, Shard
from renga.parallel.redistribute import redistribute

__all__ = [
    "CommunicatorBase",
    "DataSizeError",
    "MultiNodeChainList",
    "Partial",
    "Replicate",
    "Shard",
    "SpatialGrid",
    "asynchronous",
    "communicators",
    "compression",
    "create_communicator",
    "create_groups",
    "create_multi_node_checkpointer",
    "create_multi_node_evaluator",
    "create_multi_node_optimizer",
    "datasets",
    "elastic",
    "extensions",
    "functions",
    "global_except_hook",
    "gather_image",
    "gather_sequence",
    "iterators",
    "links",
    "optimizers",
    "parallelize",
    "redistribute",
    "scatter_dataset",
    "scatter_image",
    "scatter_index",
    "scatter_sequence",
]
