"""Data sets scattered over ranks."""

from renga.parallel.data.datasets import empty_dataset, scatter
from renga.parallel.data.datasets.empty_dataset import create_empty_dataset
from renga.parallel.data.datasets.image_shards import ImageShards
from renga.parallel.data.datasets.scatter import (
    DataSizeError,
    scatter_dataset,
    scatter_index,
)

__all__ = [
    "DataSizeError",
    "ImageShards",
    "create_empty_dataset",
    "empty_dataset",
    "scatter",
    "scatter_dataset",
    "scatter_index",
]
