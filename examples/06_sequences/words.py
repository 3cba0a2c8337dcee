"""Texts as sequences of words: a download, or the documentation inside Python."""

import ast
import re
import sysconfig
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import numpy

import renga

RARE = 5  # Words that occur less often are taken together as <unk>.


def load(size=None):
    """Words to train and to test with, at most ``size`` of each, and the vocabulary.

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
    train, test = train[:size], test[:size]
    print(
        f"{name}: {len(train)} words to train, {len(test)} to test with, "
        f"{len(vocabulary)} different ones"
    )
    return train, test, vocabulary


def documentation(more=(), rare=RARE):
    """The same of the topics of ``help()`` and of ``more`` texts."""
    texts = [topics[name] for name in sorted(topics)] + list(more)
    texts = [[*re.findall(r"[a-z_]+|[.,:()]", text.lower()), "<eos>"] for text in texts]
    test = [word for text in texts[::10] for word in text]
    train = [word for i, text in enumerate(texts) if i % 10 for word in text]
    counts = Counter(train).most_common()
    words = ["<unk>", *(word for word, count in counts if count >= rare)]
    vocabulary = {word: i for i, word in enumerate(words)}
    train, test = (
        numpy.array([vocabulary.get(word, 0) for word in text], numpy.int32)
        for text in (train, test)
    )
    return train, test, vocabulary


def docstrings(least=60):
    """Those of Python's library that have more than so many characters, each once."""
    root = Path(sysconfig.get_path("stdlib"))
    others = {"site-packages", "test", "tests", "idle_test", "lib2to3"}
    found = {}  # as a set that keeps the order
    for path in sorted(root.rglob("*.py")):
        if others.isdisjoint(path.parts):
            text = path.read_text(encoding="utf-8", errors="ignore")
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    found[ast.get_docstring(node) or ""] = None
    return [text for text in found if len(text) > least]
