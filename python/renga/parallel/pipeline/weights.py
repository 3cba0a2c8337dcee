"""Which versions of the weights a pipeline computes with.

While the backward pass of one micro-batch is on its way, later ones have been through
the forward pass already. So without a flush the weights change between a micro-batch's
passes, by ``delay`` updates. Each way to treat that is one class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from renga.core.configuration import no_backprop_mode
from renga.core.kept_gradients import KeptGradients
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.core.variable import Variable

Weights = Mapping[int, Variable]


class Flush:
    """The parameters themselves: no update comes between the passes of a micro-batch.

    With a schedule that does not flush, the weights of the backward pass are newer than
    those of the forward pass, and neither gradient nor prediction is corrected.

    Args:
        params: of this rank, initialized.
        optimizer: of these parameters, whose ``predict`` gives predicted weights.
        stage, stages: this rank's stage and their number.
        micro_batches: of a batch, after each of which the parameters are updated.
    """

    name = "flush"

    def __init__(
        self,
        params: Sequence[Parameter],
        optimizer: Optimizer | None,
        stage: int,
        stages: int,
        micro_batches: int,
    ) -> None:
        self._params = params
        self._optimizer: Any = optimizer
        self._stage = stage
        self._delay = stages - 1 - stage  # forward passes ahead of the backward pass
        self._micro_batches = micro_batches
        self._updates = 0
        self._aside = KeptGradients()

    def begin_batch(self) -> None:
        """Begins a batch: the user may have set the parameters since the last one."""

    def of_forward(self, i: int) -> Weights:
        """What to compute micro-batch ``i`` with, by the parameters' ids."""
        return {}

    def before_backward(self, i: int, weights: Weights, last: int | None) -> None:
        """Sets the weights for the backward pass of micro-batch ``i``.

        Args:
            i: the micro-batch.
            weights: those of its forward pass.
            last: the last micro-batch, if it is known.
        """

    def cleargrads(self) -> None:
        """Clears the gradients of the parameters."""
        for param in self._params:
            param.cleargrad()

    def set_gradients_aside(self) -> None:
        """Keeps gradients to which others will be added from what the program does."""
        self._aside.keep(self._params)
        self.cleargrads()

    def take_gradients_back(self) -> None:
        """Continues with the gradients that were set aside, if they were."""
        self._aside.give_back()

    def after_backward(self, weights: Weights) -> None:
        """Adds the gradients to those of the parameters."""
        for param in self._params:
            weight = weights.get(id(param))
            if weight is None or weight.grad_var is None:
                continue
            if param.grad_var is None:
                param.grad_var = weight.grad_var
            else:
                param.addgrad(weight)
            weight.cleargrad()

    def set_loss_scale(self, loss_scale: float | None) -> None:
        """Sets by what the gradients of the parameters are multiplied."""
        for param in self._params:
            param.loss_scale = loss_scale

    def after_update(self) -> None:
        """Takes note of an update."""
        self._updates += 1

    def _copies(self) -> Weights:
        with no_backprop_mode():
            copies = [(p, p.array.copy()) for p in self._params if p.is_initialized]
            return {
                id(param): Variable(array, requires_grad=param.requires_grad)
                for param, array in copies
            }


class Stash(Flush):
    """Both passes use the weights that were newest at the forward pass (PipeDream).

    Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training",
    SOSP 2019. A rank keeps a version for each micro-batch on its way.
    """

    name = "stash"

    _newest: Weights = {}  # another one takes its place, it does not change

    def begin_batch(self) -> None:
        self._newest = {}

    def of_forward(self, i: int) -> Weights:
        if self._delay > 0 and not self._newest:
            self._newest = self._copies()
        return self._newest

    def after_update(self) -> None:
        super().after_update()
        self._newest = {}


class TwoVersions(Flush):
    """Every stage computes batch t with the weights before the update of batch t - 1.

    So the update is W(t + 1) = W(t) - lr g(W(t - 1)) on all stages, and a rank keeps
    two versions (PipeDream-2BW: Narayanan et al., "Memory-efficient pipeline-parallel
    DNN training", ICML 2021). A batch needs at least as many micro-batches as there
    are stages.
    """

    name = "two_versions"

    _versions: dict[int, Weights] = {}  # others take their place

    def begin_batch(self) -> None:
        # Batches from this one on use the version of the update before, or newer ones.
        oldest = self._updates - 1
        self._versions = {t: w for t, w in self._versions.items() if t >= oldest}
        self._versions[self._updates] = self._copies()

    def of_forward(self, i: int) -> Weights:
        return self._versions[max(i // self._micro_batches - 1, 0)]


class _Predicted(Flush):
    """Base of those that predict into one more buffer for each parameter."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._buffers = self._copies()

    def of_forward(self, i: int) -> Weights:
        self._predict(self._forward_steps(i))
        return self._buffers

    def _forward_steps(self, i: int) -> int:
        raise NotImplementedError

    def _predict(self, steps: int) -> None:
        """Sets the buffers to the weights that are expected after further updates."""
        # The program may have deleted some of those that the stream began with.
        params = self._optimizer.target.params(include_uninit=False)
        outs = [self._buffers[id(param)].array for param in params]
        self._optimizer.predict(max(steps, 0), outs)


class SpecTrain(_Predicted):
    """Both passes use predicted weights, those of the end of the backward pass.

    Chen, Yang and Cheng, "Efficient and robust parallel DNN training through model
    parallelism on multi-GPU platform", arXiv 1809.02839. Stage k of N predicts
    k // 2 + N - k - 1 updates ahead in the forward pass and k // 2 in the backward
    pass; where the pipeline fills and drains there are fewer, which are counted.
    """

    name = "spectrain"

    def _forward_steps(self, i: int) -> int:
        return self._steps(i, i + self._stage // 2)

    def before_backward(self, i: int, weights: Weights, last: int | None) -> None:
        end = i + self._stage // 2
        self._predict(self._steps(i, end if last is None else min(end, last)))

    def _steps(self, i: int, end: int) -> int:
        """Updates from now until micro-batch ``end`` is complete, without that of i."""
        updates = (end + 1) // self._micro_batches
        if (i // self._micro_batches) < updates:
            updates -= 1
        return updates - self._updates


class PipeOptim(_Predicted):
    """The forward pass uses predicted weights, those of the backward pass.

    Guan et al., "PipeOptim: ensuring effective 1F1B schedule with optimizer-dependent
    weight prediction", arXiv 2312.00839. The backward pass uses the newest weights.
    Stage k of N predicts N - k - 1 updates ahead, as the paper says; the program that
    its authors publish predicts N - k.
    """

    name = "pipeoptim"

    def _forward_steps(self, i: int) -> int:
        return i // self._micro_batches - self._updates

    def before_backward(self, i: int, weights: Weights, last: int | None) -> None:
        self._predict(0)


KINDS: dict[str, type[Flush]] = {
    kind.name: kind for kind in (Flush, Stash, TwoVersions, SpecTrain, PipeOptim)
}
