"""Variables, parameters, functions, links and optimizers: errors, warnings, corners."""

import copy
import pickle
import warnings

import chainer
import chainer.functions as F
import chainer.initializers
import chainer.links as L
import numpy as np
from chainer import optimizer_hooks, optimizers

V = chainer.Variable
P = chainer.Parameter
CATEGORIES = (DeprecationWarning, FutureWarning, RuntimeWarning, UserWarning)


def ones(*shape, dtype="f"):
    return np.ones(shape, dtype)


def warned(run):
    """The categories of warnings that come from a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    names = {w.category.__name__ for w in found if issubclass(w.category, CATEGORIES)}
    return sorted(names)


def message_has(run, *words):
    """Which of the words an error's message has."""
    try:
        run()
    except Exception as error:
        return [word for word in words if word in str(error)]


class Scale(chainer.FunctionNode):
    """Twice its inputs; what backward returns can be replaced."""

    def __init__(self, gradients=None, results=None):
        self.gradients, self.results = gradients, results

    def forward(self, xs):
        return self.results or tuple(2 * x for x in xs)

    def backward(self, indexes, gys):
        if self.gradients is not None:
            return self.gradients
        return tuple(2 * gy for gy in gys)


class OldScale(chainer.Function):
    def __init__(self, gradients=None, results=None):
        self.gradients, self.results = gradients, results

    def forward(self, xs):
        return self.results or tuple(2 * x for x in xs)

    def backward(self, xs, gys):
        if self.gradients is not None:
            return self.gradients
        return tuple(2 * gy for gy in gys)


def backward_of(function, *xs):
    xs = [V(x) for x in xs]
    ys = function.apply(xs) if hasattr(function, "apply") else function(*xs)
    y = ys[0] if isinstance(ys, tuple) else ys
    y.grad = np.ones_like(y.array)
    y.backward()
    return [x.grad for x in xs]


def linear(*sizes):
    link = L.Linear(*sizes, initialW=1)
    return link


def chain():
    return chainer.Chain(a=linear(2, 1), b=linear(None, 1))


class NoInit(chainer.Chain):
    def __init__(self):
        self.l = linear(1, 1)


class NoInitParam(chainer.Link):
    def __init__(self):
        self.W = P(ones(1))


