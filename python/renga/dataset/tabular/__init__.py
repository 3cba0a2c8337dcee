"""Data sets of examples with named values, read by columns."""

from renga.dataset.tabular import delegate_dataset, tabular_dataset
from renga.dataset.tabular.delegate_dataset import DelegateDataset
from renga.dataset.tabular.from_data import from_data

__all__ = ["DelegateDataset", "delegate_dataset", "from_data", "tabular_dataset"]
