"""Data sets to train on, and combinations of data sets."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.datasets import (
    concatenated_dataset as concatenated_dataset,
    dict_dataset as dict_dataset,
    digits as digits,
    image_dataset as image_dataset,
    pickle_dataset as pickle_dataset,
    sub_dataset as sub_dataset,
    text_dataset as text_dataset,
    transform_dataset as transform_dataset,
    tuple_dataset as tuple_dataset,
)
from renga.datasets.concatenated_dataset import (
    ConcatenatedDataset as ConcatenatedDataset,
)
from renga.datasets.dict_dataset import DictDataset as DictDataset
from renga.datasets.digits import get_digits as get_digits
from renga.datasets.downloaded import (
    cifar as cifar,
    mnist as mnist,
    ptb as ptb,
    svhn as svhn,
)
from renga.datasets.downloaded.cifar import (
    get_cifar10 as get_cifar10,
    get_cifar100 as get_cifar100,
)
from renga.datasets.downloaded.mnist import (
    get_fashion_mnist as get_fashion_mnist,
    get_fashion_mnist_labels as get_fashion_mnist_labels,
    get_kuzushiji_mnist as get_kuzushiji_mnist,
    get_kuzushiji_mnist_labels as get_kuzushiji_mnist_labels,
    get_mnist as get_mnist,
)
from renga.datasets.downloaded.ptb import (
    get_ptb_words as get_ptb_words,
    get_ptb_words_vocabulary as get_ptb_words_vocabulary,
)
from renga.datasets.downloaded.svhn import get_svhn as get_svhn
from renga.datasets.image_dataset import (
    ImageDataset as ImageDataset,
    LabeledImageDataset as LabeledImageDataset,
    LabeledZippedImageDataset as LabeledZippedImageDataset,
    MultiZippedImageDataset as MultiZippedImageDataset,
    ZippedImageDataset as ZippedImageDataset,
)
from renga.datasets.pickle_dataset import (
    PickleDataset as PickleDataset,
    PickleDatasetWriter as PickleDatasetWriter,
    open_pickle_dataset as open_pickle_dataset,
    open_pickle_dataset_writer as open_pickle_dataset_writer,
)
from renga.datasets.sub_dataset import (
    SubDataset as SubDataset,
    get_cross_validation_datasets as get_cross_validation_datasets,
    get_cross_validation_datasets_random as get_cross_validation_datasets_random,
    split_dataset as split_dataset,
    split_dataset_n as split_dataset_n,
    split_dataset_n_random as split_dataset_n_random,
    split_dataset_random as split_dataset_random,
)
from renga.datasets.text_dataset import TextDataset as TextDataset
from renga.datasets.transform_dataset import TransformDataset as TransformDataset
from renga.datasets.tuple_dataset import TupleDataset as TupleDataset

# Chainer has modules for these, too.
fashion_mnist = kuzushiji_mnist = mnist

_suggest_names(__name__)
