"""The forward and backward pass of one stage for one micro-batch."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from renga import _core
from renga.core import reporter
from renga.core.around_call import FunctionCall, map_variables, surrounding
from renga.core.backend import get_array_types
from renga.core.configuration import force_backprop_mode, no_backprop_mode
from renga.core.gradients import backward
from renga.core.parameter import as_operand
from renga.core.types import Array
from renga.core.variable import Variable
from renga.functions.noise.seed import is_same_state
from renga.functions.util.recomputation import Recomputation
from renga.parallel.pipeline.stages.messages import (
    GRADIENT,
    VALUE,
    Kind,
    Route,
    StageMessages,
)
from renga.parallel.pipeline.stages.outer_leaves import OuterLeaves
from renga.parallel.pipeline.stages.tracing import Tracing
from renga.parallel.pipeline.stages.whole_graph import WholeGraph
from renga.utils.containers import leaves

# Results without elements, by the number of the call, its name and its inputs' kinds.
Outputs = dict[tuple[Any, ...], Any]


class _Transfer(NamedTuple):
    """A variable that is sent to another stage, or has been received from it.

    ``original`` is that of the program; it is kept, so that its id is not reused.
    """

    x: Variable
    stage: int
    original: Variable


class StageRun:
    """Runs a program, but computes only one stage; of the others only the shapes.

    Every rank calls the same program with the same inputs. Parameters have the stages
    that the partition assigned them; other inputs of the program have none. An
    operation runs on the last stage of its inputs, and its inputs of earlier stages are
    sent there. So values are sent only from earlier to later stages, and gradients only
    back.

    The core asks it where to run each call (:mod:`renga.core.around_call`).

    Args:
        stage: the stage to compute.
        messages: sends to and receives from other stages.
        tracing: records each message.
        weights: variables to use instead of parameters, by the parameters' ids.
        outputs: cache of shapes, shared by all runs of a program.
        outer_leaves: told of what stages read beside the model, in training.
    """

    def __init__(
        self,
        stage: int,
        messages: StageMessages,
        tracing: Tracing,
        weights: Mapping[int, Variable],
        outputs: Outputs,
        outer_leaves: OuterLeaves | None,
    ) -> None:
        self.stage = stage
        self.result: Any = None
        self.observation: dict[str, Any] = {}
        self.counted: list[tuple[str, int]] = []
        self._messages = messages
        self._tracing = tracing
        self._weights = weights
        self._outputs = outputs
        self._outer_leaves = outer_leaves
        self._sent: dict[tuple[int, int], _Transfer] = {}
        self._received: dict[int, _Transfer] = {}
        self._values: deque[_Transfer] = deque()  # received before a recomputation
        self._graph = WholeGraph()
        self._is_sending = True
        self._python_calls = 0
        self._open_calls = 0
        self._postponed = _core.PostponedGradients()

    def forward(
        self, program: Callable[..., object], inputs: Sequence[Any], recompute: bool
    ) -> None:
        """Runs the program, and sets ``result``, ``observation`` and ``counted``.

        The last says of how many elements functions took the mean, with their names,
        where others may not count.

        Args:
            program: a function of Variables or arrays, the same on every rank.
            inputs: its arguments.
            recompute: whether the backward pass runs it again, instead of keeping the
                graph in memory.
        """
        self._inputs = tuple(inputs)
        self._recomputation = Recomputation(program) if recompute else None
        with self._placing(program), self._observing():
            if self._recomputation is None:
                self.result = program(*inputs)
            else:
                with no_backprop_mode():
                    self.result = self._recomputation.first(self._inputs)

    def recompute(self) -> None:
        """Runs the program again with its graph, where ``forward`` kept none."""
        if self._recomputation is None:
            return
        self._is_sending = False
        self._values = deque(self._received.values())
        self._sent, self._received = {}, {}
        self._graph = WholeGraph()
        # Leaves that links have as attributes get gradients. States do not: a backward
        # pass ends at the beginning of its batch.
        states = self._recomputation.states
        leaves = states.inputs(states.stand_ins_of_leaves())
        with self._placing(self._recomputation.function):
            self.result, _ = self._recomputation.again(
                self._inputs, tuple([leaf for leaf, _ in leaves])
            )

    @contextlib.contextmanager
    def _placing(self, program: Any) -> Iterator[None]:
        self._python_calls = 0
        try:
            with surrounding(self):
                yield
        except _core.NoElements as error:
            name = getattr(program, "__name__", type(program).__name__)
            raise RuntimeError(
                f"pipeline: {name} reads elements of a variable of another stage, "
                f"which stage {self.stage} does not have; control flow must not "
                "depend on them"
            ) from error

    def _observing(self) -> contextlib.AbstractContextManager[None]:
        try:
            return reporter.get_current_reporter().scope(self.observation)
        except IndexError:
            return contextlib.nullcontext()

    def received_kinds(self) -> list[tuple[Route, Kind]]:
        """The messages that the forward pass has received, in order."""
        return [
            (Route(VALUE, stage, self.stage), Kind.of(x))
            for x, stage, _ in self._received.values()
        ]

    def expect_gradients(self) -> None:
        """Starts to receive the gradients of the values that were sent."""
        for x, stage, _ in self._sent.values():
            if x.requires_grad:
                self._messages.expect(Route(GRADIENT, stage, self.stage), Kind.of(x))

    def backward(self, weight: float) -> None:
        """Computes the gradients of what was received, and sends them.

        It follows :meth:`recompute`. The gradients of this stage's weights may be left
        to :meth:`complete_gradients`.

        Args:
            weight: the gradient of the result, if this stage computes it.
        """
        roots = self._received_gradients()
        y = self.result
        if isinstance(y, Variable) and y.stage == self.stage and y.requires_grad:
            seed = Variable(numpy.full(y.shape, weight, y.dtype), requires_grad=False)
            roots.insert(0, (y, seed))
        if roots:
            self._postponed.set_urgent([x for x, *_ in self._received.values()])
            _core.postpone_gradients(self._postponed)
            try:
                backward([y for y, _ in roots], [gy for _, gy in roots])
            finally:
                _core.postpone_gradients(None)
        for x, stage, _ in self._received.values():
            if x.requires_grad:
                gx = x.grad_var
                if gx is None:
                    gx = Variable(numpy.zeros(x.shape, x.dtype), requires_grad=False)
                self._send_to(Route(GRADIENT, self.stage, stage), gx)

    def complete_gradients(self) -> None:
        """Adds the gradients of this stage's weights that are not there yet."""
        self._postponed.compute()

    def _received_gradients(self) -> list[tuple[Variable, Variable]]:
        """Values that were sent, with the sums of their gradients.

        Gradients of later stages are added first, as in a single process.
        """
        by_value: dict[int, tuple[Variable, dict[int, Variable]]] = {}
        for x, stage, _ in self._sent.values():
            if x.requires_grad:
                route = Route(GRADIENT, stage, self.stage)
                gx = self._receive_from(route, Kind.of(x))
                by_value.setdefault(id(x), (x, {}))[1][stage] = gx
        roots = []
        with no_backprop_mode():
            for x, gradients in by_value.values():
                first, *others = [gradients[s] for s in sorted(gradients, reverse=True)]
                for gx in others:
                    first = _core.ops.add(first, gx)
                if x.creator_node is None:  # a weight that another stage used
                    _add_gradient(x, first)
                else:
                    roots.append((x, first))
        return roots

    def __call__(self, call: Any) -> None:
        """Runs a call if it is on this stage; else finds the shapes of its results."""
        is_python = isinstance(call, FunctionCall)
        self._python_calls += is_python
        number = self._python_calls
        target = max((x.stage for x in call.operands), default=-1)
        if self._outer_leaves is not None and target >= 0 and self._open_calls == 0:
            self._outer_leaves.note(call.operands)
        if target < 0 or target == self.stage:
            call.operands = [as_operand(self._here(x)) for x in call.operands]
            self._open_calls += is_python
            try:
                call.run()
            finally:
                self._open_calls -= is_python
        else:
            for x in call.operands:
                if x.stage == self.stage:
                    self._send(x, target)
            if is_python:
                call.result = self._shapes_of(number, call)
            else:
                call.run_shapes()
        if target >= 0:
            for y in call.results:
                y.stage = target
            if target != self.stage:
                self._graph.note(call.results, call.operands)

    def _shapes_of(self, number: int, call: FunctionCall) -> Any:
        """The result without elements. A run on other elements determines its shapes.

        Shapes are cached, unless the function draws random numbers: every rank has to
        draw those too, to keep the generators in step.
        """
        settings = {} if call.node is None else vars(call.node)
        given = leaves([settings, call.args, call.kwargs])
        key = (number, call.label, *map(_setting, given))
        if key not in self._outputs:
            before = numpy.random.get_state()
            result = _on_identities(call)
            if is_same_state(before, numpy.random.get_state()):
                self._outputs[key] = result
        else:
            result = self._outputs[key]
        requires_grad = _core.backprop_enabled() and any(
            x.requires_grad for x in call.operands
        )
        return map_variables(
            lambda y: _shape(y, y.requires_grad and requires_grad), result
        )

    @property
    def is_divided(self) -> bool:
        """Whether other stages compute parts of the program."""
        return self._messages.stages > 1

    def note_counted(self, function: str, counted: Array) -> None:
        """Is told of which elements a function takes the mean."""
        self.counted.append((function, int(counted.sum())))

    def require_own_graph(self, caller: str) -> None:
        """Raises RuntimeError where the graph of the program is on several ranks."""
        if self.is_divided and self._open_calls == 0:
            raise RuntimeError(
                f"{caller}: expected a graph on one rank, got a program in a pipeline "
                f"of {self._messages.stages} stages, each of which has a part of it; "
                "gradients inside of a loss need a single process or data parallelism"
            )

    def prepare_unchain(self, x: Variable, is_backward: bool) -> None:
        """Removes the parts of a graph that the core does not know of."""
        if is_backward:
            received = [(original, x) for x, _, original in self._received.values()]
            self._graph.unchain_backward(x, received)
        else:
            self._graph.unchain(x)

    def _here(self, x: Variable) -> Variable:
        if x.stage < 0:
            return x
        if x.stage == self.stage:
            return self._weights.get(id(x), x)
        if id(x) not in self._received:
            self._received[id(x)] = self._receive(x)
        return self._received[id(x)].x

    def _receive(self, x: Variable) -> _Transfer:
        if self._values:
            value = self._values.popleft().x
        else:
            route = Route(VALUE, x.stage, self.stage)
            value = self._receive_from(route, Kind.of(x))
        value.requires_grad = x.requires_grad
        value.stage = self.stage
        return _Transfer(value, x.stage, x)

    def _send(self, x: Variable, target: int) -> None:
        if (id(x), target) in self._sent:
            return
        value = self._weights.get(id(x), x)
        self._sent[id(x), target] = _Transfer(value, target, x)
        if self._is_sending:
            self._send_to(Route(VALUE, self.stage, target), value)

    def _send_to(self, route: Route, x: Variable) -> None:
        self._tracing.note_message(route, is_sent=True)
        self._messages.send(route, x)

    def _receive_from(self, route: Route, kind: Kind) -> Variable:
        x = self._messages.receive(route, kind)
        self._tracing.note_message(route, is_sent=False)
        return x


