"""Data sets scattered over ranks."""

from renga.parallel.data.datasets import (
    empty_dataset as empty_dataset,
    scatter as scatter,
)
from renga.parallel.data.datasets.empty_dataset import (
    create_empty_dataset as create_empty_dataset,
)
from renga.parallel.data.datasets.image_shards import ImageShards as ImageShards
from renga.parallel.data.datasets.scatter import (
    DataSizeError as DataSizeError,
    scatter_dataset as scatter_dataset,
    scatter_index as scatter_index,
)
