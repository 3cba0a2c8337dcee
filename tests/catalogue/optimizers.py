"""One row for each optimizer, with its published formula restated in NumPy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy

import renga
from renga import optimizers as O

from .row import listed

PUBLIC = {
    name
    for name, kind in vars(O).items()
    if isinstance(kind, type) and issubclass(kind, renga.GradientMethod)
}


@dataclasses.dataclass
class Optimizer:
    """All that the tests know of one optimizer.

    Attributes:
        name: The name in ``renga.optimizers``.
        formula: Takes an array, a list of gradients and hyperparameters, and returns
            the array after the updates, computed with NumPy alone in float64.
        values: Hyperparameters that the formula is compared for.
        fixed: Further arguments of the formula.
        options: Hyperparameters whose few updates change a model by much, in float16,
            too. Copies, files, ranks and devices are tested with them.
        step: Takes hyperparameters, the parameter, its gradient, the rule's state and
            the number of updates, and returns the next step that ``predict`` assumes.
            None says that the rule cannot predict.
        settled: For ``predict``: hyperparameters, and after how many updates by one
            gradient how many steps are predicted exactly.
        waits: Whether updates with a dynamic loss scale wait for a device.
    """

    name: str
    formula: Callable[..., Any]
    values: list[dict[str, Any]]
    fixed: dict[str, Any]
    options: dict[str, Any]
    step: Callable[..., Any] | None
    settled: tuple[dict[str, Any], int, int] | None
    waits: bool

    @property
    def kind(self) -> type[renga.GradientMethod]:
        return getattr(O, self.name)

    def make(self) -> renga.GradientMethod:
        """The optimizer with ``options``."""
        return self.kind(**self.options)

    def missing(self) -> list[str]:
        """The names of the fields that the row needs and lacks."""
        needed = ["values", "settled"] if self.step else ["values"]
        return [name for name in needed if not getattr(self, name)]


OPTIMIZERS: dict[str, Optimizer] = {}


def optimizer(
    name: str,
    formula: Callable[..., Any],
    *,
    values: Any,
    options: dict[str, Any],
    fixed: dict[str, Any] | None = None,
    step: Callable[..., Any] | None = None,
    settled: tuple[dict[str, Any], int, int] | None = None,
    waits: bool = False,
) -> None:
    """Adds a row."""
    if name in OPTIMIZERS:
        raise ValueError(f"{name} has two rows")
    OPTIMIZERS[name] = Optimizer(
        name, formula, listed(values), fixed or {}, options, step, settled, waits
    )


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
    alpha,
    beta1,
    beta2,
    eps,
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


def lamb(x, grads, alpha, beta1, beta2, eps, weight_decay_rate):
    m = v = 0.0
    for t, g in enumerate(grads, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        second = numpy.sqrt(v / (1 - beta2**t))
        r = m / (1 - beta1**t) / (second + eps) + weight_decay_rate * x
        norms = numpy.linalg.norm(x), numpy.linalg.norm(r)
        trust = norms[0] / norms[1] if min(norms) > 0 else 1.0
        x = x - alpha * trust * r
    return x


def velocity(values, x, grad, state, t):
    return state["v"]


def step_of_adam(values, x, grad, state, t):
    """As in Chainer, eps is added before the second moment is corrected for its bias."""
    bias = (1 - values["beta2"] ** t) ** 0.5 / (1 - values["beta1"] ** t)
    second = state.get("vhat", state["v"])
    rate = values["alpha"] * bias / (numpy.sqrt(second) + values["eps"])
    if "final_lr" in values:
        lower = values["final_lr"] * (1 - 1 / (values["gamma"] * t + 1))
        upper = values["final_lr"] * (1 + 1 / (values["gamma"] * t))
        rate = numpy.clip(rate, lower, upper)
    decay = values.get("weight_decay_rate", 0)
    return -values.get("eta", 1) * (rate * state["m"] + decay * x)


ADAM = {"alpha": 0.02, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3}
BOUND = {"final_lr": 0.05, "gamma": 0.5}
BLEND = {"lr": 0.1, "momentum": 0.7, "alpha": 0.9, "eps": 1e-3, "rmsprop_rate": 0.03}
MOMENTUM = {"lr": 0.1, "momentum": 0.7}

optimizer(
    "SGD",
    sgd,
    values={"lr": 0.1},
    options={"lr": 0.1},
    step=lambda values, x, grad, state, t: -values["lr"] * grad,
    settled=({"lr": 0.1}, 1, 7),
)
optimizer(
    "MomentumSGD",
    momentum_sgd,
    values=MOMENTUM,
    options={"lr": 0.1},
    step=velocity,
    settled=(MOMENTUM, 120, 7),
)
optimizer(
    "NesterovAG",
    nesterov_ag,
    values=MOMENTUM,
    options={"lr": 0.1},
    step=velocity,
    settled=(MOMENTUM, 120, 7),
)
optimizer(
    "RMSprop",
    rmsprop,
    values=[
        {"lr": 0.1, "alpha": 0.7, "eps": 1e-3},
        {"lr": 0.1, "alpha": 0.7, "eps": 1e-2, "eps_inside_sqrt": True},
    ],
    options={"lr": 0.1, "eps": 1e-3},
)
optimizer(
    "Adam",
    adam,
    values=[ADAM, {**ADAM, "eta": 0.5, "weight_decay_rate": 0.1}],
    options={"alpha": 0.1},
    step=step_of_adam,
    settled=(ADAM, 400, 7),  # The moments settle as fast as beta^t vanishes.
)
optimizer(
    "AdamW",
    adam,
    values={**ADAM, "weight_decay_rate": 0.1},
    options={"alpha": 0.1, "weight_decay_rate": 0.01},
    step=step_of_adam,
    settled=({**ADAM, "weight_decay_rate": 0.01}, 400, 1),
)
optimizer(
    "AMSGrad",
    adam,
    values=ADAM,
    fixed={"amsgrad": True},
    options={"alpha": 0.1},
    step=step_of_adam,
    settled=(ADAM, 400, 7),
)
optimizer(
    "AdaBound",
    adam,
    values={**ADAM, **BOUND},
    fixed={"adabound": True},
    options={"alpha": 0.1},
    step=step_of_adam,
    settled=({**ADAM, "final_lr": 0.05, "gamma": 1e13}, 400, 7),
    waits=True,
)
optimizer(
    "AMSBound",
    adam,
    values={**ADAM, **BOUND},
    fixed={"adabound": True, "amsgrad": True},
    options={"alpha": 0.1},
    step=step_of_adam,
    settled=({**ADAM, "final_lr": 0.05, "gamma": 1e13}, 400, 7),
    waits=True,
)
optimizer(
    "CorrectedMomentumSGD",
    corrected_momentum_sgd,
    values=MOMENTUM,
    options={"lr": 0.1},
)
optimizer(
    "RMSpropMomentumSGD",
    rmsprop_momentum_sgd,
    values=[{**BLEND, "sgd_share": 0.5}, {**BLEND, "sgd_share": 1.0}],
    options={"lr": 0.1},
)
optimizer("AdaGrad", adagrad, values={"lr": 0.1, "eps": 1e-3}, options={"lr": 0.1})
optimizer("AdaDelta", adadelta, values={"rho": 0.7, "eps": 1e-3}, options={})
optimizer("SMORMS3", smorms3, values={"lr": 0.1, "eps": 1e-3}, options={"lr": 0.1})
optimizer(
    "RMSpropGraves",
    rmsprop_graves,
    values={"lr": 0.01, "alpha": 0.7, "momentum": 0.6, "eps": 1e-2},
    options={"lr": 0.1},
)
optimizer(
    "MSVAG",
    msvag,
    values=[
        {"lr": 0.1, "beta": 0.7},
        {"lr": 0.1, "beta": 0.7, "eta": 0.5, "weight_decay_rate": 0.1},
    ],
    options={"lr": 0.1},
    waits=True,
)
optimizer(
    "LAMB",
    lamb,
    values=[
        {
            "alpha": 0.01,
            "beta1": 0.8,
            "beta2": 0.9,
            "eps": 1e-6,
            "weight_decay_rate": 0.1,
        },
        {
            "alpha": 0.1,
            "beta1": 0.9,
            "beta2": 0.99,
            "eps": 1e-3,
            "weight_decay_rate": 0.0,
        },
    ],
    options={"alpha": 0.1},
    waits=True,
)
