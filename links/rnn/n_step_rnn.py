"""Stacks of recurrent layers over sequences of any lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy

from renga.core.link import ChainList, Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable, as_variable
from renga.functions import (
    get_item,
    n_step_bigru,
    n_step_bilstm,
    n_step_birnn,
    n_step_gru,
    n_step_lstm,
    n_step_rnn,
    permutate,
    transpose_sequence,
)
from renga.initializers import get_initializer
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.utils.extents import check_count, check_sizes
from renga.utils.type_check import InvalidType

_CONFIG = "{} argument is not supported anymore. Use renga.using_config"


def refuse(kwargs: dict[str, object]) -> None:
    """Raises TypeError for keyword arguments."""
    check_unexpected_kwargs(kwargs, train=_CONFIG.format("train"))
    assert_kwargs_empty(kwargs)


class NStepRNNBase(ChainList):
    """``n_layers`` recurrent layers over sequences of any lengths.

    A child has the weights and biases of one layer and direction, ``w0``, ``b0`` and so
    on: those of the input first, then those of the state. Between the layers
    the values are dropped with the probability ``dropout``.

    Shapes:
        xs: sequences of (lengths, in_size)
        hx, cx: (n_layers directions, number of sequences, out_size), None for zeros
        ys: sequences of (lengths, directions out_size)
        w0, …: (out_size, in_size), (out_size, directions out_size) above the first
            layer, (out_size, out_size) for those of the state
    """

    n_weights: ClassVar[int]
    # Of one direction, and of both.
    _functions: ClassVar[tuple[Callable[..., Any], Callable[..., Any]]]
    use_bi_direction: ClassVar[bool]

    def __init__(
        self,
        n_layers: int,
        in_size: int,
        out_size: int,
        dropout: float,
        *,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
        **kwargs: object,
    ) -> None:
        check_unexpected_kwargs(
            kwargs,
            use_cudnn=_CONFIG.format("use_cudnn"),
            use_bi_direction="use_bi_direction: choose a class for two directions",
        )
        assert_kwargs_empty(kwargs)
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        n_layers = check_count(type(self).__name__, "n_layers", n_layers)
        self.n_layers = n_layers
        self.dropout = dropout
        self.out_size = out_size
        self.direction = 2 if self.use_bi_direction else 1
        W = get_initializer(initialW)
        b = get_initializer(0 if initial_bias is None else initial_bias)
        for layer in range(n_layers):
            below = in_size if layer == 0 else self.direction * out_size
            for _ in range(self.direction):
                self.append(self._make_layer(below, W, b))

    def _make_layer(self, below: int, W: Any, b: Any) -> Link:
        layer, n = Link(), self.out_size
        with layer.init_scope():
            for k in range(self.n_weights):
                inputs = below if 2 * k < self.n_weights else n
                setattr(layer, f"w{k}", Parameter(W, (n, inputs)))
                setattr(layer, f"b{k}", Parameter(b, n))
        return layer

    @property
    def ws(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return self._parameters("w")

    @property
    def bs(self) -> list[list[Parameter]]:
        """The biases of each layer and direction."""
        return self._parameters("b")

    def _parameters(self, kind: str) -> list[list[Parameter]]:
        names = [f"{kind}{k}" for k in range(self.n_weights)]
        return [[getattr(layer, name) for name in names] for layer in self]

    @property
    def n_cells(self) -> int:
        """The number of states: 1, or 2 with cells."""
        return 1

    def init_hx(self, xs: Sequence[ArrayLike]) -> Variable:
        """A state of zeros for the sequences ``xs``."""
        shape = (self.n_layers * self.direction, len(xs), self.out_size)
        return Variable(self.xp.zeros(shape, xs[0].dtype))

    def rnn(self, *args: object) -> tuple[Variable | tuple[Variable, ...], ...]:
        """The function: layers, dropout, states, weights, biases and inputs."""
        return self._functions[self.use_bi_direction](*args)

    def forward(
        self, hx: ArrayLike | None, xs: Sequence[ArrayLike], **kwargs: object
    ) -> tuple[Variable | list[Variable], ...]:
        """The last states and the outputs, ``(hy, ys)``."""
        refuse(kwargs)
        return self._run((hx,), xs)

    def _call(self, hs: Any, xs: Any, **kwargs: object) -> tuple[list[Any], list[Any]]:
        """The last states and the outputs, for subclasses of Chainer's link."""
        refuse(kwargs)
        *last, ys = self._run(tuple(hs), xs)
        return last, ys

    def _run(self, states: tuple[Any, ...], xs: Any) -> tuple[Any, ...]:
        assert isinstance(xs, (list, tuple)), (
            f"{type(self).__name__}: expected a list of sequences, got "
            f"{type(xs).__name__}"
        )
        if not any(len(x) for x in xs):
            return self._without_steps(states, xs)
        # The function takes the longest sequence first, and arrays by step.
        order = numpy.argsort([-len(x) for x in xs], kind="stable").astype("i")
        is_sorted = bool((order == numpy.arange(len(xs))).all())
        steps = transpose_sequence([xs[k] for k in order])
        given = [self.init_hx(xs) if h is None else as_variable(h) for h in states]
        for h in given:
            if h.ndim == 3 and h.shape[1] != len(xs):
                raise InvalidType(
                    f"{type(self).__name__}: expected states of {len(xs)} sequences, "
                    f"got shape {h.shape}"
                )
        if not is_sorted:
            given = [permutate(h, order, axis=1) for h in given]
        results: Any = self.rnn(
            self.n_layers, self.dropout, *given, self.ws, self.bs, steps
        )
        *last, ys = results
        if not is_sorted:
            last = [permutate(h, order, axis=1, inv=True) for h in last]
        outputs = list(transpose_sequence(ys))
        # Sequences of no steps are in none of them.
        nothing = get_item(outputs[0], slice(0, 0))
        outputs += [nothing] * (len(xs) - len(outputs))
        return *last, [outputs[k] for k in numpy.argsort(order)]

    def _without_steps(self, states: tuple[Any, ...], xs: Any) -> tuple[Any, ...]:
        """The states as they are, and an output of no steps for each sequence."""
        dtype = self.ws[0][0].dtype
        n = self.direction * self.out_size
        first = (len(self), len(xs), self.out_size)
        last = [
            Variable(self.xp.zeros(first, dtype)) if h is None else as_variable(h)
            for h in states
        ]
        return *last, [Variable(self.xp.zeros((0, n), dtype)) for _ in xs]


