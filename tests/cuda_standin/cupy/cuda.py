"""Devices, streams and memory of the stand-in."""

from __future__ import annotations

import contextlib
import ctypes
import pathlib
import threading
from collections.abc import Iterator
from typing import Any, Callable

from renga import _core

runtime = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))


def check(status: int) -> None:
    if status:
        raise RuntimeError(f"cupy: error {status} of CUDA")


@contextlib.contextmanager
def uncounted_waits() -> Iterator[None]:
    """For waits that CuPy itself would not have."""
    runtime.cuda_standin_count_waits(0)
    try:
        yield
    finally:
        runtime.cuda_standin_count_waits(1)


class Device:
    def __init__(self, device: int | None = None) -> None:
        if device is None:
            number = ctypes.c_int()
            check(runtime.cudaGetDevice(ctypes.byref(number)))
            device = number.value
        self.id = int(device)
        self._before: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __enter__(self) -> Device:
        self._before.append(Device().id)
        self.use()
        return self

    def __exit__(self, *args: Any) -> None:
        Device(self._before.pop()).use()

    def use(self) -> None:
        check(runtime.cudaSetDevice(self.id))

    def synchronize(self) -> None:
        with self:
            check(runtime.cudaDeviceSynchronize())


class Stream:
    """A stream of the current device; as a context, the one that CuPy uses there."""

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr = 0
        self._before: list[Stream] = []
        if not null:
            stream = ctypes.c_void_p()
            check(runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1))
            self.ptr = stream.value or 0

    def __del__(self) -> None:
        if self.ptr:
            runtime.cudaStreamDestroy(ctypes.c_void_p(self.ptr))

    def __enter__(self) -> Stream:
        self._before.append(get_current_stream())
        return self.use()

    def __exit__(self, *args: Any) -> None:
        self._before.pop().use()

    def use(self) -> Stream:
        _current.streams[Device().id] = self
        return self

    def synchronize(self) -> None:
        check(runtime.cudaStreamSynchronize(ctypes.c_void_p(self.ptr)))

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        pointers = ctypes.c_void_p(self.ptr), ctypes.c_void_p(event.ptr)
        check(runtime.cudaStreamWaitEvent(*pointers, 0))


class ExternalStream(Stream):
    """A stream that its creator destroys."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__(null=True)
        self.ptr = ptr

    def __del__(self) -> None:
        pass


Stream.null = Stream(null=True)


class _Current(threading.local):
    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


_current = _Current()


def get_current_stream() -> Stream:
    return _current.streams.get(Device().id, Stream.null)


class Event:
    def __init__(self) -> None:
        event = ctypes.c_void_p()
        check(runtime.cudaEventCreateWithFlags(ctypes.byref(event), 0))
        self.ptr = event.value

    def record(self, stream: Stream | None = None) -> None:
        pointer = ctypes.c_void_p((stream or get_current_stream()).ptr)
        check(runtime.cudaEventRecord(ctypes.c_void_p(self.ptr), pointer))

    def synchronize(self) -> None:
        check(runtime.cudaEventSynchronize(ctypes.c_void_p(self.ptr)))


def get_elapsed_time(start: Event, end: Event) -> float:
    """In milliseconds."""
    time = ctypes.c_float()
    check(
        runtime.cudaEventElapsedTime(
            ctypes.byref(time), ctypes.c_void_p(start.ptr), ctypes.c_void_p(end.ptr)
        )
    )
    return time.value


class Memory:
    """A block of the device's memory."""

    def __init__(self, size: int) -> None:
        block = ctypes.c_void_p()
        self.device_id = Device().id
        check(runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(max(size, 1))))
        self.ptr, self.size = block.value or 0, size

    def __del__(self) -> None:
        runtime.cudaFree(ctypes.c_void_p(self.ptr))


class UnownedMemory:
    """A block that another owner keeps alive."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


_allocate: list[Callable[[int], MemoryPointer]] = []


def set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    _allocate[:] = [] if allocator is None else [allocator]


def alloc(size: int) -> MemoryPointer:
    return _allocate[0](size) if _allocate else MemoryPointer(Memory(size), 0)


class _Nvtx:
    """Ranges of NVIDIA's profilers, in the order of the calls."""

    ranges: list[str] = []

    def RangePush(self, message: str, id_color: int = -1) -> None:
        self.ranges.append(message)

    def RangePop(self) -> None:
        self.ranges.append("pop")


nvtx = _Nvtx()
