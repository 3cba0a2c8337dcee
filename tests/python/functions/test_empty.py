"""Batches of no samples go through, in the shapes that others would have."""

import numpy
import pytest

import renga.functions as F


def f(*shape):
    return numpy.zeros(shape, "f")


def i(*shape):
    return numpy.zeros(shape, "i")


CASES = [
    (lambda: F.convolution_nd(f(0, 3, 5), f(4, 3, 3)), (0, 4, 3)),
    (lambda: F.deconvolution_nd(f(0, 3, 2, 2, 2), f(3, 4, 3, 3, 3)), (0, 4, 4, 4, 4)),
    (lambda: F.max_pooling_nd(f(0, 3, 4, 4, 4), 2), (0, 3, 2, 2, 2)),
    (lambda: F.average_pooling_nd(f(0, 3, 4), 2), (0, 3, 2)),
    (lambda: F.unpooling_nd(f(0, 3, 4), 2, cover_all=False), (0, 3, 8)),
    (lambda: F.spatial_transformer_grid(f(0, 2, 3), (4, 5)), (0, 2, 4, 5)),
    (
        lambda: F.spatial_transformer_sampler(f(0, 3, 5, 5), f(0, 2, 4, 4)),
        (0, 3, 4, 4),
    ),
    (
        lambda: F.deformable_convolution_2d_sampler(
            f(0, 3, 5, 5), f(0, 18, 3, 3), f(4, 3, 3, 3)
        ),
        (0, 4, 3, 3),
    ),
    (lambda: F.shift(f(0, 9, 5, 5)), (0, 9, 5, 5)),
    (lambda: F.local_response_normalization(f(0, 3, 2, 2)), (0, 3, 2, 2)),
    (lambda: F.group_normalization(f(0, 4), 2, f(4), f(4)), (0, 4)),
    (lambda: F.layer_normalization(f(0, 3), f(3), f(3)), (0, 3)),
    (lambda: F.black_out(f(0, 3), i(0), f(4, 3), i(0, 2), "no"), (0,)),
    (lambda: F.negative_sampling(f(0, 3), i(0), f(4, 3), lambda s: i(*s), 2), ()),
    (lambda: F.crf1d(f(3, 3), [f(0, 3)], [i(0)], "no"), (0,)),
    (
        lambda: F.connectionist_temporal_classification(
            [f(0, 3)] * 3, i(0, 2), 0, reduce="no"
        ),
        (0,),
    ),
    (lambda: F.lstm(f(0, 3), f(0, 12))[0], (0, 3)),
    (
        lambda: F.n_step_lstm(
            1, 0.0, f(1, 0, 3), f(1, 0, 3), [[f(3, 3)] * 8], [[f(3)] * 8], [f(0, 3)]
        )[0],
        (1, 0, 3),
    ),
    (lambda: F.batch_inv(f(0, 2, 2)), (0, 2, 2)),
    (lambda: F.as_strided(f(4), (0,), (1,)), (0,)),
]


@pytest.mark.parametrize(("call", "shape"), CASES)
def test_shape(call, shape):
    y = call()
    assert y.shape == shape and y.dtype == numpy.float32
