"""Texts as sequences of words: a download, or the documentation inside Python."""

import re
from collections import Counter
from pydoc_data.topics import topics

import numpy

import renga

RARE = 5  # Words that occur less often are taken together as <unk>.


def load(size=None):
    """Words to train with, at most ``size``, words to test with, and the vocabulary.

    These are the Penn Treebank's. Without a network and without files fetched earlier,
    they are those that ``help()`` shows for topics: of every tenth one to test with.

    Shapes:
        words: (n,), int32; vocabulary: each word's identifier
    """
    try:
        train, _, test = renga.datasets.get_ptb_words()
        vocabulary = renga.datasets.get_ptb_words_vocabulary()
        name = "Penn Treebank"
    except OSError as error:
        print(error)
        print("The Penn Treebank is not at hand: taking Python's documentation instead")
        train, test, vocabulary = documentation()
        name = "documentation"
    train = train[:size]
    print(
        f"{name}: {len(train)} words to train, {len(test)} to test with, "
        f"{len(vocabulary)} different ones"
    )
    return train, test, vocabulary


def documentation():
    texts = [
        [*re.findall(r"[a-z_]+|[.,:()]", topics[name].lower()), "<eos>"]
        for name in sorted(topics)
    ]
    test = [word for text in texts[::10] for word in text]
    train = [word for i, text in enumerate(texts) if i % 10 for word in text]
    counts = Counter(train).most_common()
    words = ["<unk>", *(word for word, count in counts if count >= RARE)]
    vocabulary = {word: i for i, word in enumerate(words)}
    train, test = (
        numpy.array([vocabulary.get(word, 0) for word in text], numpy.int32)
        for text in (train, test)
    )
    return train, test, vocabulary
