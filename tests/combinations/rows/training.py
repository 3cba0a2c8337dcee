"""Rows about optimizers, their hooks, and what a step is."""

from __future__ import annotations

import contextlib
import math

import numpy

import renga
import renga.functions as F
from renga import optimizer_hooks, optimizers
from renga.optimizer import GradientMethod, UpdateRule
from renga.training.extensions import ExponentialMovingAverage, ParameterStatistics
from tests.combinations.row import Row


class Adam(Row):
    """Adam."""

    name = "Adam"
    traits = frozenset({"own optimizer"})

    def optimizer(self):
        return optimizers.Adam(0.02)


class AdamW(Row):
    """Adam with decoupled weight decay and AMSGrad."""

    name = "AdamW with AMSGrad"
    traits = frozenset({"own optimizer"})

    def optimizer(self):
        return optimizers.Adam(0.02, weight_decay_rate=0.1, amsgrad=True)


class Lamb(Row):
    """LAMB, whose steps depend on norms of whole parameters."""

    name = "LAMB"
    traits = frozenset({"own optimizer"})

    def optimizer(self):
        return optimizers.LAMB(0.02)


class RateLater(Row):
    """The learning rate changes on the way."""

    name = "rate changed on the way"

    def before(self, run, step):
        if step in (2, 3):
            name = "alpha" if hasattr(run.optimizer, "alpha") else "lr"
            setattr(run.optimizer, name, 0.5 * getattr(run.optimizer, name))


class Decay(Row):
    """Weight decay from the first update on."""

    name = "weight decay"
    traits = frozenset({"hooks"})

    def start(self, run):
        run.optimizer.add_hook(optimizer_hooks.WeightDecay(0.05))


class DecayLater(Decay):
    """Weight decay after two updates."""

    name = "weight decay, later"

    def start(self, run):
        pass

    def before(self, run, step):
        if step == 2:
            run.optimizer.add_hook(optimizer_hooks.WeightDecay(0.05))


class DecayRemoved(Decay):
    """Weight decay until three updates have been made."""

    name = "weight decay, removed later"

    def before(self, run, step):
        if step == 3:
            run.optimizer.remove_hook("WeightDecay")


class Clipping(Row):
    """The norm of all gradients is clipped from the first update on."""

    name = "gradient clipping"
    traits = frozenset({"hooks", "clipping"})

    def start(self, run):
        run.optimizer.add_hook(optimizer_hooks.GradientClipping(0.2))


class ClippingLater(Clipping):
    """The norm of all gradients is clipped after two updates."""

    name = "gradient clipping, later"

    def start(self, run):
        pass

    def before(self, run, step):
        if step == 2:
            run.optimizer.add_hook(optimizer_hooks.GradientClipping(0.2))


class OwnClipping(Row):
    """A hook of the program clips the norm of all gradients."""

    name = "own hook of all gradients"
    traits = frozenset({"hooks", "own hook of all"})

    def start(self, run):
        run.optimizer.add_hook(clip_all)


class OwnClippingOfEach(Row):
    """A hook of the program clips the norm of each parameter's gradient."""

    name = "own hook of each gradient"
    traits = frozenset({"hooks"})

    def start(self, run):
        run.optimizer.add_hook(ClipEach())


def clip_all(optimizer):
    """Shortens the gradients to a norm of 0.2, and all values by a thousandth."""
    params = list(optimizer.target.params())
    squares = sum(float((param.grad**2).sum()) for param in params)
    for param in params:
        param.grad *= min(1.0, 0.2 / math.sqrt(squares))
        param.array *= 0.999


class OwnRates(Row):
    """A hook of the program changes the learning rate in each update."""

    name = "own hook that changes the rate"
    traits = frozenset({"hooks", "momentum"})

    def start(self, run):
        run.optimizer.add_hook(lower_rate)


def lower_rate(optimizer):
    optimizer.lr = 0.1 / (1 + optimizer.t)


class ReplacingRule(UpdateRule):
    """A rule of the program that gives the parameter another array."""

    def init_state(self, param):
        self.state["v"] = param.xp.zeros_like(param.array)

    def update_core(self, param):
        if param.grad is not None:
            self.state["v"] = 0.5 * self.state["v"] + param.grad
            param.array = param.array - self.hyperparam.lr * self.state["v"]


class Replacing(GradientMethod):
    """An optimizer of the program."""

    def __init__(self, lr):
        super().__init__()
        self.hyperparam.lr = lr

    def create_update_rule(self):
        return ReplacingRule(self.hyperparam)


class OwnReplacing(Row):
    """An optimizer of the program whose updates make new arrays."""

    name = "own update rule that makes arrays"
    traits = frozenset({"own optimizer"})

    def optimizer(self):
        return Replacing(0.1)


class ClipEach:
    """Shortens each gradient to a norm of 0.1."""

    name = "ClipEach"
    call_for_each_param = True

    def __call__(self, rule, param):
        norm = math.sqrt(float((param.grad**2).sum()))
        param.grad = param.grad * (0.1 / max(norm, 0.1))


class Penalty(Row):
    """The loss has the norm of the gradients of the inputs."""

    name = "gradient penalty"

    def loss(self, model, x, t):
        x = renga.Variable(x)
        y = model(x)
        (gx,) = renga.grad([F.sum(y)], [x], enable_double_backprop=True)
        return F.mean_squared_error(y, t) + 0.1 * F.mean(gx**2)


class ParameterPenalty(Row):
    """The loss has the norm of gradients with respect to the parameters."""

    name = "penalty on gradients of parameters"

    def penalty(self, model, x):
        params = [param for _, param in sorted(model.namedparams())]
        cubes = sum(F.sum(param**3) for param in params)
        found = renga.grad([cubes], params, enable_double_backprop=True)
        return 0.01 * sum(F.sum(gx**2) for gx in found)


