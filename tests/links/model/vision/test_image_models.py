"""Models of photographs: figures of Chainer 7.8.1 for the same seeds, and files.

The figures were printed by Chainer on NumPy: with ``numpy.random.seed(0)`` a model
without weights was made, every parameter named b or beta was set to 0.1, and the image
``RandomState(1).normal(size=shape)`` went through it outside training.
"""

import math

import numpy
import pytest

import renga
import renga.links as L
from renga.dataset import download
from renga.links.model.vision import googlenet, resnet, vgg, vgg_bn
from renga.links.model.vision.image_model import ImageModel
from renga.links.model.vision.weights import Published
from tests.links.cases import caffemodel

# Mean, deviation and first elements of the outputs.
FIGURES = {
    ("ResNet50Layers", False, (1, 3, 64, 64)): {
        "conv1": (0.6439577, 0.8604532, 2.1677933, 0.1748634, 3.4468157),
        "res2": (5.1864014, 5.6890078, 3.5707221, 4.7735834, 3.9692626),
        "res4": (166.33789, 189.95740, 51.384224, 0.0, 0.0),
        "pool5": (326.33331, 282.06937, 199.63565, 168.27519, 482.90552),
        "fc6": (5.6059346, 430.66324, -79.382019, 635.42688, -266.12564),
    },
    ("ResNet50Layers", True, (1, 3, 64, 64)): {
        "res3": (21.400190, 24.848827, 2.5034037, 0.0, 11.286702),
        "fc6": (7.6844273, 493.69650, -144.73114, 678.29596, -333.33475),
    },
    ("GoogLeNet", None, (1, 3, 224, 224)): {
        "pool1": (1.5654441, 0.6037995, 0.2854364, 1.2780734, 0.9423348),
        "conv2": (0.5069901, 0.6972411, 0.5437535, 0.6611366, 0.6730611),
        "inception_4e": (0.1484619, 0.1659899, 0.1778902, 0.2999295, 0.2956547),
        "pool5": (0.1524416, 0.1485690, 0.1928258, 0.1810525, 0.0905896),
        "loss3_fc": (0.0999606, 0.2085400, -0.0831607, -0.2216930, 0.0706168),
        "loss1_fc2": (0.0808187, 0.3747959, 0.1301558, 0.6106505, -0.3514853),
        "loss2_fc2": (0.0865238, 0.2318724, 0.1290496, -0.6057315, 0.4372208),
    },
}


@pytest.mark.parametrize("case", FIGURES, ids=str)
def test_outputs(case):
    name, downsample, shape = case
    options = {} if downsample is None else {"downsample_fb": downsample}
    numpy.random.seed(0)
    model = getattr(L, name)(None, **options)
    for path, param in model.namedparams():
        if path.endswith(("/b", "beta")):
            param.array[...] = 0.1
    x = numpy.random.RandomState(1).normal(size=shape).astype("f")
    with renga.using_config("train", False), renga.no_backprop_mode():
        ys = model(x, layers=list(FIGURES[case]))
    assert set(ys) == set(FIGURES[case])
    for layer, (mean, deviation, *first) in FIGURES[case].items():
        y = ys[layer].array
        found = (y.mean(), y.std(), *y.ravel()[:3])
        # Rounding grows through the layers, by the size of the outputs.
        numpy.testing.assert_allclose(
            found, (mean, deviation, *first), rtol=2e-4, atol=2e-4 * deviation
        )


VGG = {
    L.VGG16Layers: (138357544, "conv5_3"),
    L.VGG19Layers: (143667240, "conv5_4"),
}


@pytest.fixture
def without_numbers(monkeypatch):
    """Creates the shapes of parameters only, not half a gigabyte of numbers."""

    def initialize(param, shape):
        param.given_shape = shape
        param.array = numpy.zeros(0, "f")

    monkeypatch.setattr(renga.Parameter, "initialize", initialize)


def shapes_of(model):
    return {path: param.given_shape for path, param in model.namedparams()}


def count(model):
    return sum(int(numpy.prod(shape)) for shape in shapes_of(model).values())


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("cls", VGG)
def test_vgg(cls):
    model = cls(None)
    size, last = VGG[cls]
    assert count(model) == size
    shapes = shapes_of(model)
    assert shapes[f"/{last}/W"] == (512, 512, 3, 3)
    assert shapes["/fc6/W"] == (4096, 25088) and shapes["/fc8/b"] == 1000
    layers = model.available_layers
    assert layers[:3] == ["conv1_1", "conv1_2", "pool1"]
    assert layers[-6:] == [last, "pool5", "fc6", "fc7", "fc8", "prob"]
    assert model.conv1_1.W.initializer.scale == 0.01
    assert [f is model.fc7 for f in model.functions["fc7"]] == [True, False, False]
    assert set(model.caffe_layers()) == {path.split("/")[1] for path in shapes}


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize(
    ("cls", "size"),
    [
        (L.GoogLeNet, 13378280),
        (L.ResNet50Layers, 25557096),
        (L.ResNet101Layers, 44549224),
        (L.ResNet152Layers, 60192872),
    ],
)
def test_sizes(cls, size):
    assert count(cls(pretrained_model=None)) == size


