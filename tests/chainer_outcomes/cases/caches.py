"""Data sets that Chainer 7 has prepared in its folder."""

import os

import chainer
import chainer.datasets
import numpy as np


def pixels(*shape):
    return (np.arange(int(np.prod(shape))) * 7 % 251).reshape(shape).astype("B")


def prepared(name, **files):
    """A folder of data sets with Chainer's files."""
    chainer.dataset.set_dataset_root(os.getcwd())
    folder = os.path.join("pfnet", "chainer", name)
    os.makedirs(folder)
    for file, arrays in files.items():
        np.savez_compressed(os.path.join(folder, file + ".npz"), **arrays)
    return folder


def shown(*datasets):
    found = []
    for dataset in datasets:
        image, label = dataset[2]
        found.append((len(dataset), image.sum(), image.shape, str(image.dtype), label))
    return found


def idx(name, get):
    splits = {
        split: {"x": pixels(n, 784), "y": np.arange(n).astype("B")}
        for split, n in (("train", 5), ("test", 3))
    }
    prepared(name, **splits)
    return shown(*get()), shown(*get(ndim=3, scale=255.0))


def case_mnist():
    return idx("mnist", chainer.datasets.get_mnist)


def case_fashion_mnist():
    return idx("fashion-mnist", chainer.datasets.get_fashion_mnist)


def case_kuzushiji_mnist():
    return idx("kuzushiji_mnist", chainer.datasets.get_kuzushiji_mnist)


def cifar(name, get):
    arrays = {"train_x": pixels(5, 3072), "train_y": np.arange(5).astype("B")}
    arrays.update(test_x=pixels(3, 3072), test_y=np.arange(3).astype("B"))
    prepared("cifar", **{name: arrays})
    return shown(*get()), shown(*get(ndim=1))


def case_cifar10():
    return cifar("cifar-10", chainer.datasets.get_cifar10)


def case_cifar100():
    return cifar("cifar-100", chainer.datasets.get_cifar100)


def case_svhn():
    splits = {
        split: {
            "x": pixels(32, 32, 3, n),
            "y": (1 + np.arange(n) % 10).astype("B").reshape(-1, 1) + 8,
        }
        for split, n in (("train", 5), ("test", 3))
    }
    for arrays in splits.values():
        arrays["y"] = np.minimum(arrays["y"], 10)
    prepared("svhn", **splits)
    return shown(*chainer.datasets.get_svhn())


def case_ptb():
    words = {"train": [0, 1, 2, 0], "valid": [1, 1], "test": [2, 0, 1]}
    folder = prepared(
        "ptb", **{split: {"x": np.array(x, "i")} for split, x in words.items()}
    )
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("the\ncat\n<eos>\n")
    found = chainer.datasets.get_ptb_words()
    return found, chainer.datasets.get_ptb_words_vocabulary()
