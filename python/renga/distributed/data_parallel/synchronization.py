"""What ranks agree on before they reduce gradients."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy

from renga.distributed.data_parallel.sample_weighting import (
    UNKNOWN_SAMPLES,
    sample_weight,
)
from renga.distributed.data_parallel.sharded_optimizer import Eligibility
from renga.distributed.data_parallel.tracing import span

if TYPE_CHECKING:
    from renga.communicators import Communicator


class GradientSource(IntEnum):
    """Where a rank's gradients of one step come from."""

    LOSS = 0  # backward() of a loss function given to update()
    EXTERNAL = 1  # set by the caller before update()
    JOINED = 2  # zeros: the rank has no more data and has called join()


class SyncResult(NamedTuple):
    """What all ranks know once each has sent its request."""

    parameters_differ: bool  # a rank has parameters that the others do not have yet
    all_joined: bool  # no rank has more data
    external_gradients: bool  # some rank's gradients were set by the caller
    eligibility: Eligibility  # for sharded updates: of the least able rank
    weight: float  # of this rank's gradients in the mean over all ranks' samples


class SyncRequest:
    """This rank's contribution, sent to all ranks in the background.

    Args:
        comm: the communicator.
        has_new_parameters: whether this rank has parameters that are not synchronized.
        checksum: of parameters loaded from a file, which need not be broadcast if all
            ranks have loaded the same; 0 if none were loaded.
        samples: how many samples this rank's gradients come from; None if not known.
        source: of this rank's gradients.
        eligibility: of this rank for sharded updates.
        share: what the rank's gradients are multiplied by to be those of a mean.
    """

    def __init__(
        self,
        comm: Communicator,
        has_new_parameters: bool,
        checksum: int,
        samples: int | None,
        source: GradientSource,
        eligibility: Eligibility,
        share: float = 1.0,
    ) -> None:
        self._rank = comm.rank
        self._share = share
        samples = UNKNOWN_SAMPLES if samples is None else samples
        request = [has_new_parameters, checksum, samples, source, eligibility]
        self._work = comm.all_gather(numpy.array(request, numpy.int64), wait=False)
        self._result: SyncResult | None = None

    def poll(self) -> SyncResult | None:
        """The result if all ranks have sent their requests, None otherwise."""
        if self._result is None:
            if not self._work.test():
                return None
            self._result = self._combine(self._work.wait())
        return self._result

    def wait(self) -> SyncResult:
        """Blocks until all ranks have sent their requests."""
        if self._result is None:
            with span("wait for ranks", "waiting"):
                requests = self._work.wait()
            self._result = self._combine(requests)
        return self._result

    def _combine(self, requests: numpy.ndarray) -> SyncResult:
        changed, checksums, samples, sources, eligibilities = requests.T
        differ = bool(changed.any() or (checksums != checksums[0]).any())
        eligibility = Eligibility(int(eligibilities.min()))
        return SyncResult(
            parameters_differ=differ,
            all_joined=bool((sources == GradientSource.JOINED).all()),
            external_gradients=bool((sources == GradientSource.EXTERNAL).any()),
            # New parameters are not in shared memory yet.
            eligibility=Eligibility.NOT_POSSIBLE if differ else eligibility,
            weight=sample_weight(samples, self._rank) * self._share,
        )
