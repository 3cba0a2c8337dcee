"""onnx_chainer: graphs computed by onnxruntime are what the models compute."""

import io
import os
import textwrap

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from tests.onnx_runs import computed
from tests.scripts import run_program

onnx = pytest.importorskip("onnx")
onnx_chainer = pytest.importorskip("renga.chainer.onnx_chainer")

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (2, 3, 8, 8)).astype("f")


class Network(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 4, 3, pad=1)
            self.norm = L.BatchNormalization(4)
            self.out = L.Linear(None, 5)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(F.dropout(h))


def elementwise(x):
    widths = ((0, 0), (0, 0), (1, 1), (0, 2))
    h = F.clip(F.pad(x, widths, "constant", constant_values=2.0), -0.5, 0.5)
    h = F.mean(h[:, 1:], axis=(2, 3)) + F.squeeze(F.expand_dims(F.sum(h), 0), 0)
    return F.log_softmax(F.concat(F.split_axis(h, 2, 1)[::-1]))


@pytest.fixture
def net():
    net = Network()
    net(X)
    return net


def expected(model, *arrays):
    with renga.using_config("train", False):
        return model(*arrays).array


def shape_of(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("version", [None, 7, 9, 11, 12, 13, 17])
def test_versions_of_operators(net, version):
    proto = onnx_chainer.export(net, X, opset_version=version)
    assert proto.opset_import[0].version == (version or 21)
    onnx.checker.check_model(proto)
    if version is None or version >= 9:  # what onnxruntime reads without a warning
        onnx.checker.check_model(proto, full_check=True)
        (y,) = computed(proto, X)
        np.testing.assert_allclose(y, expected(net, X), rtol=1e-4, atol=1e-6)
        proto = onnx_chainer.export(elementwise, X, opset_version=version)
        (y,) = computed(proto, X)
        np.testing.assert_allclose(y, elementwise(X).array, rtol=1e-4, atol=1e-6)


SCORES, LABELS = X[:, :, 0, 0], np.array([2, -1], "i")
COMPOSED = {
    "softmax of channels": (F.softmax, X),
    "log_softmax of channels": (F.log_softmax, X),
    "softmax of the last axis": (lambda x: F.softmax(x, axis=-1), X),
    "loss": (F.softmax_cross_entropy, SCORES, LABELS),
    "loss of pixels": (F.softmax_cross_entropy, X, np.argmin(X, 1).astype("i")),
    "weighted loss": (
        lambda x, t: F.softmax_cross_entropy(x, t, class_weight=np.float32([1, 2, 3])),
        SCORES,
        LABELS,
    ),
    "items": (F.select_item, SCORES, np.array([1, 0], "i")),
    "rows": (lambda t: F.embed_id(t, SCORES, ignore_label=-1), np.array([1, -1], "i")),
    "linear": (lambda x: F.linear(x, SCORES), SCORES),
}


def test_several_nodes_of_a_function_are_numbered():
    """As Chainer 7.8.1 numbers them."""
    for model, expected in (
        (
            lambda x: F.matmul(x, x, transb=True),
            "MatMul_0_tmp_0->MatMul_0_tmp_0 MatMul_0_tmp_1->MatMul_0",
        ),
        (
            lambda x: F.stack([x, x]),
            "Stack_0_tmp_0->Stack_0_tmp_0 Stack_0_tmp_1->Stack_0_tmp_1 "
            "Stack_0_tmp_2->Stack_0",
        ),
        (
            lambda x: F.split_axis(x, [1], 1),
            "SplitAxis_0->SplitAxis_0_0,SplitAxis_0_1",
        ),
    ):
        nodes = onnx_chainer.export(model, SCORES).graph.node
        nodes = [each for each in nodes if each.op_type != "Constant"]
        found = [f"{each.name}->{','.join(each.output)}" for each in nodes]
        assert found == expected.split()


@pytest.mark.parametrize("version", [9, 11, 12, 13])
@pytest.mark.parametrize("name", COMPOSED)
def test_operators_that_older_versions_lack(name, version):
    model, *arrays = COMPOSED[name]
    proto = onnx_chainer.export(model, arrays, opset_version=version)
    onnx.checker.check_model(proto, full_check=True)
    (y,) = computed(proto, *arrays)
    np.testing.assert_allclose(y, model(*arrays).array, rtol=1e-5, atol=1e-6)


def test_repeated_elements_before_expand():
    proto = onnx_chainer.export(lambda x: F.repeat(x, 2, axis=1), X, opset_version=7)
    assert "Expand" not in [node.op_type for node in proto.graph.node]
    np.testing.assert_array_equal(computed(proto, X)[0], X.repeat(2, axis=1))


def test_what_a_version_lacks():
    with pytest.raises(NotImplementedError, match="CumSum has no counterpart in .* 9"):
        onnx_chainer.export(lambda x: F.cumsum(x, 1), X, opset_version=9)
    with pytest.warns(UserWarning, match="not tested"):
        with pytest.raises(NotImplementedError):
            onnx_chainer.export(lambda x: F.cumsum(x, 1), X, opset_version=6)


def test_names_and_parameters(net):
    proto = onnx_chainer.export(
        net, renga.Variable(X), input_names="x", output_names=["y"], graph_name="G"
    )
    graph = proto.graph
    assert graph.name == "G"
    assert [each.name for each in (*graph.input, *graph.output)] == ["x", "y"]
    values = {x.name: onnx.numpy_helper.to_array(x) for x in graph.initializer}
    np.testing.assert_array_equal(values["param_conv_W"], net.conv.W.array)
    bare = onnx_chainer.export(net, X, export_params=False)
    names = [each.name for each in bare.graph.input]
    assert names[0] == "Input_0" and set(names[1:]) == {
        f"param{path.replace('/', '_')}"
        for path in (
            *(path for path, _ in net.namedparams()),
            "/norm/avg_mean",
            "/norm/avg_var",
        )
    }
    arrays = [values[name] for name in names[1:]]
    (y,) = computed(bare, X, *arrays)
    np.testing.assert_allclose(y, expected(net, X), rtol=1e-4, atol=1e-6)


def test_dictionaries():
    def model(a, b):
        return {"sum": a + b, "product": a * b}

    proto = onnx_chainer.export(
        model,
        {"a": X, "b": 2 * X},
        input_names={"b": "B", "a": "A"},
        output_names={"sum": "S", "product": "P"},
    )
    assert [each.name for each in proto.graph.input] == ["A", "B"]
    total, product = computed(proto, X, 2 * X)
    np.testing.assert_allclose(total, 3 * X, rtol=1e-6)
    np.testing.assert_allclose(product, 2 * X**2, rtol=1e-6)
    with pytest.raises(ValueError, match="expected names"):
        onnx_chainer.export(model, {"a": X, "b": X}, input_names={"c": "C"})


def test_batches_of_any_size(net):
    proto = onnx_chainer.export(net, X, input_shapes=("b", 3, 8, 8))
    assert shape_of(proto.graph.input[0]) == ["b", 3, 8, 8]
    assert shape_of(proto.graph.output[0]) == ["b", 5]
    more = rng.uniform(-1, 1, (5, 3, 8, 8)).astype("f")
    (y,) = computed(proto, more)
    np.testing.assert_allclose(y, expected(net, more), rtol=1e-4, atol=1e-6)


def test_images_of_any_size(net):
    model = renga.Sequential(L.Convolution2D(3, 4, 3), F.relu)
    proto = onnx_chainer.export(model, [X], input_shapes=[("b", 3, "h", "w")])
    larger = rng.uniform(-1, 1, (1, 3, 9, 5)).astype("f")
    (y,) = computed(proto, larger)
    np.testing.assert_allclose(y, expected(model, larger), rtol=1e-4, atol=1e-6)
    # The linear layer has weights for one size.
    with pytest.raises(NotImplementedError, match="any extents"):
        onnx_chainer.export(net, X, input_shapes=("b", 3, "h", 8))
    # A constant depends on the number of rows.
    with pytest.raises(NotImplementedError, match="any extents"):
        onnx_chainer.export(lambda x: x / x.shape[2], X, input_shapes=(2, 3, "h", 8))
    with pytest.raises(ValueError, match="expected input_shapes"):
        onnx_chainer.export(net, X, input_shapes=("b", 3))


def test_training_mode(net):
    before = net.norm.avg_mean.copy()
    proto = onnx_chainer.export(net, X, train=True)
    assert "Dropout" in [node.op_type for node in proto.graph.node]
    np.testing.assert_array_equal(net.norm.avg_mean, before)
    body = renga.Sequential(net.conv, net.norm)
    (y,) = computed(onnx_chainer.export(body, X, train=True), X)
    np.testing.assert_allclose(y.mean((0, 2, 3)), np.zeros(4), atol=1e-5)
    np.testing.assert_allclose(y.std((0, 2, 3)), np.ones(4), rtol=1e-2)


class Double(renga.FunctionNode):
    def forward(self, xs):
        return (2 * xs[0],)


def test_converters_of_the_program():
    def twice(params):
        assert isinstance(params.func, Double) and params.opset_version == 21
        names = [params.input_names[0]] * 2
        return (onnx.helper.make_node("Add", names, params.output_names),)

    proto = onnx_chainer.export(
        lambda x: F.tanh(Double().apply((x,))[0]),
        X,
        external_converters={"Double": twice},
    )
    np.testing.assert_allclose(computed(proto, X)[0], np.tanh(2 * X), rtol=1e-5)

    def custom(params):
        outputs = params.output_names
        yield onnx.helper.make_node("Mine", params.input_names, outputs, domain="own")

    proto = onnx_chainer.export(
        lambda x: F.relu(x) + 1,
        X,
        external_converters={"ReLU": custom},
        external_opset_imports={"own": 3},
    )
    nodes = [(n.op_type, n.domain) for n in proto.graph.node if n.input]
    assert nodes == [("Mine", "own"), ("Add", "")]
    assert {o.domain: o.version for o in proto.opset_import} == {"": 21, "own": 3}


def test_tensors_of_converters():
    factors = np.arange(8, dtype="f")

    def times_factors(params):
        for given in (factors, renga.Variable(factors)):
            tensor = onnx_chainer.convert_parameter(given, params.context)
            np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), factors)
        names = [*params.input_names, tensor.name]
        yield onnx.helper.make_node("Mul", names, params.output_names)
        with pytest.raises(ValueError, match="convert_parameter: expected an array"):
            onnx_chainer.convert_parameter([1.0], params.context)

    given = {"Double": times_factors}
    model = lambda x: Double().apply((x,))[0]  # noqa: E731
    proto = onnx_chainer.export(model, X, external_converters=given)
    np.testing.assert_array_equal(computed(proto, X)[0], X * factors)


