"""Arrays of indices as arguments: labels, ids, positions, images.

An index out of range is an IndexError and accesses no memory. Every integer dtype, byte
order and layout gives the same result as int64.
"""

from __future__ import annotations

from functools import partial

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributions import Categorical
from renga.utils import CooMatrix

random = numpy.random.RandomState(0)


def floats(*shape):
    return renga.Variable(random.randn(*shape).astype("f"))


SCORES, IMAGES, SMALL = floats(4, 5), floats(2, 3, 6, 6), floats(4, 3, 2, 2)
STEPS = [floats(4, 5) for _ in range(3)]
WEIGHT, COST, DENSE = floats(5, 5), floats(5, 5), floats(2, 4, 3)
ROIS = numpy.array([[0, 0, 4, 4], [1, 1, 6, 6], [0, 2, 3, 6], [2, 0, 6, 3]], "f")
TREE = L.BinaryHierarchicalSoftmax(5, (((0, 1), 2), (3, 4)))
TREE.W.array[...] = random.randn(*TREE.W.shape)
VALUES = random.randn(2, 4).astype("f")
LABELS = numpy.array([0, 1, 2, 3])
OTHERS = numpy.array([[0, 3, 1, 2], [2, 0, 3, 1]])


def sparse(row, col):
    matrix = CooMatrix(VALUES, row, col, (4, 4), "other")
    return F.sparse_matmul(matrix, DENSE)


# The keys are names; a value is (call, valid indices, number of elements, the index to
# ignore or None).
CALLS = {
    "embed_id": (lambda i: F.embed_id(i, WEIGHT), [0, 4, 2, 2], 5, None),
    "embed_id, ignoring": (
        lambda i: F.embed_id(i, WEIGHT, ignore_label=-1),
        [0, 4, -1, 2],
        5,
        -1,
    ),
    "select_item": (lambda i: F.select_item(SCORES, i), [0, 4, 2, 2], 5, None),
    "softmax_cross_entropy": (
        lambda i: F.softmax_cross_entropy(SCORES, i),
        [0, 4, -1, 2],
        5,
        -1,
    ),
    "softmax_cross_entropy, reduce no": (
        lambda i: F.softmax_cross_entropy(SCORES, i, reduce="no", ignore_label=7),
        [0, 4, 7, 2],
        5,
        7,
    ),
    "label_smoothing_cross_entropy": (
        lambda i: F.label_smoothing_cross_entropy(SCORES, i),
        [0, 4, -1, 2],
        5,
        -1,
    ),
    "sigmoid_cross_entropy": (
        lambda i: F.sigmoid_cross_entropy(SCORES[:, 0], i),
        [0, 1, -1, 1],
        2,
        -1,
    ),
    "hinge": (lambda i: F.hinge(SCORES, i), [0, 4, 2, 2], 5, None),
    "contrastive": (
        lambda i: F.contrastive(SCORES, WEIGHT[:4], i),
        [0, 1, 1, 0],
        2,
        None,
    ),
    "crf1d": (
        lambda i: F.crf1d(COST, STEPS, [i, i[:4], i[::-1]]),
        [0, 4, 2, 2],
        5,
        None,
    ),
    "ctc": (
        lambda i: F.connectionist_temporal_classification(STEPS, i[:, None], 0),
        [1, 4, 2, 3],
        5,
        None,
    ),
    "negative_sampling": (
        lambda i: F.negative_sampling(
            SCORES, i, WEIGHT, lambda shape: numpy.ones(shape, "i"), 3
        ),
        [0, 4, -1, 2],
        5,
        -1,
    ),
    "negative_sampling, drawn": (
        lambda i: F.negative_sampling(
            SCORES, LABELS, WEIGHT, lambda _: numpy.stack([0 * i, i], 1), 1
        ),
        [0, 4, 3, 2],
        5,
        None,
    ),
    "black_out": (
        lambda i: F.black_out(SCORES, i, WEIGHT, OTHERS.T[:4]),
        [0, 4, 2, 2],
        5,
        None,
    ),
    "black_out, samples": (
        lambda i: F.black_out(SCORES, LABELS, WEIGHT, i[:, None]),
        [0, 4, 2, 2],
        5,
        None,
    ),
    "sparse_matmul, rows": (
        lambda i: sparse(i, OTHERS),
        [[0, 3, -1, 2], [1, 1, 3, 0]],
        4,
        -1,
    ),
    "sparse_matmul, columns": (
        lambda i: sparse(OTHERS, i),
        [[0, 3, -1, 2], [1, 1, 3, 0]],
        4,
        -1,
    ),
    "permutate": (lambda i: F.permutate(SCORES, i, axis=1), [4, 2, 0, 1, 3], 5, None),
    "permutate back": (
        lambda i: F.permutate(SCORES, i, axis=1, inv=True),
        [4, 2, 0, 1, 3],
        5,
        None,
    ),
    "upsampling_2d": (
        lambda i: F.upsampling_2d(SMALL, i, 2),
        random.randint(0, 4, SMALL.shape).tolist(),
        4,
        None,
    ),
    "Categorical": (
        lambda i: Categorical(logit=SCORES).log_prob(i),
        [0, 4, 2, 2],
        5,
        None,
    ),
}
for _name in (
    "roi_average_pooling_2d",
    "roi_average_align_2d",
    "roi_max_align_2d",
    "roi_max_pooling_2d",
):
    CALLS[_name] = (
        partial(getattr(F, _name), IMAGES, ROIS, outsize=2, spatial_scale=1.0),
        [0, 1, 1, 0],
        2,
        None,
    )

