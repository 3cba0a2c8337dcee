"""Rows that save, and go on with new processes."""

from __future__ import annotations

import math

import numpy

from renga.optimizer import GradientMethod, UpdateRule
from tests.combinations.row import STEPS, Row


class Resumed(Row):
    """All ranks save and load."""

    name = "save and resume"
    phases = ((2, None), (STEPS, None))
    traits = frozenset({"resume"})


class ResumedAtOnce(Resumed):
    """All ranks save before the first step."""

    name = "save before the first update"
    traits = frozenset({"resume", "untrained"})
    phases = ((0, None), (STEPS, None))


class ResumedAlone(Resumed):
    """Rank 0 alone loads."""

    name = "save and resume, rank 0 alone"
    loads = "rank 0"
    traits = frozenset({"resume", "rank 0 loads", "rank 0 writes"})


class ResumedAfterJoin(Resumed):
    """All ranks join before they save."""

    name = "save and resume after join()"
    joins = True


class ResumedElsewhere(Resumed):
    """Another number of ranks loads."""

    name = "save and resume, other ranks"
    phases = ((2, None), (STEPS, 3))
    traits = frozenset({"resume", "other ranks"})


class ResumedFrozen(Resumed):
    """A link is frozen in both runs."""

    name = "save and resume with a frozen link"

    def start(self, run):
        for param in run.params("/a/"):
            param.update_rule.enabled = False


class NormalizedRule(UpdateRule):
    """A rule of the program, whose steps depend on the norm of the whole gradient."""

    def init_state(self, param):
        self.state["v"] = param.xp.zeros_like(param.array)

    def update_core(self, param):
        if param.grad is not None:
            norm = math.sqrt(float((param.grad**2).sum()))
            v = self.state["v"] = 0.5 * self.state["v"] + param.grad / (1 + norm)
            param.array -= self.hyperparam.lr * v


class Normalized(GradientMethod):
    """An optimizer of the program."""

    def __init__(self, lr):
        super().__init__()
        self.hyperparam.lr = lr

    def create_update_rule(self):
        return NormalizedRule(self.hyperparam)


class ResumedOwnRule(Resumed):
    """An optimizer of the program, whose states have to be loaded."""

    name = "save and resume, own update rule"
    traits = frozenset({"resume", "own optimizer"})

    def optimizer(self):
        return Normalized(0.1)


class ResumedFloat16(Resumed):
    """Parameters of float16 are updated through float32 copies, which are saved."""

    name = "save and resume, float16 updated in float32"
    dtype = numpy.float16
    tolerance = 2e-2

    def start(self, run):
        run.optimizer.use_fp32_update()

    def data(self, network, step, samples):
        x, t = super().data(network, step, samples)
        return x.astype(numpy.float16), t.astype(numpy.float16)


class ResumedAdam(Resumed):
    """Adam, whose states have to be loaded."""

    name = "save and resume, Adam"
    traits = frozenset({"resume", "own optimizer"})

    def optimizer(self):
        from renga.optimizers import Adam

        return Adam(0.02)
