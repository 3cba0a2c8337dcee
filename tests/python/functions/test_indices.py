"""Indices that come from arrays: labels, ids, places, images.

Each call takes an array of indices. One that lies outside is an IndexError and touches
no memory; every integer dtype, byte order and layout gives what int64 gives.
"""

from __future__ import annotations

import gc
from functools import partial

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core
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
    matrix = CooMatrix(VALUES, row, col, (4, 4))
    return F.sparse_matmul(matrix, DENSE)


# The name of each call: (the call, right indices, the number of elements they may name,
# indices of which one is also allowed, to be ignored).
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

# Calls whose indices Chainer takes as signed integers only.
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
    """The sums of the gradients of all that the calls share."""
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


def test_keys_changed_after_the_call():
    x = renga.Variable(numpy.arange(5, dtype="f"))
    for call in (
        lambda i: x[i],
        lambda i: F.scatter_add(x * 0, i, x[:2]),
        lambda i: F.permutate(x[:2], i),
    ):
        keys = numpy.array([1, 0])
        y = F.sum(call(keys) * numpy.arange(1, call(keys).size + 1, dtype="f"))
        keys[:] = 10**9
        x.cleargrad()
        y.backward()
        wanted = x.grad.copy()
        x.cleargrad()
        y = call(numpy.array([1, 0]))
        F.sum(y * numpy.arange(1, y.size + 1, dtype="f")).backward()
        numpy.testing.assert_array_equal(wanted, x.grad)


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 3, 1), (0, 4, 1)],
        [(2, 1, 1), (0, 4, 1)],
        [(-1, 1, 1), (0, 4, 1)],
        [(0, 2, 1), (3, 4, -1)],
        [(0, 2, 1), (3, 5, -1)],
        [(0, 2, 1), (0, 2, 4)],
        [(0, 2, 0), (0, 4, 1)],
        [(0, -1, 1), (0, 4, 1)],
        [(0, 2**62, 4), (0, 4, 1)],
        [(1, 2**63 - 1, 1), (0, 4, 1)],
        [(0, 3, 2**62), (0, 4, 1)],
        [(0, 5, 2**62), (0, 4, 1)],
        [(10**9, 1, 1), (0, 4, 1)],
        [(0, 2, 1)],
    ],
)
def test_slices_of_the_core(ranges):
    x = renga.Variable(numpy.arange(8, dtype="f").reshape(2, 4))
    places = [
        [start + step * k for k in range(min(length, 9))]
        for start, length, step in ranges
    ]
    inside = len(ranges) == 2 and all(
        length >= 0 and (step or length < 2) and all(0 <= p < n for p in place)
        for (_, length, step), place, n in zip(ranges, places, x.shape)
    )
    if not inside:
        with pytest.raises((IndexError, renga.utils.type_check.InvalidType)):
            _core.ops.slice(x, ranges)
        return
    y = _core.ops.slice(x, ranges)
    numpy.testing.assert_array_equal(y.array, x.array[numpy.ix_(*places)])


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -numpy.inf, 1e38])
@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("roi")])
def test_regions_that_are_not_finite(name, value):
    rois = ROIS.copy()
    rois[1, 2] = value
    if name in ("roi_average_pooling_2d", "roi_max_pooling_2d") and value == 1e38:
        getattr(F, name)(IMAGES, rois, numpy.array([0, 1, 1, 0]), 2, 1.0)
        return
    with pytest.raises(ValueError):
        getattr(F, name)(IMAGES, rois, numpy.array([0, 1, 1, 0]), 2, 1.0)


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("roi")])
def test_regions_of_images_without_pixels(name):
    x = numpy.zeros((1, 3, 0, 4), "f")
    with pytest.raises(renga.utils.type_check.InvalidType):
        getattr(F, name)(x, ROIS[:1], numpy.array([0]), 2, 1.0)


@pytest.mark.parametrize("image", [-1, 2, 0.5, numpy.nan, numpy.inf, 1e30])
def test_images_of_regions_as_floats(image):
    rois = numpy.array([[image, 0, 0, 3, 3]], "f")
    with pytest.raises((IndexError, ValueError)):
        F.roi_pooling_2d(IMAGES, rois, 2, 2, 1.0)


def test_backward_of_a_wrong_region_leaves_other_arrays_alone():
    x = renga.Variable(numpy.zeros((1, 1, 4, 4), "f"))
    others = [numpy.zeros((64, 64), "f") for _ in range(20)]
    for f in (F.roi_average_pooling_2d, F.roi_average_align_2d, F.roi_max_align_2d):
        with pytest.raises(IndexError):
            F.sum(f(x, ROIS[:1], numpy.array([1], "i"), 2, 1.0)).backward()
    gc.collect()
    assert not any(other.any() for other in others)


