"""Gossip: ranks that exchange parameters with their neighbours in a graph."""

from renga.distributed.asynchronous.gossip.gosgd import GoSGDOptimizer
from renga.distributed.asynchronous.gossip.pairwise import PairwiseOptimizer
from renga.distributed.asynchronous.gossip.synchronous import (
    DPSGDOptimizer,
    PushSumOptimizer,
)

__all__ = ["DPSGDOptimizer", "GoSGDOptimizer", "PairwiseOptimizer", "PushSumOptimizer"]
