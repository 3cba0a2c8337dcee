"""Private names of Chainer's modules that its own tests use, and so its forks."""

import importlib
import os
import warnings

import chainer
import chainer.functions as F
import numpy as np
from chainer import gradient_check, links as L
from chainer.functions.array import as_strided, flip
from chainer.functions.connection import convolution_2d
from chainer.functions.math import einsum
from chainer.functions.normalization import group_normalization
from chainer.functions.rnn import lstm, slstm
from chainer.serializers import hdf5

X = np.array([[0.5, -1, 2], [1, 0, -2]], "f")
D = "chainer.distributions."


def of(module, name):
    return getattr(importlib.import_module(module), name)


def warned(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = run()
    return value, sorted({w.category.__name__ for w in found})


def gradients(y, *xs):
    gy = chainer.Variable(1 + np.arange(y.size, dtype=y.dtype).reshape(y.shape) / 4)
    return chainer.grad([y], list(xs), [gy], enable_double_backprop=True)


EXPRESSIONS = """
    as_strided._stride_array(np.arange(4), (4,), (-1,), 3)
    as_strided._stride_array(np.arange(4), (2, 2), (1, 1), 1)
    as_strided._stride_array(np.arange(4), (4,), (2,), 0)
    as_strided._stride_array(np.arange(4), (4,), (-1,), 2)
    as_strided._stride_array(np.arange(12).reshape(3, 4)[::-1], (12,), (1,), 0)
    as_strided._stride_array(np.arange(12).reshape(3, 4).T, (4, 3), (1, 4), 0)
    as_strided._stride_array(np.arange(4), (), (), 2)
    as_strided._min_index((2, 3), (-3, 1), 5)
    as_strided._max_index((2, 3), (-3, 1), 5)
    as_strided._min_index((2, 3), (3, 1), 5)
    as_strided._max_index((2, 3), (3, 1), 5)
    as_strided._get_base_array(np.arange(4)[1:][::2]).shape
    as_strided.TensorGeometry(np.arange(12.0).reshape(3, 4)[1:, ::2]).storage_offset
    sorted(vars(as_strided.TensorGeometry(np.arange(12.0).reshape(3, 4)[1:, ::2])))
    as_strided.TensorGeometry(np.arange(12.0).reshape(3, 4)[1:, ::2]).max_index
    as_strided.TensorGeometry(np.arange(12.0).reshape(3, 4)[1:, ::2]).strides
    as_strided.TensorGeometry(np.arange(12.0).reshape(3, 4)[1:, ::2]).shape
    as_strided.TensorGeometry(np.arange(12.0).reshape(3, 4)[1:, ::2]).itemsize
    einsum.DiagEinSum("i", "ii", (2, 2)).apply((np.array([1, 2], "f"),))
    einsum.DiagEinSum("", "i", (3,)).apply((np.array(5, "f"),))
    einsum.DiagEinSum("ij", "jjk", (3, 3, 2)).apply((X,))
    gradient_check._CheckBackward._sample_unit_vector(9, np).shape
    chainer.utils._format_array_props([np.ones((2, 3), "f"), np.ones(3, "d")])
    chainer.initializers._check_is_initializer_like(None)
    chainer.initializers._check_is_initializer_like(1.0)
    chainer.initializers._check_is_initializer_like(X)
    chainer.initializers._check_is_initializer_like("a")
    chainer.initializers._check_is_initializer_like(lambda x: x)
    chainer.utils._raise_from(ValueError, "text", KeyError("a"))
    flip._flip(X, 1)
    flip._flip(X, -2)
    flip._flip(np.arange(8).reshape(2, 2, 2), -1)
    convolution_2d._pair(3)
    convolution_2d._pair((3, 4))
    type(hdf5._available)
    L.Convolution2D(None, 4, (3, 2))._initialize_params(3)
    L.DeconvolutionND(2, None, 4, 3)._initialize_params(2)
    L.DepthwiseConvolution2D(None, 2, 3)._initialize_params(3)
    chainer.utils.type_check._repr([0])
    chainer.utils.type_check._repr((0,))
    chainer.utils.type_check._repr(())
    chainer.utils.type_check._repr([[0]])
    chainer.utils.type_check._repr((1, (2, [3])))
"""


def case_bernoulli():
    f = of(D + "bernoulli", "_bernoulli_log_prob")
    logit = chainer.Variable(np.array([[0.5], [-1], [np.inf], [-np.inf]], "f"))
    x = chainer.Variable(np.array([[1, 0, 0.5]] * 4, "f"))
    y = f(logit, x)
    return y, gradients(y, logit, x), f(logit, x, binary_check=True)


def case_triangular_inverses():
    f = of(D + "multivariate_normal", "_triangular_inv")
    found = []
    for lower in (True, False):
        x = chainer.Variable(np.array([[2, 0.5], [1, 4]], "f"))
        y = f(x, lower=lower)
        found.append((y, gradients(y, x)))
    return found


def case_triangular_inverses_of_others():
    f = of(D + "multivariate_normal", "_triangular_inv")
    found = []
    for x in (np.ones((2, 3), "f"), np.ones((2, 2), "i"), np.ones((1, 2, 2), "f")):
        try:
            found.append(f(x))
        except Exception as error:
            found.append(type(error).__name__)
    return found


def case_entropies():
    f = of(D + "utils", "_modified_xlogx")
    x = chainer.Variable(np.array([0, 0.5, 2], "f"))
    y = f(x)
    return y, warned(lambda: gradients(y, x))


def case_laplace():
    cdf, icdf = of(D + "laplace", "_laplace_cdf"), of(D + "laplace", "_laplace_icdf")
    x = chainer.Variable(np.array([1, -2, 0.1], "f"))
    p = chainer.Variable(np.array([0.25, 0.75, 0.1], "f"))
    y, z = cdf(x), icdf(p)
    return y, gradients(y, x), z, gradients(z, p)


class Step(chainer.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] * 2, inputs[1] * 3)

    def backward(self, indexes, gys):
        return tuple(gys[i] * (2 + i) for i in indexes)


