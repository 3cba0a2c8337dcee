"""Rows about what is done to single parameters."""

from __future__ import annotations

import io

import numpy

import renga
from renga.serializers import load_npz, save_npz
from tests.combinations.networks import Drawn
from tests.combinations.row import STEPS, Row


class Frozen(Row):
    """A link is frozen before the first update."""

    name = "frozen before the first update"

    def start(self, run):
        for param in run.params("/a/"):
            param.update_rule.enabled = False


class FrozenLink(Row):
    """``disable_update`` of a link before the first update."""

    name = "link.disable_update()"

    def start(self, run):
        run.program.a.disable_update()


class FrozenLater(Row):
    """A link is frozen after two steps, and trains again after two more."""

    name = "frozen and unfrozen later"

    def before(self, run, step):
        if step in (2, 4):
            for param in run.params("/a/"):
                param.update_rule.enabled = step == 4


class OwnRate(Row):
    """A parameter has its own learning rate."""

    name = "rate of one parameter"

    def start(self, run):
        for param in run.params("/a/W"):
            param.update_rule.hyperparam.lr = 0.01


class OwnRateLater(Row):
    """A parameter gets its own learning rate on the way."""

    name = "rate of one parameter, later"

    def before(self, run, step):
        if step == 2:
            for param in run.params("/a/W"):
                param.update_rule.hyperparam.lr = 0.01


class NewRule(Row):
    """A parameter gets a new update rule on the way, which has no state yet."""

    name = "update rule replaced"

    def before(self, run, step):
        if step == 2:
            for param in run.params("/b/W"):
                param.update_rule = run.optimizer.create_update_rule()


class OwnMomentum(Row):
    """A parameter has another hyperparameter of its own."""

    name = "hyperparameter of one parameter"
    traits = frozenset({"momentum"})

    def start(self, run):
        for param in run.params("/b/W"):
            param.update_rule.hyperparam.momentum = 0.5


class WithoutGradient(Row):
    """A parameter needs no gradient from the beginning."""

    name = "parameter without gradient"

    def build(self, model):
        model.b.W.requires_grad = False


class OwnHook(Row):
    """A parameter's update rule has a hook."""

    name = "hook of one parameter"
    traits = frozenset({"hooks"})

    def start(self, run):
        for param in run.params("/b/W"):
            param.update_rule.add_hook(shrink)


def shrink(rule, param):
    param.grad += 0.1 * param.array


class LowRank(Row):
    """A link hook trains two small matrices in place of a weight."""

    name = "LoRA"

    def build(self, model):
        model.b.add_hook(renga.link_hooks.LoRA(2, 3))
        Drawn(7)(model.b.W_A.array)


class ScaledByHand(Row):
    """Weights are changed in place between updates."""

    name = "weights changed in place"
    traits = frozenset({"by hand"})

    def before(self, run, step):
        if step in (0, 2):
            for param in run.params("/b/W"):
                param.array[...] *= 0.5


class ReplacedByHand(Row):
    """Weights are replaced by another array between updates."""

    name = "weights replaced"
    traits = frozenset({"by hand"})

    def before(self, run, step):
        if step == 2:
            for param in run.params("/b/W"):
                param.array = param.array * 0.5


class HeldArray(Row):
    """The program keeps an array from before the first update, and writes into it."""

    name = "array of before the first update changed in place"
    traits = frozenset({"by hand"})

    def start(self, run):
        run.held = [param.array for param in run.params("/b/W")]

    def before(self, run, step):
        if step == 2:
            for array in run.held:
                array[...] *= 0.5


class Loaded(Row):
    """A file of a serial model is loaded into the model between updates."""

    name = "weights loaded between updates"

    def before(self, run, step):
        if step == 2:
            file = io.BytesIO()
            save_npz(file, self.other(run))
            file.seek(0)
            load_npz(file, run.model)

    def other(self, run):
        """A serial model with other weights."""
        model = self.network(run.kind, 50)
        self.each("build", model)
        if any(param.array is None for param in model.params()):
            with renga.using_config("train", False), renga.no_backprop_mode():
                model(self.data(type(model), 0, 4)[0])
        return model


class Copied(Loaded):
    """``copyparams`` from a serial model between updates."""

    name = "copyparams between updates"

    def before(self, run, step):
        if step == 2:
            run.model.copyparams(self.other(run))


class CopiedFirst(Copied):
    """``copyparams`` from a serial model before the first update."""

    name = "copyparams before the first update"

    def before(self, run, step):
        if step == 0:
            run.model.copyparams(self.other(run))


class RankZeroLoads(Loaded):
    """Rank 0 alone loads weights before the first update."""

    name = "rank 0 alone loads weights first"
    traits = frozenset({"rank 0 writes"})

    def before(self, run, step):
        if step == 0 and run.is_first:
            run.model.copyparams(self.other(run))


class RankZeroLoadsLater(Loaded):
    """Rank 0 alone loads weights between updates."""

    name = "rank 0 alone loads weights later"
    traits = frozenset({"rank 0 writes", "rank 0 writes later"})

    def before(self, run, step):
        if run.is_first:
            super().before(run, step)


class Norms(Row):
    """The loop reads norms of gradients that it has set aside."""

    name = "gradients are read after the update"

    def after(self, run, step):
        for param in run.params() if step == STEPS - 1 else ():
            if param.grad is not None:
                assert numpy.isfinite(param.grad).all()
