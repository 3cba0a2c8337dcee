"""Data-parallel training: how the ranks' gradients become their mean.

:class:`Reducer` is the interface. Each kind of reducer, and each of its parts, is one
file.
"""

from renga.parallel.data.bucketed_reducer import BucketedReducer
from renga.parallel.data.buckets import Bucket
from renga.parallel.data.delayed_reducer import DelayedReducer
from renga.parallel.data.mean_reducer import MeanReducer
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.sharded_optimizer import ShardedOptimizer
from renga.parallel.data.synchronization import (
    Eligibility,
    GradientSource,
    SyncRequest,
    SyncResult,
)

__all__ = [
    "Bucket",
    "BucketedReducer",
    "DelayedReducer",
    "Eligibility",
    "GradientSource",
    "MeanReducer",
    "Reducer",
    "ShardedOptimizer",
    "SyncRequest",
    "SyncResult",
]
