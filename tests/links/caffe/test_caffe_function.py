"""CaffeFunction: files written by the tests, layers against NumPy."""

import warnings

import numpy
import pytest

import renga
from renga.links.caffe import CaffeFunction
from renga.links.caffe.caffe_function import METHODS
from tests.links.cases import caffemodel, windows
from tests.links.cases.caffemodel import layer, message, old_layer

rng = numpy.random.default_rng(0)
X, Z = rng.normal(size=(2, 2, 4, 6, 5))
W = rng.normal(size=(6, 4, 3, 3))
B = rng.normal(size=6)
FC = rng.normal(size=(3, 120))
C = rng.normal(size=4)
MEAN, VARIANCE = rng.normal(size=4), rng.uniform(1, 2, size=4)


def pooled(x, reduce, kernel, stride, pad):
    """The loops of Caffe's pooling layer, over rows and columns alike."""
    ends = []
    for size in x.shape[2:]:
        n = int(numpy.ceil((size + 2 * pad - kernel) / stride)) + 1
        starts = [i * stride - pad for i in range(n)]
        # (start, end for the divisor): the last window begins within the image.
        kept = starts[:-1] if starts[-1] >= size else starts
        ends.append([(s, min(s + kernel, size + pad)) for s in kept])
    y = numpy.empty((*x.shape[:2], *map(len, ends)))
    for i, (top, bottom) in enumerate(ends[0]):
        for j, (left, right) in enumerate(ends[1]):
            window = x[:, :, max(top, 0) : bottom, max(left, 0) : right]
            count = (bottom - top) * (right - left)
            y[:, :, i, j] = reduce(window, count)
    return y


@pytest.fixture
def load(tmp_path):
    def write_and_load(*layers):
        path = tmp_path / "net.caffemodel"
        path.write_bytes(b"".join(layers))
        return CaffeFunction(str(path))

    return write_and_load


