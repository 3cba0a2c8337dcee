"""Calls of static chains on CUDA devices, recorded as graphs of CUDA.

After two ordinary calls a call is recorded, and its backward pass: from then on each
is one launch. Where a call cannot be recorded, the chain runs as it is.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy

from renga import _core
from renga.backends.cuda_device import number_of
from renga.backends.cuda_loader import load_plugin, loaded
from renga.core.computational_graph import functions_before
from renga.core.configuration import config
from renga.core.function_hook import get_function_hooks
from renga.core.function_node import FunctionNode
from renga.core.variable import Variable, as_variable
from renga.functions.noise.seed import draw_seeds, record_seeds

_LOG = logging.getLogger(__name__)
# Ordinary calls select algorithms, load kernels and create what is kept.
_ORDINARY_CALLS = 2
# Of one kind of call: as many as are between their forward and backward passes.
_MOST_GRAPHS = 4
_MOST_KINDS = 8
_SETTINGS = ("compute_precision", "dtype", "use_cudnn", "cudnn_deterministic")


class _Thread(threading.local):
    is_recording = False


_thread = _Thread()


class RecordedCalls:
    """The recorded calls of one chain; a copy of the chain has none."""

    def __init__(self) -> None:
        self._kinds: dict[Any, _Kind] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordedCalls, ()

    def call(self, method: Callable[..., object], chain: Any, inputs: Any) -> Any:
        """``method(chain, *inputs)``."""
        xs = _variables_on_device(inputs)
        if xs is None:
            return method(chain, *inputs)
        settings = [getattr(config, name) for name in _SETTINGS]
        described = [(x.shape, x.dtype, x.requires_grad) for x in xs]
        key = method, xs[0]._device_name, str(settings), str(described)
        if key not in self._kinds and len(self._kinds) == _MOST_KINDS:
            return method(chain, *inputs)
        kind = self._kinds.setdefault(key, _Kind())
        if kind.is_refused or kind.ordinary_calls < _ORDINARY_CALLS:
            kind.ordinary_calls += 1
            return method(chain, *inputs)
        recorded = kind.find(method, chain, xs)
        return method(chain, *inputs) if recorded is None else recorded.replay(xs)


def _variables_on_device(inputs: Sequence[Any]) -> list[Variable] | None:
    """The inputs if this call may be recorded."""
    if "renga._cuda" not in sys.modules or not loaded().available:
        return None
    if not (config.train and _core.backprop_enabled()) or config.debug:
        return None
    if _thread.is_recording or get_function_hooks() or not inputs:
        return None
    if _core.around_call() is not None:  # recorded operations would not ask it
        return None
    kinds = (Variable, loaded().ndarray)
    if not all(isinstance(x, kinds) for x in inputs):
        return None
    xs = [as_variable(x) for x in inputs]
    devices = {x._device_name for x in xs}
    return xs if len(devices) == 1 and devices.pop().startswith("cuda:") else None


class _Kind:
    """Calls with inputs of the same shapes and dtypes, with the same settings."""

    def __init__(self) -> None:
        self.ordinary_calls = 0
        self.is_refused = False
        self._recorded: list[_RecordedCall] = []

    def find(self, method: Any, chain: Any, xs: list[Variable]) -> _RecordedCall | None:
        """A recorded call that is not in use, or a new one."""
        self._recorded = [each for each in self._recorded if not each.is_stale()]
        for each in self._recorded:
            if not each.is_in_use():
                return each
        if len(self._recorded) == _MOST_GRAPHS:
            return None
        state = numpy.random.get_state()
        try:
            self._recorded.append(_RecordedCall(method, chain, xs))
        except Exception as error:  # of the call itself, too, which is made once more
            self.is_refused = True
            name = f"{type(chain).__name__}.{method.__name__}"
            _LOG.info("static_graph: %s runs as it is: %s", name, error)
            return None
        finally:
            numpy.random.set_state(state)
        return self._recorded[-1]


class _RecordedCall:
    """A call and its backward pass, which run again on the same memory."""

    def __init__(self, method: Any, chain: Any, xs: list[Variable]) -> None:
        self._device = number_of(xs[0])
        self._recording = load_plugin().Recording(self._device)
        self._streams: list[int] = []  # those of random numbers, by seed
        self._inputs: list[Any] = [_core.copy_of(x, x.requires_grad) for x in xs]
        params = chain.params(include_uninit=False)
        self._params = [p for p in params if p.requires_grad]
        self._node: Callable[[], Any] = lambda: None
        before = _attributes(chain)
        results, self._forward = self._record(lambda: self._call(method, chain), True)
        self._type = type(results)
        self._outputs = [results] if isinstance(results, Variable) else list(results)
        after = _attributes(chain)
        _require_same(before, after)
        kinds = (Variable, loaded().ndarray)
        self._kept = [
            (values, {k: v for k, v in kept.items() if isinstance(v, kinds)})
            for values, kept in after
        ]
        self._targets = [x for x in self._inputs if x.requires_grad] + self._params
        _require_leaves(self._outputs, self._targets)
        self._addresses = _core.addresses(self._params)
        self._roots = [i for i, y in enumerate(self._outputs) if y.requires_grad]
        self._grad_outputs: list[Any] = [
            _core.copy_of(self._outputs[i]) for i in self._roots
        ]
        self._backward: dict[tuple[int, ...], Any] = {}
        self._backward_of(tuple(range(len(self._targets))))

    def is_in_use(self) -> bool:
        """Whether the last call may yet be differentiated."""
        return self._node() is not None

    def is_stale(self) -> bool:
        """Whether parameters or persistent values were replaced since."""
        same = all(
            values.get(name) is value
            for values, kept in self._kept
            for name, value in kept.items()
        )
        return not same or _core.addresses(self._params) != self._addresses

    def replay(self, xs: list[Variable]) -> Any:
        """The results for other inputs, in memory of their own."""
        for x, copied in zip(xs, self._inputs):
            _core.copy_array(x, copied)
        self._recording.set_seeds(draw_seeds(self._streams))
        self._recording.launch(self._forward)
        node = _StaticGraph(self)
        used = [x for x, copied in zip(xs, self._inputs) if copied.requires_grad]
        results = [_core.copy_of(y) for y in self._outputs]
        ys = _core.record_python(node, used + self._params, results)
        self._node = weakref.ref(node)
        return ys[0] if issubclass(self._type, Variable) else self._type(ys)

    def differentiate(self, targets: tuple[int, ...], gys: Any) -> tuple[Any, ...]:
        """The gradients of some of the inputs and parameters of the last call."""
        graph, gradients = self._backward_of(targets)
        for i, copied in zip(self._roots, self._grad_outputs):
            if gys[i] is None:
                _core.fill_array(copied, 0)
            else:
                _core.copy_array(gys[i], copied)
        self._recording.launch(graph)
        return tuple([None if g is None else _core.copy_of(g) for g in gradients])

    def _backward_of(self, targets: tuple[int, ...]) -> tuple[int, list[Any]]:
        """The backward pass to some of the targets: its graph and what it computes."""
        if targets not in self._backward:
            roots = [self._outputs[i] for i in self._roots]
            wanted = [self._targets[i] for i in targets]

            def run() -> list[Any]:
                options: tuple[Any, ...] = [], False, False, False, None
                return _core.grad(roots, wanted, self._grad_outputs, *options)

            gradients, graph = self._record(run, False)
            self._backward[targets] = graph, gradients
        return self._backward[targets]

    def _call(self, method: Any, chain: Any) -> Any:
        before = numpy.random.get_state()
        results = method(chain, *self._inputs)
        after = numpy.random.get_state()
        numpy.random.set_state(before)
        draw_seeds(self._streams)
        if not _is_same_state(numpy.random.get_state(), after):
            raise RuntimeError("it draws random numbers of NumPy")
        return results

    def _record(self, run: Callable[[], Any], draws: bool) -> tuple[Any, int]:
        """What ``run`` returns, which may draw seeds, and the number of its graph."""
        recording, streams = self._recording, self._streams

        def add(seed: int, stream: int) -> None:
            if not draws:
                raise RuntimeError("its backward pass draws random numbers")
            recording.add_seed(seed)
            streams.append(stream)

        # Memory of others that is freed meanwhile would have the host wait.
        collects = gc.isenabled()
        gc.disable()
        recording.begin()
        try:
            _thread.is_recording = True
            record_seeds(add)
            with _computing_on(recording.stream, self._device):
                results = run()
                computed = [results] if isinstance(results, Variable) else results
                _core.addresses([x for x in computed if x is not None])  # not deferred
            return results, recording.end()
        finally:
            recording.discard()
            record_seeds(None)
            _thread.is_recording = False
            if collects:
                gc.enable()


class _StaticGraph(FunctionNode):
    """A replayed call in the graph of what is differentiated."""

    label = "StaticGraph"

    def __init__(self, call: _RecordedCall) -> None:
        self._call = call

    def backward(self, targets: tuple[int, ...], grad_outputs: Any) -> tuple[Any, ...]:
        if _core.backprop_enabled():
            raise RuntimeError(
                "static_graph: expected one backward pass, got double backprop, for "
                "which there is static_graph(enable_double_backprop=True)"
            )
        return self._call.differentiate(tuple(targets), grad_outputs)


def _is_same_state(state: Any, other: Any) -> bool:
    """Whether two states of NumPy's global generator are the same."""
    return numpy.array_equal(state[1], other[1]) and state[2:] == other[2:]


@contextlib.contextmanager
def _computing_on(stream: int, device: int) -> Iterator[None]:
    """Has CuPy, if there is one, compute on a stream."""
    external = getattr(getattr(loaded().cupy, "cuda", None), "ExternalStream", None)
    if external is None:
        yield
        return
    with loaded().Device(device), external(stream):
        yield


def _attributes(chain: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The attributes of a chain's links, and what they are now."""
    return [(vars(link), dict(vars(link))) for link in chain.links()]


def _require_same(before: Any, after: Any) -> None:
    """Raises RuntimeError for a call that a replay would not be like."""
    for (_, values), (_, others) in zip(before, after):
        for name, value in others.items():
            if values.get(name) is not value:
                raise RuntimeError(f"it sets {name!r}")


def _require_leaves(outputs: Any, targets: list[Variable]) -> None:
    """Raises RuntimeError if results depend on variables that are not the chain's."""
    known = {id(x) for x in targets}
    for function in functions_before(y.node for y in outputs):
        for x in function.inputs:
            leaf = x.get_variable_or_none() if x.creator_node is None else None
            if leaf is not None and leaf.requires_grad and id(leaf) not in known:
                raise RuntimeError("it uses a variable that is not the chain's")
