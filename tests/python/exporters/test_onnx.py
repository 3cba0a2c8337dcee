"""Exported graphs run by ONNX Runtime, against the original models."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core
from renga.exporters.onnx import OPSET, export
from renga.exporters.onnx.registry import OPERATORS
from tests.catalogue import CASES
from tests.onnx_runs import computed

onnx = pytest.importorskip("onnx")

rng = numpy.random.default_rng(0)


def draw(*shape, dtype="f4"):
    return rng.uniform(0.2, 0.9, shape).astype(dtype)


def check(function, *arrays, tolerance=1e-5):
    proto = export(function, arrays)
    with renga.using_config("train", False):
        expected = function(*map(renga.Variable, arrays))
    if isinstance(expected, renga.Variable):
        expected = [expected]
    found = computed(proto, *arrays)
    assert len(found) == len(expected)
    for y, want in zip(found, expected):
        assert y.dtype == want.dtype and y.shape == want.shape
        numpy.testing.assert_allclose(y, want.array, rtol=tolerance, atol=tolerance)
    return proto


X = draw(2, 3, 4)
FUNCTIONS = {
    "operators": lambda x: (1 - x) * 2 / (x + 3) - x**2 + 2**x - (-x) * abs(x),
    "arrays": lambda x: x * draw_once + draw_once,
    "max and min": lambda x: F.maximum(x, 0 * x + 0.5) + F.minimum(x, x * x),
    "exp and log": lambda x: F.exp(x) + F.log(x) + F.log2(x) + F.log10(x) + F.expm1(x),
    "roots": lambda x: F.sqrt(x) + F.rsqrt(x) + F.log1p(x) + F.square(x) + F.erf(x),
    "sines": lambda x: F.sin(x) + F.cos(x) + F.tan(x) + F.sinh(x) + F.cosh(x),
    "arcs": lambda x: F.arcsin(x) + F.arccos(x) + F.arctan(x),
    "steps": lambda x: F.floor(3 * x) + F.ceil(3 * x) + F.sign(x - 0.5),
    "activations": lambda x: F.relu(x) + F.sigmoid(x) + F.tanh(x) + F.softplus(x, 2.0),
    "kinks": lambda x: (
        F.leaky_relu(x - 0.5, 0.1) + F.elu(x - 0.5, 0.7) + F.clip(x, 0.3, 0.6)
    ),
    "gated": lambda x: (
        F.gelu(x) + F.gelu(x, "tanh") + F.silu(x) + F.mish(x) + F.hard_swish(5 * x)
    ),
    "clipped": lambda x: F.relu6(9 * x - 1) + F.clipped_relu(x, 0.5),
    "rows": lambda x: (
        F.layer_normalization(x, draw_once[:, 0] @ X[0, :3], X[1, 0])
        + F.layer_normalization(x, X[0], X[1], 0.1)
        + F.rms_normalization(x, X[1, 2])
    ),
    "attention": lambda x: F.scaled_dot_product_attention(x, 2 * x, x - 1),
    "attention with masks": lambda x: (
        F.scaled_dot_product_attention(x, 2 * x, x - 1, is_causal=True, scale=0.3)
        + F.scaled_dot_product_attention(x, x, x, x[:, :, :1])
        + F.scaled_dot_product_attention(x, x, x, numpy.eye(3, dtype=bool))
    ),
    "softmax": lambda x: F.softmax(x, axis=1) + F.log_softmax(x, axis=2),
    "sums": lambda x: (F.sum(x), F.sum(x, axis=(0, 2)), F.sum(x, 1, keepdims=True)),
    "extremes": lambda x: (F.max(x, axis=1), F.min(x), F.prod(x, axis=0), F.mean(x, 2)),
    "logsumexp": lambda x: F.logsumexp(x, axis=1),
    "matmul": lambda x: F.matmul(x, x, transb=True) @ x,
    "matmul a": lambda x: F.matmul(x, x, transa=True),
    "shapes": lambda x: (
        F.transpose(F.reshape(x, (4, 6)), (1, 0)) + F.expand_dims(F.flatten(x)[:4], 0)
    ),
    "axes": lambda x: F.swapaxes(x, 0, 2) + F.squeeze(F.expand_dims(x, 1), 1)[0, 0, 0],
    "joined": lambda x: F.concat(
        (F.stack((x, x), 1), F.broadcast_to(x, (2, 2, 3, 4))), 2
    ),
    "split": lambda x: F.split_axis(x, [1, 3], 2),
    "products": lambda x: F.cumprod(F.reshape(x, (12, 2)), 0),
    "slices": lambda x: (x[0], x[:, ::2, 1:3], x[:, ::-1], x[..., None, -1]),
    "pad": lambda x: F.pad(x, ((0, 0), (1, 2), (3, 0)), "constant", constant_values=7),
    "where": lambda x: F.where(X > 0.5, x, -x),
    "cast": lambda x: F.cast(x, "f8") * 2,
    "normalized": lambda x: F.normalize(F.reshape(x, (6, 4))),
}
draw_once = draw(3, 1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    check(FUNCTIONS[name], X)


OPERATIONS = {operation.name: operation for operation in _core.ops.entries}


@pytest.mark.parametrize("name", [o.name for o in OPERATIONS.values() if o.onnx])
def test_operators_of_the_list(name):
    case, op = CASES[name][0], OPERATIONS[name].onnx
    schema = onnx.defs.get_schema(op, OPSET)
    assert not any(each.required for each in schema.attributes.values())
    xs = [rng.uniform(case.low, case.high, shape).astype("f4") for shape in case.shapes]
    proto = export(lambda *xs: case.call(_core.ops, *xs), xs)
    assert [node.op_type for node in proto.graph.node] == [op, "Identity"]
    expected = case.reference(*(x.astype("f8") for x in xs))
    numpy.testing.assert_allclose(computed(proto, *xs)[0], expected, 1e-5, 1e-6)


def test_writers_are_of_listed_operations():
    assert set(OPERATORS) <= set(OPERATIONS)


class Net(renga.Chain):
    """Convolutions of every kind, normalization, pooling and a linear layer."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 4, 3, stride=2, pad=1)
            self.grouped = L.Convolution2D(4, 8, 3, pad=2, dilate=2, groups=2)
            self.bn = L.BatchNormalization(8)
            self.up = L.Deconvolution2D(8, 4, 4, stride=2, pad=1, nobias=True)
            self.linear = L.Linear(None, 5)

    def forward(self, x):
        h = F.relu(self.bn(self.grouped(self.conv(x))))
        h = F.max_pooling_2d(self.up(h), 3, 2)
        h = F.average_pooling_2d(h, 2, 1, pad=1)
        return self.linear(F.dropout(h))