def _on_identities(call: FunctionCall) -> Any:
    """The result for other elements; which outputs can have gradients is known, too."""
    with surrounding(None), force_backprop_mode():
        result = call.tried_on(
            [
                Variable(_identities(x.shape, x.dtype), requires_grad=True)
                for x in call.operands
            ]
        )
    return map_variables(lambda y: _shape(y, y.requires_grad), result)


def _setting(value: Any) -> Any:
    """What the shapes of a function's outputs may depend on, of one argument."""
    if isinstance(value, (Variable, *get_array_types())):
        return Kind.of(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value) if isinstance(value, (slice, type(...))) else type(value)


def _identities(shape: Sequence[int], dtype: Any) -> numpy.ndarray:
    """Zeros; of floats, ones on diagonals of the last axes: zeros have no inverse."""
    x = numpy.zeros(shape, dtype)
    if x.ndim > 1 and x.dtype.kind == "f":
        i = numpy.arange(min(x.shape[-2:]))
        x[..., i, i] = 1
    return x


def _shape(y: Variable, requires_grad: bool) -> Variable:
    """A variable like ``y`` without elements."""
    return _core.empty_variable(*Kind.of(y), "meta", requires_grad)


def _add_gradient(x: Variable, gx: Variable) -> None:
    other = Variable(None)
    other.grad_var = gx
    x.addgrad(other)
