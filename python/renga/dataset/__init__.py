"""Data sets, iterators over them and converters of their batches."""

from renga.dataset import convert, dataset_mixin, download, iterator, tabular
from renga.dataset.convert import (
    ConcatWithAsyncTransfer,
    Converter,
    concat_examples,
    converter,
    to_device,
)
from renga.dataset.dataset_mixin import DatasetMixin
from renga.dataset.download import (
    cache_or_load_file,
    cached_download,
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
)
from renga.dataset.iterator import Iterator
from renga.dataset.tabular.tabular_dataset import TabularDataset

__all__ = [
    "ConcatWithAsyncTransfer",
    "Converter",
    "DatasetMixin",
    "Iterator",
    "TabularDataset",
    "cache_or_load_file",
    "cached_download",
    "concat_examples",
    "convert",
    "converter",
    "dataset_mixin",
    "download",
    "get_dataset_directory",
    "get_dataset_root",
    "iterator",
    "set_dataset_root",
    "tabular",
    "to_device",
]
