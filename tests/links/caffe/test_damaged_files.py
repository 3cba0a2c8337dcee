"""Caffe files whose headers exceed their contents."""

import re
import resource

import numpy
import pytest

import renga
import renga.links as L
from renga.links.caffe import CaffeFunction
from renga.links.model.vision import weights
from renga.serializers import FileFormatError
from tests.links.cases import caffemodel
from tests.links.cases.caffemodel import field, layer, message, varint

W = numpy.arange(6 * 4 * 9.0).reshape(6, 4, 3, 3)
B = numpy.arange(6.0)
HUGE = 2**40


def key(number, wire_type):
    return varint(number << 3 | wire_type)


FILES = {
    # The name of a layer as a number: as many bytes as it says, of zeros.
    "a name of 4 GB": field(100, key(1, 0) + varint(2**32)),
    "the net's name as a number": key(1, 0) + varint(HUGE),
    "a layer as a number": key(100, 0) + varint(5),
    "a layer as four bytes": key(100, 5) + b"abcd",
    "a blob as a number": field(100, key(7, 0) + varint(5)),
    "weights as a number": field(100, field(7, key(5, 0) + varint(HUGE))),
    "weights as eight bytes": field(100, field(7, key(5, 1) + bytes(8))),
    "weights of three bytes": field(100, field(7, key(5, 2) + b"\3abc")),
    "an extent as four bytes": field(100, field(7, field(7, key(1, 5) + bytes(4)))),
    "a field of 2**63 bytes": key(100, 2) + varint(2**63),
    "a number that never ends": b"\xff" * 20,
    "a huge blob": layer("InnerProduct", p117=message((1, HUGE)))[:-2],
    "outputs": layer("Convolution", blobs=(W, B), p106=message((1, HUGE), (4, 3))),
    "kernels": layer("Convolution", blobs=(W, B), p106=message((1, 6), (4, HUGE))),
    "groups": layer(
        "Convolution", blobs=(W, B), p106=message((1, 6), (4, 3), (5, HUGE))
    ),
    "no groups": layer(
        "Convolution", blobs=(W, B), p106=message((1, 6), (4, 3), (5, 0))
    ),
    "no bias": layer("Convolution", blobs=(W,), p106=message((1, 6), (4, 3))),
    "a short bias": layer(
        "Convolution", blobs=(W, B[:5]), p106=message((1, 6), (4, 3))
    ),
    "no weights": layer("Convolution", p106=message((1, 6), (4, 3))),
    "transposed": layer("Deconvolution", blobs=(W, B), p106=message((1, HUGE), (4, 3))),
    "transposed in groups": layer(
        "Deconvolution", blobs=(W, B), p106=message((1, 6), (4, 3), (5, 0))
    ),
    "columns": layer("InnerProduct", blobs=(W, B), p117=message((1, HUGE))),
    "no columns": layer("InnerProduct", blobs=(W[0, 0, 0, 0], B), p117=message((1, 6))),
    "statistics": layer("BatchNorm", blobs=(B, B[:5], [1.0])),
    "two statistics": layer("BatchNorm", blobs=(B, B)),
    "no scale": layer("Scale"),
    "an operation": layer("Eltwise", p110=message((1, 3))),
    "another operation": layer("Eltwise", p110=message((1, -1))),
    "a window of none": layer("LRN", p118=message((1, 0))),
    "one name twice": 2
    * layer("InnerProduct", blobs=(W[0, 0], B[:3]), p117=message((1, 3))),
    "a method's name": layer(
        "InnerProduct", "forward", blobs=(W[0, 0], B[:3]), p117=message((1, 3))
    ),
    "an attribute's name": layer(
        "InnerProduct", "layers", blobs=(W[0, 0], B[:3]), p117=message((1, 3))
    ),
    "a negative extent": field(
        100,
        message(
            (1, "l"),
            (2, "InnerProduct"),
            (7, message((7, message((1, -2), (1, -3))), (5, bytes(24)))),
        ),
    ),
    "a hundred axes": field(
        100,
        message(
            (1, "l"),
            (2, "InnerProduct"),
            (7, message((7, message(*100 * [(1, 1)])), (5, bytes(4)))),
        ),
    ),
}


@pytest.mark.parametrize("missing", [1, 2, 3, 4])
def test_an_old_extent_that_is_missing_is_zero(tmp_path, missing):
    path = tmp_path / "net.caffemodel"
    given = {extent: 1 for extent in (1, 2, 3, 4)}

    def write(extents):
        weights = message(*extents.items(), (5, numpy.float32(2).tobytes()))
        parameters = message((1, 1), (2, 0))  # one output without a bias
        names = (1, "l"), (2, "InnerProduct"), (3, "x"), (4, "y")
        path.write_bytes(field(100, message(*names, (7, weights), (117, parameters))))

    write(given)
    assert CaffeFunction(path)["l"].W.array.ravel().tolist() == [2.0]
    del given[missing]
    write(given)
    shape = tuple(int(extent != missing) for extent in (1, 2, 3, 4))
    with pytest.raises(FileFormatError, match=re.escape(f"{shape}, got 1 of them")):
        CaffeFunction(path)


@pytest.mark.parametrize("name", FILES)
def test_refused_without_taking_memory(tmp_path, name):
    path = tmp_path / "net.caffemodel"
    path.write_bytes(FILES[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FileFormatError, match="net.caffemodel: expected .*, got"):
        CaffeFunction(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_statistics_without_updates(tmp_path):
    """Caffe treats a weight of 0 as a factor of 0."""
    path = tmp_path / "net.caffemodel"
    path.write_bytes(layer("BatchNorm", "n", blobs=(B, B, [0.0])))
    net = CaffeFunction(path)
    assert not net["n"].avg_mean.any() and not net["n"].avg_var.any()


def test_any_file_object(tmp_path):
    data = caffemodel.layer(
        "InnerProduct", "f", blobs=(W[0, 0], B[:3]), p117=message((1, 3))
    )
    (tmp_path / "net").write_bytes(data)
    with open(tmp_path / "net", "rb") as file:
        net = CaffeFunction(file)
    numpy.testing.assert_array_equal(net["f"].W.array, W[0, 0])


class TwoLayers(renga.Chain):
    """A model that loads its weights from a Caffe file."""

    def __init__(self):
        super().__init__(a=L.Linear(3, 2), z=L.Linear(2, 2))

    def caffe_layers(self):
        return {link.name: (link.W.array, link.b.array) for link in self.children()}


@pytest.mark.parametrize(
    "last, message_of_it",
    [
        ((W[0, 0], B[:2]), "got cannot reshape"),
        ((W[0, 0, :2, :2],), "got 1 blobs for 2 arrays"),
    ],
)
def test_a_model_is_loaded_atomically(tmp_path, last, message_of_it):
    """If the weights do not fit the last layer, the first ones are unchanged."""
    path = tmp_path / "net.caffemodel"
    first = layer("InnerProduct", "a", blobs=(W[0, 0, :2], B[:2]))
    path.write_bytes(first + layer("InnerProduct", "z", blobs=last))
    net = TwoLayers()
    before = {name: p.array.copy() for name, p in net.namedparams()}
    with pytest.raises(
        FileFormatError, match=f"expected the weights of z, {message_of_it}"
    ):
        weights.load(net, path)
    for name, param in net.namedparams():
        numpy.testing.assert_array_equal(param.array, before[name])
    path.write_bytes(first + layer("InnerProduct", "z", blobs=(W[0, 0, :2, :2], B[:2])))
    weights.load(net, path)
    numpy.testing.assert_array_equal(net.a.W.array, W[0, 0, :2])