class Scoped(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = linear(2, 2)
            self.p = P(1.0, (3,))
        self.free = P(ones(2))


def setup(optimizer, link=None):
    link = link or linear(2, 1)
    return optimizer.setup(link), link


def updated(optimizer, n=2):
    """Parameters after updates with gradients of ones."""
    _, link = setup(optimizer)
    for _ in range(n):
        for param in link.params():
            param.grad = np.ones_like(param.array)
        optimizer.update()
    return [param.array for _, param in sorted(link.namedparams())]


OPTIMIZERS = (
    "AdaDelta AdaGrad Adam AdamW AMSGrad AdaBound AMSBound CorrectedMomentumSGD "
    "MomentumSGD MSVAG NesterovAG RMSprop RMSpropGraves SGD SMORMS3"
).split()
HOOKS = {
    "WeightDecay(.1)": lambda: optimizer_hooks.WeightDecay(0.1),
    "Lasso(.1)": lambda: optimizer_hooks.Lasso(0.1),
    "GradientClipping(.5)": lambda: optimizer_hooks.GradientClipping(0.5),
    "GradientHardClipping(-.1, .1)": lambda: optimizer_hooks.GradientHardClipping(
        -0.1, 0.1
    ),
    "GradientLARS()": lambda: optimizer_hooks.GradientLARS(),
}


def hooked(name, make):
    optimizer = getattr(optimizers, name)()
    _, link = setup(optimizer)
    optimizer.add_hook(make())
    for param in link.params():
        param.grad = np.ones_like(param.array)
    optimizer.update()
    return [param.array for _, param in sorted(link.namedparams())]


GENERATED = {
    **{
        f"{name} after {n} updates": lambda name=name, n=n: updated(
            getattr(optimizers, name)(), n
        )
        for name in OPTIMIZERS
        for n in (1, 3)
    },
    **{
        f"{name} with {hook}": lambda name=name, make=make: hooked(name, make)
        for name in ("SGD", "Adam", "MomentumSGD")
        for hook, make in HOOKS.items()
    },
    **{
        f"{name}(None)": lambda name=name: updated(getattr(optimizers, name)(None))
        for name in OPTIMIZERS
    },
    **{
        f"the hyperparameters of {name}": lambda name=name: dict(
            sorted(getattr(optimizers, name)().hyperparam.get_dict().items())
        )
        for name in OPTIMIZERS
    },
}

EXPRESSIONS = """
warned(lambda: linear(2, 1).to_cpu())
warned(lambda: chain().to_cpu())
warned(lambda: linear(2, 1).to_intel64())
warned(lambda: V(ones(2)).to_cpu())
warned(lambda: P(ones(2)).to_cpu())
linear(2, 1).to_gpu()
V(ones(2)).to_gpu()
warned(lambda: F.sum(V(ones(2))).backward())
V(ones(2)).backward()
message_has(lambda: F.identity(V(ones(2))).backward(), 'grad')
backward_of(Scale((None,)), ones(2))
backward_of(Scale((V(ones(2)), V(ones(2)))), ones(2))
backward_of(Scale(()), ones(2))
backward_of(Scale((V(ones(3)),)), ones(2))
backward_of(Scale((V(ones(2, dtype='d')),)), ones(2))
backward_of(Scale((ones(2),)), ones(2))
backward_of(OldScale((None,)), ones(2))
backward_of(OldScale((ones(2), ones(2))), ones(2))
backward_of(OldScale((ones(3),)), ones(2))
backward_of(OldScale((ones(2, dtype='d'),)), ones(2))
backward_of(OldScale((V(ones(2)),)), ones(2))
Scale(results=(1.,)).apply((ones(2),))
Scale(results=[ones(2)]).apply((ones(2),))
Scale(results=ones(2)).apply((ones(2),))
Scale(results=(None, ones(2))).apply((ones(2),))
OldScale(results=(ones(2), None))(ones(2))
OldScale(results=ones(2))(ones(2))
Scale().apply((None, ones(2)))
Scale().apply(())
Scale().apply((1.,))
Scale().apply((ones(2), 3))
Scale()(ones(2))
type(Scale().apply((V(ones(2)),))[0].creator).__name__
OldScale()(V(ones(2))).creator.__class__.__name__
OldScale()(V(ones(2))).creator_node.__class__.__name__
OldScale()(V(ones(2))).creator.label
OldScale()(V(ones(2))).creator_node.rank
chainer.grad([V(ones(2))], [V(ones(2))])
chainer.grad(V(ones(2)), [V(ones(2))])
chainer.grad([V(ones(2))], V(ones(2)))
chainer.grad([F.sum(V(ones(2)))], [V(ones(2))], [V(ones(1))])
chainer.grad([F.sum(V(ones(2)))], [V(ones(2))], [None])
chainer.grad([F.sum(V(ones(2)))], [V(ones(2))], grad_inputs=[None])
chainer.grad([F.sum(V(ones(2)))], [ones(2)])
chainer.grad([F.sum(V(ones(2)))], [])
chainer.grad([], [V(ones(2))])
chainer.grad([F.sum(V(ones(2)))], [V(ones(2))], [])
V(ones(2)).addgrad(V(ones(2)))
V(ones(2)).addgrad(P(None))
P(None).addgrad(P(None))
P(None).addgrad(V(ones(2)))
P(1, (2,)).addgrad(P(None))
V([1., 2.])
V('text')
V(1.)
V(np.float32(1))
V(None)
V(None).array
V(None).shape
V(None).size
V(ones(2), grad=ones(3))
V(ones(2), grad=ones(2, dtype='d'))
V(ones(2), volatile=True)
V(ones(2), requires_grad=False).requires_grad
V(ones(2, dtype='i')).requires_grad
V(ones(2, dtype='i')).backward()
V(ones(2)).item()
V(ones(1)).item()
V(ones(2, 3)).reshape(3, 2).shape
V(ones(2, 3)).reshape((3, -1)).shape
V(ones(2, 3)).transpose().shape
V(ones(2, 3)).T.shape
V(ones(2, 3)).T.creator is None
V(ones(2, 3)).ndim, V(ones(2, 3)).size, V(ones(2, 3)).dtype
V(ones(2, 3)).label, V(ones(())).label
repr(V(ones(2)))
repr(V(ones(2), name='x'))
str(V(ones(2)))
repr(P(None))
str(P(None))
repr(V(None))
V(ones(2)).xp is np
hash(V(ones(2))) is not None
V(ones(2)).copydata(V(ones(2) * 3))
V(ones(2)).copydata(V(ones(3)))
V(ones(2)).copydata(P(None))
P(None).copydata(V(ones(2)))
P(None).copydata(P(None))
P(None).dtype
P(None).shape
P(None).ndim
P(None).size
len(P(None))
P(None).grad
P(1.).grad
P(1., (2,)).array
P(1., (2,)).grad
P(ones(2)).array
P(ones(2), (2,)).array
P(ones(2), (3,)).array
P(chainer.initializers.Constant(2, dtype='d'), (2,)).array
P(np.nan, (2,)).array
P('text', (2,))
P(None, (2,)).array.shape
P(1., name='p').name
P(1.).is_initialized, P(1., ()).is_initialized, P(ones(2)).is_initialized
P(1.).zerograd()
P(1.).cleargrad()
P(1.).update_rule
P(1.).update()
chainer.as_variable(ones(2)).requires_grad
chainer.as_variable(V(ones(2), requires_grad=False)).requires_grad
chainer.as_variable([1])
chainer.as_array(V(ones(2)))
chainer.variable.Variable is V
bool(V(ones(1)))
V(ones(2)) == V(ones(2))
V(ones(2)) < 1
1 in V(ones(2))
np.add(ones(2), V(ones(2)))
ones(2) + V(ones(2))
np.float32(2) * V(ones(2))
V(ones(2)) @ ones(2)
ones(2, 2) @ V(ones(2))
V(ones(2))[0]
V(ones(2))[None].shape
V(ones(2, 3))[..., 0].shape
V(ones(2, 3))[[0, 0, 1]].shape
V(ones(2, 3))[np.array([True, False])].shape
[x.array for x in V(ones(2))]
NoInit()
NoInitParam()
chainer.Link().W
chainer.Chain().a
Scoped().count_params()
sorted(name for name, _ in Scoped().namedparams())
sorted(name for name, _ in Scoped().namedlinks())
[name for name, _ in Scoped().namedlinks(skipself=True)]
len(list(chain().params())), len(list(chain().params(include_uninit=False)))
warned(lambda: chain().count_params())
chain().a is chain()['a']
chain()['c']
chainer.ChainList(linear(1, 1))[0].W.shape
chainer.ChainList(linear(1, 1))[1]
len(chainer.ChainList(linear(1, 1), linear(1, 1)))
chain().add_link('a', linear(1, 1))
chain().add_link(1, linear(1, 1))
chain().add_link('c', ones(2))
chain().add_param('a', (2,))
linear(2, 1).add_param('W', (2,))
linear(2, 1).add_param('c', 2)
warned(lambda: linear(2, 1).add_param('c', 2))
linear(2, 1).add_persistent('W', 2)
linear(2, 1).add_persistent('c', 2)
linear(2, 1).register_persistent('none')
linear(2, 1).addgrads(linear(2, 1))
linear(None, 1).addgrads(linear(2, 1))
linear(2, 1).addgrads(linear(None, 1))
linear(2, 1).copyparams(linear(2, 1))
linear(2, 1).copyparams(linear(3, 1))
linear(2, 1).copyparams(linear(None, 1))
linear(None, 1).copyparams(linear(2, 1))
linear(2, 1).copyparams(linear(2, 1), copy_persistent=False)
linear(2, 1).copy(mode='unknown')
linear(2, 1).copy(mode='share').W.array
linear(2, 1).copy(mode='copy').W.array
linear(2, 1).copy(mode='init').W.array
linear(2, 1).repeat(2, mode='unknown')
len(linear(2, 1).repeat(3))
len(linear(2, 1).repeat(0))
linear(2, 1).repeat(-1)
linear(2, 1)(ones(3, 3))
linear(2, 1)(ones(3, 2, dtype='d'))
linear(2, 1)(3)
linear(2, 1).update_enabled
linear(2, 1).within_init_scope
linear(2, 1).local_link_hooks
linear(2, 1).delete_hook('none')
chainer.Sequential(linear(2, 1), F.relu)(ones(1, 2))
chainer.Sequential(3)
chainer.Sequential(linear(2, 1), F.relu)[0].W.shape
len(chainer.Sequential(linear(2, 1), F.relu))
chainer.Sequential(F.relu, F.relu).count_by_layer_type('relu')
chainer.Sequential(linear(2, 1)).remove_by_layer_type('Linear')
chainer.Sequential(linear(2, 1)).append(3)
chainer.Sequential(linear(2, 1), lambda x: x).copy()
optimizers.SGD().update()
optimizers.SGD().setup(3)
optimizers.SGD(lr='text')
optimizers.SGD().add_hook(3)
optimizers.SGD().add_hook(optimizer_hooks.WeightDecay(.1))
setup(optimizers.SGD())[0].add_hook(lambda o: None)
setup(optimizers.SGD())[0].add_hook(optimizer_hooks.WeightDecay(.1), timing='never')
setup(optimizers.SGD())[0].remove_hook('none')
optimizers.SGD().loss_scaling(scale='text')
optimizers.SGD().loss_scaling(interval=0)
optimizers.SGD().set_loss_scale('text')
optimizers.SGD().lr
optimizers.SGD().hyperparam.lr
optimizers.SGD(None).lr
optimizers.Adam().lr
setup(optimizers.Adam())[0].lr
optimizers.Adam(eta=.5).hyperparam.eta
optimizers.SGD().new_epoch()
optimizers.SGD().epoch, optimizers.SGD().t
setup(optimizers.SGD())[0].use_cleargrads()
chainer.get_device('unknown')
chainer.get_device('@numpy').name
chainer.get_device('native')
chainer.get_device(-1)
chainer.get_device(1.5)
chainer.get_device(None)
chainer.get_device('@numpy:0')
chainer.get_device('@cupy')
chainer.get_device(np)
chainer.backend.get_device_from_array(ones(2)).name
chainer.backend.get_device_from_array('text').name
chainer.backend.get_array_module(V(ones(2))) is np
chainer.using_config('unknown', 1).__class__.__name__
chainer.config.unknown
chainer.global_config.train
chainer.get_dtype(None), chainer.get_dtype('d'), chainer.get_dtype(chainer.mixed16)
chainer.get_dtype('mixed16')
chainer.set_debug(2)
F.forget(lambda x: 'text', V(ones(2)))
message_has(lambda: F.forget(lambda x: 'text', V(ones(2))), 'func', '1st', 'str')
message_has(lambda: F.forget(lambda x: (x, 'text'), V(ones(2))), '2nd', '1st', 'str')
F.forget(lambda x: None, V(ones(2)))
F.forget(3, V(ones(2)))
F.forget(lambda x: (x, 2 * x), V(ones(2)))
F.einsum('ij,jk->ik', ones(2, 3), ones(2, 3))
F.einsum('ij->k', ones(2, 3))
F.einsum('ij,jk', ones(2, 3))
F.einsum('ii->i', ones(2, 3))
F.einsum('ii->i', ones(2, 2))
F.einsum('i...->...', ones(2, 3))
F.einsum('ij,jk->ik', V(ones(2, 3, dtype='i')), V(ones(3, 2, dtype='i')))
F.einsum(ones(2, 3), [0, 1], [1, 0])
F.einsum('a$->a', ones(2, 3))
F.einsum('ij->ii', ones(2, 3))
F.dropout(ones(2), train=True)
F.convolution_2d(ones(1, 1, 3, 3), ones(1, 1, 2, 2), use_cudnn=True)
F.batch_normalization(ones(2, 3), ones(3), ones(3), use_cudnn=True)
L.Linear(2, 1, bias=1)
L.Linear(2, 1, wscale=1)
L.Convolution2D(1, 1, 2, bias=1)
L.Convolution2D(1, 1)
L.Convolution2D(3, 2).W.shape
L.Convolution2D(3, 2, 3, deterministic=True)
L.BatchNormalization(2)(ones(3, 2), test=True)
L.BatchNormalization(2, use_cudnn=True)
L.Dropout()
"""
