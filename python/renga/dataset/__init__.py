"""Data sets, iterators over them and converters of their batches."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.dataset import (
    convert as convert,
    dataset_mixin as dataset_mixin,
    iterator as iterator,
    tabular as tabular,
)
from renga.dataset.convert import (
    ConcatWithAsyncTransfer as ConcatWithAsyncTransfer,
    Converter as Converter,
    concat_examples as concat_examples,
    converter as converter,
    to_device as to_device,
)
from renga.dataset.dataset_mixin import DatasetMixin as DatasetMixin
from renga.dataset.iterator import Iterator as Iterator
from renga.dataset.tabular.tabular_dataset import TabularDataset as TabularDataset

if TYPE_CHECKING:
    from renga.dataset import download as download
    from renga.dataset.download import (
        cache_or_load_file as cache_or_load_file,
        cached_download as cached_download,
        get_dataset_directory as get_dataset_directory,
        get_dataset_root as get_dataset_root,
        set_dataset_root as set_dataset_root,
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
