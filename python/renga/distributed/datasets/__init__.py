"""Data sets scattered over ranks."""

from renga.distributed.datasets import empty_dataset, scatter
from renga.distributed.datasets.empty_dataset import create_empty_dataset
from renga.distributed.datasets.image_shards import ImageParts, ImageShards
from renga.distributed.datasets.scatter import (
    DataSizeError,
    scatter_dataset,
    scatter_index,
)

__all__ = [
    "DataSizeError",
    "ImageParts",
    "ImageShards",
    "create_empty_dataset",
    "empty_dataset",
    "scatter",
    "scatter_dataset",
    "scatter_index",
]
