"""Optimizers for several ranks, with ChainerMN's names."""

from renga.parallel.data.optimizers import create_multi_node_optimizer

__all__ = ["create_multi_node_optimizer"]