def test_files(net, tmp_path):
    path = tmp_path / "net.onnx"
    file = io.BytesIO()
    proto = onnx_chainer.export(net, X, str(path), save_text=True)
    onnx_chainer.export(net, X, file)
    assert onnx.load(path) == proto == onnx.load_from_string(file.getvalue())
    assert "Conv" in (tmp_path / "net.onnx.txt").read_text()
    model, inputs, outputs = onnx_chainer.export(net, X, return_named_inout=True)
    assert model == proto and list(inputs) == ["Input_0"]
    np.testing.assert_array_equal(inputs["Input_0"].array, X)
    (y,) = outputs.values()
    np.testing.assert_allclose(y.array, expected(net, X), rtol=1e-6)


def test_testcases(net, tmp_path):
    onnx_chainer.export_testcase(net, [X], str(tmp_path), output_grad=True)
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "test_data_set_0"]

    def read(name):
        tensor = onnx.load_tensor(tmp_path / "test_data_set_0" / name)
        return tensor.name, onnx.numpy_helper.to_array(tensor)

    proto = onnx.load(tmp_path / "model.onnx")
    name, y = read("output_0.pb")
    assert name == proto.graph.output[0].name
    np.testing.assert_allclose(
        computed(proto, read("input_0.pb")[1])[0], y, rtol=1e-4, atol=1e-6
    )
    grads = dict(read(f"gradient_{i}.pb") for i in range(6))
    np.testing.assert_allclose(grads["param_out_b"], np.full(5, 2))


