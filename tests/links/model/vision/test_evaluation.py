"""Models that evaluate, with and without operations that wait for those after them."""

import numpy as np
import pytest

import renga
import renga.links as L

MODELS = {
    "MobileNetV2": (2, 3, 96, 96),
    "MobileNetV3Small": (2, 3, 96, 96),
    "MobileNetV3Large": (1, 3, 96, 96),
    "EfficientNetB0": (1, 3, 96, 96),
    "DenseNet121": (1, 3, 96, 96),
    "ResNet50": (1, 3, 96, 96),
}


@pytest.mark.parametrize("name", MODELS)
def test_operations_that_wait_have_the_results_of_others(name):
    random = np.random.RandomState(0)
    model = getattr(L, name)()
    for link in model.links():
        if isinstance(link, L.BatchNormalization):
            link.avg_mean[...] = random.normal(0, 0.3, link.avg_mean.shape)
            link.avg_var[...] = random.uniform(0.3, 2, link.avg_var.shape)
    x = random.normal(size=MODELS[name]).astype("f")
    with renga.no_backprop_mode(), renga.using_config("train", False):
        found = [model(x).array for _ in range(3)]  # weights are packed meanwhile
        with renga.function_hooks.TimerHook():  # no operation waits
            expected = model(x).array
    assert np.ptp(expected) > 0
    for y in found:
        np.testing.assert_allclose(y, expected, 1e-4, 1e-5 * np.abs(expected).max())
