"""Data-parallel training: how the ranks' gradients become their mean.

:class:`Reducer` is the interface. Each kind of reducer, and each of its parts, is one
file.
"""

from renga.parallel.data.bucketed_reducer import BucketedReducer
from renga.parallel.data.buckets import Bucket
from renga.parallel.data.delayed_reducer import DelayedReducer
from renga.parallel.data.mean_reducer import MeanReducer
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.synchronization import (
    Eligibility,
    GradientSource,
    SyncRequest,
    SyncResult,
)
from renga.parallel.data.updating_reducer import UpdatingReducer

__all__ = [
    "Bucket",
    "BucketedReducer",
    "DelayedReducer",
    "Eligibility",
    "GradientSource",
    "MeanReducer",
    "Reducer",
    "UpdatingReducer",
    "SyncRequest",
    "SyncResult",
]