class TwoBackwardPasses(Row):
    """Gradients of two losses are added up by hand, then used."""

    name = "accumulation by two backward passes"
    traits = frozenset({"gradients by hand"})

    def update(self, run, x, t, index):
        run.program.cleargrads()
        loss = self.loss_function(run.program)
        for factor in (0.25, 0.75):
            args, kwargs = self.arguments(x, t)
            (factor * loss(*args, **kwargs)).backward()
        run.update()


class NotCleared(Row):
    """Gradients are cleared before every second update, to which they add up."""

    name = "gradients added up over updates"
    traits = frozenset({"gradients by hand", "gradients of before"})

    def update(self, run, x, t, index):
        if run.step % 2 == 0:
            run.program.cleargrads()
        args, kwargs = self.arguments(x, t)
        self.loss_function(run.program)(*args, **kwargs).backward()
        run.update()


class WrittenBefore(Row):
    """The program writes gradients before an update by a loss, which clears them."""

    name = "gradients written before an update by a loss"

    def update(self, run, x, t, index):
        run.model.cleargrads()
        for param in run.params():
            if param.is_initialized:
                param.grad = numpy.full_like(param.array, numpy.nan)
        super().update(run, x, t, index)


class GradientsByHand(Row):
    """Gradients are set by hand, from ``renga.grad``."""

    name = "gradients of renga.grad"
    traits = frozenset({"gradients by hand"})

    def update(self, run, x, t, index):
        args, kwargs = self.arguments(x, t)
        run.program.cleargrads()
        loss = self.loss_function(run.program)(*args, **kwargs)
        params = list(run.program.params())
        for param, grad in zip(params, renga.grad([loss], params)):
            param.grad = None if grad is None else grad.array
        run.update()


class TwoNetworks(Row):
    """Two networks with two optimizers: the second one works on the first's output."""

    name = "two networks with two optimizers"
    networks = 2
    updates = 2
    traits = frozenset({"networks in one loss"})

    def update(self, run, x, t, index):
        def lossfun(x, t):
            return self.loss([each.program for each in run.trained], x, t, index)

        run.update(lossfun, x, t, which=index)

    def loss(self, models, x, t, index):
        first, second = models
        y = first(x) if index == 0 else first(x).array
        # This is the mean of each sample alone: the loss is a mean over samples,
        # however ranks cut them.
        mean = F.mean(y, axis=tuple(range(1, x.ndim)), keepdims=True)
        scores = second(x * F.broadcast_to(mean, x.shape) if index == 0 else x)
        loss = F.mean_squared_error(scores, t) + F.mean_squared_error(y, t)
        renga.report({"loss": loss})
        return loss


class Statistics(Row):
    """An extension reports statistics of a link's parameters in each step."""

    name = "statistics of parameters"

    def start(self, run):
        run.statistics = ParameterStatistics(
            run.program.b,
            {"squares": lambda x: (x**2).sum(), "largest": numpy.max},
            report_grads=False,
            trigger=lambda trainer: True,
        )

    def after(self, run, step):
        observation = {}
        with renga.Reporter().scope(observation):
            run.statistics(None)
        run.observed += [float(observation[key]) for key in sorted(observation)]


class MovingAverage(Row):
    """A moving average of the parameters."""

    name = "moving average"
    traits = frozenset({"own objects"})

    def start(self, run):
        run.saved["average"] = ExponentialMovingAverage(run.model, 0.5)

    def after(self, run, step):
        run.saved["average"](None)


class TargetNetwork(Row):
    """A serial network gets the parameters of the model now and then."""

    name = "copyparams into a serial model"

    def start(self, run):
        run.target = self.network(run.kind, 50)
        self.each("build", run.target)

    def before(self, run, step):
        if step in (2, 4):
            with run.column.saving(run, is_last=False):
                run.target.copyparams(run.model)

    def after(self, run, step):
        if step >= 2:
            x, _ = self.data(self.network_class(run.kind), 70 + step, 4)
            with renga.using_config("train", False), renga.no_backprop_mode():
                run.observed.append(float(numpy.mean(run.target(x).array ** 2)))


class Evaluated(Row):
    """The model is evaluated between updates."""

    name = "evaluation between updates"

    def after(self, run, step):
        network = self.network_class(run.kind)
        x, _ = self.data(network, 70 + step, 4)
        run.evaluate(x)


class Raising(Row):
    """One rank raises an exception of the program's own."""

    name = "an exception on one rank"
    raises = "Broken.*sample 3 of step 2 cannot be read"

    def update(self, run, x, t, index):
        if run.is_first and run.step == 2:
            raise Broken(3, step=2)
        super().update(run, x, t, index)


class Repeated(Row):
    """A loss function raises, and the loop makes that step again."""

    name = "a loss that raises, and is tried again"

    def update(self, run, x, t, index):
        if run.step == 2:
            args, kwargs = self.arguments(x, t)
            with contextlib.suppress(Broken):
                run.update(self.broken_loss(run.program), *args, **kwargs)
        super().update(run, x, t, index)

    def broken_loss(self, model):
        def lossfun(*args, **kwargs):
            self.whole_loss(model, *self.inputs(*args, **kwargs))
            raise Broken(3, step=2)

        return lossfun


class Broken(Exception):
    """An exception whose arguments are not its text."""

    def __init__(self, sample, *, step):
        super().__init__(f"sample {sample} of step {step} cannot be read")


class Noise(Row):
    """A hook adds noise to the gradients."""

    name = "gradient noise"
    traits = frozenset({"hooks", "random"})

    def start(self, run):
        numpy.random.seed(0)
        run.optimizer.add_hook(optimizer_hooks.GradientNoise(0.1))
