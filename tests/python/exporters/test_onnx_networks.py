"""The networks of the examples as ONNX graphs for batches of any size."""

import runpy
from pathlib import Path

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.exporters.onnx import export
from tests.onnx_runs import session_of

pytest.importorskip("onnx")

EXAMPLES = Path(__file__).parents[3] / "examples"
rng = numpy.random.default_rng(0)


def draw(*shape):
    return rng.uniform(-1, 1, shape).astype("f")


def words(*shape):
    return rng.integers(0, 9, shape).astype("i")


def check(model, inputs, sizes=(1, 2, 5), rtol=1e-3, atol=1e-4):
    """``inputs(n)`` are the arguments for n samples."""
    model_before = {name: p.array.copy() for name, p in model.namedparams()}
    proto = export(model, inputs(3), dynamic_batch=True)
    session = session_of(proto)
    names = [each.name for each in session.get_inputs()]
    for size in sizes:
        arrays = inputs(size)
        with renga.using_config("train", False):
            expected = model.copy()(*arrays)
        (found,) = session.run(None, dict(zip(names, arrays)))
        assert found.shape == expected.shape
        numpy.testing.assert_allclose(found, expected.array, rtol, atol)
    for name, p in model.namedparams():
        numpy.testing.assert_array_equal(p.array, model_before[name])


NETWORKS = {
    "01_digits/network.py VGG": ((), lambda n: (draw(n, 1, 8, 8),)),
    "02_parallel/vgg.py VGG16": ((8,), lambda n: (draw(n, 3, 32, 32),)),
    "02_parallel/dcgan.py Generator": ((8, 10), lambda n: (draw(n, 10),)),
    "02_parallel/dcgan.py Discriminator": ((8,), lambda n: (draw(n, 3, 32, 32),)),
    "05_images/train_mnist.py MLP": ((20,), lambda n: (draw(n, 64),)),
    "06_sequences/train_language_model.py RNN": ((9, 6), lambda n: (words(n),)),
    "06_sequences/train_memory_network.py MemoryNetwork": (
        (6, 2),
        lambda n: (words(n, 10, 5), words(n, 5)),
    ),
    "08_pipelines/networks.py VGG": ((4,), lambda n: (draw(n, 1, 16, 16),)),
    "09_planning/models.py Small": ((), lambda n: (draw(n, 3, 32, 32),)),
}


def class_of(name, monkeypatch):
    path, kind = name.split()
    monkeypatch.syspath_prepend(str((EXAMPLES / path).parent))
    return runpy.run_path(str(EXAMPLES / path))[kind]


@pytest.mark.parametrize("name", NETWORKS)
def test_example(name, monkeypatch):
    arguments, inputs = NETWORKS[name]
    model = class_of(name, monkeypatch)(*arguments)
    with renga.using_config("train", False):
        model(*inputs(2))  # finds the sizes that were left out
    for link in model.links():
        if isinstance(link, L.BatchNormalization):
            link.avg_mean[...] = rng.normal(0, 0.1, link.avg_mean.shape)
            link.avg_var[...] = rng.uniform(0.5, 2, link.avg_var.shape)
    if hasattr(model, "reset_state"):
        model.reset_state()
    check(model, inputs)


