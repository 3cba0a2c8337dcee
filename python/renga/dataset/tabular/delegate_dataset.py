"""DelegateDataset: a table derived from another."""

from renga.dataset.tabular.tabular_dataset import DelegateDataset as DelegateDataset
