"""Cross entropy with smoothed labels against its formula in float64."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import gradient_check


@pytest.mark.parametrize("shape", [(6, 5), (3, 4, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_value_and_gradients(shape, epsilon):
    random = np.random.RandomState(1)
    x = random.normal(size=shape)
    t = random.randint(0, shape[1], (shape[0], *shape[2:])).astype("i4")
    t[0] = -1
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    hit = np.take_along_axis(log_p, np.maximum(t, 0)[:, None], 1)[:, 0]
    each = -(1 - epsilon) * hit - epsilon * log_p.mean(1)
    expected = each[t != -1].mean()

    def loss(x):
        return F.label_smoothing_cross_entropy(x, t, epsilon)

    np.testing.assert_allclose(loss(x).array, expected, rtol=1e-12)
    assert loss(x.astype("f4")).dtype == np.float32
    gradient_check.check_backward(loss, x, None, dtype="d", atol=1e-6, rtol=1e-6)
    gx = random.normal(size=shape)
    gradient_check.check_double_backward(
        loss, x, np.array(1.0), gx, dtype="d", atol=1e-6, rtol=1e-6
    )


def test_epsilon_out_of_range():
    x, t = np.zeros((2, 3), "f"), np.zeros(2, "i")
    with pytest.raises(ValueError, match=r"expected epsilon in \[0, 1\], got 1.5"):
        F.label_smoothing_cross_entropy(renga.Variable(x), t, 1.5)
