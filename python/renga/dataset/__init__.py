"""Data sets, iterators over them and converters of their batches."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.dataset import convert, dataset_mixin, iterator, tabular
from renga.dataset.convert import (
    ConcatWithAsyncTransfer,
    Converter,
    concat_examples,
    converter,
    to_device,
)
from renga.dataset.dataset_mixin import DatasetMixin
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

if TYPE_CHECKING:
    from renga.dataset import download
    from renga.dataset.download import (
        cache_or_load_file,
        cached_download,
        get_dataset_directory,
        get_dataset_root,
        set_dataset_root,
    )

_suggest_names(
    __name__,
    at_first_use={
        "renga.dataset": "download",
        "renga.dataset.download": (
            "cache_or_load_file cached_download get_dataset_directory "
            "get_dataset_root set_dataset_root"
        ),
    },
)