class Tiny(ImageModel):
    """A model with everything but size."""

    mean = (1.0, 2.0, 3.0)
    extracted = "pool"
    published = Published("tiny", "http://example.com/tiny", is_file=False)

    def __init__(self, pretrained_model="auto"):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 4, 1)
            self.fc = L.Linear(4, 5)
        self._load(pretrained_model)

    @property
    def functions(self):
        def pool(x):
            return renga.functions.average(x, axis=(2, 3))

        return {
            "conv": [self.conv],
            "pool": [pool],
            "prob": [self.fc, renga.functions.softmax],
        }

    def caffe_layers(self):
        return {
            "convolution": (self.conv.W.array, self.conv.b.array),
            "classifier": (self.fc.W.array, self.fc.b.array),
        }


def test_requested_layers():
    model = Tiny(None)
    x = numpy.ones((2, 3, 4, 4), "f")
    assert list(model(x)) == ["prob"]
    assert list(model(x, layers=["prob", "conv"])) == ["conv", "prob"]
    assert model(x, layers=["nothing"]) == {} and model(x, layers=[]) == {}
    assert model.available_layers == ["conv", "pool", "prob"]
    with pytest.raises(ValueError, match="using_config"):
        model(x, test=True)
    with pytest.raises(TypeError):
        model(x, nonsense=True)


def image(height, width, *channels):
    rng = numpy.random.default_rng(0)
    return rng.integers(0, 256, size=(height, width, *channels)).astype("uint8")


MEANS = {
    vgg: (103.939, 116.779, 123.68),
    googlenet: (104, 117, 123),
    resnet: (103.063, 115.903, 123.152),
}


@pytest.mark.parametrize("module", MEANS, ids=lambda m: m.__name__)
def test_prepare(module):
    Image = pytest.importorskip("PIL.Image")
    colour, grey = image(4, 2, 3), image(4, 2)
    expected = colour[..., ::-1].transpose(2, 0, 1) - numpy.reshape(
        MEANS[module], (3, 1, 1)
    )
    planes = colour.transpose(2, 0, 1)
    for given in (colour, planes, Image.fromarray(colour), planes.astype("f")):
        x = module.prepare(given, size=None)
        assert x.dtype == numpy.float32
        numpy.testing.assert_allclose(x, expected, rtol=1e-6)
    expected = grey - numpy.reshape(MEANS[module], (3, 1, 1))
    for given in (grey, grey[None], Image.fromarray(grey)):
        x = module.prepare(given, size=None)
        numpy.testing.assert_allclose(x, expected, rtol=1e-6)
    assert module.prepare(colour).shape == (3, 224, 224)
    assert module.prepare(colour, size=(5, 4)).shape == (3, 4, 5)


def test_extract():
    pytest.importorskip("PIL")
    model = Tiny(None)
    images = [image(8, 6, 3), image(5, 9)]
    ys = model.extract(images, size=(6, 8))
    assert list(ys) == ["pool"] and ys["pool"].shape == (2, 4)
    x = images[0][..., ::-1].astype("d").mean((0, 1)) - model.mean
    expected = model.conv.W.array[:, :, 0, 0] @ x
    numpy.testing.assert_allclose(ys["pool"].array[0], expected, rtol=1e-4)
    assert model.extract(images, layers=["conv"])["conv"].shape == (2, 4, 224, 224)
    with pytest.raises(ValueError):
        model.extract(images, volatile=True)


@pytest.mark.parametrize("oversample", [False, True])
def test_predict(oversample):
    pytest.importorskip("PIL")
    model = Tiny(None)
    given = image(256, 256, 3)
    corners = [(0, 0), (0, 32), (32, 0), (32, 32), (16, 16)]
    y = model.predict([given, given[::-1]], oversample=oversample)
    assert y.shape == (2, 5) and y.creator is None
    expected = []
    for top, left in corners if oversample else corners[-1:]:
        crop = given[top : top + 224, left : left + 224, ::-1].astype("d")
        h = model.conv.W.array[:, :, 0, 0] @ (crop.mean((0, 1)) - model.mean)
        e = numpy.exp(model.fc.W.array @ h)
        expected.append(e / e.sum())
    numpy.testing.assert_allclose(
        y.array[0], numpy.mean(expected, 0), rtol=1e-3, atol=1e-5
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_dataset_root", str(tmp_path))
    path = tmp_path / "pfnet" / "chainer" / "models"
    path.mkdir(parents=True)
    return path


def weights_file(path):
    rng = numpy.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((4, 3, 1, 1), (4,), (5, 4), (5,))]
    path.write_bytes(
        caffemodel.layer("Convolution", "convolution", blobs=arrays[:2])
        + caffemodel.layer("InnerProduct", "classifier", blobs=arrays[2:])
    )
    return arrays


