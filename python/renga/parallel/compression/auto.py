"""The choice of a compressor by measurement."""

from __future__ import annotations

import numpy

from renga.communicators import Communicator
from renga.communicators.work import Work
from renga.parallel.compression.compressor import Compressor
from renga.parallel.compression.powersgd import PowerSGD
from renga.parallel.compression.quantization import Cast, OneBit
from renga.parallel.compression.sparsification import TopK
from renga.parallel.compression.state import Arrays, State, States

_CHOICE = "choice"
_ROUNDS = 3
# A compressor that loses more has to take so much less time than one that loses less:
# what is sent as it is can be hidden behind the backward pass, encoding cannot.
_MARGIN = 0.8


class Uncompressed(Compressor):
    """Sends gradients as they are."""

    def reduce(self, xs: Arrays, states: States, comm: Communicator) -> Work:
        work: Work = comm.all_reduce(xs, "sum", out=xs, wait=False)
        return work


class Auto(Compressor):
    """The fastest of no compression, bfloat16, PowerSGD(4), TopK(0.01) and OneBit.

    The first step sends gradients as they are, and shows how large their buckets are.
    In the second one, a large bucket is reduced in each way, with random numbers, three
    times. All ranks choose by the slowest rank's shortest time, and keep the choice, in
    resumed training, too. Networks on which compression does not pay get none.
    """

    shared_states = frozenset({_CHOICE}) | PowerSGD.shared_states

    def __init__(self) -> None:
        lossy = PowerSGD(4), TopK(0.01), OneBit()
        self._candidates = (Uncompressed(), Cast(), *lossy)
        # Choices are by rank: ranks that are threads may share this object.
        self._choices: dict[int, int] = {}
        # Each rank and parameter has the bytes of its bucket in the first step.
        self._bucket_bytes: dict[int, dict[str, int]] = {}

    @property
    def choice(self) -> Compressor | None:
        """The compressor in use; None before the second step."""
        choice = next(iter(self._choices.values()), None)
        return None if choice is None else self._candidates[choice]

    def reduce(self, xs: Arrays, states: States, comm: Communicator) -> Work:
        choice = self._choices.get(comm.rank)
        if choice is None:
            saved = states[0].get(_CHOICE)
            if saved is None and not self._is_typical(xs, states, comm.rank):
                return self._candidates[0].reduce(xs, states, comm)
            choice = self._measured(xs, comm) if saved is None else int(saved)
            self._choices[comm.rank] = choice
        for state in states:
            state[_CHOICE] = numpy.array(choice)
        return self._candidates[choice].reduce(xs, states, comm)

    def _is_typical(self, xs: Arrays, states: States, rank: int) -> bool:
        """Whether most gradients come in buckets about as large as this one.

        The first bucket is often small: the next parameter did not fit into it. Such
        messages show the latency of a network, and little of its bandwidth.
        """
        seen = self._bucket_bytes.setdefault(rank, {})
        size = sum(x.nbytes for x in xs)
        is_known = states[0].name in seen
        seen.update((state.name, size) for state in states)
        return is_known and 2 * size >= max(seen.values())

    def _measured(self, xs: Arrays, comm: Communicator) -> int:
        times = numpy.array([_seconds(c, xs, comm) for c in self._candidates])
        times = comm.all_reduce(times, "max")
        best = 0
        for i, seconds in enumerate(times):
            if seconds < _MARGIN * times[best]:
                best = i
        return best


def _seconds(compressor: Compressor, xs: Arrays, comm: Communicator) -> float:
    """The least of some rounds; the first ones warm up and make the states."""
    random = numpy.random.RandomState(comm.rank)
    gradients = [random.normal(size=x.shape).astype(numpy.float32) for x in xs]
    states = [State(str(i), comm.rank, comm.size) for i in range(len(xs))]
    seconds = []
    for _ in range(_ROUNDS):
        copies = [x.copy() for x in gradients]
        comm.barrier()
        begin = comm.clock
        compressor.reduce(copies, states, comm).wait()
        seconds.append(comm.clock - begin)
    return min(seconds)
