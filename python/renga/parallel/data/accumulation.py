"""Gradients of several batches, summed on a rank before they are reduced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from renga import _core
from renga.core.kept_gradients import KeptGradients, add_to_gradient, gradients_apart
from renga.core.link import Link
from renga.core.variable import Variable, check_loss
from renga.parallel.data.sample_weighting import GradientWeight


class Accumulation:
    """Sums the gradients of ``count`` batches, weighted by their samples."""

    def __init__(self, count: int = 1) -> None:
        self._count = count
        self.reset()

    def reset(self) -> None:
        """Begins with the next batch."""
        self.batches = 0  # added so far
        self._samples = 0
        self._total = 0.0  # of the losses' factors
        self._is_counted = True  # whether the numbers of samples are known
        self._sums = KeptGradients()

    def keep_sums(self, model: Link) -> None:
        """Keeps the sums, which the program may clear before the next batch."""
        self._sums.keep(model.params(include_uninit=False))

    def take_sums(self) -> None:
        """Continues with the sums that were kept, if some were."""
        self._sums.give_back()

    def begin_again(self, kept: int, is_same: bool) -> None:
        """Prepares for the last batch's pass by other parameters.

        Args:
            kept: the number of batches before it.
            is_same: whether their sum still counts: the last batch has not been added,
                and parameters that they have used will not be replaced.

        Raises:
            RuntimeError: if there is a sum that no longer counts.
        """
        if kept == 0:
            self.reset()
        elif not is_same:
            raise RuntimeError(
                f"update: expected the same parameters on all ranks until {kept + 1} "
                "batches are accumulated, got a rank that has loaded or made others "
                "since the last update: do so on all ranks"
            )

    @property
    def is_last(self) -> bool:
        """Whether the next batch completes the sum."""
        return self.batches + 1 >= self._count

    def with_batch(self, samples: int | None, unit: float) -> GradientWeight:
        """The weight of the sum once another batch has been added to it."""
        is_counted = self._is_counted and samples is not None
        total = self._samples + (samples or 0)
        return GradientWeight(
            total if is_counted else None, unit, self._total + _factor(samples, unit)
        )

    def add(
        self,
        model: Link,
        loss: Variable,
        samples: int | None,
        unit: float,
        loss_scale: float | None,
    ) -> None:
        """Adds the gradients of a loss, a mean over ``samples``.

        The parameters' gradients are cleared by the caller before the first batch.

        Args:
            model: whose parameters are trained.
            loss: of a batch; None if there are no samples.
            samples: in the batch; None if that is not known.
            unit: the samples of a loss that is not multiplied.
            loss_scale: what the gradients are multiplied by; None for nothing.
        """
        factor = _factor(samples, unit)
        self.batches += 1
        self._is_counted = self._is_counted and samples is not None
        self._samples += samples or 0
        self._total += factor
        if loss is None and samples == 0:
            return
        check_loss("update", loss)
        if factor != 1 and (loss.size == 1 or loss.grad is not None):
            first = loss.grad
            if first is None:
                first = loss.xp.full_like(loss.array, loss_scale or 1.0)
            loss.grad = loss.xp.asarray(first * first.dtype.type(factor))
        is_weighted = factor not in (0, 1)
        with (
            _only_params_weighted(model, loss, factor)
            if is_weighted
            else contextlib.nullcontext()
        ):
            loss.backward(loss_scale=loss_scale)


def _factor(samples: int | None, unit: float) -> float:
    return 1.0 if samples is None else samples / unit


@contextlib.contextmanager
def of_other_losses(model: Link) -> Iterator[None]:
    """A block that adds to a model's gradients what losses of other ranks give.

    The backward pass of a batch of which no sample counts runs in it, with a gradient
    of zero. Other ranks may take part in the pass: where their losses depend on this
    batch, as by common statistics, they give parameters gradients here. The mean of no
    samples need not be a number, nor its gradients: then none are added.
    """
    with gradients_apart([*model.params(include_uninit=False)]) as found:
        yield
    found = [(param, grad) for param, grad in found if (grad != 0).any()]
    if all(param.xp.isfinite(grad).all() for param, grad in found):
        for param, grad in found:
            add_to_gradient(param, grad)


@contextlib.contextmanager
def _only_params_weighted(model: Link, loss: Variable, factor: float) -> Iterator[None]:
    """A block with the backward pass of a loss times ``factor``.

    Leaves that are no parameters of the model get the gradient of the loss itself.
    """
    own = {param.node for param in model.params(include_uninit=False)}
    nodes = [node for node in _core.leaves_before([loss]) if node not in own]
    leaves = [node.get_variable() for node in nodes if node.is_in_python]
    with gradients_apart(leaves) as found:
        yield
    for leaf, grad in found:
        grad /= factor
        add_to_gradient(leaf, grad)
