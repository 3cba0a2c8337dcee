"""Training on several ranks, with ChainerMN's names."""

from renga import communicators as communicators
from renga.communicators import (
    CommunicatorBase as CommunicatorBase,
    create_communicator as create_communicator,
)
from renga.distributed import (
    asynchronous as asynchronous,
    compression as compression,
    datasets as datasets,
    elastic as elastic,
    extensions as extensions,
    functions as functions,
    global_except_hook as global_except_hook,
    iterators as iterators,
    links as links,
    optimizers as optimizers,
)
from renga.distributed.datasets import (
    DataSizeError as DataSizeError,
    scatter_dataset as scatter_dataset,
    scatter_index as scatter_index,
)
from renga.distributed.extensions import (
    create_multi_node_checkpointer as create_multi_node_checkpointer,
    create_multi_node_evaluator as create_multi_node_evaluator,
)
from renga.distributed.links import MultiNodeChainList as MultiNodeChainList
from renga.distributed.optimizers import (
    create_multi_node_optimizer as create_multi_node_optimizer,
)
from renga.links.parallel.sequence import (
    gather_sequence as gather_sequence,
    scatter_sequence as scatter_sequence,
)
from renga.links.parallel.spatial import (
    SpatialGrid as SpatialGrid,
    gather_image as gather_image,
    scatter_image as scatter_image,
)
from renga.parallel.groups import create_groups as create_groups
from renga.parallel.parallelize import parallelize as parallelize
from renga.parallel.placement import (
    Partial as Partial,
    Replicate as Replicate,
    Shard as Shard,
)
from renga.parallel.redistribute import redistribute as redistribute