def test_variational_autoencoder(monkeypatch):
    model = class_of("05_images/train_vae.py VAE", monkeypatch)(64, 4, 20)

    class Reconstruction(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.vae = model

        def forward(self, x):
            posterior = self.vae.encoder(x)
            return F.sigmoid(self.vae.decoder(posterior.mean).distribution.logit)

    model.encoder(draw(2, 64))
    check(Reconstruction(), lambda n: (draw(n, 64),))


def of_one_size(function, *arrays):
    """The graph's results for other arrays of the same shapes, beside the model's."""
    proto = export(function, arrays)
    session = session_of(proto)
    others = [numpy.flip(x).copy() for x in arrays]
    names = [each.name for each in session.get_inputs()]
    (found,) = session.run(None, dict(zip(names, others)))
    with renga.using_config("train", False):
        expected = function(*others)
    numpy.testing.assert_allclose(found, expected.array, rtol=1e-3, atol=1e-4)


def test_sequences_of_one_size(monkeypatch):
    name = "06_sequences/train_seq2seq.py Seq2seq"
    model = class_of(name, monkeypatch)(9, 6)

    def scores(*xs):
        states = model.encoder(None, None, model.embed(model.embed_x, xs))[:2]
        before = model.embed(model.embed_y, [x[1:] for x in xs])
        return model.out(F.concat(model.decoder(*states, before)[2], 0))

    of_one_size(scores, words(4), words(3))
    name = "08_pipelines/networks.py LanguageModel"
    of_one_size(class_of(name, monkeypatch)(9, 6), words(2, 5))
    skip = class_of("06_sequences/train_word2vec.py SkipGram", monkeypatch)
    loss = L.NegativeSampling(6, [1] * 9, 2)
    embed = skip(9, 6, loss).embed
    of_one_size(lambda w: F.repeat(embed(w), 3, 0), words(4))


def test_a_segmenter(monkeypatch):
    comm = renga.distributed.create_communicator("dummy")
    grid = renga.distributed.SpatialGrid(comm)
    name = "07_spatial/segment.py Segmenter"
    model = class_of(name, monkeypatch)(grid, 16, 4)
    check(model, lambda n: (draw(n, 1, 16, 16),))


def test_transformers(monkeypatch):
    check(L.VisionTransformer(8, 4, 2, 2, 8, 16, 3), lambda n: (draw(n, 3, 8, 8),))
    check(L.GPT2(9, 6, 8, 2, 2), lambda n: (words(n, 5),))
    check(L.MultiHeadAttention(8, 2, rotary=True), lambda n: (draw(n, 4, 8),))
    check(L.RMSNormalization(8), lambda n: (draw(n, 4, 8),))
    name = "11_transformers/train_images.py Residual"
    check(class_of(name, monkeypatch)(), lambda n: (draw(n, 1, 32, 32),))


V3_BLOCKS = (
    (3, 16, 16, True, F.relu, 2),
    (5, 24, 24, True, F.hard_swish, 1),
)
PUBLISHED = {
    "MobileNetV2": (
        lambda: L.MobileNetV2(5, ((1, 8, 1, 1), (6, 12, 2, 2))),
        lambda n: (draw(n, 3, 16, 16),),
    ),
    "MobileNetV3": (
        lambda: L.MobileNetV3(V3_BLOCKS, 12, 5),
        lambda n: (draw(n, 3, 16, 16),),
    ),
    "EfficientNet": (
        lambda: L.EfficientNet(((1, 3, 1, 8, 1), (6, 5, 2, 12, 2)), 5),
        lambda n: (draw(n, 3, 16, 16),),
    ),
    "DenseNet": (
        lambda: L.DenseNet(4, (2, 2), 8, 5),
        lambda n: (draw(n, 3, 16, 16),),
    ),
    "UNet": (lambda: L.UNet(3, (4, 6, 8)), lambda n: (draw(n, 3, 16, 16),)),
    "BERT": (
        lambda: L.BERT(9, 6, 8, 2, 2),
        lambda n: (words(n, 5), words(n, 5) % 2, words(n, 5) > 1),
    ),
    "Llama": (lambda: L.Llama(9, 16, 2, 4, 12, 2), lambda n: (words(n, 5),)),
    "tied Llama": (
        lambda: L.Llama(9, 8, 2, 2, 12, tied=True),
        lambda n: (words(n, 5),),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(name):
    make, inputs = PUBLISHED[name]
    check(make(), inputs, rtol=1e-5, atol=1e-5)


def test_a_layer_normalized_network_with_attention():
    class Block(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.norm = L.LayerNormalization(6)
                self.query, self.key, self.value = (L.Linear(6, 6) for _ in range(3))

        def forward(self, x):
            n, t, c = x.shape
            h = F.reshape(self.norm(F.reshape(x, (n * t, c))), x.shape)
            q, k, v = (f(h, n_batch_axes=2) for f in (self.query, self.key, self.value))
            y = F.softmax(F.matmul(q, k, transb=True), 2) @ v
            return x + y * F.broadcast_to(F.mean(h * h, (1, 2))[:, None, None], x.shape)

    class Stack(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.query = Block()
            self.block = self.query

        def forward(self, x):
            return F.forget(self.query, x)

    check(Stack(), lambda n: (draw(n, 4, 6),))
