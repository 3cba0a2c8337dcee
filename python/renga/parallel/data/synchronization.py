"""What ranks agree on before they reduce gradients."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy

from renga.communicators import Communicator
from renga.core.configuration import config
from renga.parallel.data.sample_weighting import UNKNOWN_SAMPLES, GradientWeight
from renga.parallel.data.tracing import span


class GradientSource(IntEnum):
    """Where a rank's gradients of one step come from."""

    LOSS = 0  # backward() of a loss function given to update()
    EXTERNAL = 1  # set by the caller before update()
    JOINED = 2  # zeros: the rank has no more data and has called join()


class Eligibility(IntEnum):
    """Whether a rank can take part in sharded updates; the least able one decides."""

    NOT_POSSIBLE = 0
    POSSIBLE = 1  # once its arrays have been moved into shared memory
    READY = 2


class SyncResult(NamedTuple):
    """What all ranks know once each has sent its request."""

    parameters_differ: bool  # a rank has parameters that the others do not have yet
    have_loaded: bool  # a rank has loaded parameters since the last step
    settings_differ: bool  # of the optimizers
    sources: tuple[int, ...]  # GradientSource, by rank
    eligibility: Eligibility  # for sharded updates: of the least able rank
    debugs: bool  # all ranks are in debug mode
    mean_samples: float | None  # of all ranks; None if a rank does not know its own
    weight: float  # of this rank's gradients in the mean over all ranks' samples
    have_empty_batches: bool  # a rank differentiates a loss of no samples

    @property
    def must_wait(self) -> bool:
        """Whether gradients are not reduced before all ranks' backward passes end.

        Because there is something to agree on before, or because a rank without samples
        takes part in the collectives of its backward pass, but has no gradients.
        """
        differ = self.parameters_differ or self.settings_differ
        return differ or self.have_empty_batches

    @property
    def all_joined(self) -> bool:
        """Whether no rank has more data."""
        return set(self.sources) == {GradientSource.JOINED}

    @property
    def joined(self) -> list[bool]:
        """By rank, whether it has no more data."""
        return [source == GradientSource.JOINED for source in self.sources]

    @property
    def external_gradients(self) -> bool:
        """Whether some rank's gradients were set by the caller."""
        return GradientSource.EXTERNAL in self.sources


class SyncRequest:
    """This rank's contribution, sent to all ranks in the background.

    Args:
        comm: the communicator.
        has_new_parameters: whether this rank has parameters that are not synchronized.
        checksum: of parameters loaded from a file, which need not be broadcast if all
            ranks have loaded the same; 0 if none were loaded.
        settings: a fingerprint of the optimizer's settings.
        source: of this rank's gradients.
        eligibility: of this rank for sharded updates.
        weight: of this rank's gradients.
    """

    def __init__(
        self,
        comm: Communicator,
        has_new_parameters: bool,
        checksum: int,
        settings: int,
        source: GradientSource,
        eligibility: Eligibility,
        weight: GradientWeight,
    ) -> None:
        self._rank = comm.rank
        self._weight = weight
        samples = UNKNOWN_SAMPLES if weight.samples is None else weight.samples
        self.has_new_parameters = has_new_parameters
        flags = has_new_parameters | (config.debug << 1)
        request = [flags, checksum, settings, samples, source, eligibility]
        self._work = comm.all_gather(numpy.array(request, numpy.int64), wait=False)
        self._result: SyncResult | None = None

    def wait(self) -> SyncResult:
        """Blocks until all ranks have sent their requests."""
        if self._result is None:
            with span("wait for ranks", "waiting"):
                requests = self._work.wait()
            self._result = self._combine(requests)
        return self._result

    def _combine(self, requests: numpy.ndarray) -> SyncResult:
        flags, checksums, settings, samples, sources, eligibilities = requests.T
        differ = bool((flags & 1).any() or (checksums != checksums[0]).any())
        eligibility = Eligibility(int(eligibilities.min()))
        is_known = bool(samples.min() >= 0)
        is_own = sources[self._rank] == GradientSource.EXTERNAL and not is_known
        are_empty = (samples == 0) & (sources == GradientSource.LOSS)
        return SyncResult(
            parameters_differ=differ,
            have_loaded=bool(checksums.any()),
            settings_differ=bool((settings != settings[0]).any()),
            sources=tuple(sources.tolist()),
            # New parameters are not in shared memory yet.
            eligibility=Eligibility.NOT_POSSIBLE if differ else eligibility,
            debugs=bool((flags > 1).all()),
            mean_samples=float(samples.mean()) if is_known else None,
            weight=1.0 if is_own else self._weight.factor(samples, self._rank),
            have_empty_batches=bool(are_empty.any()),
        )
