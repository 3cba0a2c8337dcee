"""Weights that operations use many times in a pass: one computation of the gradient."""

import numpy
import pytest

import renga
import renga.functions as F

rng = numpy.random.default_rng(3)
INPUTS, OUTPUTS = 33, 50


def uses(rows):
    """Operands of products with the same weights: x and gy for each."""
    return [(rng.normal(size=(n, INPUTS)), rng.normal(size=(n, OUTPUTS))) for n in rows]


def gradient(pairs, W, dtype="f", extra=None):
    """That of sum(gy * linear(x, W)) over the pairs."""
    weights = renga.Variable(W.astype(dtype))
    terms = [
        F.sum(F.linear(x.astype(dtype), weights) * gy.astype(dtype)) for x, gy in pairs
    ]
    if extra is not None:
        terms.append(extra(weights))
    sum(terms).backward()
    return weights.grad


# The last ones exceed the rows that are stacked, at once or in sum.
@pytest.mark.parametrize(
    "rows",
    [[1], [3, 3], [20] * 35, [1, 0, 7], [2000, 5, 5], [2000, 1024], [600, 600, 600, 2]],
    ids=str,
)
@pytest.mark.parametrize("dtype, tolerance", [("f", 2e-5), ("d", 1e-12), ("e", 2e-2)])
def test_linear(rows, dtype, tolerance):
    pairs, W = uses(rows), rng.normal(size=(OUTPUTS, INPUTS))
    expected = sum(gy.T @ x for x, gy in pairs)
    found = gradient(pairs, W, dtype)
    assert found.dtype == dtype
    numpy.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * abs(expected).max()
    )


def test_other_uses_of_the_weights_add_to_the_sum():
    pairs, W = uses([4, 5]), rng.normal(size=(OUTPUTS, INPUTS))
    expected = sum(gy.T @ x for x, gy in pairs) + 2 * W
    found = gradient(pairs, W, "d", lambda weights: F.sum(weights * weights))
    numpy.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", [[4], [4, 5], [20] * 35, [2000, 1024, 3]], ids=str)
def test_computed_weights(rows):
    # Weights of weight normalization are like these: their gradients go on to leaves.
    pairs, V = uses(rows), rng.normal(size=(OUTPUTS, INPUTS))
    leaf = renga.Variable(V)
    weights = F.tanh(leaf)
    loss = sum(F.sum(F.linear(x, weights) * gy) for x, gy in pairs)
    loss += F.sum(weights**2)
    loss.backward(retain_grad=True)
    expected = sum(gy.T @ x for x, gy in pairs) + 2 * numpy.tanh(V)
    numpy.testing.assert_allclose(weights.grad, expected, rtol=1e-10, atol=1e-10)
    expected *= 1 - numpy.tanh(V) ** 2
    numpy.testing.assert_allclose(leaf.grad, expected, rtol=1e-10, atol=1e-10)


def test_weights_computed_from_each_other():
    pairs, V = uses([4, 5, 6]), rng.normal(size=(OUTPUTS, INPUTS))
    leaf = renga.Variable(V)
    first = leaf * 2
    second = first * 3
    loss = sum(F.sum(F.linear(x, first) * gy) for x, gy in pairs)
    loss += sum(F.sum(F.linear(x, second) * gy) for x, gy in pairs)
    loss.backward()
    expected = 8 * sum(gy.T @ x for x, gy in pairs)
    numpy.testing.assert_allclose(leaf.grad, expected, rtol=1e-10, atol=1e-10)


def test_tied_embeddings():
    W = rng.normal(size=(OUTPUTS, INPUTS))
    ids = [rng.integers(0, OUTPUTS, 6).astype("i") for _ in range(3)]
    gys = [rng.normal(size=(6, OUTPUTS)) for _ in ids]
    weights = renga.Variable(W)
    loss = 0
    for i, gy in zip(ids, gys):
        loss += F.sum(F.linear(F.embed_id(i, weights), weights) * gy)
    loss.backward()
    expected = numpy.zeros_like(W)
    for i, gy in zip(ids, gys):
        expected += gy.T @ W[i]
        numpy.add.at(expected, i, gy @ W)
    numpy.testing.assert_allclose(weights.grad, expected, rtol=1e-12, atol=1e-12)