def test_network():
    net = Net()
    net.bn.avg_mean[...] = rng.normal(size=8)
    net.bn.avg_var[...] = rng.uniform(0.5, 2, 8)
    proto = check(net, draw(2, 3, 9, 10), tolerance=1e-4)
    names = {each.name for each in proto.graph.initializer}
    assert {"conv.W", "grouped.b", "bn.gamma", "linear.W"} <= names
    assert [each.name for each in proto.graph.input] == ["input_0"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: L.GroupNormalization(2, 4),
        lambda: L.BatchNormalization(4),
        lambda: L.BatchNormalization((4, 5)),
        lambda: L.BatchNormalization(6, axis=(0, 1, 2)),
    ],
)
def test_normalizations_of_halves_with_parameters_of_singles(make):
    with renga.using_config("dtype", renga.mixed16):
        link = make()
        for param in link.params():
            param.array[...] = draw(*param.shape)
        x = numpy.array(1000 * draw(2, 4, 5, 6), "f2")  # whose squares are too large
        check(link, x, tolerance=2e-3)


def test_convolutions_along_one_axis():
    link = renga.Sequential(L.Convolution1D(2, 3, 3, 2), L.Deconvolution1D(3, 2, 2, 2))
    check(link, draw(2, 2, 8))


@pytest.mark.parametrize(
    ("kernel", "stride", "pad"), [(2, 4, 0), (3, (4, 5), 1), ((1, 3), (3, 2), (0, 2))]
)
def test_poolings_with_as_much_padding_as_the_window(kernel, stride, pad):
    x = draw(2, 3, 6, 7) - 2
    check(lambda x: F.max_pooling_2d(x, kernel, stride, pad, cover_all=True), x)
    check(lambda x: F.average_pooling_2d(x, 2, 1, pad=2), x)


@pytest.mark.parametrize(
    ("window", "size"),
    [((2,), (6, 6)), ((3, 2, 1), (5, 7)), (((3, 2), 2, (1, 0)), None)],
)
def test_upsampling_by_the_indices_of_a_pooling(window, size):
    """As in SegNet; the graph finds the indices of other images."""

    def function(x):
        y, at = F.max_pooling_2d(x, *window, return_indices=True)
        return F.upsampling_2d(2 * y, at, *window, outsize=size or x.shape[2:])

    x, other = rng.normal(size=(2, 2, 3, *(size or (5, 7)))).astype("f4")
    proto = check(function, x)
    expected = function(renga.Variable(other)).array
    numpy.testing.assert_allclose(computed(proto, other)[0], expected, rtol=1e-6)


def test_sequence_of_links():
    conv = [L.Convolution2D(None, 4, 3, pad=1) for _ in range(2)]
    check(
        renga.Sequential(
            conv[0], F.relu, conv[1], F.relu, L.Linear(None, 3), F.softmax
        ),
        draw(2, 1, 5, 5),
    )


