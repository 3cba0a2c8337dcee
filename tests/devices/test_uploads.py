"""Batches on their way to a device: pinned memory and a stream of their own."""

from __future__ import annotations

import ctypes
import pathlib
import sys
import threading

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core, training
from renga.backends import cuda
from renga.dataset import concat_examples, to_device
from renga.dataset.convert import Conveyor

if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
gpu = "@cupy:0"


def seed(number):
    """Streams run late in another order with every number."""
    cuda.load_plugin()
    standin.cuda_standin_seed(ctypes.c_uint64(number))


def random(*shape):
    return numpy.random.RandomState(0).standard_normal(shape).astype("f")


def address(x):
    return x.__array_interface__["data"][0]


@pytest.mark.parametrize("number", range(4))
def test_training_on_large_batches_waits_for_nothing(number):
    seed(number)
    n, batch, size = 32, 8, 3000  # 96000 bytes: more than CUDA puts into a command
    x, t = random(n, size), (numpy.arange(n) % 3).astype("i")

    def train(device):
        numpy.random.seed(0)
        model = L.Classifier(L.Linear(size, 3)).to_device(device)
        optimizer = renga.optimizers.MomentumSGD(0.01).setup(model)
        iterator = renga.iterators.SerialIterator(list(zip(x, t)), batch, shuffle=False)
        updater = training.StandardUpdater(iterator, optimizer, device=device)
        waits = []
        for _ in range(10):
            before = standin.cuda_standin_waits()
            updater.update()
            waits.append(standin.cuda_standin_waits() - before)
        return cuda.to_cpu(model.predictor.W.array), waits

    expected, _ = train("@numpy")
    W, waits = train(gpu)
    assert waits[2:] == [0] * 8  # the first steps allocate
    numpy.testing.assert_allclose(W, expected, rtol=1e-5, atol=1e-6)


def test_a_batch_is_copied_while_the_device_computes():
    """With some orders of the streams, the device has computed all before."""
    assert sum(is_copied_meanwhile(number) for number in range(12)) >= 4


def is_copied_meanwhile(number):
    seed(number)
    device = renga.get_device(gpu)
    for _ in range(2):  # the second time, its memory is there
        to_device(gpu, random(100, 7))
    x = device.send(random(3))
    device.device.synchronize()
    event = cuda.Event()
    event.record()
    for _ in range(150):
        x = F.tanh(x)
    pinned = device.pinned_empty((100, 7), numpy.float32)
    pinned[...] = random(100, 7)
    where = address(pinned)
    y = device.upload(pinned)
    del pinned
    while address(device.pinned_empty((100, 7), numpy.float32)) != where:
        standin.cudaEventQuery(ctypes.c_void_p(event.ptr))  # time goes on
    is_meanwhile = standin.cuda_standin_pending() > 0
    _core.wait_for_upload(y)
    numpy.testing.assert_array_equal(cuda.to_cpu(y.array), random(100, 7))
    return is_meanwhile


@pytest.mark.parametrize("number", range(8))
def test_memory_of_batches_is_used_again_once_they_were_read(number):
    seed(number)
    device, rng = renga.get_device(gpu), numpy.random.RandomState(number)
    examples = [rng.standard_normal((4, 6)).astype("f") for _ in range(20)]
    total = device.send(numpy.zeros((4, 6), "f"))
    for i in range(0, 20, 2):
        x = concat_examples(examples[i : i + 2], device)
        total = total + F.sum(F.square(F.tanh(x)), 0)
    expected = sum(numpy.tanh(x.astype("d")) ** 2 for x in examples)
    numpy.testing.assert_allclose(cuda.to_cpu(total.array), expected, rtol=1e-5)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("padding", [None, -1])
