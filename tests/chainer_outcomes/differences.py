# ruff: noqa: E501
"""Where renga differs from Chainer on purpose: its outcome, by file and case."""

# There is a value, whatever it is, where Chainer has an error.
COMPUTES = {"value": ...}


def error(name):
    return {"error": [name]}


def value(value):
    return {"value": value}


def all_of(outcome, cases):
    """The same outcome of several cases, one a line."""
    return {case: outcome for case in cases.strip().split("\n")}


DIFFERENCES = {}
DIFFERENCES["mixed_dtypes"] = {
    # Chainer cannot accumulate a gradient of another dtype.
    "F.batch_renormalization(s(N, 3), s(3), s(3), 2., 1., running_mean=numpy.zeros(3, DTYPE), running_var=numpy.ones(3, DTYPE)) with argument 0 of d": value(
        {
            "tuple": [
                [["float64", [2, 3], -0.508259, 8.47653]],
                [
                    [[2, 3], 0.00016, 0.000536],
                    [[3], -0.4915, 4.01424],
                    [[3], 7.26412, 6.08808],
                ],
            ]
        }
    ),
    **all_of(
        COMPUTES,
        """
F.deformable_convolution_2d_sampler(s(N, 3, 5, 5), u(N, 18, 3, 3), s(4, 3, 3, 3), s(4)) with argument 2 of d
F.dropout(s(N, 3), mask=2 * i(2, N, 3).astype(DTYPE)) with argument 0 of i
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 0 of e
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 0 of d
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 1 of e
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 1 of d
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 1 of i
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 2 of e
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 2 of d
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 2 of i
F.fliplr(s(N, 3)) with argument 0 of i
F.flipud(s(N, 3)) with argument 0 of i
F.im2col(s(N, 3, 5, 5), 3) with argument 0 of i
F.moveaxis(s(N, 3, 2), 0, 2) with argument 0 of i
F.pad(s(N, 3), ((1, 0), (0, 2)), 'constant', constant_values=3.) with argument 0 of i
F.sparse_matmul(coo(s(N).array, numpy.arange(N, dtype='i'), i(3, N), (N, 3)), s(3, 2)) with argument 0 of i
u(N, 3) ** 2.5 with argument 0 of i
2 / u(N, 3) with argument 0 of i
""",
    ),
    **all_of(
        error("InvalidType"),
        """
F.gumbel_softmax(s(N, 3)) with argument 0 of i
F.log_softmax(s(N, 3)) with argument 0 of i
F.softmax(s(N, 3)) with argument 0 of i
F.softmax(s(3, N), axis=1) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N)) with argument 0 of i
F.softmax_cross_entropy(s(N, 3, 2), i(3, N, 2)) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N), normalize=False) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N), class_weight=numpy.array([1, 2, 3], DTYPE)) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N), reduce='no') with argument 0 of i
F.softmax_cross_entropy(s(N, 3), numpy.full((N, 3), 1 / 3, DTYPE)) with argument 0 of i
F.sum_to(s(N, 3), (1, 3)) with argument 0 of i
F.sum_to(s(N, 3), (N, 1)) with argument 0 of i
""",
    ),
    **all_of(
        error("ValueError"),
        """
u(N, 3) ** s(N, 3) with argument 1 of i
2 ** s(N, 3) with argument 0 of i
""",
    ),
}
