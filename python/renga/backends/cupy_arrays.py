"""CuPy's arrays over the memory of Variables on CUDA devices, and back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from renga import _core
from renga._core import Variable
from renga.backends.cuda_device import number_of
from renga.core.types import Array


class CupyArrays:
    """What the core asks about CuPy's arrays.

    Wherever an array goes from one side to the other, renga begins to compute on the
    stream that is CuPy's current one there, after what it has begun on another.
    """

    def __init__(self, cupy: ModuleType, plugin: ModuleType) -> None:
        self._cupy = cupy
        self._plugin = plugin
        self._followed = _Followed()
        self._with_memory = _StreamsWithMemory(plugin)
        self._streams_of_core: set[int] = set()

    def make(self, variable: Variable) -> Array:
        """CuPy's array over a Variable's memory."""
        self._follow(number_of(variable))
        described = variable.__cuda_array_interface__
        return self._cupy.ndarray(
            described["shape"],
            described["typestr"],
            self._pointer(variable, int(variable.size * variable.dtype.itemsize)),
            strides=described["strides"],
        )

    def owner(self, array: Any) -> Variable | None:
        """The Variable whose memory an array is part of; None for CuPy's own."""
        self._follow(array.data.device_id)
        kept = getattr(array.data.mem, "_owner", None)
        return kept if isinstance(kept, _core.Variable) else None

    def follow(self, array: Any) -> None:
        """Begins to compute on CuPy's current stream on the device of an array."""
        self._follow(array.data.device_id)

    @contextlib.contextmanager
    def computing_on(self, stream: int, device: int) -> Iterator[None]:
        """A context in which CuPy computes on a stream of the core's own."""
        cuda = self._cupy.cuda
        self._streams_of_core.add(stream)
        try:
            with cuda.Device(device), cuda.ExternalStream(stream):
                yield
        finally:
            self._streams_of_core.discard(stream)

    def allocate(self, size: int) -> object:
        """Memory for CuPy's arrays from the core, so that there is one pool of it."""
        device = self._cupy.cuda.Device().id
        self._follow(device)
        memory = _core.empty_variable((size,), "uint8", f"cuda:{device}")
        return self._pointer(memory, size)

    def _follow(self, device: int) -> None:
        cuda = self._cupy.cuda
        if cuda.Device().id != device:
            with cuda.Device(device):
                self._follow(device)
            return
        stream = cuda.get_current_stream()
        streams = self._followed.streams
        before = streams.get(device)
        if stream.ptr != (0 if before is None else before.ptr):
            self._plugin.set_stream(stream.ptr, device)
            streams[device] = stream
            if stream.ptr not in self._streams_of_core:
                self._with_memory.keep(stream, device)

    def _pointer(self, variable: Any, size: int) -> Any:
        cuda = self._cupy.cuda
        address = variable.__cuda_array_interface__["data"][0]
        memory = cuda.UnownedMemory(address, size, variable, number_of(variable))
        return cuda.MemoryPointer(memory, 0)


class _StreamsWithMemory:
    """CuPy's streams for which the core has memory, kept alive while it has.

    The core orders the reuse of a block after what is on the streams that used it, so
    it needs these streams for as long as blocks were allocated on them. Memory of all
    but the streams used last goes back to the system.
    """

    _MOST = 16

    def __init__(self, plugin: ModuleType) -> None:
        self._plugin = plugin
        self._lock = threading.Lock()
        self._streams: dict[tuple[int, int], Any] = {}  # in the order of their use

    def keep(self, stream: Any, device: int) -> None:
        """Keeps a stream on which renga begins to compute."""
        if stream.ptr == 0:
            return
        with self._lock:
            self._streams.pop((device, stream.ptr), None)
            self._streams[device, stream.ptr] = stream
            if len(self._streams) > self._MOST:
                oldest = next(iter(self._streams))
                self._plugin.release_memory_of_stream(oldest[1], oldest[0])
                del self._streams[oldest]


class _Followed(threading.local):
    """CuPy's streams on which this thread computes, by device, kept alive."""

    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}
