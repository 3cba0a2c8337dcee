"""Data-parallel training: how the ranks' gradients become their mean.

:class:`Reducer` is the interface. Each kind of reducer, and each of its parts, is one
file.
"""

from renga.distributed.data_parallel.bucketed_reducer import BucketedReducer
from renga.distributed.data_parallel.buckets import Bucket
from renga.distributed.data_parallel.delayed_reducer import DelayedReducer
from renga.distributed.data_parallel.mean_reducer import MeanReducer
from renga.distributed.data_parallel.reducer import Reducer
from renga.distributed.data_parallel.sharded_optimizer import (
    Eligibility,
    ShardedOptimizer,
)
from renga.distributed.data_parallel.synchronization import (
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
