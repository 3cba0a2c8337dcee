"""BinaryHierarchicalSoftmax against the probabilities of paths."""

import itertools

import numpy
import pytest

import renga
import renga.links as L
from tests.catalogue.links.loss import TREE, WORDS, X


def test_probabilities_add_up_to_one():
    link = L.BinaryHierarchicalSoftmax(3, TREE, dtype="d")
    assert link.W.shape == (4, 3) and link.W.dtype == numpy.float64
    assert abs(link.W.array).max() <= 1
    losses = [link(X[:1], numpy.array([word], "i")).array for word in range(5)]
    numpy.testing.assert_allclose(numpy.exp(-numpy.array(losses)).sum(), 1)


def test_no_word():
    link = L.BinaryHierarchicalSoftmax(3, TREE)
    x = X.astype("f")
    assert link(x[:0], WORDS[:0]).array == 0
    for words in ([0, 5, 0, 0], [0, -1, 0, 0]):
        with pytest.raises(IndexError):
            link(x, numpy.array(words, "i"))


@pytest.mark.parametrize(
    ("x", "t"),
    [
        (X, WORDS.astype("f")),
        (X, WORDS.astype("l")),
        (X, WORDS[:2]),
        (X[:, :2], WORDS),
        (X[0], WORDS),
        (X.astype("e"), WORDS),
    ],
)
def test_wrong_inputs(x, t):
    link = L.BinaryHierarchicalSoftmax(3, TREE, dtype="d")
    with pytest.raises(renga.utils.type_check.InvalidType):
        link(x, t)


def test_wrong_tree():
    with pytest.raises(ValueError, match="pair"):
        L.BinaryHierarchicalSoftmax(3, ((0, 1), (2, 3, 4)))


def depths(tree, depth=0):
    if not isinstance(tree, tuple):
        return {tree: depth}
    return {w: d for node in tree for w, d in depths(node, depth + 1).items()}


def test_huffman_tree():
    create = L.BinaryHierarchicalSoftmax.create_huffman_tree
    assert create({0: 8, 1: 5, 2: 6, 3: 4}) == ((3, 1), (2, 0))
    assert create({7: 2, 3: 2, 5: 2}) == (5, (7, 3))
    assert create({4: 1}) == 4
    with pytest.raises(ValueError, match="counts of words"):
        create({})
    counts = dict(enumerate([3, 1, 4, 1, 5]))
    found = sum(counts[w] * d for w, d in depths(create(counts)).items())
    # No tree has shorter paths: one for which Kraft's inequality holds.
    best = min(
        sum(c * d for c, d in zip(counts.values(), lengths))
        for lengths in itertools.product(range(1, 5), repeat=5)
        if sum(2.0**-d for d in lengths) <= 1
    )
    assert found == best