def test_elements_picked_by_an_input():
    order = np.array([1, 0, 1], "i")
    for model in (
        F.permutate,
        lambda x, i: x[i.array],
        lambda x, i: F.get_item(x, i.array),
    ):
        proto = onnx_chainer.export(model, [X, order])
        for other in (order, np.array([0, 0, 0], "i")):
            np.testing.assert_array_equal(computed(proto, X, other)[0], X[other])
    proto = onnx_chainer.export(lambda x, i: x[:, :, i.array], [X, order])
    np.testing.assert_array_equal(computed(proto, X, order)[0], X[:, :, order])


def test_a_permutation_by_an_input_is_undone():
    order = np.array([2, 0, 1], "i")
    model = lambda x, i: F.permutate(x, i, axis=1, inv=True)  # noqa: E731
    x = np.arange(6, dtype="f").reshape(2, 3)
    proto = onnx_chainer.export(model, [x, order])
    for other in (order, np.array([1, 0, 2], "i")):
        np.testing.assert_array_equal(computed(proto, x[:, other], other)[0], x)


def test_with_chainers_names():
    """Functions of which a converter is given are one node."""
    code = """
        import chainer, numpy, onnx, onnx_chainer
        import chainer.functions as F

        def pool(params):
            assert type(params.func).__name__ == "MaxPoolingND", params
            yield onnx.helper.make_node("Pool", params.input_names, params.output_names)

        x = numpy.zeros((1, 1, 4, 4), "f")
        model = lambda x: F.max_pooling_2d(F.relu(x), 2)
        given = {"MaxPoolingND": pool}
        proto = onnx_chainer.export(model, x, external_converters=given)
        print(*(node.op_type for node in proto.graph.node), onnx_chainer.__name__)
    """
    printed, errors = run_with_alias(code)
    assert printed.split() == ["Relu", "Pool", "renga.chainer.onnx_chainer"], errors


