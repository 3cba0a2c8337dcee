"""Optimizers for large batches, against their formulas in float64."""

import numpy as np
import pytest

import renga
from renga import optimizers

RANDOM = np.random.RandomState(0)
SHAPE, STEPS = (3, 4), 6
X = RANDOM.normal(size=SHAPE)
GRADS = RANDOM.normal(size=(STEPS, *SHAPE))


def lamb(x, grads, alpha, beta1, beta2, eps, decay):
    m = v = 0.0
    for t, g in enumerate(grads, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        r = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps) + decay * x
        norms = np.linalg.norm(x), np.linalg.norm(r)
        trust = norms[0] / norms[1] if min(norms) > 0 else 1.0
        x = x - alpha * trust * r
    return x


CASES = {
    "lamb": (optimizers.LAMB, lamb, (0.01, 0.8, 0.9, 1e-6, 0.1)),
    "lamb without decay": (optimizers.LAMB, lamb, (0.1, 0.9, 0.99, 1e-3, 0.0)),
}


def run(optimizer, x, grads):
    link = renga.Link()
    with link.init_scope():
        link.x = renga.Parameter(x.copy())
    optimizer.setup(link)
    for g in grads:
        link.x.grad = g.copy()
        optimizer.update()
    return link.x.array


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("f8", 1e-12), ("f4", 2e-5)])
def test_formula(case, dtype, tolerance):
    make, formula, values = CASES[case]
    actual = run(make(*values), X.astype(dtype), GRADS.astype(dtype))
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, formula(X, GRADS, *values), rtol=tolerance)


def test_lamb_of_a_parameter_that_is_zero():
    values = (0.01, 0.8, 0.9, 1e-6, 0.1)
    expected = lamb(np.zeros(SHAPE), GRADS, *values)
    np.testing.assert_allclose(
        run(optimizers.LAMB(*values), np.zeros(SHAPE), GRADS), expected
    )


def test_an_sgd_share_of_one_is_momentum_sgd():
    mixed = run(optimizers.RMSpropMomentumSGD(lr=0.1, momentum=0.9), X, GRADS)
    plain = run(optimizers.MomentumSGD(lr=0.1, momentum=0.9), X, GRADS)
    np.testing.assert_allclose(mixed, plain, rtol=1e-13)
