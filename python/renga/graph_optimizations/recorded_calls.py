"""Calls of static chains on CUDA devices, recorded as graphs of CUDA.

After two ordinary calls a call is recorded, and its backward pass: from then on each
is one launch. Where a call cannot be recorded, the chain runs as it is.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import Any, Callable

import numpy

from renga import _core
from renga.backends.cuda_device import number_of
from renga.backends.cuda_loader import load_plugin, loaded
from renga.core.around_call import variables_in
from renga.core.computational_graph import functions_before
from renga.core.configuration import config
from renga.core.function_hook import get_function_hooks
from renga.core.function_node import FunctionNode
from renga.core.link import Link
from renga.core.link.traces import items_of
from renga.core.parameter import Parameter
from renga.core.reporter import KeptReports
from renga.core.variable import Variable, as_variable
from renga.functions.noise.seed import (
    draw_seeds,
    is_same_state,
    record_seeds,
    unchanged_generator,
)
from renga.graph_optimizations.call_effects import (
    Attributes,
    Copies,
    Effects,
    SetAttributes,
    attributes_of,
    require_same_items,
)

_LOG = logging.getLogger(__name__)
# Ordinary calls select algorithms, load kernels and create what is kept.
_ORDINARY_CALLS = 2
# One kind of call has at most so many graphs, as many as are between their forward and
# backward passes.
_MOST_GRAPHS = 4
_MOST_KINDS = 8
_SETTINGS = ("compute_precision", "dtype", "use_cudnn", "cudnn_deterministic")


class _RecordingThread(threading.local):
    is_recording = False


class _CollectorPause:
    """Stops the garbage collector while any thread records.

    What it frees may record events on the stream of the thread on which it runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recordings = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if self._recordings == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._recordings += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._recordings -= 1
            if self._recordings == 0 and self._was_enabled:
                gc.enable()


_thread = _RecordingThread()
_collector_pause = _CollectorPause()


class RecordedCalls:
    """The recorded calls of chains, by their kinds; a copy has none.

    Args:
        are_steps: whether each call is a whole step of training, which ends with a
            backward pass before the next one begins. A step may set attributes of
            links, its gradients are in the memory of the graph, and a step that
            cannot be recorded is an error.
    """

    def __init__(self, are_steps: bool = False) -> None:
        self._are_steps = are_steps
        self._warning = _Warning(are_steps)
        self._kinds: dict[Any, _Kind] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordedCalls, (self._are_steps,)

    def call(
        self, method: Callable[..., object], chain: Link, inputs: Sequence[object]
    ) -> Any:
        """``method(chain, *inputs)``."""
        xs = _variables_on_device(inputs)
        if xs is None:
            return method(chain, *inputs)
        settings = [getattr(config, name) for name in _SETTINGS]
        described = [
            (isinstance(given, Variable), x.shape, x.dtype, x.requires_grad)
            for given, x in zip(inputs, xs)
        ]
        key = chain, method, xs[0].device_name, str(settings), str(described)
        if key not in self._kinds:
            if len(self._kinds) == _MOST_KINDS:
                self._warning.give(
                    f"inputs of at most {_MOST_KINDS} kinds (shapes, dtypes and "
                    "settings)"
                )
                return method(chain, *inputs)
            self._kinds[key] = _Kind(method, chain, self._are_steps)
        return self._kinds[key].call(inputs, xs)


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
    devices = {x.device_name for x in xs}
    return xs if len(devices) == 1 and devices.pop().startswith("cuda:") else None


