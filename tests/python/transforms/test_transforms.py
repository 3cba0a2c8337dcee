"""Transforms of batches against loops over images and pixels."""

import colorsys
import inspect

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import transforms
from renga.iterators import SerialIterator
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)


def images(*shape, dtype="f"):
    return rng.uniform(0, 1, shape).astype(dtype)


def windows(image, height, width):
    """All windows of an image (C, H, W)."""
    return [
        image[:, i : i + height, j : j + width]
        for i in range(image.shape[1] - height + 1)
        for j in range(image.shape[2] - width + 1)
    ]


def test_random_crops_are_windows_and_every_place_occurs():
    x = images(300, 2, 4, 5)
    y = transforms.RandomCrop((3, 4))(x)
    assert y.shape == (300, 2, 3, 4) and y.dtype == x.dtype
    places = set()
    for image, part in zip(x, y):
        equal = [numpy.array_equal(part, w) for w in windows(image, 3, 4)]
        assert sum(equal) == 1
        places.add(equal.index(True))
    assert places == {0, 1, 2, 3}


def test_padded_crops_hold_zeros_beyond_the_edge():
    x = images(40, 1, 3, 3)
    y = transforms.RandomCrop(3, pad=1)(x)
    for image, part in zip(x, y):
        padded = numpy.zeros((1, 5, 5), "f")
        padded[:, 1:4, 1:4] = image
        assert any(numpy.array_equal(part, w) for w in windows(padded, 3, 3))


def test_center_crop():
    x = images(2, 3, 7, 6)
    numpy.testing.assert_array_equal(
        transforms.CenterCrop((3, 4))(x), x[:, :, 2:5, 1:5]
    )


@pytest.mark.parametrize("dtype", ["u1", "f"])
def test_resized_crops_are_of_rectangles_as_asked_for(dtype):
    """In an image whose values are places, the results tell the rectangles."""
    places = numpy.stack(numpy.mgrid[:40, :60])
    x = numpy.broadcast_to(places, (200, 2, 40, 60)).astype(dtype)
    y = transforms.RandomResizedCrop((5, 7), (0.1, 0.5), (0.5, 2.0))(x)
    assert y.shape == (200, 2, 5, 7) and y.dtype == numpy.float32
    # New pixels divide the rectangle evenly: one has its part of rows and columns.
    row, column = y[:, 0, 2, 0] - y[:, 0, 1, 0], y[:, 1, 0, 2] - y[:, 1, 0, 1]
    for axis, sizes, size in ((0, row, 5), (1, column, 7)):
        first = y[:, axis, 1, 1] - 1.5 * sizes + 0.5
        assert (first > -1e-3).all()
        assert (first + size * sizes < (40, 60)[axis] + 1e-3).all()
        numpy.testing.assert_allclose(size * sizes, (size * sizes).round(), atol=1e-3)
    area, ratio = 35 * row * column / 2400, 5 * row / (7 * column)
    assert 0.08 < area.min() < 0.15 and 0.4 < area.max() < 0.55
    assert 0.4 < ratio.min() < 0.6 and 1.5 < ratio.max() < 2.3


def test_flips():
    x = images(400, 1, 2, 3)
    y = transforms.RandomHorizontalFlip(0.25)(x)
    flipped = [numpy.array_equal(b, a[:, :, ::-1]) for a, b in zip(x, y)]
    kept = [numpy.array_equal(b, a) for a, b in zip(x, y)]
    assert all(a or b for a, b in zip(flipped, kept))
    assert 60 < sum(flipped) < 140  # 100 ± 8.7


def test_erased_rectangles():
    x = 1 + images(300, 2, 20, 30)
    y = transforms.RandomErasing(0.5, (0.05, 0.2), (0.5, 2.0), value=-1)(x)
    areas = []
    for before, after in zip(x, y):
        erased = (after == -1).all(0)
        numpy.testing.assert_array_equal(after[:, ~erased], before[:, ~erased])
        if erased.any():
            rows, columns = numpy.where(erased)
            assert erased[rows.min() : rows.max() + 1, columns.min() :][
                :, : columns.max() - columns.min() + 1
            ].all()
            height, width = numpy.ptp(rows) + 1, numpy.ptp(columns) + 1
            assert 0.4 < height / width < 2.5  # sides are rounded
            areas.append(height * width / 600)
    assert 110 < len(areas) < 190
    assert 0.03 < min(areas) and max(areas) < 0.23
    assert (x > 0).all()  # the input is left alone


