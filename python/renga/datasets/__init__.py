"""Data sets to train on, and combinations of data sets."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.datasets import (
    concatenated_dataset,
    dict_dataset,
    digits,
    image_dataset,
    pickle_dataset,
    sub_dataset,
    text_dataset,
    transform_dataset,
    tuple_dataset,
)
from renga.datasets.concatenated_dataset import ConcatenatedDataset
from renga.datasets.dict_dataset import DictDataset
from renga.datasets.digits import get_digits
from renga.datasets.downloaded import (
    cifar,
    fashion_mnist,
    kuzushiji_mnist,
    mnist,
    ptb,
    svhn,
)
from renga.datasets.downloaded.cifar import get_cifar10, get_cifar100
from renga.datasets.downloaded.fashion_mnist import (
    get_fashion_mnist,
    get_fashion_mnist_labels,
)
from renga.datasets.downloaded.kuzushiji_mnist import (
    get_kuzushiji_mnist,
    get_kuzushiji_mnist_labels,
)
from renga.datasets.downloaded.mnist import get_mnist
from renga.datasets.downloaded.ptb import get_ptb_words, get_ptb_words_vocabulary
from renga.datasets.downloaded.svhn import get_svhn
from renga.datasets.image_dataset import (
    ImageDataset,
    LabeledImageDataset,
    LabeledZippedImageDataset,
    MultiZippedImageDataset,
    ZippedImageDataset,
)
from renga.datasets.pickle_dataset import (
    PickleDataset,
    PickleDatasetWriter,
    open_pickle_dataset,
    open_pickle_dataset_writer,
)
from renga.datasets.sub_dataset import (
    SubDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)
from renga.datasets.text_dataset import TextDataset
from renga.datasets.transform_dataset import TransformDataset
from renga.datasets.tuple_dataset import TupleDataset

__all__ = [
    "ConcatenatedDataset",
    "DictDataset",
    "ImageDataset",
    "LabeledImageDataset",
    "LabeledZippedImageDataset",
    "MultiZippedImageDataset",
    "PickleDataset",
    "PickleDatasetWriter",
    "SubDataset",
    "TextDataset",
    "TransformDataset",
    "TupleDataset",
    "ZippedImageDataset",
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
    "get_ptb_words",
    "get_ptb_words_vocabulary",
    "get_svhn",
    "image_dataset",
    "kuzushiji_mnist",
    "mnist",
    "open_pickle_dataset",
    "open_pickle_dataset_writer",
    "pickle_dataset",
    "ptb",
    "split_dataset",
    "split_dataset_n",
    "split_dataset_n_random",
    "split_dataset_random",
    "sub_dataset",
    "svhn",
    "text_dataset",
    "transform_dataset",
    "tuple_dataset",
]

_suggest_names(__name__)
