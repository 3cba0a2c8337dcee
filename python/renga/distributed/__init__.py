"""Training on several ranks, by ChainerMN's names."""

from renga import communicators
from renga.communicators import CommunicatorBase, create_communicator
from renga.distributed import datasets, extensions, functions, links, optimizers
from renga.distributed.datasets import DataSizeError, scatter_dataset, scatter_index
from renga.distributed.extensions import create_multi_node_evaluator
from renga.distributed.optimizers import create_multi_node_optimizer

__all__ = [
    "CommunicatorBase",
    "DataSizeError",
    "communicators",
    "create_communicator",
    "create_multi_node_evaluator",
    "create_multi_node_optimizer",
    "datasets",
    "extensions",
    "functions",
    "links",
    "optimizers",
    "scatter_dataset",
    "scatter_index",
]
