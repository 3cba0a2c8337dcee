"""Other inputs to the behaviours that Chainer's own tests look at, one or two of each."""

import io
import os
import pickle
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import (
    Parameter,
    Variable as V,
    backend,
    distributions as D,
    initializers,
    link_hooks,
    optimizers,
    testing,
    utils,
)
from chainer.backends import _cpu, cuda
from chainer.dataset import tabular
from chainer.functions.array import as_strided, flip
from chainer.functions.math import basic_math, einsum, sparse_matmul
from chainer.functions.normalization import group_normalization
from chainer.functions.rnn import lstm, slstm
from chainer.testing import training as testing_training
from chainer.training import extensions, triggers
from chainer.utils import conv_nd, type_check

EXPRESSIONS = """
sparse_matmul.CooMatMul(i(0, 0, 2), i(1, 1, 0), (3, 2), transa=True, transc=True).apply((f(1, 2, 3), x(3, 2)))
sparse_matmul.CooMatMul(i(0, 2), i(1, 0), (3, 2), dtype=np.float64).apply((f(1, 2), x(2, 1)))
device.send({'a': None})
device.send([None, x(2)])
device.send((x(2), [None, V(x(2))]))
device.send(3)
testing.BackendConfig({}).get_array(x(2)) is None
F.softmax_cross_entropy(V(x(3, 4)), i(0, 2, -1)).creator.y
F.softmax_cross_entropy(V(x(2, 3, 2)), np.array([[0, 1], [2, -1]], 'i'), normalize=False).creator.y
F.softmax_cross_entropy(V(x(3, 4)), i(0, 2, 1), cache_score=False).creator.y
hasattr(F.softmax_cross_entropy(V(x(3, 4)), i(0, 2, 1), enable_double_backprop=True).creator, 'y')
F.softmax_cross_entropy(V(x(3, 4)), i(0, 2, 1), reduce='no').creator.y
F.dropout(V(np.ones((3, 4), 'd')), .25).creator.mask.max()
F.dropout(x(3, 4), .25).creator is None
F.dropout(V(x(2, 2)), 0.).creator.mask
F.simplified_dropconnect(x(2, 3), x(4, 3), None, .3).creator.mask.shape
F.simplified_dropconnect(x(2, 3), x(4, 3), None, .3, use_batchwise_mask=False).creator.mask
F.zoneout(V(x(2, 3)), V(x(2, 3)), .3).creator.flag_x
F.zoneout(x(2, 3), V(x(2, 3)), 1.).creator.flag_h
soft_targets(x(2, 3, 2), 'mean')
soft_targets(x(2, 3), 'no')
optimizers.Adam().setup(L.Linear)
optimizers.SGD().setup(None)
optimizers.MomentumSGD().setup([L.Linear(2)])
rows([True, False, 3])
rows([np.bool_(True), 2])
rows([0, -1, 9])
rows(np.array([1, 0, 1] + [0] * 7, bool))
modes(('a', 'b'), ('b',))
modes('a', ('a',))
modes(None, ('a',))
joined((2, 0))
joined((1, 1))
joined(('c', 'a'))
concatenated(slice(14, 1, -5))
concatenated(slice(None, None, 7))
concatenated([12, 3, 3])
_cpu._to_cpu([x(2), None])
_cpu._to_cpu((x(2), (None,)))
_cpu._to_cpu('text')
_cpu._to_cpu(np.float32(2))
_cpu._to_cpu(V(x(2)))
_cpu._array_to_cpu(3)
warned(lambda: F.fixed_batch_renormalization(x(3, 2), f(1, 2), f(0, 1), f(1, 1), f(1, 4)))
warned(lambda: type('Own', (chainer.Chain,), {'to_cpu': lambda self: self}))
warned(lambda: type('Own', (chainer.Link,), {'to_chx': lambda self: self}))
warned(lambda: type('Own', (L.Linear,), {'from_chx': lambda self: self}))
warned(lambda: V(x(1, 1)).backward())
warned(lambda: Parameter(shape=(2,)).zerograd())
ranks(lambda a: F.relu(F.relu(a) + a))
ranks(lambda a: F.concat([a, F.exp(F.exp(a))]))
flip._flip(x(2, 3), 1)
flip._flip(x(2, 3), -2)
flip._flip(x(2, 3), 4)
as_strided._stride_array(np.arange(6), (2, 2), (1, -1), 3)
as_strided._stride_array(np.arange(6.), (3, 2), (0, 2), 1)
as_strided._stride_array(np.arange(4), (3,), (2,), 0)
as_strided._min_index((2, 3), (-2, 1), 5)
as_strided._max_index((2, 3), (-2, 1), 5)
chainer.grad([V(np.array([1, 2]))], [V(np.array([1, 2]))])
D.bernoulli._bernoulli_log_prob(V(f(np.inf, -np.inf, 0)), f(1, 1, 0), True)
D.bernoulli._bernoulli_log_prob(V(f(0, 1)), f(.5, .5))
D.multivariate_normal._triangular_inv(np.array([[4, 1]], 'd'))
D.utils._modified_xlogx(f(0, 1, 2, .5))
D.laplace._laplace_cdf(f(-1, 0, 3))
D.laplace._laplace_icdf(f(.9, .5))
F.pad_sequence([np.array([True]), np.array([False, True])], length=3)
F.pad_sequence([np.array([[True, False]]), np.zeros((2, 2), bool)], padding=1)
F.pad_sequence([i(1), i(2, 3)], padding=2.7)
einsum.DiagEinSum(in_subs='ij', out_sub='iij', out_shape=(2, 2, 3)).apply((x(2, 3),))
einsum.DiagEinSum(in_subs='i,j', out_sub='jik', out_shape=(3, 2, 2)).apply((x(2), x(3)))
lstm.LSTMGrad().apply((x(2, 2), x(2, 8), x(2, 2), x(2, 2), x(2, 2)))
slstm.SLSTMGrad().apply((x(2, 1), x(2, 1), x(2, 4), x(2, 4), x(2, 1), x(2, 1), x(2, 1)))
group_normalization._MulInvStd(1e-3, f(1, 2), f(2, .5), f(1, 1)).apply((x(2, 3), x(2, 3)))
V._init_unchecked(x(2), requires_grad=False, name='a').name
V._init_unchecked(x(2))._has_chainerx_array
Parameter(shape=(2,))._grad
Parameter()._grad
sampled()
F.unpooling_nd(x(1, 1, 2, 2), 1, 1, (1, 0))
F.unpooling_nd(x(1, 1, 1), 2, 2, 1)
convolution(4, 6, 2)
convolution(3, 6, 2)
undefined(lambda: D.Cauchy(f(0, 1), f(1, 2)).mean)
D.Bernoulli(np.array([0, 1, .5], 'f'), binary_check=False).log_prob(f(.5, .25, .75))
D.Bernoulli(np.array([.2, .7], 'f'), binary_check=False).prob(f(.5, .25))
F.sum(x(2, 3), axis='0')
F.prod(x(2, 3), axis=1.)
F.max(x(2, 3), axis=[1])
F.logsumexp(x(2, 3), axis=np.array([0]))
F.sum(x(2, 3), axis=(0, 0))
cuda.to_cpu([x(2)])
cuda.to_cpu(None)
chainer.backward(x(2))
chainer.backward([V(x(2))], V(x(2)))
shown_types('in_types[0].shape[1] + 2')
shown_types('-(in_types[0].ndim + 1) * 2')
shown_types('~in_types[0].ndim & 3 | 1 ^ 2')
shown_types('(in_types[0].ndim << 2) // 3 % 5')
shown_types('in_types[0].shape == (in_types[1].ndim, 3)')
type_check._repr([type_check.get_types((x(2),), 'in_types', False)[0].ndim, (1,)])
str(type_check.GetItem(type_check.Variable([1], 'y'), slice(1, None)))
str(type_check.GetAttr(type_check.Variable(1, 'y'), 'real'))
wrong_backward(lambda gx: (gx, gx))
wrong_backward(lambda gx: (gx[:1],))
wrong_backward(lambda gx: (F.cast(gx, 'd'),))
wrong_backward(lambda gx: (gx.array,))
wrong_backward(lambda gx: (gx * np.float32('nan'),))
optional(lambda a: (None, a))
Parameter(np.float16).dtype
Parameter(initializers.One(np.float64)).dtype
unset(lambda link: link.add_param('a', (2,)))
unset(lambda link: link.register_persistent('a'))
grad_variable(x(2))
D.OneHotCategorical(f(.25, .75)).log_prob(i(1, 0))
basic_math._convert_value_to_string(-2.5)
basic_math._convert_value_to_string(V(x()))
basic_math._convert_value_to_string(np.float32(3))
basic_math._convert_value_to_string('a')
basic_math.MulConstant(-3).label, basic_math.PowConstVar(2).label, basic_math.AddConstant(x(2)).label
D.multivariate_normal._triangular_inv(np.array([[4, 1], [0, 2]], 'f'), lower=False)
F.einsum('...i,i...->...', x(2, 3), x(4, 2))
utils.sparse.get_order(i(0, 0, 1), i(0, 1, -1))
utils.sparse.get_order(i(0, 1, 1), i(1, 0, 1))
utils.sparse.get_order(i(0, 1, 0), i(1, 0, 0))
coo(np.array([[0, 2], [3, 0]], 'f'), 3)
coo(np.zeros((2, 2, 2), 'f'), None)
coo(np.array([[0, 2], [3, 0]], 'f'), 1)
backend.using_device('@nowhere')
backend.using_device(3.5)
experimental(True)
experimental(False)
L.Bias(1, (2,))(x(3, 2), x(2))
L.Scale(1)(x(3, 2))
in_debug(lambda: F.scale(x(3, 2), x(3), 1))
in_debug(lambda: F.bias(x(3, 2), x(2, 3)))
in_half(lambda a, b: (a + b, None))
stopped([3, 2, V(np.float32(2.5)), 2.6], patience=2)
stopped([1, 2, 3, 1], patience=2, mode='max')
triggers.EarlyStoppingTrigger(patients=2, patience=3)
L.Bilinear(2, 3, 4, initialW=x(4, 3, 2))
L.Bilinear(2, 3, 4, initial_bias=(x(2, 4), x(3, 4), x(3)))
L.Bilinear(2, 3, 4, nobias=True)(x(2, 2), x(2, 3)).shape
twice(lambda y, a: chainer.grad([y], [a], enable_double_backprop=True))
F.einsum('i...,i...', x(3, 2), x(3, 2))
F.layer_normalization(x(2, 3, 4), x(12), x(12))
F.leaky_relu(V(f(-2, 3)), slope=-0.)
slope_zero()
L.GroupNormalization(2.5)(x(2, 5, 2))
L.GroupNormalization(3)(x(2, 5, 2))
L.GroupNormalization('2')
F.gumbel_softmax(x(1), axis=0)
flow_on()
in_double(lambda: F.batch_normalization(x(1, 3), f(1, 1, 1), f(0, 0, 0)))
warned(lambda: F.batch_normalization(x(1, 3, 1, 1), f(1, 1, 1), f(0, 0, 0)))
warned(lambda: F.batch_normalization(x(1, 3), f(1, 1, 1), f(0, 0, 0), axis=(0,)))
named('copy')
named('init')
shares()
F.reshape(X, (2, 3)) is X
F.broadcast_to(X, (2, 3)) is X
F.identity(X) is X
F.cast(X, 'f') is X
F.cast(VX, 'f') is VX
F.identity(VX) is VX
F.identity(VX, VX)[0] is VX
V(x(2, 3))[..., ...]
V(x(2, 3))[0, 0, 0]
V(x(2, 3))[None, ..., None]
F.scatter_add(V(x(2, 3)), (Ellipsis, Ellipsis), V(x(2, 3)))
F.scatter_add(V(x(2, 3)), (0, 0, 0), V(x()))
F.repeat(x(2, 3), 2, axis=True)
F.repeat(x(2, 3), (1, 2), axis=None)
F.tile((1, 2), 2)
F.tile(x(2), (2, True))
in_debug(lambda: F.split_axis(x(4, 2), [3, 1], 0))
F.split_axis(x(4, 2), [1, 3], 2)
F.split_axis(x(4, 2), 3, 0)
F.tensordot(x(2, 3), x(3, 2), axes=([1], [5]))
F.tensordot(x(2, 3), x(3, 2), axes=3)
F.deconvolution_nd(x(1, 2, 3), x(3, 1, 2))
conv_nd.im2col_nd_cpu(x(2, 3, 4), (2, 2), (1, 1), (0, 0))
conv_nd.col2im_nd_cpu(x(1, 2, 2, 3), (1, 1), (0, 0), (4,))
F.forget(lambda a: (a * 2,), V(x(2)))
F.forget(lambda a: [a, a], V(x(2)))
F.forget(lambda a: None, V(x(2)))
F.forget(3, V(x(2)))
F.huber_loss(x(2, 3), x(2, 3), 1., reduce='mean')
chainer.backward([V(x(2)), V(x(2))], [V(x(2))])
hash(V(x(2)))
node_follows()
chainer.Sequential(F.relu, L.Linear(2, 2)).count_by_layer_type('Linear')
L.Classifier(L.Linear(2), label_key=1.5)
L.Classifier(L.Linear(2), label_key=5)(x(2, 2), i(0, 1))
L.Classifier(L.Linear(2), label_key='y')(x(2, 2), z=i(0, 1))
utils.argument.parse_kwargs({'c': 1, 'd': 2}, ('a', 3))
utils.argument.parse_kwargs({'a': 1}, ('a', 3), ('b', 4))
utils.argument.check_unexpected_kwargs({'a': 1}, a='no a here')
utils.argument.assert_kwargs_empty({})
without_rows()
"""

