"""Gossip: ranks that exchange parameters with their neighbours in a graph."""

from renga.parallel.asynchronous.gossip.random_gossip import (
    GoSGDOptimizer,
    PairwiseOptimizer,
)
from renga.parallel.asynchronous.gossip.synchronous import (
    DPSGDOptimizer,
    PushSumOptimizer,
)

__all__ = ["DPSGDOptimizer", "GoSGDOptimizer", "PairwiseOptimizer", "PushSumOptimizer"]