def assert_has(model, arrays):
    params = (model.conv.W, model.conv.b, model.fc.W, model.fc.b)
    for param, array in zip(params, arrays):
        numpy.testing.assert_array_equal(param.array, array.astype("f"))


def test_weights_from_files(folder, tmp_path):
    arrays = weights_file(tmp_path / "own.caffemodel")
    assert_has(Tiny(str(tmp_path / "own.caffemodel")), arrays)
    npz = str(tmp_path / "own.npz")
    Tiny.convert_caffemodel_to_npz(str(tmp_path / "own.caffemodel"), npz)
    with numpy.load(npz) as saved:
        assert set(saved.files) == {"conv/W", "conv/b", "fc/W", "fc/b"}
    assert_has(Tiny(npz), arrays)
    assert not list(folder.iterdir())


def test_published_weights(folder):
    with pytest.raises(OSError, match="tiny.caffemodel"):
        Tiny()
    arrays = weights_file(folder / "tiny.caffemodel")
    assert_has(Tiny(), arrays)
    # From now on the npz file is used.
    (folder / "tiny.caffemodel").unlink()
    assert_has(Tiny(), arrays)


def test_published_weights_are_fetched(folder, monkeypatch):
    fetched = []

    def fetch(urls, path):
        fetched.extend(urls)
        weights_file(folder / "tiny.caffemodel")
        return path

    class Fetched(Tiny):
        published = Published("tiny", "http://example.com/tiny.caffemodel")

    monkeypatch.setattr("renga.links.model.vision.weights.download", fetch)
    Fetched()
    assert fetched == ["http://example.com/tiny.caffemodel"]


def test_file_without_a_layer(tmp_path):
    path = tmp_path / "other.caffemodel"
    path.write_bytes(caffemodel.layer("ReLU"))
    with pytest.raises(ValueError, match="expected a layer convolution"):
        Tiny(str(path))
    with pytest.raises(ValueError, match="34"):
        resnet.ResNetLayers.convert_caffemodel_to_npz(str(path), "x.npz", n_layers=34)


@pytest.mark.usefixtures("without_numbers")
def test_names_in_published_files():
    """As in the networks' published descriptions."""
    names = set(L.ResNet50Layers(None).caffe_layers())
    assert len(names) == 1 + 3 * 53
    assert {"conv1", "bn_conv1", "scale_conv1", "fc1000"} <= names
    assert {"res2a_branch1", "bn3d_branch2b", "scale4f_branch2c"} <= names
    names = set(L.ResNet101Layers(None).caffe_layers())
    assert {"res2c_branch2a", "res3b3_branch2a", "bn4b22_branch2c"} <= names
    assert {
        "res5c_branch2b",
        "res3a_branch1",
    } <= names and "res5b1_branch2b" not in names
    names = set(L.GoogLeNet(None).caffe_layers())
    assert len(names) == 10 + 9 * 6
    assert {"conv1/7x7_s2", "inception_4e/pool_proj", "loss3/classifier"} <= names


def test_statistics_in_published_files():
    """Caffe keeps sums with their weight, renga the means."""
    model = L.ResNet50Layers(None)
    layers = model.caffe_layers()
    mean, variance = numpy.random.default_rng(0).uniform(1, 2, size=(2, 64))
    layers["bn_conv1"]([mean * 4, variance * 4, numpy.array([4.0])])
    numpy.testing.assert_allclose(model.bn1.avg_mean, mean, rtol=1e-6)
    numpy.testing.assert_allclose(model.bn1.avg_var, variance, rtol=1e-6)


@pytest.mark.parametrize("extents", [(7, 7), (1, 2), (10, 7), (14, 15)])
def test_images_of_any_extents_become_means_of_parts(extents):
    """As ``AdaptiveAvgPool2d`` is defined."""
    x = numpy.random.RandomState(0).normal(size=(2, 3, *extents))
    y = vgg_bn._resized(renga.Variable(x)).array
    assert y.shape == (2, 3, 7, 7)
    for place in numpy.ndindex(7, 7):
        part = tuple(
            slice(math.floor(i * n / 7), math.ceil((i + 1) * n / 7))
            for i, n in zip(place, extents)
        )
        means = x[(..., *part)].mean((2, 3))
        numpy.testing.assert_allclose(y[(..., *place)], means, 1e-12)
