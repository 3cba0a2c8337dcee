"""Metrics of predictions, against counts and scikit-learn."""

import numpy
import pytest
from sklearn import metrics

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)
y, t = rng.normal(size=(50, 4)), rng.integers(0, 4, size=50)


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_binary_accuracy(dtype):
    scores = numpy.array([[0.1, 0.9], [0.8, -0.2], [0, 0]], dtype)
    labels = numpy.array([[0, 1], [-1, 1], [1, 0]])
    found = F.binary_accuracy(renga.Variable(scores[:, ::-1]), labels[:, ::-1])
    assert found.dtype == dtype and found.array == numpy.asarray(0.4, dtype)
    assert F.binary_accuracy(scores, labels * 0 - 1).array == 0


@pytest.mark.parametrize("beta", [1.0, 2.0])
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_classification_summary(beta, dtype):
    expected = metrics.precision_recall_fscore_support(t, y.argmax(1), beta=beta)
    found = F.classification_summary(renga.Variable(y.astype(dtype)), t, beta=beta)
    for f, e in zip(found, expected):
        numpy.testing.assert_allclose(f.array, e, 5e-3)
    assert [f.dtype for f in found] == ["d", "d", "d", "int64"]
    alone = F.precision(y, t)[0], F.recall(y, t)[0], F.f1_score(y, t)[0]
    expected = metrics.precision_recall_fscore_support(t, y.argmax(1))
    for f, e in zip(alone, expected):
        numpy.testing.assert_allclose(f.array, e)
    assert F.recall(y, t)[1].array.tolist() == numpy.bincount(t).tolist()


def test_ignored_and_missing_labels():
    kept = t != 2
    expected = metrics.precision_recall_fscore_support(
        t[kept], y[kept].argmax(1), labels=[0, 1, 2, 3, 4], zero_division=numpy.nan
    )
    found = F.classification_summary(y, t, 5, ignore_label=2)
    for f, e in zip(found[:2], expected):
        numpy.testing.assert_allclose(f.array, e)
    assert found[3].array.tolist() == expected[3].tolist()
    images = F.classification_summary(y.T.reshape(1, 4, 5, 10), t.reshape(1, 5, 10))
    plain = F.classification_summary(y, t)
    for f, e in zip(images, plain):
        numpy.testing.assert_array_equal(f.array, e.array)


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_r2_score(dtype):
    a, b = y.astype(dtype), (y + rng.normal(size=y.shape) / 2).astype(dtype)
    found = F.r2_score(renga.Variable(a), b)
    assert found.dtype == dtype
    numpy.testing.assert_allclose(found.array, metrics.r2_score(b, a), 5e-3)
    raw = F.r2_score(a, b, multioutput="raw_values")
    expected = metrics.r2_score(b, a, multioutput="raw_values")
    numpy.testing.assert_allclose(raw.array, expected, 5e-3)
    one = F.r2_score(a[:, 0], b[:, 0])
    numpy.testing.assert_allclose(one.array, metrics.r2_score(b[:, 0], a[:, 0]), 5e-3)
    assert F.r2_score(a, b * 0).array == 0
    # The mean of so many equal numbers is not exactly this number.
    many = numpy.full(1025, 0.3, dtype)
    assert F.r2_score(many + 1, many).array == 0


FAULTS = [
    (lambda: F.binary_accuracy(y, t), InvalidType),
    (lambda: F.binary_accuracy(y, y), InvalidType),
    (lambda: F.classification_summary(y, t[:2]), InvalidType),
    (lambda: F.classification_summary(y, y[:, 0]), InvalidType),
    (lambda: F.r2_score(y, y[:2]), InvalidType),
    (lambda: F.r2_score(y, y, multioutput="variance_weighted"), ValueError),
    (lambda: F.r2_score(y, y, sample_weight=t), NotImplementedError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
