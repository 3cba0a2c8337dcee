"""Models of published weights, sharded by each strategy that applies to them."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizers, serializers
from renga.communicators import local
from renga.parallel.parallelize import parallelize
from tests.links.parallel.differentiate import in_float64
from tests.seeds import seeded

# These are blocks of MobileNetV3: kernel, channels within, channels, whether it
# squeezes, …
BLOCKS = (
    (3, 16, 16, True, F.relu, 2),
    (5, 24, 24, True, F.hard_swish, 1),
    (3, 24, 24, False, F.relu, 1),
)
TEXTS, IMAGES = ("channel", "sequence"), ("channel", "spatial")
MODELS = {
    "MobileNetV2": (lambda: L.MobileNetV2(5, ((1, 8, 1, 1), (6, 12, 2, 2)), 0), IMAGES),
    "MobileNetV3": (lambda: L.MobileNetV3(BLOCKS, 12, 5, 0), IMAGES),
    "EfficientNet": (
        lambda: L.EfficientNet(((1, 3, 1, 8, 1), (6, 5, 2, 12, 2)), 5, 0, 0),
        IMAGES,
    ),
    "DenseNet": (lambda: L.DenseNet(4, (2, 2), 8, 5), IMAGES),
    "UNet": (lambda: L.UNet(3, (4, 6, 8)), IMAGES),
    "BERT": (lambda: L.BERT(11, 9, 12, 2, 3, 0.0), TEXTS),
    "Llama": (lambda: L.Llama(11, 24, 2, 6, 12, 3), TEXTS),
    "tied Llama": (lambda: L.Llama(11, 16, 2, 4, 12, 2, tied=True), TEXTS),
}


@functools.cache
def serial(name):
    with seeded(), renga.using_config("dtype", np.float64):
        return MODELS[name][0]()


def batch(name):
    random = np.random.RandomState(1)
    if MODELS[name][1] == IMAGES:
        return random.normal(size=(2, 3, 16, 16))
    return random.randint(0, 11, (2, 7)).astype("i4")


def train(model, x):
    optimizer = optimizers.Adam(0.01).setup(model)
    losses = []
    for _ in range(3):
        y = model(x)
        loss = F.mean(F.square(F.log_softmax(F.reshape(y, (len(y), -1)))))
        losses.append(float(loss.array))
        model.cleargrads()
        loss.backward()
        optimizer.update()
    state = {}
    serializers.DictionarySerializer(state).save(model)
    return losses, state


@functools.cache
def trained_alone(name):
    with renga.using_config("dtype", np.float64):
        return train(serial(name).copy("copy"), batch(name))


CASES = [(name, way) for name, (_, ways) in MODELS.items() for way in ways]


@pytest.mark.parametrize(("name", "strategy"), CASES)
def test_three_steps(name, strategy):
    @in_float64
    def on_rank(comm):
        model = parallelize(serial(name), comm, strategy, batch(name))
        return train(model, batch(name))

    expected, wanted = trained_alone(name)
    for losses, state in local.run(on_rank, ranks=3):
        np.testing.assert_allclose(losses, expected, rtol=1e-8)
        assert state.keys() == wanted.keys()
        for key, value in wanted.items():
            np.testing.assert_allclose(state[key], value, 1e-6, 1e-9, err_msg=key)


@pytest.mark.parametrize("strategy", IMAGES)
def test_ranks_skip_the_same_samples(strategy):
    model = L.EfficientNet(((1, 3, 1, 32, 8),), 4, 0, 1 - 1e-9)
    x = np.random.RandomState(0).normal(size=(8, 3, 8, 8)).astype("f")

    def on_rank(comm):
        parallel = parallelize(model, comm, strategy, x)
        return [parallel(x).array for _ in range(3)]

    first, second = local.run(on_rank, ranks=2)
    np.testing.assert_array_equal(first, second)
    assert np.std(first, 0).max() > 1e-3
    # A block that all samples skip leaves the input; the first one is never skipped.
    np.random.seed(0)
    block = serial("EfficientNet").features[2][1].copy("copy")
    block.drop = 1 - 1e-9
    x = np.random.RandomState(0).normal(size=(3, 12, 4, 4))
    np.testing.assert_array_equal(block(x).array, x)


def test_cached_generation_with_fewer_keys_than_queries():
    prompt = np.array([[1, 2, 3]], "i4")
    model = serial("Llama")
    with renga.using_config("dtype", np.float64):
        wanted = model(prompt).array

    @in_float64
    def on_rank(comm):
        parallel = parallelize(model, comm, "channel", prompt)
        caches = [L.KeyValueCache() for _ in parallel.blocks]
        with renga.no_backprop_mode():
            steps = [parallel(prompt[:, i : i + 1], caches).array for i in range(3)]
        return np.concatenate(steps, 1), parallel.blocks[0].attention.in_proj.W.shape

    for scores, _ in local.run(on_rank, ranks=2):
        np.testing.assert_allclose(scores, wanted, 1e-9, 1e-12)
    shapes = [shape for _, shape in local.run(on_rank, ranks=2)]
    assert shapes == [(4 * 4 + 2 * 2 * 4, 24), (2 * 4 + 2 * 4, 24)]
