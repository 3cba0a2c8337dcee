"""The rows: each function with inputs of a few megabytes."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

import renga.functions as F
from renga.utils import CooMatrix


@dataclasses.dataclass(frozen=True)
class Input:
    """A random array, or a sequence of them.

    Attributes:
        draw: takes a ``numpy.random.RandomState`` and the shape.
        shape: of the array.
        needs_gradient: whether a backward pass computes its gradient.
        channels_last: whether the second axis is the last one in memory.
    """

    draw: Callable[[Any, Sequence[int]], numpy.ndarray]
    shape: tuple[int, ...]
    needs_gradient: bool = True
    channels_last: bool = False

    def array(self, random: Any) -> numpy.ndarray:
        x = numpy.ascontiguousarray(self.draw(random, self.shape))
        if not self.channels_last:
            return x
        return numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)


@dataclasses.dataclass(frozen=True)
class Row:
    """A function in one use.

    Attributes:
        function: its name in ``renga.functions``.
        use: what tells it from other rows of the function; may be empty.
        call: takes the inputs, and returns a Variable or several.
        inputs: Inputs, lists of Inputs, or constants.
        flops: of products in a forward pass; 0 where memory decides.
    """

    function: str
    use: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    flops: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.function} {self.use}".strip()


ROWS: list[Row] = []


def row(names: str, *inputs: Any, call: Any = None, use: str = "", flops: float = 0.0):
    """Adds a row for each of the names; ``call`` is the function itself by default."""
    for name in names.split():
        ROWS.append(Row(name, use, call or getattr(F, name), inputs, flops))


def normal(*shape: int, scale: float = 1.0) -> Input:
    return Input(lambda r, s: (scale * r.standard_normal(s)).astype("f"), shape)


def uniform(low: float, high: float, *shape: int) -> Input:
    return Input(lambda r, s: r.uniform(low, high, s).astype("f"), shape)


def indices(n: int, *shape: int) -> Input:
    return Input(lambda r, s: r.randint(0, n, s).astype("i"), shape, False)


def bools(*shape: int) -> Input:
    return Input(lambda r, s: r.random_sample(s) < 0.5, shape, False)


def matrices(*shape: int) -> Input:
    """Symmetric positive definite ones, far from singular."""

    def draw(random: Any, shape: Sequence[int]) -> numpy.ndarray:
        a = random.standard_normal(shape) * 0.3 / math.sqrt(shape[-1])
        return (numpy.eye(shape[-1]) + a @ a.swapaxes(-1, -2)).astype("f")

    return Input(draw, shape)


def constant(x: Input) -> Input:
    return dataclasses.replace(x, needs_gradient=False)


def last(x: Input) -> Input:
    """The same numbers with channels last."""
    return dataclasses.replace(x, channels_last=True)


IMAGES = (8, 32, 64, 64)
MATRIX = (1024, 1024)
ROWS_OF_TEN = (100_000, 10)
images, wide = normal(*IMAGES), normal(*IMAGES, scale=4.0)
matrix, tall = normal(*MATRIX), normal(*ROWS_OF_TEN)

# Element by element.
row("relu leaky_relu relu6 clipped_relu hard_sigmoid hard_swish crelu rrelu", images)
row("elu selu softplus gelu silu mish sigmoid tanh", images)
row("relu sigmoid gelu", last(images), use="channels last")
row("gelu", images, "tanh", use="tanh")
row("clip", images, -0.5, 0.7)
row("prelu", images, uniform(0.1, 0.4, 32))
row("swish", images, normal(32))
row("maxout", images, 4)
row("absolute square exp expm1 sin cos tan sinh cosh erf erfc erfcx", matrix)
row("sign floor ceil fix", constant(matrix))
row("sqrt rsqrt log log1p log2 log10 lgamma digamma", uniform(0.2, 4.0, *MATRIX))
row("arcsin arccos arctan arctanh erfinv", uniform(-0.95, 0.95, *MATRIX))
row("erfcinv", uniform(0.05, 1.95, *MATRIX))
row("ndtr log_ndtr", matrix)
row("ndtri", uniform(0.02, 0.98, *MATRIX))
row("polygamma", numpy.array(1), uniform(0.2, 4.0, 256, 256))
row("zeta", uniform(1.5, 4.0, 256, 256), constant(uniform(0.5, 2.0, 256, 256)))
row("add maximum minimum arctan2 squared_difference", matrix, matrix)
row("squared_error absolute_error", matrix, matrix)
row("fmod", matrix, uniform(0.3, 2.0, *MATRIX))
row("where", bools(*MATRIX), matrix, matrix)
row("linear_interpolate", uniform(0.0, 1.0, *MATRIX), matrix, matrix)
row("bias scale", images, normal(32))
row("cast", matrix, "d")
row("copy", matrix, -1)
row("identity", matrix)
row("forget", matrix, call=functools.partial(F.forget, F.tanh))
row("dropout", images)
row("zoneout", matrix, matrix)
row("gaussian", matrix, matrix)
row("gumbel_softmax", matrix)
ADDENDS = [normal(512, 512) for _ in range(4)]
row("add", ADDENDS, call=lambda xs: F.add(*xs), use="of four")

# Reductions.
row("sum mean average max min prod logsumexp", uniform(0.5, 1.5, *MATRIX))
row("sum max logsumexp", images, (0, 2, 3), use="of channels")
row("sum max", last(images), (0, 2, 3), use="of channels, channels last")
row(
    "sum max min prod logsumexp",
    uniform(0.5, 1.5, *ROWS_OF_TEN),
    1,
    use="of rows of ten",
)
row("sum max mean", matrix, 0, use="of columns")
row("argmax argmin", constant(matrix), 1)
row("cumsum cumprod", uniform(0.9, 1.1, *MATRIX), 1)
row("cumsum", matrix, 0, use="of columns")
row("sum_to", images, (1, 32, 1, 1))
row("batch_l2_norm_squared", matrix)
row("normalize", matrix)
row("softmax log_softmax", matrix)
row("softmax log_softmax", normal(4, 21, 96, 96), use="of pixels")
row("softmax log_softmax", tall, use="of rows of ten")
row("softmax", matrix, 0, use="of columns")

# Shapes and places of elements.
row("reshape", matrix, (512, 2048))
row("flatten", matrix)
row("broadcast_to", normal(1, 1024), MATRIX)
row("broadcast", normal(1024, 1), matrix, call=lambda *xs: F.broadcast(*xs)[0])
row("expand_dims", matrix, 1)
row("squeeze", normal(1024, 1, 1024))
row("transpose", matrix)
row("transpose", images, (0, 2, 3, 1), use="of images")
row("swapaxes", normal(64, 128, 128), 0, 1)
row("moveaxis", images, 1, -1)
row("rollaxis", images, 3, 1)
row("flip", matrix, 1)
row("fliplr flipud", matrix)
row("concat", [normal(8, 32, 32, 64)] * 4, 1)
row("concat", [normal(8, 12, 64, 64)] * 3, 1, use="of twelve channels")
row(
    "concat",
    [last(normal(8, 12, 64, 64))] * 3,
    1,
    use="of twelve channels, channels last",
)
row("stack", [normal(512, 512)] * 4)
row("vstack hstack dstack", [normal(512, 512)] * 4)
row("split_axis", images, 4, 1)
row("separate", normal(8, 512, 256), 0)
row("get_item", matrix, (slice(None), slice(None, None, 2)))
row("get_item", normal(8192, 128), indices(8192, 8192), use="by an array")
row("get_item", matrix, bools(1024), use="by booleans")
row("scatter_add", normal(8192, 128), indices(8192, 8192), normal(8192, 128))
row(
    "permutate",
    normal(8192, 128),
    constant(Input(lambda r, s: r.permutation(*s).astype("i"), (8192,))),
)
row("select_item", normal(100_000, 10), indices(10, 100_000))
row("diagonal", normal(16, 256, 256), 0, 1, 2)
row("as_strided", matrix, (1024, 512), (1024, 2))
row("repeat", normal(512, 512), 4, 1)
row("tile", normal(512, 512), (2, 2))
row("pad", images, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")
row("pad", images, ((0, 0), (0, 0), (1, 1), (1, 1)), "reflect", use="reflect")
row("pad_sequence", [normal(n, 64) for n in range(64, 192)])
row("transpose_sequence", [normal(n, 64) for n in range(192, 64, -1)])
row("depth2space space2depth", images, 2)
row("depth2space space2depth", last(images), 2, use="channels last")
row("im2col", normal(4, 16, 64, 64), 3, call=lambda x, k: F.im2col(x, k, 1, 1))
row("embed_id", indices(10_000, 8192), normal(10_000, 128))
row("position_embedding", normal(512, 256), normal(8, 512, 256))
row("rotary_embedding", normal(4, 8, 256, 128))
row("shift", images)
row("resize_images", normal(8, 32, 32, 32), (64, 64))

# Losses and scores.
labels, few = indices(1024, 1024), indices(10, 100_000)
row("softmax_cross_entropy label_smoothing_cross_entropy", matrix, labels)
row("softmax_cross_entropy", tall, few, use="of rows of ten")
row(
    "softmax_cross_entropy",
    normal(4, 21, 96, 96),
    indices(21, 4, 96, 96),
    use="of pixels",
)
row("sigmoid_cross_entropy", matrix, indices(2, *MATRIX))
row("bernoulli_nll", constant(uniform(0.0, 1.0, *MATRIX)), matrix)
row("gaussian_kl_divergence", matrix, normal(*MATRIX, scale=0.1))
row("gaussian_nll", matrix, matrix, normal(*MATRIX, scale=0.1))
row("mean_squared_error mean_absolute_error", matrix, matrix)
row("huber_loss", matrix, matrix, 1.0)
row("hinge", matrix, labels)
row("contrastive", normal(8192, 128), normal(8192, 128), indices(2, 8192))
row("triplet", normal(8192, 128), normal(8192, 128), normal(8192, 128))
row("accuracy", constant(matrix), labels)
row("binary_accuracy", constant(matrix), indices(2, *MATRIX))
row("classification_summary f1_score precision recall", constant(tall), few)
row("r2_score", constant(matrix), constant(matrix))
row(
    "cross_covariance", normal(1024, 256), normal(1024, 256), flops=2 * 1024 * 256 * 256
)
row("decov", normal(1024, 256), flops=2 * 1024 * 256 * 256)
row(
    "black_out",
    normal(1024, 256),
    indices(4096, 1024),
    normal(4096, 256),
    indices(4096, 1024, 16),
)
row(
    "negative_sampling",
    normal(1024, 256),
    indices(4096, 1024),
    normal(4096, 256),
    call=lambda x, t, W: F.negative_sampling(
        x,
        t,
        W,
        lambda shape: numpy.random.RandomState(0).randint(0, 4096, shape).astype("i"),
        16,
    ),
)
row(
    "discriminative_margin_based_clustering_loss",
    normal(2, 8, 64, 64),
    indices(4, 2, 64, 64),
    0.5,
    1.5,
    8,
)
row(
    "connectionist_temporal_classification",
    [normal(32, 40)] * 50,
    indices(39, 32, 12),
    call=lambda xs, t: F.connectionist_temporal_classification(xs, t, 39),
)
SENTENCES = [normal(64, 16)] * 40
row("crf1d", normal(16, 16), SENTENCES, [indices(16, 64)] * 40)
row(
    "argmax_crf1d",
    constant(normal(16, 16)),
    [constant(x) for x in SENTENCES],
    call=lambda cost, xs: F.argmax_crf1d(cost, xs)[0],
)

# Normalizations.
gamma, beta = normal(32), normal(32)
row("batch_normalization", images, gamma, beta)
row("batch_normalization", last(images), gamma, beta, use="channels last")
row(
    "fixed_batch_normalization fixed_batch_renormalization",
    images,
    gamma,
    beta,
    constant(normal(32)),
    constant(uniform(0.5, 2.0, 32)),
)
row(
    "batch_renormalization",
    images,
    gamma,
    beta,
    constant(normal(32)),
    constant(uniform(0.5, 2.0, 32)),
    call=lambda x, gamma, beta, mean, var: F.batch_renormalization(
        x, gamma, beta, 3.0, 5.0, running_mean=mean, running_var=var
    ),
)
row("layer_normalization", normal(2048, 512), normal(512), normal(512))
row("rms_normalization", normal(2048, 512), normal(512))
row("group_normalization", images, 8, gamma, beta)
row(
    "decorrelated_batch_normalization",
    images,
    call=lambda x: F.decorrelated_batch_normalization(x, groups=2),
)
row(
    "fixed_decorrelated_batch_normalization",
    images,
    constant(normal(2, 16)),
    constant(normal(2, 16, 16)),
    2,
)
row("local_response_normalization", images)

# Pooling and sampling.
for x, use in ((images, ""), (last(images), "channels last")):
    row("max_pooling_2d average_pooling_2d", x, 2, use=use)
    row("max_pooling_2d", x, 3, 2, 1, use=f"of overlapping windows {use}".strip())
    row(
        "unpooling_2d",
        dataclasses.replace(x, shape=(8, 32, 32, 32)),
        2,
        use=use,
        call=lambda x, k: F.unpooling_2d(x, k, outsize=(64, 64)),
    )
row("max_pooling_1d average_pooling_1d", normal(64, 32, 512), 2)
row(
    "unpooling_1d",
    normal(64, 32, 256),
    2,
    call=lambda x, k: F.unpooling_1d(x, k, outsize=(512,)),
)
volumes = normal(4, 16, 24, 24, 24)
row("max_pooling_3d average_pooling_3d", volumes, 2)
row("max_pooling_nd average_pooling_nd", volumes, 2)
for name in ("unpooling_3d", "unpooling_nd"):
    row(
        name,
        normal(4, 16, 12, 12, 12),
        2,
        call=functools.partial(getattr(F, name), outsize=(24, 24, 24)),
    )
row("spatial_pyramid_pooling_2d", images, 3, "max")
INDEXES = constant(Input(lambda r, s: r.randint(0, 4, s).astype("i"), (8, 32, 32, 32)))
row(
    "upsampling_2d",
    normal(8, 32, 32, 32),
    INDEXES,
    2,
    call=lambda x, i, k: F.upsampling_2d(x, i, k, outsize=(64, 64)),
)
rois = constant(
    Input(
        lambda r, s: (
            numpy.sort(r.uniform(0, 63, (s[0], 2, 2)), 1).reshape(s).astype("f")
        ),
        (64, 4),
    )
)
places = indices(8, 64)
for name in (
    "roi_average_align_2d",
    "roi_average_pooling_2d",
    "roi_max_align_2d",
    "roi_max_pooling_2d",
):
    row(name, images, rois, places, 7, 1.0)
row(
    "roi_pooling_2d",
    images,
    rois,
    call=lambda x, rois: F.roi_pooling_2d(
        x,
        numpy.concatenate((numpy.arange(64, dtype="f")[:, None] % 8, rois), 1),
        7,
        7,
        1.0,
    ),
)
grid = uniform(-1.0, 1.0, 8, 2, 64, 64)
row("spatial_transformer_grid", normal(64, 2, 3), (64, 64))
row("spatial_transformer_sampler", images, grid)

# Products.
row("matmul", normal(512, 512), normal(512, 512), flops=2 * 512**3)
row(
    "matmul",
    normal(1024, 16, 16),
    normal(1024, 16, 16),
    use="of small ones",
    flops=2 * 1024 * 16**3,
)
row("matmul", normal(1024, 6, 128), normal(1024, 128, 1), use="with vectors")
row("batch_matmul", normal(64, 64, 64), normal(64, 64, 64), flops=2 * 64**4)
row("linear", normal(512, 512), normal(512, 512), normal(512), flops=2 * 512**3)
row("linear", normal(1, 2048), normal(2048, 2048), use="of one sample")
row(
    "bilinear",
    normal(256, 32),
    normal(256, 32),
    normal(32, 32, 32),
    flops=2 * 256 * 32**3,
)
row("tensordot", normal(256, 16, 32), normal(16, 32, 256), flops=2 * 256 * 512 * 256)
row("einsum", "bij,bjk->bik", normal(64, 64, 64), normal(64, 64, 64), flops=2 * 64**4)
row("simplified_dropconnect", normal(32, 256), normal(256, 256), normal(256))
row(
    "sparse_matmul",
    constant(normal(20_000)),
    indices(512, 20_000),
    indices(512, 20_000),
    normal(512, 256),
    call=lambda data, i, j, x: F.sparse_matmul(CooMatrix(data, i, j, (512, 512)), x),
)
row(
    "scaled_dot_product_attention",
    normal(2, 8, 256, 64),
    normal(2, 8, 256, 64),
    normal(2, 8, 256, 64),
    flops=4 * 16 * 256 * 256 * 64,
)
row("det inv cholesky", matrices(128, 128), flops=128**3)
row("batch_det batch_inv", matrices(256, 16, 16), flops=256 * 16**3)
for transform in (F.fft, F.ifft):
    row(
        transform.__name__,
        normal(256, 1024),
        normal(256, 1024),
        call=lambda *parts, f=transform: f(parts),
    )


# Convolutions.
def convolution(
    names: str, x: Input, w: Input, flops: float, use: str = "", **options: Any
):
    for name in names.split():
        function = functools.partial(getattr(F, name), **options)
        ROWS.append(Row(name, use, function, (x, w), flops))


OF_IMAGES = 2 * 4 * 64 * 64 * 9 * 32 * 32
convolution(
    "convolution_2d convolution_nd",
    normal(4, 64, 32, 32),
    normal(64, 64, 3, 3),
    OF_IMAGES,
    pad=1,
)
convolution(
    "convolution_2d",
    last(normal(4, 64, 32, 32)),
    normal(64, 64, 3, 3),
    OF_IMAGES,
    "channels last",
    pad=1,
)
convolution(
    "convolution_2d",
    normal(4, 128, 32, 32),
    normal(128, 128, 1, 1),
    2 * 4 * 128 * 128 * 1024,
    "of pixels",
)
convolution(
    "convolution_2d",
    normal(4, 64, 32, 32),
    normal(64, 16, 3, 3),
    OF_IMAGES / 4,
    "in groups",
    pad=1,
    groups=4,
)
convolution(
    "convolution_2d",
    normal(4, 3, 64, 64),
    normal(32, 3, 7, 7),
    2 * 4 * 3 * 32 * 49 * 1024,
    "of colours",
    stride=2,
    pad=3,
)
convolution(
    "dilated_convolution_2d",
    normal(4, 64, 32, 32),
    normal(64, 64, 3, 3),
    OF_IMAGES,
    pad=2,
    dilate=2,
)
convolution(
    "convolution_1d",
    normal(8, 64, 1024),
    normal(64, 64, 3),
    2 * 8 * 64 * 64 * 3 * 1024,
    pad=2,
    dilate=2,
)
convolution(
    "convolution_3d",
    normal(1, 32, 16, 24, 24),
    normal(32, 32, 3, 3, 3),
    2 * 32 * 32 * 27 * 9216,
    pad=1,
)
convolution(
    "deconvolution_2d deconvolution_nd",
    normal(4, 64, 16, 16),
    normal(64, 32, 4, 4),
    2 * 4 * 64 * 32 * 16 * 256,
    stride=2,
    pad=1,
)
convolution(
    "deconvolution_1d",
    normal(8, 64, 512),
    normal(64, 32, 4),
    2 * 8 * 64 * 32 * 4 * 512,
    stride=2,
    pad=1,
)
convolution(
    "deconvolution_3d",
    normal(1, 32, 8, 12, 12),
    normal(32, 16, 4, 4, 4),
    2 * 32 * 16 * 64 * 1152,
    stride=2,
    pad=1,
)
convolution(
    "depthwise_convolution_2d",
    normal(4, 64, 64, 64),
    normal(1, 64, 3, 3),
    2 * 4 * 64 * 9 * 4096,
    pad=1,
)
convolution(
    "local_convolution_2d",
    normal(16, 8, 18, 18),
    normal(8, 16, 16, 8, 3, 3),
    2 * 16 * 8 * 256 * 72,
)
row(
    "deformable_convolution_2d_sampler",
    normal(2, 16, 32, 32),
    normal(2, 18, 32, 32),
    normal(16, 16, 3, 3),
    call=lambda x, offset, W: F.deformable_convolution_2d_sampler(x, offset, W, pad=1),
    flops=2 * 2 * 16 * 16 * 9 * 1024,
)

# Recurrent networks.
row("lstm", normal(512, 256), normal(512, 1024))
row("slstm", normal(512, 256), normal(512, 256), normal(512, 1024), normal(512, 1024))
row("tree_lstm", normal(512, 256), normal(512, 256), normal(512, 1280))
SEQUENCES = [normal(16, 64)] * 16


def recurrent(name: str, gates: int, directions: int, has_cell: bool):
    state = normal(directions, 16, 64)
    layers = [[normal(64, 64, scale=0.1)] * 2 * gates] * directions
    biases = [[normal(64)] * 2 * gates] * directions
    function = getattr(F, name)
    row(
        name,
        state,
        layers,
        biases,
        SEQUENCES,
        flops=2 * gates * directions * 2 * 256 * 64 * 64,
        call=lambda h, ws, bs, xs: function(1, 0.0, h, *[h] * has_cell, ws, bs, xs),
    )


for prefix, directions in (("n_step_", 1), ("n_step_bi", 2)):
    recurrent(f"{prefix}lstm", 4, directions, True)
    recurrent(f"{prefix}gru", 3, directions, False)
    recurrent(f"{prefix}rnn", 1, directions, False)