def test_structures_and_dtypes(number, padding):
    seed(number)
    batch = [
        {"a": random(3, 2) + i, "b": i, "c": numpy.full(4, i, d)}
        for i, d in enumerate(["f2", "f4", "f8"])
    ]
    expected = concat_examples(batch, padding=padding)
    found = concat_examples(batch, device=gpu, padding=padding)
    assert found.keys() == expected.keys()
    for key, x in found.items():
        assert isinstance(x, cuda.ndarray) and x.dtype == expected[key].dtype
        numpy.testing.assert_array_equal(cuda.to_cpu(x), expected[key])
    uneven = [random(2), random(5)]
    padded = concat_examples(uneven, device=gpu, padding=7)
    numpy.testing.assert_array_equal(
        cuda.to_cpu(padded), concat_examples(uneven, padding=7)
    )
    with pytest.raises(ValueError, match="expected arrays of one shape"):
        concat_examples(uneven, device=gpu)


@pytest.mark.parametrize("number", range(4))
def test_a_conveyor_keeps_the_order(number):
    seed(number)
    conveyor = Conveyor(gpu)
    arrays = [random(5) + i for i in range(6)]
    found = []
    conveyor.put(arrays[0])
    for i in range(1, 6):
        conveyor.put(arrays[i])
        found.append(F.exp(conveyor.get()))
    found.append(F.exp(conveyor.get(sync=False)))
    with pytest.raises(IndexError):
        conveyor.get()
    for x, y in zip(arrays, found):
        numpy.testing.assert_allclose(cuda.to_cpu(y.array), numpy.exp(x), rtol=1e-5)


def test_an_upload_whose_result_is_dropped_does_not_disturb_others():
    for number in range(6):
        seed(number)
        device = renga.get_device(gpu)
        for i in range(4):
            device.upload(random(64) + i)  # its memory is free at once
            y = F.exp(device.send(random(64)))
        numpy.testing.assert_allclose(
            cuda.to_cpu(y.array), numpy.exp(random(64)), rtol=1e-5
        )


@pytest.mark.parametrize("number", range(8))
def test_pinned_memory_is_used_again_after_copies_to_all_devices(number):
    seed(number)
    devices = [renga.get_device(f"@cupy:{i}") for i in range(2)]
    sent = []
    for i in range(12):
        pinned = devices[0].pinned_empty((64,), numpy.float32)
        pinned[...] = i
        sent += [(i, device.upload(pinned)) for device in devices]
        del pinned
    for i, x in sent:
        _core.wait_for_upload(x)
        numpy.testing.assert_array_equal(cuda.to_cpu(x.array), numpy.full(64, i))


@pytest.mark.parametrize("number", range(8))
def test_memory_that_another_thread_gave_is_used_again_in_order(number):
    """It goes back to the allocator, which knows the stream of this thread alone."""
    cupy = pytest.importorskip("cupy")
    seed(number)
    device, sums, n = renga.get_device(gpu), [], 12

    def upload(value):
        return device.upload(numpy.full(3000, value, "f"))

    def use():
        with cupy.cuda.Stream(non_blocking=True):
            xs, y = [upload(i + 1) for i in range(n)], F.exp(cuda.to_gpu(random(3)))
            for _ in range(80):
                y = F.tanh(y)
            for x in xs:
                _core.wait_for_upload(x)
                sums.append(F.sum(F.square(F.sqrt(x))))

    first = [upload(0) for _ in range(n)]  # memory of the default stream
    del first
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    # One of another size has the allocator get what is more than a few idle blocks.
    kept = [device.upload(numpy.zeros(10000 << number, "f"))]
    kept += [on_default_stream(numpy.zeros(3000, "f")) for _ in range(n)]
    found = [float(cuda.to_cpu(y.array)) for y in sums]
    numpy.testing.assert_allclose(found, 3000 * numpy.arange(1, n + 1), rtol=1e-5)
    del kept


def on_default_stream(x):
    variable = _core.Variable(x, requires_grad=False)
    variable.move_to("cuda:0")
    return variable


def test_the_array_may_change_after_it_was_sent():
    seed(0)
    x = random(40000)
    y = to_device(gpu, x)
    expected = x.copy()
    x[...] = 0
    numpy.testing.assert_array_equal(cuda.to_cpu(y), expected)
