"""Every link with empty batches and batches of two, dtypes and unusual strides.

The expected outcomes are Chainer 7.8.1's, in ``edge_links.json`` (``edge_links.py``):
outputs, statistics, and gradients of inputs and parameters. The tables below list where
renga's differ on purpose.
"""

import json
from pathlib import Path

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import Variable
from tests.links.cases import edge_links
from tests.python.functions.cases import edge_cases
from tests.python.functions.cases.edge_cases import same
from tests.python.functions.cases.function_check import strided

CHAINER = json.loads(Path(edge_links.__file__).with_name("edge_links.json").read_text())

# Chainer fails with empty batches; renga's outcomes are those of samples.
NOTHING = {
    "BlackOut": [()],
    "CRF1d": [()],
    "DeformableConvolution2D": [(0, 2, 3, 3)],
    "GroupNormalization": [(0, 4, 3)],
    "Inception": [(0, 11, 5, 5)],
    "InceptionBN": [(0, 11, 5, 5)],
    "Linear": [(0, 2)],
    "NStepBiGRU": [(4, 2, 2), (0, 4), (2, 4)],
    "NStepBiLSTM": [(4, 2, 2), (4, 2, 2), (0, 4), (2, 4)],
    "NStepBiRNNReLU": [(4, 2, 2), (0, 4), (2, 4)],
    "NStepBiRNNTanh": [(4, 2, 2), (0, 4), (2, 4)],
    "NStepGRU": [(2, 2, 2), (0, 2), (2, 2)],
    "NStepLSTM": [(2, 2, 2), (2, 2, 2), (0, 2), (2, 2)],
    "NStepRNNReLU": [(2, 2, 2), (0, 2), (2, 2)],
    "NStepRNNTanh": [(2, 2, 2), (0, 2), (2, 2)],
}

# Running averages become NaN in Chainer; here an empty batch changes nothing.
STATISTICS = {
    "BatchNormalization",
    "BatchRenormalization",
    "DecorrelatedBatchNormalization",
    "InceptionBN",
}

# Samples are drawn, differently in each library.
DRAWN = {"BlackOut", "NegativeSampling", "SimplifiedDropconnect"}
DRAWN.add("StatefulZoneoutLSTM")

# Chainer supports these in float32 only.
NOT_IN_HALF = {"Bilinear", "DecorrelatedBatchNormalization"}

# They take no batch, or are tested with pictures, or on several ranks.
OTHERS = {"Parameter", "GoogLeNet", "VGG16Layers", "VGG19Layers"}
OTHERS |= {f"ResNet{n}Layers" for n in (50, 101, 152)}
# Not Chainer's; tested on their own.
OTHERS |= set(
    """BERT DenseNet DenseNet121 EfficientNet EfficientNetB0 GPT2 KeyValueCache Llama
    MobileNetV2 MobileNetV3 MobileNetV3Large MobileNetV3Small MultiHeadAttention
    RMSNormalization ResNet18 ResNet34 ResNet50 ResNet101 ResidualNetwork
    TransformerBlock UNet VGG11BN VGG13BN VGG16BN VGG19BN ViTB16
    VisionTransformer""".split()
)

TOLERANCE = {"nothing": 1e-5, "two": 1e-4, "half": 1e-1}


def name_of(call):
    return call.partition("L.")[2].partition("(")[0]


def run(call, mode, layout=edge_cases.plain):
    inputs = edge_links.Inputs(renga, *edge_cases.MODES[mode], layout)
    return edge_cases.outcome(call, inputs)


def test_every_link_is_called_with_batches():
    called = {name_of(call) for call in CHAINER if "N" in call.partition("(L.")[2]}
    public = {n for n in dir(L) if isinstance(getattr(L, n), type)}
    parallel = {n for n in public if n.startswith(("Parallel", "Sequence", "Spatial"))}
    assert public - called <= OTHERS | parallel
    assert set(CHAINER) == set(edge_links.CALLS)


@pytest.mark.parametrize("call", CHAINER)
def test_empty_batch(call):
    expected, found = CHAINER[call]["nothing"], run(call, "nothing")
    name = name_of(call)
    if isinstance(found, str):
        # Where no sequence has a step, Chainer ends with an error of its own code.
        assert found == {"IndexError": "InvalidType"}.get(expected, expected)
        return
    if isinstance(expected, str):
        shapes = [tuple(y[1]) for y in found["outputs"]]
        if name.startswith("NStep") and call.count("s(N, 3)") == 2:  # nor a result
            assert shapes[-1][0] == 0
            shapes[-1] = NOTHING[name][-1]
        assert shapes[: len(NOTHING[name])] == NOTHING[name]
    elif name not in STATISTICS:
        same(expected["outputs"], found["outputs"], TOLERANCE["nothing"])
    if not isinstance(expected, str) and not isinstance(expected["gradients"], str):
        same(expected["gradients"], found["gradients"], TOLERANCE["nothing"])
    elif "s(2, 3)" not in call:
        assert all(gx is None or gx[2:] == [0, 0] for gx in found["gradients"])


@pytest.mark.parametrize(
    "link",
    [
        L.BatchNormalization(3),
        L.BatchRenormalization(3),
        L.DecorrelatedBatchNormalization(3, groups=1),
    ],
)
def test_an_empty_batch_does_not_change_running_averages(link):
    rng = numpy.random.default_rng(0)
    link(rng.normal(size=(8, 3)).astype("f"))
    before = [numpy.array(getattr(link, name)) for name in sorted(link._persistent)]
    link(numpy.zeros((0, 3), "f"))
    for name, value in zip(sorted(link._persistent), before):
        if name != "N":
            numpy.testing.assert_array_equal(getattr(link, name), value)


@pytest.mark.parametrize("layout", [edge_cases.plain, strided])
@pytest.mark.parametrize("mode", ["two", "half"])
@pytest.mark.parametrize("call", CHAINER)
def test_batch_of_two(call, mode, layout):
    expected, found = CHAINER[call][mode], run(call, mode, layout)
    name = name_of(call)
    if mode == "half" and isinstance(expected, str):
        assert name in NOT_IN_HALF
        assert found["outputs"][0][0] == "float16"
        return
    tolerance = None if name in DRAWN else TOLERANCE[mode]
    same(expected["outputs"], found["outputs"], tolerance)
    same(expected["gradients"], found["gradients"], tolerance)


def test_sequence_of_no_steps():
    """A copy's state is independent of the original."""
    rng = numpy.random.default_rng(0)
    x, nothing = rng.normal(size=(4, 3)).astype("f"), numpy.zeros((0, 3), "f")
    h = rng.normal(size=(1, 2, 2)).astype("f")
    link = L.NStepGRU(1, 3, 2, 0.0)
    hy, (first, second) = link(Variable(h), [nothing, x])
    alone, (expected,) = link(Variable(h[:, 1:]), [x])
    assert first.shape == (0, 2)
    numpy.testing.assert_allclose(second.array, expected.array, rtol=1e-6)
    numpy.testing.assert_array_equal(hy.array[:, 0], h[:, 0])
    numpy.testing.assert_allclose(hy.array[:, 1], alone.array[:, 0], rtol=1e-6)
    F.sum(second).backward()