class _Kind:
    """Calls of a method with inputs of the same shapes and dtypes and settings.

    Attributes:
        method, chain: what is called, as ``method(chain, *inputs)``.
        are_steps: as RecordedCalls has it.
    """

    def __init__(
        self, method: Callable[..., object], chain: Link, are_steps: bool
    ) -> None:
        self.method, self.chain, self.are_steps = method, chain, are_steps
        self._ordinary_calls = 0
        self._set_attributes = SetAttributes()
        self._leaves: list[Variable] = []  # of the ordinary calls, of others
        self._recorded: list[_RecordedCall] = []
        self._is_refused = False
        self._warning = _Warning(are_steps)

    def run(self, inputs: Any) -> Any:
        """Calls the method as it is."""
        return self.method(self.chain, *inputs)

    def call(self, inputs: Any, xs: list[Variable]) -> Any:
        """What ``run`` returns; ``xs`` are the inputs as Variables."""
        if self._is_refused:
            return self.run(inputs)
        if self._ordinary_calls < _ORDINARY_CALLS:
            self._ordinary_calls += 1
            y = self._set_attributes.watch(self.chain, lambda: self.run(inputs))
            if self.are_steps:
                params = [*self.chain.params()]
                self._leaves += _leaves_of_others(variables_in(y), params)
            return y
        recorded = self._find(inputs, xs)
        return self.run(inputs) if recorded is None else recorded.replay(xs)

    def _find(self, inputs: Any, xs: list[Variable]) -> _RecordedCall | None:
        """A recorded call that is not in use, or a new one."""
        for each in tuple(self._recorded):
            if each.is_stale():
                self._recorded.remove(each)
            elif each.begins_alike() and not each.is_in_use():
                return each
        if len(self._recorded) == _MOST_GRAPHS:
            self._warning.give(
                f"at most {_MOST_GRAPHS} different values of the attributes of links"
            )
            return None
        try:
            with unchanged_generator(), self._set_attributes.hidden(self.chain):
                call = _RecordedCall(self, inputs, xs)
                call.require_own_leaves(self._leaves)
            self._recorded.append(call)
        except Exception as error:  # of the call itself, too, which is made once more
            name = type(self.chain).__name__
            if self.are_steps:
                raise RuntimeError(
                    f"static_step: a step of {name} cannot be recorded: "
                    f"{error}{_place_of(error)}"
                ) from error
            self._is_refused = True
            name = f"{name}.{self.method.__name__}"
            _LOG.info("static_graph: %s runs as it is: %s", name, error)
            return None
        return self._recorded[-1]


class _Warning:
    """A warning that some steps are not recorded, given once."""

    def __init__(self, is_of_steps: bool) -> None:
        self._is_due = is_of_steps

    def give(self, expected: str) -> None:
        """Warns, unless these are no steps, or it has been done."""
        if self._is_due:
            self._is_due = False
            warnings.warn(
                f"static_step: expected {expected}: steps with others are not recorded",
                stacklevel=_frames_until_user(),
            )


def _is_of_user(frame: FrameType) -> bool:
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return package not in ("renga", "cupy", "numpy")


def _frames_until_user() -> int:
    """The stack level, for the caller's warning, of the user's program."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))]
    of_user = (i for i, frame in enumerate(frames, 1) if _is_of_user(frame))
    return next(of_user, 1)


def _place_of(error: Exception) -> str:
    """Where the user's program has called what raised an error."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_of_user(frame):
            place = f", at {frame.f_code.co_filename}:{line}"
    return place