class Accumulating(Step):
    def backward_accumulate(self, indexes, gys, gxs):
        self.given = gxs
        return tuple(
            gys[i] * 7 if gx is None else gys[i] * 7 + gx for i, gx in zip(indexes, gxs)
        )


def _stepped(function, lists, lazy=False):
    from chainer import _backprop_utils

    xs = [chainer.Variable(X), chainer.Variable(-X)]
    ys = function.apply(xs)
    gys = tuple(chainer.Variable(np.full((2, 3), g, "f")) for g in (1, 10))
    given = {x.node: list(part) for x, part in zip(xs, lists)}
    with chainer.using_config("lazy_grad_sum", lazy):
        _backprop_utils.backprop_step(function, (0, 1), gys, given, False)
    return [given[x.node] for x in xs], len(ys)


def case_steps():
    g = chainer.Variable(X)
    return [
        _stepped(function(), lists, lazy)
        for function in (Step, Accumulating)
        for lists in (([], []), ([g], []), ([g, g], [g]))
        for lazy in (False, True)
    ]


def case_reduced_gradients():
    from chainer import _backprop_utils

    g = chainer.Variable(X)
    lists = [[], [g], [g, g, g]]
    return [_backprop_utils._reduce(part) for part in lists], lists


def case_tables_of_gradients():
    from chainer import _backprop_utils

    x = chainer.Variable(X)
    y = F.exp(x)
    table = _backprop_utils.GradTable()
    table[y.node] = chainer.Variable(X)
    table.accumulate(y.node, chainer.Variable(X))
    table.accumulate(x.node, None)
    return table.pop(y.node), table.pop(x.node), table.pop(y.node)


def case_gradients_of_lstm():
    rng = np.random.RandomState(0)
    c, x, gc, gh = (chainer.Variable(rng.randn(2, n).astype("f")) for n in (2, 8, 2, 2))
    c_next, _ = F.lstm(c, x)
    ys = lstm.LSTMGrad()(c, x, c_next.array, gc, gh)
    second = chainer.grad([F.sum(y * y) for y in ys], [c, x, gc, gh])
    return ys, second


