"""What ranks tell each other about an update before they take part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from renga.distributed.optimizers.shared_updates import UNABLE

# How a rank takes part: by a loss, by gradients that its user has computed, or, because
# it has no more data, by zeros.
LOSS, GIVEN, JOINED = range(3)


class News(NamedTuple):
    """What all ranks know after they have told each other."""

    changed: bool  # whether any of them has parameters that the others do not share
    over: bool  # whether none has more data
    given: bool  # whether gradients come from users
    stage: int  # of shared updates, of the rank that can do the least
    weight: (
        float  # of this rank's gradients, by which the mean over ranks is over samples
    )


class Notice:
    """This rank's news on their way to the others.

    Args:
        comm: the communicator.
        changed: whether this rank has parameters that it does not share yet.
        checksum: of parameters from a file, which need not be shared if all ranks have
            the same; 0 for others.
        samples: how many samples its gradients come from; None if nobody knows.
        way: LOSS, GIVEN or JOINED.
        stage: of this rank's shared updates.
    """

    def __init__(
        self,
        comm: Any,
        changed: bool,
        checksum: int,
        samples: int | None,
        way: int,
        stage: int,
    ) -> None:
        self._rank = comm.rank
        told = [changed, checksum, -1 if samples is None else samples, way, stage]
        self._work = comm.all_gather(numpy.array(told, numpy.int64), wait=False)

    def test(self) -> bool:
        """Whether all ranks have told."""
        return self._work.test()

    def wait(self) -> News:
        """Waits until all ranks have told."""
        changed, checksums, samples, ways, stages = self._work.wait().T
        differ = bool(changed.any() or (checksums != checksums[0]).any())
        if samples.min() < 0:  # somebody does not know: ranks with samples count alike
            samples = samples != 0
        weight = float(samples[self._rank] / max(samples.mean(), 1e-9))
        over = bool((ways == JOINED).all())
        given = bool((ways == GIVEN).any())
        # Whose parameters are new has nothing moved yet.
        stage = UNABLE if differ else int(stages.min())
        return News(differ, over, given, stage, weight)


def number_of_samples(args: Sequence[Any], kwds: Mapping[str, Any]) -> int | None:
    """The length, or that of the first axis, of the first argument that has one."""
    for x in (*args, *kwds.values()):
        if getattr(x, "ndim", 1) > 0 and hasattr(x, "__len__"):
            return len(x)
    return None
