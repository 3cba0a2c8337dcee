"""Links, optimizers and serializers: attributes, loss scaling, entries."""

import chainer
import chainer.functions as F
import chainer.initializers
import chainer.links as L
import numpy as np
from cases.core import P, V, chain, linear, ones, setup
from chainer import optimizer_hooks, optimizers


def case_attributes_outside_of_init_scope():
    link = chainer.Link()
    link.W = P(ones(2))
    return len(list(link.params()))


def case_attribute_deleted():
    link = linear(2, 1)
    del link.b
    return sorted(name for name, _ in link.namedparams()), link(ones(1, 2))


def case_parameter_replaced_in_scope():
    link = linear(2, 1)
    with link.init_scope():
        link.W = P(ones(1, 2) * 3)
    return link(ones(1, 2)), len(list(link.params()))


def case_link_disabled():
    optimizer, link = setup(optimizers.SGD(1))
    link.disable_update()
    for p in link.params():
        p.grad = np.ones_like(p.array)
    optimizer.update()
    link.enable_update()
    return link.W.array, link.update_enabled


def case_parameter_without_gradient():
    optimizer, link = setup(optimizers.Adam())
    link.cleargrads()
    optimizer.update()
    return link.W.array


def case_gradients_that_a_hook_clears():
    link, seen = L.Linear(2, 1, initialW=1), []
    optimizer = optimizers.SGD(0.5).setup(link)
    for param in link.params():
        param.grad = np.ones_like(param.array)
    optimizer.add_hook(lambda own: own.target.cleargrads(), "clears")
    optimizer.add_hook(lambda own: seen.append(own.target.W.grad), "reads")
    optimizer.update()
    return seen, link.W.array


def case_loss_scaling():
    optimizer, link = setup(optimizers.SGD(1))
    optimizer.loss_scaling(interval=2, scale=4.0)
    x = ones(1, 2)
    for _ in range(3):
        optimizer.update(lambda: F.sum(link(x)))
    return link.W.array, optimizer._loss_scale


def case_loss_scaling_and_nan():
    optimizer, link = setup(optimizers.SGD(1))
    optimizer.loss_scaling(interval=2, scale=4.0)
    optimizer.update(lambda: F.sum(link(ones(1, 2) * np.inf)))
    return link.W.array, optimizer._loss_scale, optimizer.is_safe_to_update()


def case_static_loss_scale():
    optimizer, link = setup(optimizers.SGD(1))
    optimizer.set_loss_scale(8.0)
    optimizer.update(lambda: F.sum(link(ones(1, 2))))
    return link.W.array, link.W.grad


def case_optimizer_entries():
    optimizer, link = setup(optimizers.Adam())
    optimizer.update(lambda: F.sum(link(ones(1, 2))))
    return sorted(chainer.serializers.npz.serialize(optimizer))


def case_link_entries():
    return sorted(chainer.serializers.npz.serialize(chain()))


def case_batch_normalization_entries():
    link = chainer.Chain(bn=L.BatchNormalization(2))
    found = chainer.serializers.npz.serialize(link)
    return {key: found[key] for key in sorted(found)}


def case_hyperparameters_of_one_parameter():
    optimizer, link = setup(optimizers.SGD(1))
    link.W.update_rule.hyperparam.lr = 0.5
    for p in link.params():
        p.grad = np.ones_like(p.array)
    optimizer.update()
    return link.W.array, link.b.array


def case_hyperparameter_that_is_none():
    optimizer, link = setup(optimizers.SGD(None))
    for p in link.params():
        p.grad = np.ones_like(p.array)
    optimizer.update()
    return link.W.array


def case_serializer_of_an_uninitialized_link():
    link = linear(None, 1)
    found = chainer.serializers.npz.serialize(link)
    other = linear(3, 1)
    chainer.serializers.NpzDeserializer(
        {"W": np.full((1, 3), 2, "f"), "b": ones(1)}
    ).load(link)
    return sorted(found), link.W.array, other.W.shape


def case_load_of_a_missing_name():
    chainer.serializers.NpzDeserializer({"W": ones(1, 2)}).load(linear(2, 1))


def case_load_of_another_shape():
    chainer.serializers.NpzDeserializer({"W": ones(1, 3), "b": ones(1)}).load(
        linear(2, 1)
    )


def case_forget_counts_calls():
    calls = []

    def f(x):
        calls.append(1)
        return x * x

    x = V(ones(2))
    y = F.forget(f, x)
    F.sum(y).backward()
    return len(calls), x.grad