class NStepPlainRNNBase(NStepRNNBase):
    """Plain recurrent layers: ``h = activation(w0 x + b0 + w1 h + b1)``."""

    n_weights = 2
    _functions = (n_step_rnn, n_step_birnn)
    activation: ClassVar[str]

    def rnn(self, *args: object) -> tuple[Variable | tuple[Variable, ...], ...]:
        return super().rnn(*args, self.activation)


class NStepRNNTanh(NStepPlainRNNBase):
    """Plain recurrent layers of tanh over sequences; see ``NStepRNNBase``."""

    use_bi_direction = False
    activation = "tanh"


class NStepRNNReLU(NStepPlainRNNBase):
    """Plain recurrent layers of ReLU over sequences; see ``NStepRNNBase``."""

    use_bi_direction = False
    activation = "relu"


class NStepBiRNNTanh(NStepPlainRNNBase):
    """``NStepRNNTanh`` in both directions."""

    use_bi_direction = True
    activation = "tanh"


class NStepBiRNNReLU(NStepPlainRNNBase):
    """``NStepRNNReLU`` in both directions."""

    use_bi_direction = True
    activation = "relu"


class NStepGRUBase(NStepRNNBase):
    """Stacks of gated recurrent units; see ``NStepRNNBase``.

    The weights are those of the reset gate, the update gate and the candidate.
    """

    n_weights = 6
    _functions = (n_step_gru, n_step_bigru)


class NStepGRU(NStepGRUBase):
    """Gated recurrent units over sequences; see ``renga.functions.n_step_gru``.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder,
    2014.
    """

    use_bi_direction = False


class NStepBiGRU(NStepGRUBase):
    """``NStepGRU`` in both directions."""

    use_bi_direction = True


class NStepLSTMBase(NStepRNNBase):
    """Stacks of long short-term memory; see ``NStepRNNBase``.

    The weights are those of the input gate, the forget gate, the candidate and the
    output gate.
    """

    n_weights = 8
    _functions = (n_step_lstm, n_step_bilstm)

    @property
    def n_cells(self) -> int:
        return 2

    def forward(  # type: ignore[override]
        self,
        hx: ArrayLike | None,
        cx: ArrayLike | None,
        xs: Sequence[ArrayLike],
        **kwargs: object,
    ) -> tuple[Variable | list[Variable], ...]:
        """The last states, the last cells and the outputs, ``(hy, cy, ys)``."""
        refuse(kwargs)
        return self._run((hx, cx), xs)


class NStepLSTM(NStepLSTMBase):
    """Long short-term memory over sequences.

    See ``renga.functions.n_step_lstm``.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """

    use_bi_direction = False


class NStepBiLSTM(NStepLSTMBase):
    """``NStepLSTM`` in both directions."""

    use_bi_direction = True
