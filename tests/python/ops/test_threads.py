"""Results have the same bits on any number of threads: operations and networks."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core
from tests.catalogue import CASES
from tests.threads import on_threads

THREADS = (1, 2, 3)


def with_threads(compute):
    """What ``compute`` returns with each number of threads: lists of arrays."""

    def seeded():
        np.random.seed(0)
        return compute()

    return on_threads(seeded, THREADS)


def assert_same_bits(compute):
    first, *others = with_threads(compute)
    for threads, other in zip(THREADS[1:], others):
        for i, (a, b) in enumerate(zip(first, other)):
            assert a.dtype == b.dtype and a.shape == b.shape
            different = np.sum(a.view(np.uint8) != b.view(np.uint8)) if a.size else 0
            assert not different, f"result {i} differs with {threads} threads"


def arrays_of(results):
    results = results if isinstance(results, (list, tuple)) else [results]
    return [np.ascontiguousarray(getattr(y, "array", y)) for y in results]


def differentiate(function, arrays):
    xs = [renga.Variable(a) for a in arrays]
    ys = function(*xs)
    ys = list(ys) if isinstance(ys, (list, tuple)) else [ys]
    weights = [np.cos(np.arange(y.size, dtype=y.dtype)).reshape(y.shape) for y in ys]
    used = [i for i, y in enumerate(ys) if y.dtype.kind == "f" and y.requires_grad]
    grads = renga.grad(
        [ys[i] for i in used],
        [x for x in xs if x.dtype.kind == "f"],
        [renga.Variable(weights[i]) for i in used],
    )
    return arrays_of([*ys, *(g for g in grads if g is not None)])


ALL_CASES = [
    pytest.param(name, i, id=f"{name}-{i}")
    for name, cases in CASES.items()
    for i in range(len(cases))
]


@pytest.mark.parametrize("name, i", ALL_CASES)
def test_every_operation(name, i):
    case = CASES[name][i]
    random = np.random.default_rng(0)
    arrays = [
        random.uniform(case.low, case.high, shape).astype("f") for shape in case.shapes
    ]

    def compute():
        if case.orders == 0:
            return arrays_of(case.call(_core.ops, *map(renga.Variable, arrays)))
        return differentiate(lambda *xs: case.call(_core.ops, *xs), arrays)

    assert_same_bits(compute)


UNARY = """absolute arctan cos elu erf exp expm1 floor gelu hard_sigmoid hard_swish
leaky_relu log1p mish negative prod relu sigmoid sign silu sin sinh softplus sqrt
square sum max min tanh""".split()
BINARY = "add arctan2 divide maximum minimum multiply power subtract".split()


@pytest.mark.parametrize("name", UNARY + BINARY)
@pytest.mark.parametrize("axis", [None, (0,), (1,)])
def test_operations_on_large_arrays(name, axis):
    random = np.random.default_rng(0)
    count = 2 if name in BINARY else 1
    arrays = [random.uniform(0.5, 1.5, (777, 901)).astype("f") for _ in range(count)]
    reduces = name in ("max", "min", "prod", "sum")

    def compute():
        xs = map(renga.Variable, arrays)
        y = getattr(_core.ops, name)(*xs, *([axis] if reduces else []))
        return arrays_of(y if reduces else [y, _core.ops.sum(y, axis)])

    assert_same_bits(compute)


def random_array(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


# samples, inputs, extent, outputs, kernel, stride, pad, groups, dilation. Large images
# have few samples, but more than there are threads.
CONVOLUTIONS = [
    (4, 16, 112, 96, 1, 1, 0, 1, 1),
    (8, 96, 56, 24, 1, 1, 0, 1, 1),
    (4, 3, 224, 32, 3, 2, 1, 1, 1),
    (4, 3, 112, 64, 7, 2, 3, 1, 1),
    (4, 3, 227, 96, 11, 4, 0, 1, 1),
    (16, 3, 32, 64, 3, 1, 1, 1, 1),
    (8, 64, 32, 64, 3, 1, 1, 1, 1),
    (16, 256, 8, 256, 3, 1, 1, 1, 1),
    (8, 64, 28, 256, 1, 1, 0, 1, 1),
    (8, 256, 28, 128, 1, 2, 0, 1, 1),
    (16, 512, 7, 256, 1, 1, 0, 1, 1),
    (16, 128, 14, 256, 3, 2, 1, 1, 1),
    (64, 3, 32, 64, 4, 2, 1, 1, 1),
    (16, 64, 16, 128, 4, 2, 1, 1, 1),
    (64, 1, 28, 6, 5, 1, 0, 1, 1),
    (2, 8, 17, 9, 3, 2, 1, 1, 1),
    (4, 16, 33, 20, 5, 3, 2, 1, 1),
    (1, 3, 300, 20, 3, 1, 1, 1, 1),
    (1, 8, 257, 10, 5, 2, 4, 1, 1),
    (8, 64, 28, 64, 3, 1, 1, 4, 1),
    (8, 32, 28, 64, 3, 1, 2, 1, 2),
    (8, 48, 28, 48, 3, 1, 1, 48, 1),
    (16, 64, 32, 3, 3, 1, 1, 1, 1),
    (1, 64, 56, 64, 3, 1, 1, 1, 1),
    (1, 96, 45, 32, 3, 1, 1, 1, 1),
    (16, 512, 14, 128, 1, 1, 0, 1, 1),
    (4, 256, 28, 512, 1, 2, 0, 1, 1),
    # With AVX2, oneDNN cuts sums of these by the number of threads.
    (1, 28, 39, 61, 5, 1, 1, 1, 1),
    (4, 20, 27, 28, 5, 2, 1, 1, 1),
    (2, 16, 20, 32, 3, 2, 1, 1, 1),
    (8, 40, 25, 18, 7, 2, 4, 2, 1),
    (4, 10, 20, 2, 5, 2, 2, 1, 1),
]


# Large images take long in float64, and have no algorithm of their own there.
CONVOLUTIONS_AND_DTYPES = [
    (sizes, dtype)
    for sizes in CONVOLUTIONS
    for dtype in (np.float32, renga.mixed_bfloat16, np.float64)
    if dtype != np.float64 or sizes[2] <= 60
]


@pytest.mark.parametrize(("sizes", "dtype"), CONVOLUTIONS_AND_DTYPES, ids=str)
def test_convolutions(sizes, dtype):
    n, inputs, extent, outputs, k, stride, pad, groups, dilate = sizes
    x = random_array(0, n, inputs, extent, extent)
    W = random_array(1, outputs, inputs // groups, k, k)

    def convolve(x, W):
        options = {"stride": stride, "pad": pad, "groups": groups, "dilate": dilate}
        return F.convolution_2d(x, W, **options)

    if dtype == np.float64:
        x, W = x.astype(dtype), W.astype(dtype)
    with renga.using_config("dtype", dtype):
        # Only the second time, oneDNN's convolutions on several threads are trusted.
        assert_same_bits(
            lambda: [y for _ in range(2) for y in differentiate(convolve, [x, W])]
        )


@pytest.mark.parametrize("shape", [(64, 128, 4, 4), (16, 64, 16, 16)], ids=str)
def test_deconvolutions(shape):
    x, W = random_array(0, *shape), random_array(1, shape[1], 3, 4, 4)
    assert_same_bits(
        lambda: differentiate(lambda x, W: F.deconvolution_2d(x, W, None, 2, 1), [x, W])
    )


@pytest.mark.parametrize("axes", [1, 3])
def test_convolutions_of_one_and_three_axes(axes):
    x = random_array(0, 4, 8, *[20] * axes)
    W = random_array(1, 16, 8, *[3] * axes)
    assert_same_bits(
        lambda: differentiate(lambda x, W: F.convolution_nd(x, W, pad=1), [x, W])
    )


PRODUCTS = [  # samples, inputs, outputs
    (16, 1280, 1000),
    (64, 512, 10),
    (64, 784, 1000),
    (100, 1000, 1000),
    (8, 25088, 512),
    (1, 4096, 1000),
    (1, 30000, 300),
    (3, 100000, 5),
    (7, 333, 77),
    (20, 650, 1003),
    (48, 65, 260),
    (2000, 64, 64),
    (20000, 10, 10),
    (128, 4096, 128),
]


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_linear(sizes, precision):
    n, inputs, outputs = sizes
    arrays = [random_array(0, n, inputs), random_array(1, outputs, inputs)]
    with renga.using_config("compute_precision", precision):
        assert_same_bits(lambda: differentiate(F.linear, arrays))


@pytest.mark.parametrize("batch", [2, 3, 64])
@pytest.mark.parametrize("edge", [4, 40, 200])
def test_stacks_of_products(batch, edge):
    arrays = [random_array(i, batch, edge, edge) for i in range(2)]
    assert_same_bits(lambda: differentiate(F.matmul, arrays))


IMAGES = random_array(0, 16, 32, 56, 56)
SEQUENCE = random_array(0, 20, 32, 100)
LABELS = np.random.default_rng(0).integers(0, 100, 5000).astype("i")
LAYERS = {
    "batch normalization": lambda: (L.BatchNormalization(32), IMAGES),
    "group normalization": lambda: (L.GroupNormalization(4, 32), IMAGES[:4]),
    "layer normalization": lambda: (
        L.LayerNormalization(100),
        SEQUENCE.reshape(640, 100),
    ),
    "max pooling": lambda: (lambda x: F.max_pooling_2d(x, 3, 2, 1), IMAGES),
    "average pooling": lambda: (lambda x: F.average_pooling_2d(x, 3, 2, 1), IMAGES),
    "local response": lambda: (F.local_response_normalization, IMAGES[:4]),
    "dropout": lambda: (F.dropout, IMAGES),
    "softmax": lambda: (F.softmax, SEQUENCE.reshape(640, 100)),
    "softmax of columns": lambda: (
        lambda x: F.log_softmax(x, 0),
        random_array(0, 9000, 10),
    ),
    "softmax of few positions": lambda: (
        lambda x: F.log_softmax(x, 1),
        random_array(0, 300, 400, 2),
    ),
    "softmax of short runs": lambda: (
        lambda x: F.softmax(x, 1),
        random_array(0, 3000, 10, 7),
    ),
    "cross entropy": lambda: (
        lambda x: F.softmax_cross_entropy(x, LABELS),
        random_array(0, 5000, 100),
    ),
    "sum": lambda: (lambda x: F.sum(x, (0, 2, 3)), IMAGES),
    "sum of all": lambda: (F.sum, IMAGES),
    "mean of squares": lambda: (lambda x: F.mean(F.square(x), (2, 3)), IMAGES),
    "logsumexp": lambda: (lambda x: F.logsumexp(x, 1), random_array(0, 3000, 300)),
    "running products": lambda: (
        lambda x: F.cumprod(x, 0),
        1 + random_array(0, 3000, 300) / 10000,
    ),
    "embedding": lambda: (
        lambda W: F.embed_id(LABELS, W),
        random_array(0, 100, 300),
    ),
    "getitem": lambda: (lambda x: x[LABELS], random_array(0, 100, 300)),
    "lstm": lambda: (
        lambda x: L.NStepLSTM(1, 100, 64, 0)(None, None, list(x))[0],
        SEQUENCE,
    ),
    "gru": lambda: (lambda x: L.NStepGRU(1, 100, 64, 0)(None, list(x))[0], SEQUENCE),
    "resize": lambda: (lambda x: F.resize_images(x, (80, 77)), IMAGES[:4]),
    "sampling": lambda: (
        lambda x: F.spatial_transformer_sampler(x, 1.2 * F.tanh(x[:, :2])),
        IMAGES[:4],
    ),
    "regions": lambda: (
        lambda x: (
            F.roi_average_align_2d(x, REGIONS, REGION_IMAGES, 7, 1.0)
            + F.roi_max_align_2d(x, REGIONS, REGION_IMAGES, 7, 1.0, 2)
        ),
        IMAGES[:4],
    ),
    "gelu-like": lambda: (lambda x: x * F.sigmoid(1.7 * x), IMAGES),
    "norm": lambda: (F.normalize, random_array(0, 2000, 300)),
}


REGIONS = np.random.RandomState(1).uniform(-3, 30, (9, 4)).astype("f")
REGION_IMAGES = np.arange(9) % 3


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    def compute():
        np.random.seed(0)
        layer, x = LAYERS[name]()
        x = renga.Variable(x)
        y = layer(x)
        y.grad = np.cos(np.arange(y.size, dtype="f")).reshape(y.shape)
        y.backward()
        params = layer.params() if isinstance(layer, renga.Link) else []
        return arrays_of([y, x.grad, *(p.grad for p in params)])

    assert_same_bits(compute)


class Network(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.stem = L.Convolution2D(3, 32, 3, 2, 1)
            self.bn = L.BatchNormalization(32)
            self.wide = L.Convolution2D(32, 64, 1)
            self.conv = L.Convolution2D(64, 64, 3, 1, 1)
            self.fc = L.Linear(None, 100)

    def forward(self, x):
        h = F.relu(self.bn(self.stem(x)))
        h = F.max_pooling_2d(F.relu(self.conv(F.relu(self.wide(h)))), 4)
        return self.fc(F.dropout(h))


@pytest.mark.parametrize("dtype", [np.float32, renga.mixed_bfloat16])
def test_training(dtype):
    x = random_array(0, 16, 3, 64, 64)
    t = np.arange(16, dtype="i")

    def compute():
        with renga.using_config("dtype", dtype):
            np.random.seed(0)
            net = Network()
            optimizer = renga.optimizers.Adam().setup(net)
            for _ in range(3):
                optimizer.update(lambda x: F.softmax_cross_entropy(net(x), t), x)
            return arrays_of([p for _, p in sorted(net.namedparams())])

    assert_same_bits(compute)