# Calls for which Chainer requires signed integers.
SIGNED = {
    "sigmoid_cross_entropy",
    "hinge",
    "contrastive",
    "ctc",
    "negative_sampling",
    "roi_average_pooling_2d",
    "roi_average_align_2d",
    "roi_max_align_2d",
    "roi_max_pooling_2d",
}


def gradients(y):
    """The sums of the squared gradients of the shared arguments."""
    shared = (SCORES, WEIGHT, COST, IMAGES, SMALL, DENSE, *STEPS)
    for x in shared:
        x.cleargrad()
    F.sum(y).backward()
    return [0 if x.grad is None else float((x.grad**2).sum()) for x in shared]


def outside(n, ignored):
    least, most = numpy.iinfo("q").min, numpy.iinfo("q").max
    bad = (-1, -2, -n, n, n + 1, 255, 2**31, 2**32, 2**32 + 1, least, most)
    return [value for value in bad if value != ignored and not 0 <= value < n]


@pytest.mark.parametrize("name", CALLS)
def test_outside(name):
    call, right, n, ignored = CALLS[name]
    call(numpy.array(right))
    for value in outside(n, ignored):
        for at in (0, -1):
            wrong = numpy.array(right)
            wrong.ravel()[at] = value
            with pytest.raises(IndexError, match=f"to {n - 1}, got {value}"):
                call(wrong)


@pytest.mark.parametrize("name", CALLS)
def test_dtypes_and_layouts(name):
    call, right, _, _ = CALLS[name]
    right = numpy.array(right)
    expected = call(right)
    expected_gradients = gradients(expected)
    kinds = "bhilq" if name in SIGNED else "bhilqB"
    if right.min() < 0:
        kinds = kinds.replace("B", "")
    spread = numpy.zeros((*right.shape, 2), right.dtype)
    spread[..., 0] = right
    layouts = [right.astype(kind) for kind in kinds]
    layouts += [right.astype(">i4"), right.astype(">i8"), spread[..., 0]]
    layouts += [right[::-1].copy()[::-1], unaligned(right)]
    for given in layouts:
        y = call(given)
        numpy.testing.assert_array_equal(y.array, expected.array)
        assert gradients(y) == expected_gradients


def unaligned(x):
    bytes_of = numpy.zeros(x.nbytes + 1, "u1")
    y = bytes_of[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


@pytest.mark.parametrize("name", CALLS)
def test_not_integers(name):
    call, right, _, _ = CALLS[name]
    with pytest.raises((renga.utils.type_check.InvalidType, ValueError)):
        if name == "Categorical":  # samples may come as floats
            raise ValueError
        call(numpy.array(right, "d"))


def test_indices_changed_after_the_call():
    """Between forward and backward the caller may write into its labels."""
    for call in (
        lambda i: F.embed_id(i, WEIGHT),
        lambda i: F.select_item(SCORES, i),
        lambda i: F.softmax_cross_entropy(SCORES, i),
    ):
        ids = numpy.array([0, 4, 2, 2])
        expected = gradients(call(ids))
        y = call(ids)
        ids[:] = 10**9
        assert gradients(y) == expected


def test_sparse_batch_entries_stay_in_their_matrix():
    """A row beyond the first matrix is not the first row of the second."""
    data = numpy.ones((2, 1), "f")
    for row, col in (([[4], [0]], [[0], [0]]), ([[0], [0]], [[4], [0]])):
        matrix = CooMatrix(data, numpy.array(row), numpy.array(col), (4, 4))
        with pytest.raises(IndexError):
            F.sparse_matmul(matrix, DENSE)