def case_gradients_of_slstm():
    rng = np.random.RandomState(0)
    c1, c2, x1, x2, gc, gh = (
        chainer.Variable(rng.randn(2, n).astype("f")) for n in (2, 2, 8, 8, 2, 2)
    )
    c_next, _ = F.slstm(c1, c2, x1, x2)
    ys = slstm.SLSTMGrad()(c1, c2, x1, x2, c_next.array, gc, gh)
    second = chainer.grad([F.sum(y * y) for y in ys], [c1, c2, x1, x2, gc, gh])
    return ys, second


def case_factors_of_group_normalization():
    x = np.random.RandomState(0).randn(2, 6).astype("f")
    mean, eps = x.mean(1), 1e-5
    inv_std = (1 / np.sqrt(x.var(1) + eps)).astype("f")
    f = group_normalization._MulInvStd(eps, mean, inv_std, np.ones(6, "f"))
    xs = chainer.Variable(x), chainer.Variable(np.cos(x))
    (y,) = f.apply(xs)
    return y, gradients(y, *xs)


def case_mixed_precision():
    from chainer.utils import precision

    class Mine(chainer.FunctionNode):
        @precision._fp16_mixed_precision_helper
        def forward(self, inputs):
            self.seen = [None if x is None else str(x.dtype) for x in inputs]
            return inputs[0] * 2, None

    found = []
    half, single, number = X.astype("e"), X, np.arange(3)
    for inputs in ((half, half), (half, single), (half, number), (single,)):
        f = Mine()
        ys = f.forward(inputs)
        found.append((f.seen, ys))
    return found


def case_unit_vectors():
    x = gradient_check._CheckBackward._sample_unit_vector(9, np)
    return abs((x**2).sum() - 1) < 1e-6, abs(x).min() > 0.1 / 3 * 0.9


def case_expressions_of_types():
    t = chainer.utils.type_check
    x, y = t.Variable(1, "x"), t.Variable({"a": 3}, "y")
    z = t.Variable(np.ones(3), "z")
    found = [
        str(t.GetAttr(z, "shape")),
        str(t.GetAttr(z, t.Constant("v"))),
        str(t.GetAttr(z, 3)),
        str(t.GetItem(y, "a")),
        str(t.GetItem(y, t.Constant("a"))),
        str(y["a"]),
        str(~x),
        (~x).eval(),
    ]
    texts = [x + x * x, (x + x) * x, -(x**x), (-x) ** x, (x << x) + x, x << x + x]
    texts += [
        x & x ^ x,
        (x ^ x) & x,
        x | x & x,
        (x | x) ^ x,
        -(x + x),
        ~x + x,
        ~(x + x),
    ]
    texts += [(x - x) - x, x - (x - x), x // x / x % x, x**x**x, (x**x) ** x]
    texts += [x == x + x, (x << x) == x, x]
    return (
        found,
        [str(text) for text in texts],
        [
            (x == 1).expect(),
            (t.Variable((1, 2), "p") == (x, 2)).expect(),
            (t.Variable([1, [1]], "p") == [x, [x]]).expect(),
        ],
    )


def case_mistaken_types():
    t = chainer.utils.type_check
    x = t.Variable(1, "x")
    found = []
    for run in (
        lambda: t.get_types(1, "x", False),
        lambda: (t.Variable([1], "p") == [x + 1]).expect(),
        lambda: t.get_types((X,), "x", False).size().eval(),
    ):
        try:
            found.append(run())
        except BaseException as error:
            found.append(type(error).__name__)
    return found


def case_extensions_of_trainers():
    from chainer import testing, training

    trainer = testing.get_trainer_with_mock_updater()

    @training.make_extension(trigger=(2, "epoch"), priority=7)
    def mine(t):
        pass

    trainer.extend(mine, name="a")
    trainer.extend(mine, name="b", priority=3, call_before_training=True)
    return [
        (
            name,
            e.extension is mine,
            e.trigger.period,
            e.priority,
            e.call_before_training,
        )
        for name, e in trainer._extensions.items()
    ], type(trainer._extensions).__name__
