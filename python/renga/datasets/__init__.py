"""Data sets to train on, and data sets made of others."""

from renga.datasets import (
    cifar,
    concatenated_dataset,
    dict_dataset,
    digits,
    fashion_mnist,
    kuzushiji_mnist,
    mnist,
    sub_dataset,
    transform_dataset,
    tuple_dataset,
)
from renga.datasets.cifar import get_cifar10, get_cifar100
from renga.datasets.concatenated_dataset import ConcatenatedDataset
from renga.datasets.dict_dataset import DictDataset
from renga.datasets.digits import get_digits
from renga.datasets.fashion_mnist import get_fashion_mnist, get_fashion_mnist_labels
from renga.datasets.kuzushiji_mnist import (
    get_kuzushiji_mnist,
    get_kuzushiji_mnist_labels,
)
from renga.datasets.mnist import get_mnist
from renga.datasets.sub_dataset import (
    SubDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)
from renga.datasets.transform_dataset import TransformDataset
from renga.datasets.tuple_dataset import TupleDataset

__all__ = [
    "ConcatenatedDataset",
    "DictDataset",
    "SubDataset",
    "TransformDataset",
    "TupleDataset",
    "cifar",
    "concatenated_dataset",
    "dict_dataset",
    "digits",
    "fashion_mnist",
    "get_cifar10",
    "get_cifar100",
    "get_cross_validation_datasets",
    "get_cross_validation_datasets_random",
    "get_digits",
    "get_fashion_mnist",
    "get_fashion_mnist_labels",
    "get_kuzushiji_mnist",
    "get_kuzushiji_mnist_labels",
    "get_mnist",
    "kuzushiji_mnist",
    "mnist",
    "split_dataset",
    "split_dataset_n",
    "split_dataset_n_random",
    "split_dataset_random",
    "sub_dataset",
    "transform_dataset",
    "tuple_dataset",
]