class _RecordedCall:
    """A call and its backward pass, which run again on the same memory."""

    def __init__(self, kind: _Kind, inputs: Any, xs: list[Variable]) -> None:
        self._kind, chain = kind, kind.chain
        self._device = number_of(xs[0])
        self._recording = load_plugin().Recording(self._device)
        self._streams: list[int] = []  # those of random numbers, by seed
        self._inputs: list[Any] = [_core.copy_of(x, x.requires_grad) for x in xs]
        self._arguments = [
            x if isinstance(given, Variable) else x.array
            for x, given in zip(self._inputs, inputs)
        ]
        self._all_params = list(chain.params(include_uninit=False))
        self._required = [p.requires_grad for p in self._all_params]
        self._params: list[Variable] = [p for p in self._all_params if p.requires_grad]
        self._node: Callable[[], Any] = lambda: None
        before, reports = attributes_of(chain), KeptReports()
        containers = [items_of(link) for link in chain.links()]
        with reports:
            results, self._forward = self._record(self._run, True)
        self._type = type(results)
        self._outputs = [results] if isinstance(results, Variable) else list(results)
        require_same_items(containers)
        self._effects = Effects(before, reports.all, kind.are_steps)
        self._attributes = Attributes(chain, self._effects.places)
        self._targets = [x for x in self._inputs if x.requires_grad] + self._params
        self._addresses = _core.addresses(self._params)
        self._roots = [i for i, y in enumerate(self._outputs) if y.requires_grad]
        self._grad_outputs: list[Any] = [
            _core.copy_of(self._outputs[i]) for i in self._roots
        ]
        self._backward: dict[tuple[int, ...], Any] = {}
        self._backward_of(tuple(range(len(self._targets))))

    def require_own_leaves(self, earlier: list[Variable]) -> None:
        """Checks that results depend on no variables but the chain's and the call's.

        Args:
            earlier: on which ordinary calls of a step have depended, too.
        """
        for leaf in _leaves_of_others(self._outputs, self._targets):
            of_call = self._kind.are_steps and not isinstance(leaf, Parameter)
            if not of_call or any(leaf is x for x in earlier):
                raise RuntimeError("it uses a variable that is not the chain's")

    def is_in_use(self) -> bool:
        """Whether the last call may yet be differentiated."""
        return self._node() is not None

    def is_stale(self) -> bool:
        """Whether parameters or persistent values were replaced since."""
        return (
            self._attributes.have_other_arrays()
            or _core.addresses(self._params) != self._addresses
        )

    def begins_alike(self) -> bool:
        """Whether all that the call may read of its links is as it was."""
        return (
            self._attributes.are_same()
            and self._effects.can_repeat()
            and [p.requires_grad for p in self._all_params] == self._required
        )

    def replay(self, xs: list[Variable]) -> Any:
        """The results for other inputs, in memory of their own."""
        for x, copied in zip(xs, self._inputs):
            _core.copy_array(x, copied)
        self._recording.set_seeds(draw_seeds(self._streams))
        self._recording.launch(self._forward)
        node = _StaticGraph(self)
        used = [x for x, copied in zip(xs, self._inputs) if copied.requires_grad]
        copies = Copies()
        self._effects.repeat(copies)
        results = [copies(y) for y in self._outputs]
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
        given = _core.lent if self._kind.are_steps else _core.copy_of
        return tuple([None if g is None else given(g) for g in gradients])

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

    def _run(self) -> Any:
        """What the method returns, for which it must not draw NumPy's numbers."""
        before = numpy.random.get_state()
        results = self._kind.run(self._arguments)
        after = numpy.random.get_state()
        numpy.random.set_state(before)
        draw_seeds(self._streams)
        if not is_same_state(numpy.random.get_state(), after):
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

        with _collector_pause:
            recording.begin()
            try:
                _thread.is_recording = True
                record_seeds(add)
                with loaded().computing_on(recording.stream, self._device):
                    results = run()
                    ys = [results] if isinstance(results, Variable) else results
                    _core.addresses([y for y in ys if y is not None])  # not deferred
                return results, recording.end()
            finally:
                recording.discard()
                record_seeds(None)
                _thread.is_recording = False


class _StaticGraph(FunctionNode):
    """A replayed call in the graph of what is differentiated."""

    label = "StaticGraph"

    def __init__(self, call: _RecordedCall) -> None:
        self._call = call

    def backward(
        self, targets: tuple[int, ...], grad_outputs: Any
    ) -> tuple[Variable | None, ...]:
        if _core.backprop_enabled():
            raise RuntimeError(
                "static_graph: expected one backward pass, got double backprop, for "
                "which there is static_graph(enable_double_backprop=True)"
            )
        return self._call.differentiate(tuple(targets), grad_outputs)


def _leaves_of_others(
    outputs: Sequence[Any], targets: Sequence[Variable]
) -> list[Variable]:
    """The variables to which gradients would flow, but the targets."""
    found, known = [], {id(x) for x in targets}
    for function in functions_before(y.node for y in outputs):
        for x in function.inputs:
            leaf = x.get_variable_or_none() if x.creator_node is None else None
            if leaf is not None and leaf.requires_grad and id(leaf) not in known:
                found.append(leaf)
    return found