def test_embeddings_with_ignored_labels():
    W = rng.normal(size=(OUTPUTS, INPUTS)).astype("f")
    weights, expected = renga.Variable(W), numpy.zeros((OUTPUTS, INPUTS))
    loss = 0
    for _ in range(4):
        ids = rng.integers(-1, OUTPUTS, 9).astype("i")
        gy = rng.normal(size=(9, INPUTS)).astype("f")
        loss += F.sum(F.embed_id(ids, weights, ignore_label=-1) * gy)
        numpy.add.at(expected, ids[ids >= 0], gy[ids >= 0])
    loss.backward()
    numpy.testing.assert_allclose(weights.grad, expected, rtol=1e-5, atol=1e-5)


def test_a_second_pass_adds_to_the_first():
    pairs, W = uses([4, 5, 6]), rng.normal(size=(OUTPUTS, INPUTS))
    weights = renga.Variable(W)
    for _ in range(2):
        sum(F.sum(F.linear(x, weights) * gy) for x, gy in pairs).backward()
    expected = 2 * sum(gy.T @ x for x, gy in pairs)
    numpy.testing.assert_allclose(weights.grad, expected, rtol=1e-12, atol=1e-12)


def test_second_derivatives():
    pairs, W = uses([4, 5]), rng.normal(size=(OUTPUTS, INPUTS))
    weights = renga.Variable(W)
    loss = sum(F.sum(F.linear(x, weights) ** 2 * gy) for x, gy in pairs)
    loss.backward(enable_double_backprop=True)
    gradient, direction = weights.grad_var, rng.normal(size=W.shape)
    weights.cleargrad()
    F.sum(gradient * direction).backward()
    expected = sum(2 * (gy * (x @ direction.T)).T @ x for x, gy in pairs)
    numpy.testing.assert_allclose(weights.grad, expected, rtol=1e-11, atol=1e-11)


def test_mixed_precision():
    pairs, W = uses([40, 50]), rng.normal(size=(OUTPUTS, INPUTS))
    weights = renga.Variable(W.astype("f"))
    with renga.using_config("dtype", renga.mixed_bfloat16):
        h = [F.linear(x.astype("f"), weights) for x, _ in pairs]
        sum(F.sum(y * gy.astype("f")) for y, (_, gy) in zip(h, pairs)).backward()
    expected = sum(gy.T @ x for x, gy in pairs)
    assert weights.grad.dtype == numpy.float32
    numpy.testing.assert_allclose(
        weights.grad, expected, rtol=0, atol=2e-2 * abs(expected).max()
    )


def test_a_hook_sees_every_use():
    weights = renga.Variable(rng.normal(size=(OUTPUTS, INPUTS)))
    pairs = uses([2, 3])
    loss = sum(F.sum(F.linear(x, weights) * gy) for x, gy in pairs)
    seen = []

    class Hook(renga.FunctionHook):
        def backward_postprocess(self, function, in_data, out_grad):
            seen.append(function.label)

    with Hook():
        loss.backward()
    assert seen.count("LinearFunction") == 2
    expected = sum(gy.T @ x for x, gy in pairs)
    numpy.testing.assert_allclose(weights.grad, expected, rtol=1e-12, atol=1e-12)


def test_recurrent_network_as_a_loop_has_the_numerical_gradient():
    parameters = {
        "upward": renga.Parameter(rng.normal(size=(4, 3))),
        "lateral": renga.Parameter(rng.normal(size=(4, 4)) / 2),
        "bias": renga.Parameter(rng.normal(size=4)),
    }
    xs = rng.normal(size=(5, 2, 3))

    def loss():
        h, total = renga.Variable(numpy.zeros((2, 4))), 0
        for x in xs:
            h = F.linear(h, parameters["lateral"], parameters["bias"])
            h = F.tanh(F.linear(x, parameters["upward"]) + h)
            total += F.sum(h**2)
        return total

    loss().backward()
    for p in parameters.values():
        direction, eps = rng.normal(size=p.shape), 1e-6
        before, values = p.array.copy(), []
        for sign in (1, -1):
            p.array[...] = before + sign * eps * direction
            values.append(float(loss().array))
        p.array[...] = before
        slope = (values[0] - values[1]) / (2 * eps)
        numpy.testing.assert_allclose((p.grad * direction).sum(), slope, rtol=1e-6)
