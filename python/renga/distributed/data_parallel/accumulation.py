"""Gradients of several batches, summed on a rank before they are reduced."""

from __future__ import annotations

from typing import Any


class Accumulation:
    """Sums the gradients of ``count`` batches, weighted by their samples.

    The sum is in units of the first batch that has samples, so that its gradients are
    not multiplied.
    """

    def __init__(self, count: int = 1) -> None:
        self._count = count
        self.reset()

    def reset(self) -> None:
        """Begins with the next batch."""
        self.batches = 0  # added so far
        self._samples = 0
        self._unit = 0  # samples of the first batch that has some
        self._is_counted = True  # whether the numbers of samples are known

    @property
    def is_last(self) -> bool:
        """Whether the next batch completes the sum."""
        return self.batches + 1 >= self._count

    def with_batch(self, samples: int | None) -> tuple[int | None, float]:
        """What the sum will be once another batch has been added to it.

        Returns:
            The samples of all batches, None if they are not known; and the factor by
            which the sum becomes a mean over them.
        """
        count = 1 if samples is None else samples
        total = self._samples + count
        share = (self._unit or count) / total if total else 1.0
        return (total if self._is_counted and samples is not None else None), share

    def add(self, loss: Any, samples: int | None, loss_scale: float | None) -> None:
        """Adds the gradients of a loss, a mean over ``samples``; of None, nothing.

        The parameters' gradients are cleared by the caller before the first batch.
        """
        is_only_batch = self._count == 1
        self.batches += 1
        self._is_counted = self._is_counted and samples is not None
        samples = 1 if samples is None else samples
        self._samples += samples
        self._unit = self._unit or samples
        if loss is None or (samples == 0 and not is_only_batch):
            return  # the mean of no samples is not a number
        if self._unit not in (0, samples):
            loss = loss * (samples / self._unit)
        loss.backward(loss_scale=loss_scale)