def softmax(x):
    e = numpy.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def lrn(x, n, k, alpha, beta):
    squares = numpy.pad(x**2, ((0, 0), (n // 2,) * 2, (0, 0), (0, 0)))
    total = sum(squares[:, i : i + x.shape[1]] for i in range(n))
    return x / (k + alpha / n * total) ** beta


def channels(a):
    return a[:, None, None]


def max_pool(x, *window):
    return windows.pooled(x, numpy.max, *window, -numpy.inf)


# Numbers of types of layers, and of their options in new and in old files.
OLD = {
    "Concat": (3, 104, 9),
    "Convolution": (4, 106, 10),
    "Deconvolution": (39, 106, 10),
    "Dropout": (6, 108, 12),
    "Eltwise": (25, 110, 24),
    "InnerProduct": (14, 117, 17),
    "LRN": (15, 118, 18),
    "Pooling": (17, 121, 19),
    "ReLU": (18, 123, 30),
    "Sigmoid": (19, 0, 0),
    "Slice": (33, 126, 31),
    "Softmax": (20, 125, 39),
}
# Convolutions: 1 outputs, 2 bias, 3 pad, 4 kernel, 5 groups, 6 stride, 9 … 14 by axis.
CASES = {
    "convolution": (
        dict(
            kind="Convolution",
            blobs=(W, B),
            p106=message((1, 6), (3, 1), (4, 3), (6, 2)),
        ),
        lambda x: windows.convolution(x, W, B, 2, 1),
    ),
    "convolution by axis": (
        dict(
            kind="Convolution",
            blobs=(W[..., :2], B),
            p106=message((1, 6), (9, 1), (10, 0), (11, 3), (12, 2), (13, 1), (14, 2)),
        ),
        lambda x: windows.convolution(x, W[..., :2], B, (1, 2), (1, 0)),
    ),
    "convolution in groups": (
        dict(
            kind="Convolution",
            blobs=(W[:, :2],),
            p106=message((1, 6), (2, 0), (4, 3), (5, 2), (18, 2)),
        ),
        lambda x: windows.convolution(x, W[:, :2], groups=2, dilate=2),
    ),
    "deconvolution": (
        dict(
            kind="Deconvolution",
            blobs=(W[:4], B[:4]),
            p106=message((1, 4), (3, 1), (4, 3), (6, 2)),
        ),
        lambda x: windows.deconvolution(x, W[:4], B[:4], 2, 1),
    ),
    "inner product": (
        dict(kind="InnerProduct", blobs=(FC, B[:3]), p117=message((1, 3))),
        lambda x: x.reshape(2, -1) @ FC.T + B[:3],
    ),
    "max pooling": (
        dict(kind="Pooling", p121=message((1, 0), (2, 2), (3, 2))),
        lambda x: max_pool(
            numpy.pad(x, ((0, 0),) * 3 + ((0, 1),), mode="edge"), 2, 2, 0
        ),
    ),
    "average pooling": (
        dict(
            kind="Pooling", p121=message((1, 1), (5, 3), (6, 3), (7, 2), (8, 2), (4, 1))
        ),
        lambda x: pooled(x, lambda x, n: x.sum((2, 3)) / n, 3, 2, 1),
    ),
    "global pooling": (
        dict(kind="Pooling", p121=message((1, 1), (12, 1))),
        lambda x: x.mean((2, 3), keepdims=True),
    ),
    "response normalization": (
        dict(kind="LRN", p118=message((1, 3), (2, 0.5), (3, 0.75), (5, 2.0))),
        lambda x: lrn(x, 3, 2, 0.5, 0.75),
    ),
    "relu": (dict(kind="ReLU"), lambda x: numpy.maximum(x, 0)),
    "leaky relu": (
        dict(kind="ReLU", p123=message((1, 0.25))),
        lambda x: numpy.where(x > 0, x, x / 4),
    ),
    "sigmoid": (dict(kind="Sigmoid"), lambda x: 1 / (1 + numpy.exp(-x))),
    "softmax": (dict(kind="Softmax"), softmax),
    "concatenation": (
        dict(kind="Concat", bottom=("x", "z"), p104=message((2, 2))),
        lambda x: numpy.concatenate([x, Z], 2),
    ),
    "concatenation along the old axis": (
        dict(kind="Concat", bottom=("x", "z"), p104=message((1, 2))),
        lambda x: numpy.concatenate([x, Z], 2),
    ),
    "concatenation along both axes": (
        dict(kind="Concat", bottom=("x", "z"), p104=message((1, 3), (2, 2))),
        lambda x: numpy.concatenate([x, Z], 2),
    ),
    "product": (
        dict(kind="Eltwise", bottom=("x", "z"), p110=message((1, 0))),
        lambda x: x * Z,
    ),
    "sum": (dict(kind="Eltwise", bottom=("x", "z")), lambda x: x + Z),
    "sum with coefficients": (
        dict(kind="Eltwise", bottom=("x", "z"), p110=message((2, 2.0), (2, -1.0))),
        lambda x: 2 * x - Z,
    ),
    "maximum": (
        dict(kind="Eltwise", bottom=("x", "z"), p110=message((1, 2))),
        lambda x: numpy.maximum(x, Z),
    ),
    "slice": (
        dict(kind="Slice", top=("y0", "y"), p126=message((3, 2), (2, 4))),
        lambda x: x[:, :, 4:],
    ),
    "slice in equal parts": (
        dict(kind="Slice", top=("y0", "y")),
        lambda x: x[:, 2:],
    ),
    "scale": (
        dict(kind="Scale", blobs=(C, MEAN), p142=message((4, 1))),
        lambda x: x * channels(C) + channels(MEAN),
    ),
    "scale by another blob": (
        dict(kind="Scale", bottom=("x", "c")),
        lambda x: x * channels(C),
    ),
    "batch normalization": (
        dict(
            kind="BatchNorm",
            blobs=(2 * MEAN, 2 * VARIANCE, [2.0]),
            p139=message((1, 1), (3, 0.5)),
        ),
        lambda x: (x - channels(MEAN)) / numpy.sqrt(channels(VARIANCE) + 0.5),
    ),
    "reshape": (
        dict(kind="Reshape", p133=message((1, message((1, 0), (1, -1), (1, 5))))),
        lambda x: x.reshape(2, 24, 5),
    ),
    "dropout": (dict(kind="Dropout"), lambda x: x),
    "response normalization by default": (
        dict(kind="LRN"),
        lambda x: lrn(x, 5, 1, 1, 0.75),
    ),
    "pooling by default": (
        dict(kind="Pooling", p121=message((2, 2))),
        lambda x: max_pool(x, 2, 1, 0),
    ),
    "scale of rows": (
        dict(kind="Scale", blobs=(numpy.arange(6.0),), p142=message((1, 2))),
        lambda x: x * numpy.arange(6)[:, None],
    ),
    "batch normalization by default": (
        dict(
            kind="BatchNorm", blobs=(MEAN, 1e-5 * VARIANCE, [1.0]), p139=message((1, 1))
        ),
        lambda x: (x - channels(MEAN)) / numpy.sqrt(1e-5 * (channels(VARIANCE) + 1)),
    ),
    "one after the other": (
        layer("ReLU", "a", ("x",), ("x",))
        + layer("Split", "b", ("x",), ("p", "q"))
        + layer("Sigmoid", "c/d", ("q",), ("y",)),
        lambda x: 1 / (1 + numpy.exp(-numpy.maximum(x, 0))),
    ),
    "data is the caller's": (
        layer("Data", "data", (), ("x",)) + layer("ReLU"),
        lambda x: numpy.maximum(x, 0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_layer(load, name):
    layers, reference = CASES[name]
    check(
        load(layer(**layers) if isinstance(layers, dict) else layers), name, reference
    )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, (layers, _) in CASES.items()
        if isinstance(layers, dict) and layers["kind"] in OLD
    ],
)
def test_layer_of_an_old_file(load, name):
    options, reference = CASES[name]
    kind, new, old = OLD[options["kind"]]
    renamed = {k.replace(f"p{new}", f"p{old}"): v for k, v in options.items()}
    check(load(old_layer(**{**renamed, "kind": kind})), name, reference)


def check(net, name, reference):
    inputs = {"x": X.astype("f"), "z": Z.astype("f"), "c": C.astype("f")}
    with renga.using_config("train", name != "dropout" and "batch" in name):
        (y,) = net(inputs, ["y"])
    numpy.testing.assert_allclose(y.array, reference(X), rtol=1e-3, atol=1e-4)


# Windows that reach beyond the padding, that begin there, and that fit.
@pytest.mark.parametrize("window", [(3, 2, 0), (2, 3, 1), (3, 3, 2), (3, 2, 1)])
def test_windows_of_pooling(load, window):
    kernel, stride, pad = window
    reductions = (lambda x, n: x.max((2, 3)), lambda x, n: x.sum((2, 3)) / n)
    for kind, reduce in enumerate(reductions):
        options = message((1, kind), (2, kernel), (3, stride), (4, pad))
        net = load(layer("Pooling", p121=options))
        for x in (X, X[..., :4, :], X[..., 1:]):
            (y,) = net({"x": x.astype("f")}, ["y"])
            expected = pooled(x, reduce, *window)
            numpy.testing.assert_allclose(y.array, expected, 1e-5, 1e-6)


def test_loss(load):
    net = load(layer("SoftmaxWithLoss", bottom=("x", "t")))
    scores, t = rng.normal(size=(3, 5)), numpy.array([0, 4, 2], "i")
    (loss,) = net({"x": scores.astype("f"), "t": t}, ["y"])
    expected = -numpy.log(softmax(scores)[range(3), t]).mean()
    numpy.testing.assert_allclose(loss.array, expected, rtol=1e-5)


def test_structure(load):
    first = layer("Convolution", "a/1", blobs=(W, B), p106=message((1, 6), (4, 3)))
    net = load(first, layer("ReLU", "b", ("y",), ("y",)))
    assert net.layers == [("a/1", ["x"], ["y"]), ("b", ["y"], ["y"])]
    assert set(net.forwards) == {"a/1", "b"}
    names = {path: p.shape for path, p in net.namedparams()}
    assert names == {"/a/1/W": W.shape, "/a/1/b": B.shape}
    x = X.astype("f")
    (y,) = net({"x": x}, ["y"], disable=["b"])
    numpy.testing.assert_allclose(
        y.array, windows.convolution(X, W, B), rtol=1e-3, atol=1e-4
    )
    with pytest.raises(KeyError):
        net({"x": x}, ["y"], disable=["a/1"])
    with pytest.raises(ValueError, match="using_config"):
        net({"x": x}, ["y"], train=True)
    with pytest.raises(TypeError):
        net({"x": x}, ["y"], nonsense=True)


@pytest.mark.parametrize("file", [layer("TanH"), old_layer(23)])
def test_layer_that_is_not_supported(load, file):
    with pytest.warns(UserWarning, match='Skip the layer "l"'):
        net = load(file)
    assert net.layers == []


def test_layers_that_a_subclass_adds(tmp_path, monkeypatch):
    """By a method for each type, which gets the layer with its blobs."""

    class Net(CaffeFunction):
        def add_scaled_tanh(self, layer):
            factor = numpy.array(layer.blobs[0].data, "f")
            self.forwards[layer.name] = lambda x: renga.functions.tanh(x) * factor
            self._add_layer(layer)

    monkeypatch.setitem(METHODS, "TanH", Net.add_scaled_tanh)
    monkeypatch.setitem(METHODS, "PriorBox", lambda net, layer: None)
    path = tmp_path / "net.caffemodel"
    first = layer("Split", "s", ("x",), ("u", "v"))
    second = layer("TanH", "t", ("u",), ("y",), blobs=(numpy.array([3.0]),))
    path.write_bytes(first + second + layer("PriorBox", "p"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = Net(path)
    assert net.layers == [("t", ["x"], ["y"])]
    (y,) = net({"x": X}, ["y"])
    numpy.testing.assert_allclose(y.array, 3 * numpy.tanh(X), rtol=1e-6)


def test_inner_product_with_a_transposed_weight(load):
    square = rng.normal(size=(5, 5))
    file = layer("InnerProduct", blobs=(square,), p117=message((1, 5), (2, 0), (6, 1)))
    (y,) = load(file)({"x": X[0, 0]}, ["y"])
    numpy.testing.assert_allclose(y.array, X[0, 0] @ square, rtol=1e-5)


@pytest.mark.parametrize("pool", [0, 1])
def test_pooling_whose_windows_are_all_within_the_padding(load, pool):
    file = layer("Pooling", p121=message((1, pool), (2, 3), (3, 2), (13, 1)))
    (y,) = load(file)({"x": X}, ["y"])
    reduce = (numpy.max, numpy.mean)[pool]
    expected = [
        [reduce(X[:, :, i : i + 3, j : j + 3], axis=(2, 3)) for j in (0, 2)]
        for i in (0, 2)
    ]
    numpy.testing.assert_allclose(
        y.array, numpy.moveaxis(expected, (2, 3), (0, 1)), 1e-5
    )


@pytest.mark.parametrize(
    ("options", "divisor"), [(((1, 2),), 4), (((1, 2), (3, 2)), 6), (((2, 0),), 6)]
)
def test_labels_that_a_loss_ignores_and_what_it_is_divided_by(load, options, divisor):
    x, t = rng.normal(size=(6, 3)), numpy.array([0, 1, 2, 1, 2, 0], "i4")
    file = layer("SoftmaxWithLoss", bottom=("x", "t"), p101=message(*options))
    (loss,) = load(file)({"x": x.astype("f"), "t": t}, ["y"])
    losses = -numpy.log(softmax(x)[numpy.arange(6), t])
    kept = losses[t != 2] if (1, 2) in options else losses
    numpy.testing.assert_allclose(loss.array, kept.sum() / divisor, rtol=1e-5)


def test_a_layer_that_replaces_one_of_two_equal_blobs(load):
    split = layer("Split", "s", ("x",), ("a", "b"))
    in_place = layer("ReLU", "r", ("a",), ("a",))
    total = layer("Eltwise", "e", ("a", "b"), ("y",))
    (y,) = load(split, in_place, total)({"x": X}, ["y"])
    numpy.testing.assert_allclose(y.array, numpy.maximum(X, 0) + X, rtol=1e-6)
    before = layer("ReLU", "r", ("x",), ("x",))
    with pytest.raises(ValueError, match="another input than a, which is overwritten"):
        load(split, before, total)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((layer("ReLU"), layer("Sigmoid")), "a name that another layer has"),
        (
            (layer("Eltwise", "e", ("x", "z"), p110=message((2, 2.0))),),
            "1 coefficients of 2 blobs",
        ),
    ],
)
def test_networks_that_contradict_themselves(load, files, message):
    with pytest.raises(ValueError, match=message):
        load(*files)


@pytest.mark.parametrize(
    "file",
    [
        layer("InnerProduct", blobs=(FC,), p117=message((1, 3), (5, 2))),
        layer("Pooling", p121=message((1, 2), (2, 3))),
        layer("LRN", p118=message((4, 1))),
        layer("Softmax", p125=message((2, 2))),
        layer("Reshape", p133=message((1, message((1, -1))), (2, 1))),
        layer("SoftmaxWithLoss", p101=message((3, 0))),
    ],
)
def test_option_that_is_not_supported(load, file):
    with pytest.raises(RuntimeError, match="is not supported"):
        load(file)


def test_file_that_is_not_a_network(load):
    complete = layer("InnerProduct", blobs=(FC,), p117=message((1, 3), (2, 0)))
    for file in (b"no network, I fear", complete[:-7], b"\xff" * 12):
        with pytest.raises(ValueError, match="net.caffemodel: expected"):
            load(file)
    short = field_of_blob(shape=(2, 3), values=5)
    with pytest.raises(ValueError, match=r"values of \(2, 3\), got 5"):
        load(short)


def field_of_blob(shape, values):
    data = numpy.zeros(values, "<f4").tobytes()
    blob = message((7, message(*((1, n) for n in shape))), (5, data))
    return caffemodel.field(
        100, message((1, "l"), (2, "InnerProduct"), (7, blob), (117, message((1, 2))))
    )


def test_empty_file(load):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(b"").layers == []


def test_values_one_by_one(load):
    """Floats may be unpacked, each with its own key."""
    shape = caffemodel.field(7, message((1, 3), (1, 120)))
    blob = shape + b"".join(caffemodel.field(5, float(v)) for v in FC.ravel())
    body = message((1, "l"), (2, "InnerProduct"), (3, "x"), (4, "y"), (7, blob))
    net = load(caffemodel.field(100, body + message((117, message((1, 3), (2, 0))))))
    numpy.testing.assert_array_equal(net["l"].W.array, FC.astype("f"))
