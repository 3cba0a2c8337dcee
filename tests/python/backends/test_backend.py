"""Devices by name, and the array modules that go with them."""

import numpy
import pytest

import renga
from renga import backend, backends
from renga.backends import cuda, intel64

cpu = backend.CpuDevice()


@pytest.mark.parametrize("spec", ["@numpy", "-1", -1, numpy.int64(-1), cpu])
def test_the_cpu_by_its_names(spec):
    assert renga.get_device(spec) == cpu


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("@cupy:0", RuntimeError),
        ("0", RuntimeError),
        (0, RuntimeError),
        ("@intel64", RuntimeError),
        ("native", RuntimeError),
        ("cuda:0", RuntimeError),
        ("@cupy", ValueError),
        ("@numpy:1", ValueError),
        ("@other", ValueError),
        (None, TypeError),
        (1.5, TypeError),
        (numpy, TypeError),
        (("@cupy", 0), TypeError),
    ],
)
def test_devices_that_are_not_there(spec, error):
    with pytest.raises(error):
        renga.get_device(spec)


def test_get_device_by_name():
    assert str(cpu) == cpu.name == "@numpy"
    assert repr(cpu) == "<CpuDevice (numpy)>"
    assert cpu == backend.CpuDevice() and cpu != 1
    assert len({cpu, backend.CpuDevice()}) == 1
    assert cpu.xp is numpy
    assert cpu.supported_array_types == (numpy.ndarray,)
    assert backend.CpuDevice.from_array(numpy.zeros(2)) == cpu
    assert backend.CpuDevice.from_array([0.0]) is None
    for kind in (backend.GpuDevice, backend.Intel64Device, backend.ChainerxDevice):
        assert kind.from_array(numpy.zeros(2)) is None
        with pytest.raises(RuntimeError):
            kind(0) if kind is not backend.Intel64Device else kind()


def test_send():
    x = numpy.zeros(3)
    assert cpu.send(x) is x
    sent = cpu.send([x, None, 2])
    assert sent[0] is x and sent[1] is None
    assert isinstance(sent[2], numpy.ndarray) and sent[2] == 2
    assert cpu.send((x,)) == (x,)
    for wrong in (renga.Variable(x), "text", [object()]):
        with pytest.raises(TypeError):
            cpu.send(wrong)


def test_using_device():
    context = renga.using_device("@numpy")
    for _ in range(2):
        with context as device:
            assert device == cpu
    with cpu.create_context():
        cpu.use()
    with pytest.raises(RuntimeError, match="using_device"), cpu:
        pass


def test_the_device_and_module_of_arrays():
    x = renga.Variable(numpy.zeros(2))
    assert backend.get_device_from_array(x, None, 3) == cpu
    assert backend.get_device_from_array() == cpu
    assert backend.get_array_module(x) is cuda.get_array_module(x.array) is numpy
    assert renga.get_array_types()[0] is numpy.ndarray
    assert renga.get_cpu_array_types() == (numpy.ndarray,)


def test_copyto():
    x = numpy.zeros(3, "f")
    backend.copyto(x, numpy.arange(3.0))
    assert x.tolist() == [0, 1, 2]
    backend.copyto(x, 5)
    assert x.tolist() == [5, 5, 5]
    with pytest.raises(TypeError):
        backend.copyto([1.0], x)
    with pytest.raises(TypeError):
        backend.copyto(numpy.zeros(3, "i"), x)
    with pytest.raises(ValueError):
        backend.copyto(x, numpy.zeros(4))


def test_cuda_without_a_device():
    assert backends.cuda is renga.cuda is cuda
    assert not cuda.available and not cuda.cudnn_enabled
    for use in (cuda.check_cuda_available, cuda.Stream, cuda.Event, cuda.Device):
        with pytest.raises(RuntimeError, match="CUDA"):
            use()
    with pytest.raises(RuntimeError):
        cuda.to_gpu(numpy.zeros(2))
    with pytest.raises(RuntimeError):
        cuda.get_device_from_id(0)
    x = numpy.zeros(2)
    for device in (
        cuda.get_device_from_id(None),
        cuda.get_device_from_array(x),
        cuda.get_device(x),
    ):
        assert device == cuda.DummyDevice and device.id == -1
        with device:
            device.use()
            device.synchronize()
    with pytest.raises(RuntimeError):
        cuda.get_device(0)
    assert not cuda.should_use_cudnn(">=auto")
    with pytest.raises(ValueError):
        cuda.should_use_cudnn("sometimes")
    assert not cuda.should_use_cudnn_tensor_core(numpy.float16)


def test_cuda_names_that_work_on_the_cpu():
    x = numpy.zeros(2)
    assert cuda.to_cpu(x) is x
    assert cuda.to_cpu([x, None])[0] is x
    assert cuda.to_cpu(2).shape == ()
    assert not isinstance(x, cuda.ndarray)
    calls = []
    remember = cuda.memoize()(lambda n: calls.append(n))
    remember(1)
    remember(1)
    assert calls == [1]
    assert cuda.fuse()(len) is len and cuda.fuse(len) is len
    before = cuda.get_max_workspace_size()
    cuda.set_max_workspace_size(123)
    assert cuda.get_max_workspace_size() == 123
    cuda.set_max_workspace_size(before)


def test_ideep_is_never_there():
    assert not intel64.is_ideep_available()
    assert not intel64.should_use_ideep(">=auto")
    assert not intel64.inputs_all_ready([numpy.zeros((2, 2), "f")])
    with pytest.raises(RuntimeError):
        intel64.check_ideep_available()
    with pytest.raises(RuntimeError):
        backend.to_chx(numpy.zeros(2))
    assert backend.from_chx(3) == 3