def test_sparse_batch_does_not_spill():
    """A row beyond the first matrix is not the first row of the second."""
    data = numpy.ones((2, 1), "f")
    for row, col in (([[4], [0]], [[0], [0]]), ([[0], [0]], [[4], [0]])):
        matrix = CooMatrix(data, numpy.array(row), numpy.array(col), (4, 4))
        with pytest.raises(IndexError):
            F.sparse_matmul(matrix, DENSE)


def test_crf1d_of_many_labels():
    """Pairs of labels are numbered up to K * K: more than uint8 holds."""
    k, rng = 40, numpy.random.RandomState(1)
    cost = rng.randn(k, k)
    xs = [rng.randn(3, k) for _ in range(3)]
    ys = [rng.randint(0, k, 3).astype("B") for _ in range(3)]
    score = sum(x[range(3), y] for x, y in zip(xs, ys))
    score += cost[ys[0], ys[1]] + cost[ys[1], ys[2]]
    alpha = xs[0]
    for x in xs[1:]:
        alpha = numpy.logaddexp.reduce(alpha[:, :, None] + cost, 1) + x
    expected = (numpy.logaddexp.reduce(alpha, 1) - score).mean()
    numpy.testing.assert_allclose(F.crf1d(cost, xs, ys).array, expected, rtol=1e-12)


class TestCtc:
    def loss(self, t, **lengths):
        lengths = {name: numpy.array(value) for name, value in lengths.items()}
        return F.connectionist_temporal_classification(
            STEPS, numpy.array(t), 0, reduce="no", **lengths
        ).array

    def test_what_follows_the_last_label_does_not_count(self):
        t = [[1, 2], [3, 1], [2, 2], [4, 3]]
        padded = [[1, -1], [3, 1], [2, 99], [4, -7]]
        expected = self.loss(t, label_length=[1, 2, 1, 1])
        numpy.testing.assert_array_equal(
            self.loss(padded, label_length=[1, 2, 1, 1]), expected
        )

    @pytest.mark.parametrize("name", ["input_length", "label_length"])
    @pytest.mark.parametrize("length", [-1, 4, 2**40])
    def test_lengths(self, name, length):
        with pytest.raises(IndexError, match=name):
            self.loss([[1], [2], [3], [4]], **{name: [1, 1, 1, length]})


def test_inverse_of_no_permutation():
    with pytest.raises(ValueError, match="once"):
        F.permutate(SCORES, numpy.array([0, 1, 1, 2, 3]), axis=1, inv=True)


def test_upsampling_of_windows_without_elements():
    """Windows in the padding alone have the index 0, as argmax finds it."""
    x = numpy.arange(4, dtype="f").reshape(1, 1, 2, 2)
    for ksize in (2, 16):
        y, at = F.max_pooling_2d(
            x, ksize, ksize, pad=ksize, cover_all=False, return_indices=True
        )
        assert at.min() >= 0 and at.max() < ksize * ksize
        F.upsampling_2d(y, at, ksize, pad=ksize, outsize=(2, 2), cover_all=False)


def test_indices_of_a_huge_window():
    """float32 counts in twos beyond 2^24, and such a window has more elements."""
    x = numpy.zeros((1, 4097, 4097, 2), "f")
    last = 4097 * 4097 - 2
    x.reshape(-1, 2)[last] = 1
    image = renga.Variable(x.transpose(0, 3, 1, 2))
    y, at = F.max_pooling_2d(image, 4097, return_indices=True)
    assert y.array.tolist() == [[[[1]], [[1]]]] and (at == last).all()
    F.sum(y).backward()
    found = image.grad.transpose(0, 2, 3, 1).reshape(-1, 2)
    assert (found[last] == 1).all() and found.sum() == 2


@pytest.mark.parametrize(
    "shape, strides, offset",
    [
        ((5,), (2**62,), 0),
        ((3, 3), (2**63 - 1, 1), 0),
        ((2,), (-1,), 0),
        ((2,), (1,), 9),
    ],
)
def test_strides_that_leave_the_array(shape, strides, offset):
    with pytest.raises(ValueError, match="elements 0 to 8"):
        F.as_strided(numpy.zeros((3, 3), "f"), shape, strides, offset)


class TestSampler:
    x = numpy.arange(9, dtype="f").reshape(1, 1, 3, 3) + 1

    def sample(self, column, row):
        grid = numpy.array([column, row], "f").reshape(1, 2, 1, 1)
        return F.spatial_transformer_sampler(self.x, grid).array.item()

    @pytest.mark.parametrize("value", [numpy.inf, -numpy.inf, 1e30, -1e30, 5])
    def test_far_outside(self, value):
        assert self.sample(value, 0) == 0 and self.sample(0, value) == 0

    def test_nan(self):
        assert numpy.isnan(self.sample(numpy.nan, 0))