def test_embedding_and_recurrence():
    class Model(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.embed = L.EmbedID(7, 4)
                self.lstm = L.StatelessLSTM(4, 3)

        def forward(self, words):
            c = h = None
            for t in range(words.shape[1]):
                c, h = self.lstm(c, h, self.embed(words[:, t]))
            return h

    words = rng.integers(0, 7, (2, 5)).astype("i8")
    check(Model(), words)


@pytest.mark.parametrize(
    "name", ["NStepLSTM", "NStepGRU", "NStepRNNTanh", "NStepBiRNNReLU", "NStepBiLSTM"]
)
def test_sequences(name):
    link = getattr(L, name)(2, 3, 4, 0.0)

    def model(h, *xs):
        steps = F.transpose_sequence(list(xs))
        states = [h] * link.n_cells
        *last, ys = link.rnn(2, 0.0, *states, link.ws, link.bs, steps)
        return (*last, *ys)

    states = draw(2 * link.direction, 3, 4)
    check(model, states, draw(4, 3), draw(3, 3), draw(2, 3))


def test_cells_of_samples_that_have_ended():
    check(F.lstm, draw(3, 2), draw(2, 8))
    check(F.lstm, draw(3, 2, 5), draw(3, 8, 5))


def test_names_and_a_file(tmp_path):
    path = tmp_path / "model.onnx"
    link = L.Linear(4, 3)
    proto = export(link, draw(2, 4), path, ["image"], ["scores"])
    stored = onnx.load(path)
    assert stored == proto
    assert [each.name for each in stored.graph.input] == ["image"]
    assert [each.name for each in stored.graph.output] == ["scores"]
    by_keyword = export(lambda *, a, b: a - b, {"a": draw(2), "b": draw(2)})
    assert [each.name for each in by_keyword.graph.input] == ["a", "b"]


def test_a_tied_parameter_is_one_constant():
    tied = renga.Sequential(L.Linear(3, 3, nobias=True), F.relu, L.Linear(3, 3))
    with tied[2].init_scope():
        tied[2].W = tied[0].W
    proto = check(tied, draw(2, 3))
    assert {each.name for each in proto.graph.initializer} == {"0.W", "1.b"}


def test_a_weight_with_a_matrix_of_low_rank():
    link = L.Linear(3, 4)
    link.add_hook(renga.link_hooks.LoRA(2))
    link.W_B.array[...] = draw(4, 2)
    x = draw(2, 3)
    (y,) = computed(export(link, x), x)
    W = link.W.array + link.W_B.array @ link.W_A.array
    numpy.testing.assert_allclose(y, x @ W.T + link.b.array, rtol=1e-5)


@pytest.mark.parametrize(
    ("read", "x"),
    [
        (lambda x: x.array > 0, numpy.float32([-0.5])),
        (lambda x: x.array * 2.0, numpy.int32([[3]])),
        (lambda x: float(x.array.max()), numpy.int32([1, 4, 1])),
        (lambda x: float(x.array.all()), numpy.array([True, True])),
    ],
    ids=["a sign", "one integer", "the largest integer", "whether all hold"],
)
def test_numbers_that_were_read_are_no_constants(read, x):
    def function(x):
        return F.cast(x, numpy.float32) * numpy.float32(read(x))

    with pytest.raises(NotImplementedError, match="depends on the values"):
        export(function, x)


def test_what_is_not_used_is_left_out():
    def function(x):
        F.exp(x)
        return x + 1

    proto = export(function, X)
    assert [node.op_type for node in proto.graph.node] == ["Add", "Identity"]


def test_operations_that_onnx_lacks():
    with pytest.raises(NotImplementedError, match="sinc|arctan2|no counterpart"):
        export(lambda x: F.arctan2(x, x) + 1, X)

    class Own(renga.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2,)

    with pytest.raises(NotImplementedError, match=r"Own \(.*\) has no counterpart"):
        export(lambda x: Own().apply((x,))[0] + 1, X)
    with pytest.raises(ValueError, match="1 input_names, got"):
        export(F.relu, X, input_names=["a", "b"])
    with pytest.raises(ValueError, match="2 input_names, got"):
        export(lambda x, y: x + y, (X, X), input_names=["a", "a"])
    with pytest.raises(ValueError, match="1 output_names, got"):
        export(F.relu, X, output_names=[])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: export(3, X), "a link or a function, got int"),
        (lambda: export(F.relu, [[1.0, 2.0]]), r"arrays as args, got \[1.0, 2.0\]"),
        (lambda: export(F.relu, None), "arrays as args, got None"),
        (lambda: export(F.relu, numpy.array(["a"])), "arrays as args, got array"),
        (lambda: export(lambda x: None, X), "Variables from the model, got NoneType"),
        (lambda: export(lambda x: [x, x.array], X), "from the model, got ndarray"),
        (lambda: export(F.relu, X, input_names="x"), "a list of names, got 'x'"),
        (lambda: export(F.relu, X, output_names=[3]), r"a list of names, got \[3\]"),
    ],
)
def test_what_cannot_be_exported(call, message):
    with pytest.raises(TypeError, match=f"export: .*{message}"):
        call()


