"""Transformers on CUDA devices, against the CPU."""

from __future__ import annotations

import ctypes
import pathlib
import sys

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core
from renga.backends import cuda

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = "@cupy:0"
standin = None  # counts waits
if getattr(sys.modules.get("renga._cuda"), "__name__", "") == "renga._cuda_standin":
    library = pathlib.Path(_core.__file__).parent / "libcuda_standin.so"
    standin = ctypes.CDLL(str(library))
TEXT = numpy.random.RandomState(0).randint(0, 20, (6, 4, 13)).astype("i")


def language_model(device, dropout=0.1):
    numpy.random.seed(0)
    return L.GPT2(20, 16, 16, 2, 2, dropout).to_device(device)


def trained(device, steps):
    model = language_model(device)
    # Not Adam, for which the gradients of keys' biases, which are 0, would count.
    optimizer = renga.optimizers.MomentumSGD(0.1).setup(model)
    optimizer.add_hook(renga.optimizer_hooks.GradientClipping(1))

    def loss(x):
        scores = F.reshape(model(x[:, :-1]), (-1, 20))
        return F.softmax_cross_entropy(scores, F.flatten(x[:, 1:]))

    for x in TEXT[:steps]:
        optimizer.update(loss, renga.Variable(model.device.send(x)))
    return model


def test_training(kind):
    expected = dict(trained("@numpy", 4).namedparams())
    for name, param in trained(gpu, 4).namedparams():
        x = expected[name].array
        numpy.testing.assert_allclose(
            cuda.to_cpu(param.array), x, rtol=0, atol=1e-5, err_msg=name
        )


def test_bert_and_llama(kind):
    numpy.random.seed(0)
    words = L.BERT(20, 16, 24, 2, 3)
    x = TEXT[0]
    with renga.using_config("train", False):
        for model in (words, L.Llama(20, 24, 2, 6, 40, 2)):
            expected = model(x).array
            y = model.copy("copy").to_device(gpu)(renga.get_device(gpu).send(x))
            numpy.testing.assert_allclose(cuda.to_cpu(y.array), expected, 1e-4, 1e-5)
    expected = words.predict(x, 7)
    found = words.to_device(gpu).predict(renga.get_device(gpu).send(x), 7)
    numpy.testing.assert_array_equal(found, expected)
    assert (expected != x).any()


def test_generation(kind):
    texts = []
    for device in ("@numpy", gpu):
        model = language_model(device, 0.0)
        numpy.random.seed(1)
        texts.append(model.generate(model.device.send(TEXT[0][:, :3]), 8))
    numpy.testing.assert_array_equal(*texts)


@pytest.mark.parametrize("mask", [None, "bool", "float32"])
def test_attention_with_a_cache(kind, mask):
    x = numpy.random.RandomState(0).standard_normal((2, 7, 12)).astype("f")
    shape = (2, 1, 4, 7)
    given = numpy.random.RandomState(1).standard_normal(shape).astype("f")
    given = given > -1 if mask == "bool" else given
    results = []
    for device in map(renga.get_device, ("@numpy", gpu)):
        numpy.random.seed(0)
        link = L.MultiHeadAttention(12, 3, rotary=True).to_device(device)
        cache = renga.links.KeyValueCache()
        with renga.no_backprop_mode():
            link(device.send(x[:, :3]), is_causal=True, cache=cache)
            attn_mask = None if mask is None else device.send(given)
            y = link(
                device.send(x[:, 3:]),
                attn_mask=attn_mask,
                is_causal=True,
                cache=cache,
            )
        results.append(cuda.to_cpu(y.array))
    numpy.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-6)


@pytest.mark.skipif(standin is None, reason="counts waits of the stand-in")
def test_a_step_waits_for_nothing(kind):
    if kind == "CuPy":
        pytest.skip("arithmetic of the stand-in for CuPy waits")
    numpy.random.seed(0)
    link = L.MultiHeadAttention(160, 1, rotary=True).to_device(gpu)
    x = renga.Variable(link.device.send(numpy.ones((1, 210, 160), "f")))
    optimizer = renga.optimizers.SGD(0.1).setup(link)
    waits = []
    for _ in range(6):
        before = standin.cuda_standin_waits()
        optimizer.update(lambda: F.sum(F.square(link(x, is_causal=True))))
        waits.append(standin.cuda_standin_waits() - before)
    assert waits[3:] == [0] * 3  # the first ones allocate
