"""Schedules for training with very large batches."""

from renga.extensions.large_batch.batch_size_shift import BatchSizeShift
from renga.extensions.large_batch.linear_scaling import LinearScaling
from renga.extensions.large_batch.rmsprop_warmup import RMSpropWarmup

__all__ = ["BatchSizeShift", "LinearScaling", "RMSpropWarmup"]
