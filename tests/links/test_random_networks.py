"""Random networks, with and without operations that wait for those after them.

Images have all numbers of channels; names keep them, or they are overwritten.
"""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L

ACTIVATIONS = {
    **{f.__name__: f for f in (F.relu, F.relu6, F.leaky_relu, F.silu, F.tanh)},
    **{f.__name__: f for f in (F.hard_swish, F.sigmoid, F.elu, F.gelu, F.softplus)},
    "square": lambda h: h * h * 0.1,
    "twice": lambda h: h + h,
    "scaled": lambda h: 1 - 0.5 * h,
    "joined": lambda h: F.concat((h, h)),
    "pooled": lambda h: F.average_pooling_2d(h, 2) if min(h.shape[2:]) > 3 else h,
}
LAYERS = ["pointwise", "convolution", "depthwise", "transposed", "normalized"]
TOLERANCES = {"f": 2e-5, "d": 1e-12, "e": 2e-2}


class Network(renga.Chain):
    """Layers that are drawn, some of which add an earlier image."""

    def __init__(self, random):
        super().__init__()
        self.inputs = channels = int(random.randint(1, 40))
        self.steps = []
        self.is_kept = random.rand() < 0.3  # whether names refer to each image
        with self.init_scope():
            for i in range(random.randint(2, 9)):
                if random.rand() < 0.4:
                    step = str(random.choice(list(ACTIVATIONS)))
                    channels *= 2 if step == "joined" else 1
                else:
                    step, channels = self.add(i, channels, random)
                self.steps.append((step, random.rand() < 0.2))

    def add(self, i, channels, random):
        kind = str(random.choice([*LAYERS, "normalized", "normalized"]))
        outputs, k = int(random.randint(1, 70)), int(random.choice([3, 5]))
        stride, no_bias = int(random.choice([1, 1, 2])), bool(random.rand() < 0.5)
        if kind == "pointwise":
            link = L.Convolution2D(channels, outputs, 1, stride, nobias=no_bias)
        elif kind == "convolution":
            link = L.Convolution2D(channels, outputs, k, stride, 1, no_bias)
        elif kind == "depthwise":
            outputs = channels
            link = L.Convolution2D(None, channels, k, stride, 1, groups=channels)
        elif kind == "transposed":
            link = L.Deconvolution2D(channels, outputs, 2, stride, nobias=no_bias)
        else:
            outputs = channels
            link = L.BatchNormalization(channels)
            link.avg_mean[...] = random.normal(size=channels)
            link.avg_var[...] = random.uniform(0.5, 1.5, channels)
        setattr(self, f"layer_{i}", link)
        return f"layer_{i}", outputs

    def forward(self, x):
        h = x * 1.0  # in the core's memory
        images, earlier = [], None
        for step, is_residual in self.steps:
            if self.is_kept:
                images.append(h)
            h = ACTIVATIONS[step](h) if step in ACTIVATIONS else self[step](h)
            if is_residual:
                h = h if earlier is None or earlier.shape != h.shape else h + earlier
                earlier = h
        return h


@pytest.mark.parametrize("seed", range(80))
def test_networks_have_the_same_results_operation_by_operation(seed):
    random = np.random.RandomState(seed)
    dtype = random.choice(list("fffed"))
    train = bool(random.rand() < 0.3)
    with renga.using_config("dtype", np.dtype(dtype)):
        network = Network(random)
    extents = random.randint(16, 50, 2)
    x = random.normal(size=(random.randint(1, 5), network.inputs, *extents))
    x = x.astype(dtype)
    with renga.using_config("train", train):
        with renga.no_backprop_mode():
            found = [network(x).array for _ in range(3)]  # weights are packed meanwhile
        found.append(network(x).array)
        with renga.no_backprop_mode(), renga.function_hooks.TimerHook():
            expected = network(x).array
    most = np.abs(expected).max()
    for y in found:
        np.testing.assert_allclose(y, expected, 0, TOLERANCES[dtype] * most)
