"""Classes of functions, as programs subclass them and read their attributes."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.chainer.function_classes import find_class
from renga.utils import conv
from tests.scripts import run_program


def class_of(path):
    """The class that Chainer has as ``chainer.functions.{path}``."""
    module, _, name = path.rpartition(".")
    return find_class("chainer.functions." + module, name)


ReLU = class_of("activation.relu.ReLU")


def variable():
    return renga.Variable(np.array([1.0, -1.0, 2.0], "f"))


@pytest.mark.parametrize("method", ["forward", "forward_cpu"])
def test_subclasses_have_forward_passes_of_their_own(method):
    def double(self, inputs):
        (y,) = getattr(ReLU, method)(self, inputs)
        return (2 * y,)

    (y,) = type("Double", (ReLU,), {method: double})().apply((variable(),))
    assert y.array.tolist() == [2, 0, 4]


def test_a_gradient_is_inherited_whatever_a_subclass_retains():
    class Double(ReLU):
        def forward_cpu(self, inputs):
            self.retain_outputs((0,))
            return (2 * np.maximum(inputs[0], 0),)

    x = variable()
    F.sum(Double().apply((x,))[0]).backward()
    assert x.grad.tolist() == [1, 0, 1]


def test_gradients_of_subclasses_read_what_chainers_classes_retain():
    class Guided(ReLU):
        def backward(self, indexes, grad_outputs):
            (y,) = self.get_retained_outputs()
            return (F.relu(grad_outputs[0]) * (y.array > 0),)

    x = variable()
    (y,) = Guided().apply((x,))
    y.grad = np.array([-1, 1, 1], "f")
    y.backward()
    assert x.grad.tolist() == [0, 0, 1]


def test_the_graph_of_a_class_can_be_unchained():
    x = variable()
    node = ReLU()
    (y,) = node.apply((x,))
    node.unchain()
    F.sum(y).backward()
    assert x.grad is None and node.inputs is None


def test_a_pooling_is_written_with_chainers_base_class():
    class SumOfSquares(class_of("pooling.pooling_2d.Pooling2D")):
        def forward_cpu(self, inputs):
            self.retain_inputs((0,))
            window = self.kh, self.kw, self.sy, self.sx, self.ph, self.pw
            col = conv.im2col_cpu(inputs[0], *window, cover_all=self.cover_all)
            return (np.square(col).sum((2, 3)),)

    x = np.random.RandomState(0).rand(2, 3, 4, 6).astype("f")
    (y,) = SumOfSquares((2, 3), None, 0, False).apply((x,))
    expected = np.square(x).reshape(2, 3, 2, 2, 2, 3).sum((3, 5))
    np.testing.assert_allclose(y.array, expected, rtol=1e-6)
    with pytest.raises(renga.utils.type_check.InvalidType):
        SumOfSquares(2).apply((x[0],))


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        (
            "connection.convolution_2d.Convolution2DFunction",
            ((2, 3), 1),
            {"sy": 2, "sx": 3, "ph": 1, "pw": 1, "dy": 1, "dx": 1, "groups": 1},
        ),
        (
            "connection.deconvolution_2d.Deconvolution2DFunction",
            (2, 1, (5, 6)),
            {"sy": 2, "pw": 1, "outh": 5, "outw": 6},
        ),
        ("connection.deconvolution_2d.Deconvolution2DFunction", (), {"outh": None}),
        (
            "pooling.average_pooling_2d.AveragePooling2D",
            ((2, 3),),
            {"kh": 2, "kw": 3, "sy": 2, "sx": 3, "ph": 0, "cover_all": False},
        ),
        (
            "pooling.max_pooling_nd.MaxPoolingND",
            (3, 2),
            {"ksize": (2, 2, 2), "stride": (2, 2, 2), "pad": (0, 0, 0)},
        ),
        (
            "pooling.unpooling_nd.UnpoolingND",
            (1, 2),
            {"ksize": (2,), "stride": (2,), "outs": None},
        ),
        (
            "pooling.roi_average_pooling_2d.ROIAveragePooling2D",
            (7, 0.5),
            {"outh": 7, "outw": 7, "spatial_scale": 0.5},
        ),
        ("array.resize_images.ResizeImages", ((4, 5), "bilinear", True), {"out_W": 5}),
    ],
)
def test_windows_are_kept_by_axis(path, arguments, expected):
    function = class_of(path)(*arguments)
    assert {name: getattr(function, name) for name in expected} == expected


def test_hooks_read_windows():
    # Programs that count operations, or write a network in another format.
    code = """
        import renga.chainer
        renga.chainer.install()
        import chainer, numpy
        import chainer.functions as F, chainer.links as L

        class Windows(chainer.FunctionHook):
            def forward_postprocess(self, function, in_data):
                name = type(function).__name__
                if name == "Convolution2DFunction":
                    print(name, function.sy, function.pw, function.dx, function.groups)
                elif name == "MaxPoolingND":
                    print(name, *function.ksize, *function.stride, function.cover_all)
                elif name == "AveragePooling2D":
                    print(name, function.kh, function.sx, function.ph)
                elif name == "Deconvolution2DFunction":
                    print(name, function.sx, function.outh)

        with Windows():
            x = numpy.ones((2, 4, 8, 8), "f")
            h = L.Convolution2D(4, 6, 3, stride=2, pad=1, groups=2)(x)
            h = F.convolution_2d(h, numpy.ones((4, 6, 2, 2), "f"), dilate=2)
            h = F.max_pooling_2d(h, 2, 1)
            F.max_pooling_1d(h.array[0], 1)
            h = F.average_pooling_2d(h, 1)
            F.deconvolution_2d(h, numpy.ones((4, 2, 2, 2), "f"), stride=2)
            try:
                F.max_pooling_2d(h, (1, 2, 3))
            except ValueError as error:
                print("refused")
    """
    done = run_program(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Convolution2DFunction 2 1 1 2",
        "Convolution2DFunction 1 0 2 1",
        "MaxPoolingND 2 2 1 1 True",
        "MaxPoolingND 1 1 True",
        "AveragePooling2D 1 1 0",
        "Deconvolution2DFunction 2 None",
        "refused",
    ]


@pytest.mark.parametrize(
    "path", ["dropout.Dropout", "simplified_dropconnect.SimplifiedDropconnect"]
)
def test_ratios_are_below_one(path):
    """What a ratio of 1 keeps would be divided by 0."""
    for ratio in (0, 1 - 2**-53):
        class_of(f"noise.{path}")(ratio)
    for ratio in (-5e-324, 1):
        with pytest.raises(ValueError, match=r"expected a ratio in \[0, 1\)"):
            class_of(f"noise.{path}")(ratio)