def test_sides_of_erased_rectangles_by_default():
    """Zhong et al. draw from 0.3 to 1 / 0.3."""
    erased = transforms.RandomErasing(1, (0.05, 0.05), value=1)(images(400, 1, 60, 60))
    erased = erased[:, 0] == 1
    ratios = erased.any(2).sum(1) / erased.any(1).sum(1)
    assert 0.27 < ratios.min() < 0.35
    assert 2.9 < ratios.max() < 3.7


def test_normalize():
    x = images(4, 3, 5, 5, dtype="d")
    mean, std = [0.1, 0.2, 0.3], [0.5, 1.0, 2.0]
    y = transforms.Normalize(mean, std)(x)
    assert y.dtype == numpy.float32
    for c in range(3):
        numpy.testing.assert_allclose(y[:, c], (x[:, c] - mean[c]) / std[c], atol=1e-6)
    one = transforms.Normalize(0.5, 0.25)(images(1, 2, 2, 2) * 0 + 1)
    numpy.testing.assert_array_equal(one, 2)


def test_colours_of_single_pixels():
    x = images(6, 3, 3, 3, dtype="d")
    numpy.random.seed(1)
    y = transforms.ColorJitter(0.4, 0.5, 0.6)(x)
    numpy.random.seed(1)
    b, c, s = (numpy.random.uniform(1 - v, 1 + v, 6) for v in (0.4, 0.5, 0.6))
    for i in range(6):
        image = x[i] * b[i]
        # The standard library's first component of YIQ is the same luma, rounded.
        pixels = image.reshape(3, 9).T
        grey = numpy.array([colorsys.rgb_to_yiq(*p)[0] for p in pixels]).reshape(3, 3)
        image = grey.mean() + c[i] * (image - grey.mean())
        grey = grey.mean() + c[i] * (grey - grey.mean())
        image = grey + s[i] * (image - grey)
        numpy.testing.assert_allclose(y[i], image, atol=5e-3)


def test_no_jitter_is_the_identity():
    x = images(2, 3, 4, 4)
    numpy.testing.assert_allclose(transforms.ColorJitter()(x), x, atol=1e-6)


def test_defaults_are_those_of_torchvision_and_the_papers():
    def defaults(transform):
        signature = inspect.signature(transform)
        return {name: p.default for name, p in signature.parameters.items()}

    crop = {"scale": (0.08, 1), "ratio": (3 / 4, 4 / 3)}
    assert defaults(transforms.RandomResizedCrop).items() >= crop.items()
    erasing = {"p": 0.5, "scale": (0.02, 0.33), "ratio": (0.3, 3.3), "value": 0}
    assert defaults(transforms.RandomErasing) == erasing
    assert defaults(transforms.RandomHorizontalFlip) == {"p": 0.5}
    assert defaults(transforms.RandomCrop)["pad"] == 0
    assert defaults(transforms.Mixup)["alpha"] == 0.2


@pytest.mark.parametrize("seed", range(8))  # some mix an example with itself
def test_mixup_mixes_pairs_and_labels_alike(seed):
    numpy.random.seed(seed)
    x = numpy.eye(5, dtype="f")  # so that an example tells what it is made of
    t = numpy.arange(5, dtype="i")
    y, p = transforms.Mixup(5, alpha=1.0)(x, t)
    numpy.testing.assert_allclose(y, p)
    numpy.testing.assert_allclose(p.sum(1), 1, rtol=1e-6)
    m = p[p < 1].max()
    for value in p[p > 0]:
        assert min(abs(value - each) for each in (m, 1 - m, 1)) < 1e-6
    # Each example is used with both weights.
    numpy.testing.assert_allclose(p.sum(0), 1, rtol=1e-6)
    with pytest.raises(IndexError, match="labels from 0 to 2"):
        transforms.Mixup(3)(x, t)


def test_a_converter_trains_with_mixed_labels():
    data = [(image, numpy.int32(i % 3)) for i, image in enumerate(images(12, 1, 8, 8))]
    convert = transforms.converter(
        transforms.RandomCrop(8, pad=2),
        transforms.Compose(transforms.RandomHorizontalFlip(), lambda x: 2 * x),
        transforms.Mixup(3),
    )
    x, t = convert(data[:4], None)
    assert x.shape == (4, 1, 8, 8) and t.shape == (4, 3)
    model = L.Classifier(L.Linear(None, 3))
    model.compute_accuracy = False
    optimizer = renga.optimizers.SGD().setup(model)
    updater = renga.training.StandardUpdater(
        SerialIterator(data, 4), optimizer, converter=convert
    )
    updater.update()
    loss = F.softmax_cross_entropy(model.y, model.y.array * 0 + 1 / 3)
    assert loss.array > 0 and optimizer.t == 1
    alone = transforms.converter(transforms.CenterCrop(2))
    assert alone([image for image, _ in data], None).shape == (12, 1, 2, 2)
    with pytest.raises(TypeError, match="that are tuples, got dict"):
        alone([{"x": data[0][0]}], None)


