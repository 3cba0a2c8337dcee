"""The digits that come with scikit-learn."""

import importlib.util
import sys
import types

import numpy
import pytest

from renga.datasets import get_digits

sklearn_datasets = pytest.importorskip("sklearn.datasets")


def test_every_image_is_in_one_split_with_its_label():
    images, labels = sklearn_datasets.load_digits(return_X_y=True)
    train, test = get_digits(scale=16.0)
    assert (len(train), len(test)) == (1440, 357)
    got = sorted((tuple(x), t) for part in (train, test) for x, t in part)
    want = sorted((tuple(x), t) for x, t in zip(images.astype(numpy.float32), labels))
    assert got == want


def test_the_splits_are_fixed_and_have_every_class():
    first, again = get_digits()[1], get_digits()[1]
    assert all((a[0] == b[0]).all() and a[1] == b[1] for a, b in zip(first, again))
    counts = numpy.bincount([t for _, t in first], minlength=10)
    assert counts.min() >= 25


@pytest.mark.parametrize(
    "options, shape",
    [
        ({}, (64,)),
        ({"ndim": 2}, (8, 8)),
        ({"ndim": 3}, (1, 8, 8)),
        ({"ndim": 3, "upscale": 32, "rgb_format": True}, (3, 32, 32)),
        ({"upscale": 16}, (256,)),
    ],
)
def test_shapes_and_range(options, shape):
    train, test = get_digits(withlabel=False, **options)
    assert train.shape == (1440, *shape) and test.shape == (357, *shape)
    assert train.dtype == numpy.float32
    assert train.min() == 0 and 0.99 < train.max() <= 1


def test_types():
    train, _ = get_digits(dtype=numpy.float64, label_dtype=numpy.int64)
    x, t = train[0]
    assert x.dtype == numpy.float64 and t.dtype == numpy.int64


@pytest.mark.parametrize("side", [8, 12, 13, 32, 5])
def test_upscaling_is_scipys_linear_interpolation(side):
    ndimage = pytest.importorskip("scipy.ndimage")
    small = get_digits(withlabel=False, ndim=2, dtype=numpy.float64)[1][:5]
    large = get_digits(withlabel=False, ndim=2, dtype=numpy.float64, upscale=side)[1]
    centres = (numpy.arange(side) + 0.5) * 8 / side - 0.5
    grid = numpy.meshgrid(centres, centres, indexing="ij")
    for image, got in zip(small, large):
        want = ndimage.map_coordinates(image, grid, order=1, mode="nearest")
        numpy.testing.assert_allclose(got, want, atol=1e-12)


def test_colours_are_three_times_gray():
    train, _ = get_digits(withlabel=False, ndim=3, rgb_format=True)
    assert (train[:, 0] == train[:, 1]).all() and (train[:, 0] == train[:, 2]).all()


def test_without_scikit_learn_the_error_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        get_digits()


def test_where_the_file_is_elsewhere_scikit_learn_is_asked(monkeypatch, tmp_path):
    expected = get_digits(withlabel=False)
    elsewhere = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: elsewhere)
    for part, found in zip(expected, get_digits(withlabel=False)):
        numpy.testing.assert_array_equal(found, part)
