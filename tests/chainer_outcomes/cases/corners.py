"""Corners of every group of behaviours, a few each."""

import io
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import (
    Parameter,
    Variable as V,
    distributions as D,
    gradient_check,
    initializers,
    optimizers,
    reporter,
    testing,
)
from chainer.dataset import tabular
from chainer.training import extensions, triggers
from chainer.utils import type_check

EXPRESSIONS = """
derivatives(F.elu, np.inf, -np.inf, np.nan)
derivatives(F.selu, np.inf, -np.inf, np.nan)
derivatives(F.digamma, np.inf, -np.inf, np.nan)
derivatives(lambda v: F.polygamma(np.ones(3, 'i'), v), np.inf, -np.inf, np.nan)
F.add(V(x(2)), x(2, dtype='e'))
V(x(2)) * np.float64(2)
V(x(2, dtype='e')) + np.arange(2)
F.matmul(V(x(2, 2)), x(2, 2))
F.linear(V(x(2, 2, dtype='e')), V(x(2, 2)))
V(x(2)) ** np.array(2, 'i')
F.huber_loss(V(x(2, 2)), x(2, 2, dtype='d'), 1)
F.softmax_cross_entropy(V(x(2, 3)), np.array([0, -1], 'i'), cache_score=False)
F.softmax_cross_entropy(V(x(2, 3)), np.array([-1, -1], 'i'))
F.softmax_cross_entropy(V(x(2, 3)), np.array([0, 2], 'i'), ignore_label=2, reduce='no')
F.softmax_cross_entropy(V(x(2, 3)), np.array([0, 3], 'i'))
debugged(lambda: F.softmax_cross_entropy(V(x(2, 3)), np.array([0, 3], 'i')))
debugged(lambda: F.embed_id(np.array([5], 'i'), x(3, 2)))
F.softmax_cross_entropy(V(x(0, 3)), np.zeros(0, 'i'))
F.accuracy(x(2, 3, 1), np.array([2, 0], 'i'))
F.accuracy(x(2, 3, 2), np.array([[2, 2], [0, 2]], 'i'), ignore_label=2)
F.accuracy(x(2, 3), np.array([-1, -1], 'i'), ignore_label=-1)
F.binary_accuracy(x(2, 2) - 2, np.array([[0, -1], [1, 1]], 'i'))
F.r2_score(x(2, 2), x(2, 2) + 1, sample_weight=None, multioutput='raw_values')
F.f1_score(x(3, 3), np.array([2, 2, 0], 'i'), label_num=3)
F.classification_summary(x(3, 3), np.array([2, 1, 2], 'i'), beta=2.)
everything(table().slice[[True, False, True]])
everything(table().slice[:, ['b']])
everything(table().slice[1:, ('b', 'a')])
everything(table().as_dict().slice[[-1, 0], 'a'])
everything(table().concat(table()).slice[4])
everything(table().join(table(('c',))).as_tuple().slice[::-2])
everything(table().transform(('s',), lambda a, b: (a + b,)))
everything(table().transform_batch(('s',), lambda a, b: {'s': a * 2}))
everything(table().with_converter(lambda a, b: 'converted'))
table().convert(table().fetch())
table().keys, table().mode, table().as_tuple().mode, len(table().as_dict())
table().slice[:, 'z']
table().join(table())
warned(lambda: V(x(1)).to_cpu())
warned(lambda: L.Linear(1, 1).to_cpu())
warned(lambda: V(x(1)).zerograd())
warned(lambda: F.dropout(V(x(2)), use_cudnn=True))
warned(lambda: backward_of_duplicates())
warned(lambda: chainer.optimizer.WeightDecay(.1))
warned(lambda: chainer.optimizer_hooks.WeightDecay(.1))
warned(lambda: chainer.optimizer.GradientNoise(eta=.1))
issubclass(chainer.optimizer.Lasso, chainer.optimizer_hooks.Lasso), chainer.optimizer.Lasso(rate=.5).rate
decayed(chainer.optimizer.WeightDecay(.1))
decayed(chainer.optimizer.GradientHardClipping(-.5, .5))
warned(lambda: V(x(2)).backward())
warned(lambda: triggers.EarlyStoppingTrigger(patients=2))
attribute_too_early()
chainer.get_device('@unknown')
chainer.get_device('@cupy:x')
chainer.get_device(('native', 0))
chainer.get_device('@numpy').name
optimizers.SGD().update(lambda: V(x(2)))
optimizers.Adam(loss_scaling='text')
F.einsum('ij,jk->iz', V(x(2, 2)), V(x(2, 2)))
F.forget(lambda a, b: a.array + b.array, V(x(1)), V(x(1)))
F.forget(lambda a: (a, 1), V(x(1)))
restored(triggers.IntervalTrigger(2, 'iteration'), {})
restored(triggers.OnceTrigger(), {'_flag_first': True, '_flag_resumed': True})
restored(triggers.ManualScheduleTrigger([2], 'epoch'), {'_previous_epoch_detail': 1.5})
restored(reporter.Summary(), {'_x': 3., '_x2': 5., '_n': 2})
restored(L.BatchNormalization(2), {'avg_mean': x(2), 'avg_var': x(2), 'N': 1, 'beta': x(2), 'gamma': x(2)})
restored(L.Linear(None, 2), {'W': x(2, 3), 'b': x(2)})
restored(L.Linear(2, 2), {'W': x(2, 3), 'b': x(2)})
Parameter(initializers.Constant(2.), (2, 1))
Parameter(initializers.Constant(2.)).requires_grad
initialized(Parameter(1.), (2,))
initialized(Parameter(), (2,))
initialized(Parameter(initializers.NaN('d')), (1,))
optional_output()
L.Linear(None, 2).copy(mode='init').W.is_initialized
L.Linear(1, 1).copy(mode='unknown')
V(x(2)).node.rank, F.sum(V(x(2))).rank
chainer.grad([V(x(1))], [])
chainer.grad([F.sum(V(x(2)))], [V(x(2))], set_grad=True)
chainer.as_variable(x(2)).requires_grad
attributes(F.activation.relu.ReLU(), (x(3) - 2,), '')
attributes(F.noise.dropout.Dropout(.5), (x(1) * 0,), 'mask')
attributes(F.array.flip.Flip(0), (x(3),), 'axis')
attributes(F.pooling.max_pooling_2d.MaxPooling2D(2, 2, 0, True), (x(1, 1, 4, 4),), 'indexes kh kw sy sx ph pw cover_all')
attributes(F.math.exponential.Exp(), (x(2),), 'label')
attributes(F.math.basic_math.Mul(), (x(2), x(2)), 'label')
attributes(F.loss.softmax_cross_entropy.SoftmaxCrossEntropy(), (x(2, 3), np.array([0, 1], 'i')), 'y normalize reduce ignore_label')
F.relu(V(x(2))).creator.label, type(F.tanh(V(x(2))).creator).__name__
D.Bernoulli(p=np.array([0., 1.], 'f')).entropy
D.Bernoulli(p=np.array([.5], 'f'), binary_check=True).log_prob(np.array([.5], 'f'))
D.Bernoulli(logit=np.array([0.], 'f')).log_prob(np.array([2.], 'f'))
D.Normal(x(2), log_scale=x(2)).scale
D.Normal(x(2))
D.Normal(x(2), x(2), log_scale=x(2))
D.Dirichlet(x(2, dtype='e')).mean
D.Categorical(p=np.array([.2, .8], 'f')).log_prob(np.array(1, 'i'))
D.Uniform(x(1), x(1) + 2).icdf(np.array([.5], 'f'))
chainer.kl_divergence(D.Normal(x(1), x(1)), D.Uniform(x(1), x(1)))
L.Zoneoutlstm(2, 2, c_ratio=0., h_ratio=0.)(x(1, 2)).shape
L.ChildSumTreeLSTM(2, 2)(None, None, x(1, 2))[0].shape
L.NaryTreeLSTM(2, 2, n_ary=2)(None, x(1, 2), None, None, x(1, 2))[0].shape
L.Bilinear(2, 2, 1, nobias=True, initial_bias=None).count_params()
L.ConvolutionND(2, None, 3, 1)(x(1, 2, 2, 2)).shape
L.ConvolutionND(2, 2, 3, 1, nobias=True).b
L.Deconvolution2D(1, 1, 3, stride=2, pad=1, outsize=(4, 4))(x(1, 1, 2, 2)).shape
L.Inception(2, 1, 1, 1, 1, 1, 1)(x(1, 2, 3, 3)).shape
L.InceptionBN(2, 1, 1, 1, 1, 1, 'max', stride=2)(x(1, 2, 4, 4)).shape
L.InceptionBN(2, 0, 1, 1, 1, 1, 'avg')(x(1, 2, 4, 4)).shape
L.InceptionBN(2, 1, 1, 1, 1, 1, 'other')
L.EmbedID(3, 2, ignore_label=-1)(np.array([-1], 'i'))
L.Scale(axis=1, W_shape=(2,), bias_term=True)(x(1, 2)).shape
L.Maxout(2, 2, 2)(x(1, 2)).shape
micro_averages()
printed(extensions.PrintReport(['a', 'iteration'], out=Silent()))
extensions.snapshot(filename='a').writer
extensions.snapshots.ThreadQueueWriter().__class__.__name__
extensions.computational_graph.is_graphviz_available() in (True, False)
extensions.variable_statistics_plot.Reservoir(2, (1,)).get_data().shape
extensions.variable_statistics_plot.percentile(np.arange(5.), [0, 50, 100], 0)
L.Classifier(L.Linear(1, 1)).cleargrads()
chainer.backends._cpu.CpuDevice() == chainer.get_device('@numpy')
chainer.utils.cache.cached_property.__name__
chainer.datasets.image_dataset.ImageDataset.__name__
chainer.utils.collections_abc.Iterable is __import__('collections').abc.Iterable
type_check.eval(type_check.make_variable(3, 'x') << 1)
type_check.eval(64 >> type_check.make_variable(3, 'x') | 1)
str(2 & type_check.make_variable(3, 'x') + 1 ^ 4 << type_check.make_variable(5, 'y'))
type_check.eval(6 & type_check.make_variable(3, 'x') ^ 4)
type_check.expect(type_check.make_variable([1, 2], 'xs')[1] == 3)
str(type_check.make_variable(x(2), 'x').shape[0] > 3)
chainer.memory_layouts.CUDNN_CHANNEL_FIRST_X
chainer._runtime_info._get_runtime_info().chainer_version == chainer.__version__
chainer.utils.sparse.CooMatrix(x(1), np.zeros(1, 'i'), np.zeros(1, 'i'), (1, 1), order='F')
gradient_check.check_backward(lambda a: F.absolute(a), np.zeros(1), np.ones(1), detect_nondifferentiable=True, dtype='d')
gradient_check.numerical_grad(lambda: (np.abs(ZERO),), [ZERO], [np.ones(1)], detect_nondifferentiable=True)
gradient_check.check_backward(F.sqrt, np.ones(2), np.ones(2) * 2, dtype='d', rtol=0, atol=1e-3)
gradient_check.check_double_backward(F.relu, np.ones(2), np.ones(2), np.ones(2), dtype='d')
testing.assert_allclose(x(2), x(2) + 1e-3)
testing.assert_warns(UserWarning, int)
as_new(F.add, x(2, 3))
as_new(F.flatten, x(3))
as_new(F.squeeze, x(2, 3))
as_new(lambda v: F.broadcast_to(v, (2, 3)), x(2, 3))
as_new(lambda v: F.reshape(v, (-1, 3)), x(2, 3))
as_new(lambda v: F.reshape(v, (2, 3)), x(2, 3))
"""