def test_an_error_names_the_function_that_was_called():
    def forward(x):
        return F.roi_pooling_2d(x, numpy.float32([[0, 0, 0, 3, 3]]), 1, 1, 1.0)

    with pytest.raises(NotImplementedError) as raised:
        export(forward, draw(1, 2, 4, 4))
    assert "of F.roi_pooling_2d (" in str(raised.value)
    assert f"{__file__}:{forward.__code__.co_firstlineno + 1})" in str(raised.value)


class ResidualBlock(renga.Chain):
    """Two convolutions around which the input is added, on half the image."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        with self.init_scope():
            self.a = L.Convolution2D(in_channels, out_channels, 3, 2, 1, nobias=True)
            self.bn_a = L.BatchNormalization(out_channels)
            self.b = L.Convolution2D(out_channels, out_channels, 3, 1, 1, nobias=True)
            self.bn_b = L.BatchNormalization(out_channels)
            self.skip = L.Convolution2D(in_channels, out_channels, 1, 2, nobias=True)

    def forward(self, x):
        h = F.relu(self.bn_a(self.a(x)))
        return F.relu(self.bn_b(self.b(h)) + self.skip(x))


class ResNet(renga.Chain):
    """Residual blocks, a mean over the image, and a linear layer."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.blocks = renga.Sequential(ResidualBlock(3, 8), ResidualBlock(8, 16))
            self.fc = L.Linear(16, 10)

    def forward(self, x):
        return F.softmax(self.fc(F.average(self.blocks(x), axis=(2, 3))))


class Generator(renga.Chain):
    """A linear layer, reshaped to an image and enlarged, as in DCGAN."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.fc = L.Linear(6, 8 * 4 * 4)
            self.bn = L.BatchNormalization(8 * 4 * 4)
            self.up = L.Deconvolution2D(8, 3, 4, 2, 1)

    def forward(self, z):
        h = F.relu(self.bn(self.fc(z)))
        return F.tanh(self.up(F.reshape(h, (len(z), 8, 4, 4))))


NETWORKS = {
    "resnet": (ResNet, (3, 16, 16)),
    "generator": (Generator, (6,)),
    "mlp": (
        lambda: renga.Sequential(
            L.Linear(12, 7), F.leaky_relu, lambda x: x[:, 1:5], L.Linear(4, 3)
        ),
        (3, 4),
    ),
    "unpooled where the maxima were": (
        lambda: (
            lambda x: F.upsampling_2d(
                *F.max_pooling_2d(x, 2, return_indices=True), 2, outsize=(5, 6)
            )
        ),
        (3, 5, 6),
    ),
    "lstm cell": (
        lambda: lambda x: F.lstm(x[:, :2], F.concat([x, x]))[1],
        (4,),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_for_any_batch(name):
    make, shape = NETWORKS[name]
    model = make()
    proto = export(model, draw(2, *shape), dynamic_batch=True)
    (axis,) = {v.type.tensor_type.shape.dim[0].dim_param for v in proto.graph.output}
    assert axis == proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert axis == "batch"
    for size in (1, 2, 5):
        x = draw(size, *shape)
        with renga.using_config("train", False):
            expected = model(renga.Variable(x)).array
        numpy.testing.assert_allclose(
            computed(proto, x)[0], expected, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("function", "shape", "error", "message"),
    [
        (
            lambda x: F.split_axis(x, len(x), 0)[0],
            (2, 3),
            NotImplementedError,
            "same operations for every size",
        ),
        (
            lambda x: x * (1 / len(x)),
            (2, 3),
            NotImplementedError,
            r"Mul \(.*test_onnx.py:\d+\) depends on the size of the batch",
        ),
        (
            lambda x: x + numpy.arange(len(x), dtype="f")[:, None],
            (2, 3),
            NotImplementedError,
            "Add .* depends on the size of the batch",
        ),
        (
            lambda x: F.concat([x, numpy.ones((len(x) ** 2, 3), "f")], 0),
            (2, 3),
            NotImplementedError,
            "Concat .* depends on the size of the batch",
        ),
        (lambda x: x, (), ValueError, r"a batch axis and an example, got \(\)"),
        (lambda x: x, (0, 3), ValueError, r"and an example, got \(0, 3\)"),
    ],
)
def test_graphs_of_one_size_are_refused(function, shape, error, message):
    with pytest.raises(error, match=message):
        export(function, [draw(*shape)], dynamic_batch=True)