device = chainer.get_device("@numpy")
X = np.arange(6, dtype="f").reshape(2, 3)
VX = V(X)


def x(*shape):
    """Numbers between -1 and 1."""
    size = int(np.prod(shape))
    return np.cos(np.arange(size) * 1.7).astype("f").reshape(shape)


def f(*values):
    return np.array(values, "f")


def i(*values):
    return np.array(values, "i")


def warned(run):
    """What ``run`` returns, and its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = run()
    return value, sorted({w.category.__name__ for w in found})


undefined = warned


def soft_targets(y, reduce):
    t = abs(x(*y.shape))
    t = V(t / t.sum(axis=1, keepdims=True))
    y = V(y)
    loss = F.softmax_cross_entropy(y, t, reduce=reduce)
    F.sum(loss).backward()
    return loss, y.grad, t.grad


def rows(index):
    data = chainer.dataset.TabularDataset
    made = chainer.dataset.tabular.from_data(
        ("a", np.arange(10)), ("b", np.arange(10.0))
    )
    assert isinstance(made, data)
    return made.slice[index].fetch()


def modes(keys, then):
    made = tabular.from_data(("a", np.arange(4)), ("b", np.arange(4.0)))
    first = made.slice[:2, keys]
    return (
        first.keys,
        first.mode,
        first.slice[:, then].mode,
        first.slice[:, then].fetch(),
    )


def joined(keys):
    one = tabular.from_data(("a", np.arange(4)), ("b", np.arange(4.0)))
    two = tabular.from_data(("c", np.arange(4) * 2))
    cut = one.join(two).slice[1:3, keys]
    return cut.keys, cut.fetch()


def concatenated(index):
    one = tabular.from_data(("a", np.arange(10)))
    two = tabular.from_data(("a", np.arange(10, 15)))
    return one.concat(two).slice[index].fetch()


def ranks(function):
    a = V(x(2))
    y = function(a)
    return a.rank, y.rank, y.creator.rank, y.node.rank, y.creator_node.rank


def sampled():
    """How the link of negative sampling calls its function."""
    link = L.NegativeSampling(3, [1, 2, 1], 2)
    link.sampler = lambda size: np.zeros(size, "i")
    link.W.array[...] = x(3, 3)
    return link(x(2, 3), i(0, 2)), link(x(2, 3), i(-1, 1), reduce="no")


def convolution(inputs, outputs, groups):
    link = L.ConvolutionND(2, None, outputs, 3, groups=groups)
    link._initialize_params(inputs)
    return link.W.shape


def shown_types(text):
    in_types = type_check.get_types((x(2, 3), x(4)), "in_types", False)
    made = eval(text, {"in_types": in_types})
    return str(made), made.eval() if hasattr(made, "eval") else None


class Wrong(chainer.FunctionNode):
    def __init__(self, change):
        self.change = change

    def forward(self, xs):
        return (xs[0] * 2,)

    def backward(self, indexes, gys):
        return self.change(gys[0])


def wrong_backward(change):
    a = V(x(2))
    with chainer.using_config("debug", True):
        (y,) = Wrong(change).apply((a,))
        y.grad = f(1, 1)
        y.backward()
    return a.grad


class Optional(chainer.FunctionNode):
    def __init__(self, change):
        self.change = change

    def forward(self, xs):
        self.retain_outputs((0, 1))
        return self.change(xs[0])

    def backward(self, indexes, gys):
        kept = self.get_retained_outputs()
        return (gys[1] + (0 if kept[0] is None else 1),)


def optional(change):
    a = V(x(2))
    first, second = Optional(change).apply((a,))
    second.grad = f(1, 1)
    second.backward()
    return first.array, first.grad, a.grad


def unset(use):
    class Own(chainer.Link):
        def __init__(self):
            pass

    return use(Own())


def grad_variable(gradient):
    a = V(x(2))
    a.grad = gradient
    return a.grad_var.requires_grad, a.grad_var.array is gradient


def coo(array, ldnz):
    made = utils.sparse.to_coo(array, ldnz=ldnz)
    return made.data, made.row, made.col, made.shape


def experimental(is_silent):
    chainer.disable_experimental_feature_warning = is_silent
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            utils.experimental("a.b")
    finally:
        chainer.disable_experimental_feature_warning = False
    return [(w.category.__name__, str(w.message)[:20]) for w in found]


def in_debug(run):
    with chainer.using_config("debug", True):
        return run()


def in_half(forward):
    class Own:
        @utils.precision._fp16_mixed_precision_helper
        def forward(self, xs):
            return (*forward(*xs), str(xs[0].dtype))[:2]

    return Own().forward((x(2).astype("e"), x(2).astype("e")))


def stopped(values, **keywords):
    trigger = triggers.EarlyStoppingTrigger(
        monitor="loss",
        check_trigger=(1, "iteration"),
        max_trigger=(9, "iteration"),
        **keywords,
    )
    trainer = testing.get_trainer_with_mock_updater()
    found = []
    for value in values:
        trainer.updater.update()
        trainer.observation = {"loss": value}
        found.append(bool(trigger(trainer)))
    return found


class Old(chainer.Function):
    def forward(self, xs):
        return (xs[0] ** 2,)

    def backward(self, xs, gys):
        return (2 * xs[0] * gys[0],)


def twice(gradient):
    a = V(x(2))
    y = Old()(a)
    (ga,) = gradient(F.sum(y), a)
    F.sum(ga).backward()
    return a.grad


def slope_zero():
    a = V(f(-2, 0, 3))
    y = F.leaky_relu(a, slope=0)
    F.sum(y).backward()
    return y, a.grad


def flow_on():
    a = V(f(1, 2))
    b = F.exp(a)
    c = b * b
    return chainer.grad([c], [a, b], [V(f(1, 1))], [V(f(2, 2)), V(f(3, 3))])


def in_double(run):
    with chainer.using_config("dtype", np.float64):
        return run()


def named(mode):
    chain = chainer.Chain(a=L.Linear(2, 2))
    copied = chain.copy(mode)
    return copied.a.name, copied.a.W.name, chain.copy(mode).name


def shares():
    a = L.Linear(None, 2)
    b, c = a.copy(), a.copy("init")
    b(x(1, 3))
    return a.W.array is b.W.array, c.W.array is None, a.W.is_initialized


def node_follows():
    a = V(x(2))
    node = a.node
    a.array = x(3)
    return node.shape, node.data, node.dtype


def without_rows():
    link = L.Linear(2, 0)
    return link.add_hook(link_hooks.SpectralNormalization())


def case_snapshots_by_number():
    from chainer.training.extensions import _snapshot

    for name in "snap_1", "snap_12", "other_3", "snap_2.tmp":
        with open(name, "w"):
            pass
        os.utime(name, (len(name), len(name)))
    return (
        [
            name
            for _, name in _snapshot._find_snapshot_files(
                "snap_{.updater.iteration}", "."
            )
        ],
        _snapshot._find_latest_snapshot("snap_{.updater.iteration}", "."),
        _snapshot._find_latest_snapshot("none_{.updater.iteration}", "."),
        list(_snapshot._find_stale_snapshots("snap_{.updater.iteration}", ".", 1)),
    )


def case_extensions_of_a_trainer():
    trainer = testing.get_trainer_with_mock_updater()
    trainer.extend(
        extensions.LogReport(), name="log", priority=7, call_before_training=True
    )
    trainer.extend(lambda t: None, trigger=(2, "iteration"))
    return {
        name: (entry.priority, entry.call_before_training, type(entry.trigger).__name__)
        for name, entry in trainer._extensions.items()
    }


def case_iterator_after_finalize():
    it = chainer.iterators.MultiprocessIterator([1, 2, 3], 2, n_processes=1)
    it.next()
    copied = pickle.loads(pickle.dumps(it))
    found = copied.epoch_detail, copied.previous_epoch_detail
    it.finalize()
    copied.finalize()
    try:
        it.reset()
    except NotImplementedError as error:
        return found, type(error).__name__
    return found


def case_update_rule_without_gradient():
    link = L.Linear(2, 2)
    optimizer = optimizers.Adam().setup(link)
    optimizer.update()
    return [param.update_rule.t for param in link.params()]


def case_hook_sees_missing_gradients():
    link = L.Linear(2, 2, initialW=1)
    optimizer = optimizers.SGD(1).setup(link)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(0.5))
    link.cleargrads()
    optimizer.update()
    return link.W, link.b


def case_debug_print_of_nothing():
    return V(name="w").debug_print(), V(x(2), name="v").debug_print().split("\n")[:2]


def case_text_of_printed_graph():
    out = io.StringIO()
    with chainer.function_hooks.PrintHook(file=out, flush=False):
        F.relu(V(x(2)))
    return [line.split(" ")[0] for line in out.getvalue().split("\n")]


def case_pickled_data_set_of_bytes():
    file = io.BytesIO()
    writer = chainer.datasets.PickleDatasetWriter(file)
    for value in ("a", {"b": 2}):
        writer.write(value)
    writer.flush()
    file.seek(0)
    data = chainer.datasets.PickleDataset(file)
    return len(data), data[1], data[0]


def case_mocked_updater():
    updater = testing_training.get_trainer_with_mock_updater().updater
    return type(updater).__name__, updater.epoch, updater.iteration