@pytest.mark.parametrize("dtype", ["u1", "f", "d"])
def test_transforms_in_a_row_are_one_after_the_other(dtype):
    """Together they copy each image once; ColorJitter takes a batch."""
    row = (
        transforms.RandomCrop(9, pad=2),
        transforms.RandomHorizontalFlip(),
        transforms.Normalize([0.1, 0.2, 0.3], [0.5, 1.0, 2.0]),
        transforms.ColorJitter(0.1, 0.1, 0.1),
        transforms.CenterCrop(5),
    )
    x = (100 * images(6, 3, 10, 11)).astype(dtype)
    numpy.random.seed(3)
    expected = x
    for each in row:
        expected = each(expected)
    data = [(image, i) for i, image in enumerate(x)]
    for call in (
        lambda: transforms.Compose(*row)(x),
        lambda: transforms.converter(*row)(data, None)[0],
        lambda: transforms.converter(transforms.Compose(*row[:2]), *row[2:])(
            [*x], None
        ),
    ):
        numpy.random.seed(3)
        y = call()
        assert y.dtype == numpy.float32
        numpy.testing.assert_array_equal(y, expected)


def test_images_of_several_sizes_become_a_batch_by_a_crop():
    sizes = [(4, 9), (7, 4), (5, 5)]
    data = [(images(2, *size), i, 2 * i) for i, size in enumerate(sizes)]
    x, t, u = transforms.converter(transforms.CenterCrop((4, 3)))(data, None)
    middles = [(0, 3), (1, 0), (0, 1)]
    for image, (whole, _, _), (top, left) in zip(x, data, middles):
        part = whole[:, top : top + 4, left : left + 3]
        numpy.testing.assert_array_equal(image, part)
    assert t.tolist() == [0, 1, 2] and u.tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="of the first example, 3, got 2"):
        transforms.converter(transforms.CenterCrop(2))([data[0], data[1][:2]], None)
    for first in (transforms.RandomHorizontalFlip(), transforms.Normalize(0, 1)):
        with pytest.raises(InvalidType, match=r"of one shape, got \(2, 4, 9\)"):
            transforms.converter(first)(data, None)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: transforms.RandomCrop(0), ValueError, "expected at least 1"),
        (lambda: transforms.RandomCrop(3)(images(3, 4, 4)), InvalidType, r"\(N, C, H"),
        (lambda: transforms.RandomCrop(9)(images(1, 1, 4, 4)), InvalidType, "at least"),
        (lambda: transforms.RandomHorizontalFlip(2), ValueError, "from 0 to 1, got 2"),
        (
            lambda: transforms.RandomErasing(scale=(0, 2)),
            ValueError,
            "positive numbers in order",
        ),
        (
            lambda: transforms.RandomErasing(scale=(1, 2)),
            ValueError,
            "parts of an area",
        ),
        (
            lambda: transforms.RandomErasing(ratio=(0, 2)),
            ValueError,
            "positive numbers",
        ),
        (lambda: transforms.Normalize([0, 0], 0), ValueError, "positive deviations"),
        (
            lambda: transforms.Normalize([0, 0], 1)(images(1, 3, 2, 2)),
            InvalidType,
            "expected 2 channels",
        ),
        (lambda: transforms.ColorJitter(-1), ValueError, "number >= 0"),
        (
            lambda: transforms.ColorJitter(1)(images(1, 1, 2, 2)),
            InvalidType,
            r"\(N, 3, H, W\)",
        ),
        (lambda: transforms.Mixup(3, alpha=0), ValueError, "alpha > 0"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_empty_batches():
    x = numpy.zeros((0, 3, 4, 4), "f")
    for transform in (
        transforms.RandomCrop(2),
        transforms.RandomHorizontalFlip(),
        transforms.RandomErasing(),
        transforms.ColorJitter(1, 1, 1),
        transforms.Normalize(0, 1),
    ):
        assert len(transform(x)) == 0