def test_names_of_chainers_exporter():
    """Chainer 7.8.1 has printed the expected lines, but for arrays' numbers."""
    code = """
        import re, numpy as np
        import chainer, chainer.functions as F, chainer.links as L
        import onnx_chainer
        from onnx_chainer import onnx_helper
        from onnx_chainer.replace_func import as_funcnode

        class Net(chainer.Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.a, self.b = L.Linear(4, 3), L.Linear(3, 2)
                    self.norm = L.BatchNormalization(3, use_gamma=False)

            @as_funcnode("Scale", rename_attributes=[("by", "factor")])
            def scale(self, x, by=2):
                return {"one": x.array * by, "two": (x.array,)}

            def forward(self, x):
                h = self.scale(F.relu(self.norm(self.a(x))), by=3)
                return self.b(h["one"] + 1), h["two"][0] + np.float32([1, 2, 3])

        def convert(params):
            builder, (x,) = onnx_helper.GraphBuilder(), params.input_names
            by = params.context.add_const(np.float32(params.func.factor), "by")
            builder.op_output_named("Mul", [x, by], params.output_names[:1])
            builder.op("Identity", [x])
            return builder.nodes(params.output_names[1:])

        graph = onnx_chainer.export(
            Net(), np.ones((5, 4), "f"), external_converters={"Scale": convert}
        ).graph
        nodes = {f"{n.op_type}:{n.name}->{','.join(n.output)}" for n in graph.node
                 if n.op_type != "Constant"}
        names = {re.sub(r"^(v|array_)[0-9]+$", "array", x.name)
                 for x in graph.initializer}
        print(*sorted(nodes), *sorted(names), *sorted(y.name for y in graph.output))
    """
    printed, errors = run_with_alias(code)
    assert (
        printed.split()
        == """
        Add:AddConstant_0->AddConstant_0 Add:Add_0->Add_0
        BatchNormalization:FixedBatchNormalization_0->FixedBatchNormalization_0
        Gemm:LinearFunction_0->LinearFunction_0 Gemm:LinearFunction_1->LinearFunction_1
        Identity:Scale_0_tmp_1->Scale_0_1 Mul:Scale_0_tmp_0->Scale_0_0
        Relu:ReLU_0->ReLU_0
        array param_a_W param_a_b param_b_W param_b_b param_norm_avg_mean
        param_norm_avg_var param_norm_beta Add_0 LinearFunction_1
        """.split()
    ), errors


