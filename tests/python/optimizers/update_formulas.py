"""The published formula of every update rule, restated in NumPy."""

import math

import numpy

from renga import optimizers as O


def sgd(x, grads, lr):
    for g in grads:
        x = x - lr * g
    return x


def momentum_sgd(x, grads, lr, momentum):
    velocity = 0
    for g in grads:
        velocity = momentum * velocity - lr * g
        x = x + velocity
    return x


def nesterov_ag(x, grads, lr, momentum):
    velocity = 0
    for g in grads:
        velocity = momentum * velocity - lr * g
        x = x + momentum**2 * velocity - (1 + momentum) * lr * g
    return x


def rmsprop_momentum_sgd(x, grads, lr, momentum, alpha, eps, rmsprop_rate, sgd_share):
    square = velocity = 0
    for g in grads:
        square = alpha * square + (1 - alpha) * g**2
        adaptive = (1 - sgd_share) * rmsprop_rate / (square**0.5 + eps)
        velocity = momentum * velocity - (sgd_share + adaptive) * g
        x = x + lr * velocity
    return x


def rmsprop(x, grads, lr, alpha, eps, eps_inside_sqrt=False):
    square = 0
    for g in grads:
        square = alpha * square + (1 - alpha) * g * g
        root = (square + eps) ** 0.5 if eps_inside_sqrt else square**0.5 + eps
        x = x - lr * g / root
    return x


def adam(
    x,
    grads,
    alpha=0.01,
    beta1=0.8,
    beta2=0.9,
    eps=1e-3,
    eta=1.0,
    weight_decay_rate=0.0,
    amsgrad=False,
    adabound=False,
    final_lr=0.1,
    gamma=1e-3,
):
    first = second = largest = 0
    for t, g in enumerate(grads, 1):
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        largest = numpy.maximum(largest, second)
        corrected = alpha * math.sqrt(1 - beta2**t) / (1 - beta1**t)
        rate = corrected / (numpy.sqrt(largest if amsgrad else second) + eps)
        if adabound:
            lower = final_lr * (1 - 1 / (gamma * t + 1))
            upper = final_lr * (1 + 1 / (gamma * t))
            rate = numpy.clip(rate, lower, upper)
        x = x - eta * (rate * first + weight_decay_rate * x)
    return x


def corrected_momentum_sgd(x, grads, lr, momentum):
    velocity = 0
    for g in grads:
        velocity = momentum * velocity - g
        x = x + lr * velocity
    return x


def adagrad(x, grads, lr, eps):
    total = 0
    for g in grads:
        total = total + g**2
        x = x - lr * g / (numpy.sqrt(total) + eps)
    return x


def adadelta(x, grads, rho, eps):
    gradients = steps = 0
    for g in grads:
        gradients = rho * gradients + (1 - rho) * g**2
        step = numpy.sqrt(steps + eps) / numpy.sqrt(gradients + eps) * g
        steps = rho * steps + (1 - rho) * step**2
        x = x - step
    return x


def smorms3(x, grads, lr, eps):
    first = second = 0
    memory = 1
    for g in grads:
        rate = 1 / (memory + 1)
        first = (1 - rate) * first + rate * g
        second = (1 - rate) * second + rate * g**2
        share = first**2 / (second + eps)
        x = x - g * numpy.minimum(lr, share) / (numpy.sqrt(second) + eps)
        memory = 1 + memory * (1 - share)
    return x


def rmsprop_graves(x, grads, lr, alpha, momentum, eps):
    square = mean = delta = 0
    for g in grads:
        square = alpha * square + (1 - alpha) * g**2
        mean = alpha * mean + (1 - alpha) * g
        delta = momentum * delta - lr * g / numpy.sqrt(square - mean**2 + eps)
        x = x + delta
    return x


def msvag(x, grads, lr, beta, eta=1.0, weight_decay_rate=0.0):
    mean = square = 0
    for t, g in enumerate(grads, 1):
        mean = beta * mean + (1 - beta) * g
        square = beta * square + (1 - beta) * g**2
        m, v = mean / (1 - beta**t), square / (1 - beta**t)
        # The weights of the gradients in m, squared and summed.
        weights = (1 - beta) * beta ** numpy.arange(t) / (1 - beta**t)
        rho = numpy.sum(weights**2)
        variance = (v - m**2) / (1 - rho) if t > 1 else 0
        x = x - eta * (lr * m**3 / (m**2 + rho * variance) + weight_decay_rate * x)
    return x


ADAM = {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3}
BOUND = {"final_lr": 0.05, "gamma": 0.5}
BLEND = {"lr": 0.1, "momentum": 0.7, "alpha": 0.9, "eps": 1e-3, "rmsprop_rate": 0.03}
CASES = [
    (O.SGD, sgd, {"lr": 0.1}, {}),
    (O.MomentumSGD, momentum_sgd, {"lr": 0.1, "momentum": 0.7}, {}),
    (O.NesterovAG, nesterov_ag, {"lr": 0.1, "momentum": 0.7}, {}),
    (O.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.7, "eps": 1e-3}, {}),
    (
        O.RMSprop,
        rmsprop,
        {"lr": 0.1, "alpha": 0.7, "eps": 1e-2, "eps_inside_sqrt": True},
        {},
    ),
    (O.Adam, adam, ADAM, {}),
    (O.Adam, adam, {**ADAM, "eta": 0.5, "weight_decay_rate": 0.1}, {}),
    (O.AdamW, adam, {**ADAM, "weight_decay_rate": 0.1}, {}),
    (O.AMSGrad, adam, ADAM, {"amsgrad": True}),
    (O.AdaBound, adam, {**ADAM, **BOUND}, {"adabound": True}),
    (O.AMSBound, adam, {**ADAM, **BOUND}, {"adabound": True, "amsgrad": True}),
    (O.CorrectedMomentumSGD, corrected_momentum_sgd, {"lr": 0.1, "momentum": 0.7}, {}),
    (
        O.RMSpropMomentumSGD,
        rmsprop_momentum_sgd,
        {**BLEND, "sgd_share": 0.5},
        {},
    ),
    (O.RMSpropMomentumSGD, rmsprop_momentum_sgd, {**BLEND, "sgd_share": 1.0}, {}),
    (O.AdaGrad, adagrad, {"lr": 0.1, "eps": 1e-3}, {}),
    (O.AdaDelta, adadelta, {"rho": 0.7, "eps": 1e-3}, {}),
    (O.SMORMS3, smorms3, {"lr": 0.1, "eps": 1e-3}, {}),
    (
        O.RMSpropGraves,
        rmsprop_graves,
        {"lr": 0.01, "alpha": 0.7, "momentum": 0.6, "eps": 1e-2},
        {},
    ),
    (O.MSVAG, msvag, {"lr": 0.1, "beta": 0.7}, {}),
    (
        O.MSVAG,
        msvag,
        {"lr": 0.1, "beta": 0.7, "eta": 0.5, "weight_decay_rate": 0.1},
        {},
    ),
]
