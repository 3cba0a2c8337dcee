"""Options that are not numbers or not valid sizes are refused."""

import numpy
import pytest

import renga.functions as F

x = numpy.ones((2, 3))
images, labels = numpy.ones((1, 2, 3, 3)), numpy.zeros((1, 3, 3), "i")


@pytest.mark.parametrize("limit", [None, "x", [1.0, 2.0]])
def test_a_limit_is_a_number(limit):
    for call in (
        lambda: F.clipped_relu(x, limit),
        lambda: F.huber_loss(x, x, limit),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


@pytest.mark.parametrize(
    ("k", "error"), [(0, ValueError), (-1, ValueError), (None, TypeError)]
)
def test_there_is_an_instance_at_least(k, error):
    with pytest.raises(error):
        F.discriminative_margin_based_clustering_loss(images, labels, 0.5, 1.5, k)


def test_repeating_an_empty_array_zero_times():
    y = F.repeat(numpy.ones((2, 0, 3)), (), axis=1)
    assert y.shape == (2, 0, 3)