def test_replaced_functions_have_gradients():
    from renga.chainer.onnx_chainer.replace_func import fake_as_funcnode

    a, b = (renga.Variable(np.array(v)) for v in (2.0, 5.0))
    x = a * b
    function = fake_as_funcnode(lambda x, k, y: [k * x * y, x / y], "F", [(1, "by")])
    product, ratio = function(x, 3, b)
    assert product.creator.by == 3
    gx, gb = renga.grad([product, ratio], [x, b])
    np.testing.assert_allclose([gx.array, gb.array], [15 + 1 / 5, 3 * 2 * 5 * 2])
    with pytest.raises(ValueError, match="expected Variables from G for a gradient"):
        fake_as_funcnode(lambda x: x.array, "G")(x).backward()
    with pytest.raises(ValueError, match="expected a Variable among"):
        function(1, 2, 3)


REPLACED = {
    "Tanh": (lambda x: np.tanh(x.array), X),
    "MulConstant": (lambda x, value=2: x.array * value, X),
    "Reshape": (lambda x, t: F.reshape(x, tuple(t.array)).array, X, np.array([24, 16])),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_functions_are_operators_of_their_names(name):
    from renga.chainer.onnx_chainer.replace_func import fake_as_funcnode

    function, *arrays = REPLACED[name]
    proto = onnx_chainer.export(fake_as_funcnode(function, name), arrays)
    y = function(*map(renga.Variable, arrays))
    np.testing.assert_allclose(computed(proto, *arrays)[0], y, rtol=1e-5)


def test_outputs_that_are_no_variables():
    for result, error in ((lambda x: x.array, RuntimeError), (len, RuntimeError)):
        with pytest.raises(error, match="expected Variables"):
            onnx_chainer.export(result, X)
    with pytest.raises(ValueError, match="expected Variables"):
        onnx_chainer.export(lambda x: (x, [x]), X)


def test_regions_of_images_may_be_an_input():
    code = """
        import chainer.functions as F, numpy, onnx_chainer, onnxruntime

        x = numpy.random.RandomState(0).rand(2, 2, 8, 8).astype("f")
        rois = numpy.array([[0, 1, 1, 6, 6], [1, 0, 0, 5, 7], [1, 2, 3, 7, 7]], "f")

        def model(x, rois=rois):
            return F.roi_pooling_2d(x, rois, 3, 4, spatial_scale=0.3)

        for arrays in ([x, rois], [x]):
            proto = onnx_chainer.export(model, arrays)
            session = onnxruntime.InferenceSession(proto.SerializeToString())
            names = [each.name for each in session.get_inputs()]
            for order in (slice(None), slice(None, None, -1)):
                given = [arrays[0], *(part[order] for part in arrays[1:])]
                (y,) = session.run(None, dict(zip(names, given)))
                print(len(names), numpy.array_equal(y, model(*given).array))
    """
    printed, errors = run_with_alias(code)
    assert printed.split("\n") == ["2 True"] * 2 + ["1 True"] * 2 + [""], errors


def run_with_alias(code):
    """What a program prints that knows renga by Chainer's names."""
    code = "import renga.chainer\nrenga.chainer.install()\n" + textwrap.dedent(code)
    done = run_program(code)
    return done.stdout, done.stderr