ZERO = np.zeros(1)


def derivatives(f, *values):
    """The first and second derivative at values."""
    v = V(np.array(values, "f"))
    (g,) = chainer.grad([F.sum(f(v))], [v], enable_double_backprop=True)
    (h,) = chainer.grad([F.sum(g)], [v])
    return g, h


def x(*shape, dtype="f"):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def as_new(function, value):
    """Whether the result is another Variable, and whether it has a creator."""
    v = V(value)
    y = function(v)
    return y is not v, y.creator is not None


def debugged(run):
    with chainer.using_config("debug", True):
        return run()


def warned(run):
    """The classes of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return sorted(w.category.__name__ for w in caught)


def table(keys=("a", "b")):
    columns = [np.arange(3) + 10 * i for i in range(len(keys))]
    return tabular.from_data(tuple(zip(keys, columns)))


def everything(data):
    if not hasattr(data, "fetch"):
        return data
    return data.mode, data.keys, data.fetch(), data[0], data.convert(data.fetch())


def backward_of_duplicates():
    y = F.sum(V(x(1)))
    y.grad = np.ones((), "f")
    chainer.backward([y, y]) if hasattr(chainer, "backward") else None


def decayed(hook):
    link = L.Linear(2, 1, initialW=1, initial_bias=1)
    optimizer = optimizers.SGD(1).setup(link)
    optimizer.add_hook(hook)
    link.W.grad, link.b.grad = 2 * np.ones((1, 2), "f"), np.ones(1, "f")
    optimizer.update()
    return link.W.array, link.b.array, hook.name


def attribute_too_early():
    class Early(chainer.Chain):
        def __init__(self):
            with self.init_scope():
                self.l = L.Linear(1, 1)

    return Early()


class Entries(chainer.serializer.Deserializer):
    """Of a snapshot with these entries, at any depth."""

    def __init__(self, entries):
        self.entries = entries

    def __getitem__(self, key):
        return self

    def __call__(self, key, value):
        if key not in self.entries:
            raise KeyError(key)
        found = self.entries[key]
        if isinstance(value, np.ndarray):
            value[...] = found
            return value
        return found


def restored(target, entries):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        target.serialize(Entries(entries))
    saved = chainer.serializers.DictionarySerializer()
    target.serialize(saved)
    return sorted(saved.target.items()), [w.category.__name__ for w in caught]


def initialized(parameter, shape):
    parameter.initialize(shape)
    return parameter, parameter.grad


def optional_output():
    class Two(chainer.FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2, None

        def backward(self, indexes, gys):
            return (gys[0] * 2,)

    v = V(x(2))
    y, z = Two().apply((v,))
    F.sum(y).backward()
    return v.grad, z if z is None else z.array


def attributes(node, inputs, names):
    y = node.apply(inputs)[0]
    return y, [getattr(node, name) for name in names.split()]


class Silent:
    def write(self, text):
        self.text = getattr(self, "text", "") + text


def printed(report):
    return type(report._out).__name__


def micro_averages():
    average = extensions.MicroAverage("n", "d", "r", (2, "iteration"))
    found = []

    class Updater:
        iteration = 0
        is_new_epoch = False
        epoch_detail = 0.0
        previous_epoch_detail = 0.0
        epoch = 0

    class Trainer:
        updater = Updater()

    for n, d in ((1, 2), (3, 2), (0, 1), (1, 1)):
        Trainer.updater.iteration += 1
        Trainer.observation = {"n": n, "d": d}
        average(Trainer)
        found.append(Trainer.observation.get("r"))
    return found
