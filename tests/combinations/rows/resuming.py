"""Rows that save, and go on with new processes."""

from __future__ import annotations

import numpy

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
