"""What the ranks of a pipeline tell each other before a call that all have to make."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from renga.communicators import Communicator, Work
from renga.communicators.native import NativeWork
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.parallel.pipeline.schedule import rank_of_stage
from renga.utils.exceptions import describe

COMPLETION = "what completes them (a load, a copy, a save, drain)"
_CALLS = ("train_batch", "the model", COMPLETION)  # while batches are on their way
_SECONDS = 10.0  # for which a rank waits for others after a batch has failed

Settings = dict[int, list[str]]  # by the number of a parameter


class LostBatches(RuntimeError):
    """An earlier call has told that ranks do not go on together any more."""


class Failures:
    """Whether a batch has failed on this rank, and why later calls are refused.

    Attributes:
        has_failed: whether one has since messages were renewed.
        may_be_alone: whether one has since the last call that all ranks made; others
            may wait for what this rank has not sent.
    """

    def __init__(self) -> None:
        self.has_failed = self.may_be_alone = False
        self._reason = ""

    def refuse(self, reason: str) -> RuntimeError:
        """The error of a call after which all later ones are refused."""
        self._reason = self._reason or reason
        return RuntimeError(reason)

    def check(self) -> None:
        """Refuses a call.

        Raises:
            LostBatches: an earlier one has told why.
        """
        if self._reason:
            raise LostBatches(self._reason)

    def wait_alone(self, work: Work, call: str) -> numpy.ndarray:
        """The result of a collective in which all ranks take part, or no other one.

        Raises:
            RuntimeError: a batch has failed on this rank alone.
        """
        try:
            result: numpy.ndarray = work.wait(_SECONDS)
        except Exception as error:
            raise self.refuse(
                f"Pipeline: expected all ranks to call {call} after a batch has failed "
                f"on this one, got {describe(error)}: make the pipeline again"
            ) from error
        self.may_be_alone = False
        return result

    def wait_for_others(
        self, is_there: Callable[[float], bool], told: Callable[[], str]
    ) -> None:
        """Waits for what other ranks send or receive.

        Args:
            is_there: whether it is, within so many seconds.
            told: what other ranks have told of a batch that has failed there.

        Raises:
            RuntimeError: it does not come, and a batch has failed on another rank.
        """
        while not is_there(_SECONDS):
            # A rank on which a batch has failed finds out first that others wait.
            if told() and not is_there(2 * _SECONDS):
                raise self.refuse(
                    "Pipeline: expected messages of all stages, got none after a batch "
                    f"has failed {told()}: make the pipeline again"
                )


def completes(work: Work | NativeWork, seconds: float) -> bool:
    """Whether a communication in flight is complete within some seconds."""
    try:
        work.wait(seconds)
    except TimeoutError:
        return work.test()
    return True


def agree(
    comm: Communicator,
    call: str,
    text: str,
    numbers: Sequence[int],
    failures: Failures,
) -> list[list[int]]:
    """The numbers of all ranks, which have to make the same call; a short message.

    Args:
        comm: the ranks of a pipeline.
        call: the method that is called.
        text: of its arguments, what has to be the same on all ranks.
        numbers: of this rank.
        failures: of this rank.

    Returns:
        For each of the numbers, those of all ranks.

    Raises:
        RuntimeError: on every rank, if the calls differ; or if a batch has failed on
            this one alone.
    """
    failures.check()
    if comm.size == 1:
        return [[number] for number in numbers]
    digest = hashlib.blake2b(f"{call} {text}".encode(), digest_size=8).digest()
    own = numpy.array([numpy.frombuffer(digest, numpy.int64)[0], *numbers])
    if failures.may_be_alone:
        gathered = failures.wait_alone(comm.all_gather(own, wait=False), call)
    else:
        gathered = comm.all_gather(own)
    digests, *found = gathered.T
    if (digests == digests[0]).all():  # on all ranks, or on none
        return [each.tolist() for each in found]
    calls = comm.allgather_obj((call, text))
    names = [each for each, _ in calls]
    if len(set(names)) == 1:
        names = [f"{each} with {described}" for each, described in calls]
    raise RuntimeError(_difference(names))


class CallsOnTheWay:
    """Finds out that ranks make different calls while batches are on their way.

    Ranks are not in step then. So each tells the others what it calls, and waits for
    what they tell one call later; or at once, where the call needs all of them.

    Args:
        comm: the ranks of a pipeline.
        failures: of this rank.
        told: what other ranks have told of a batch that has failed there.
    """

    def __init__(
        self, comm: Communicator, failures: Failures, told: Callable[[], str]
    ) -> None:
        self._comm = comm
        self._failures = failures
        self._told = told
        self._pending: list[tuple[str, Work]] = []

    def tell(self, call: str, needs_all: bool) -> None:
        """Tells the other ranks of a call, one of ``_CALLS``.

        Args:
            call: that this rank makes.
            needs_all: whether it cannot begin before all ranks make it.

        Raises:
            RuntimeError: some make, or have made, another one; or batches are lost.
        """
        self._failures.check()
        needs_all |= self._failures.may_be_alone
        number = _CALLS.index(call)
        told = self._comm.all_reduce(numpy.array([number, -number]), "max", wait=False)
        self._pending.append((call, told))
        while len(self._pending) > (not needs_all):
            made, told = self._pending.pop(0)
            self._compare(made, *self._result(told, made))

    def _result(self, work: Work, call: str) -> Any:
        if self._failures.may_be_alone:
            return self._failures.wait_alone(work, call)
        is_there = functools.partial(completes, work)
        self._failures.wait_for_others(is_there, self._told)
        return work.wait()

    def _compare(self, call: str, most: int, least: int) -> None:
        others = {_CALLS[most], _CALLS[-least]} - {call}
        if others:
            raise self._failures.refuse(
                "Pipeline: expected every rank to call the same while batches are on "
                f"their way, got {call} on rank {self._comm.rank} and "
                f"{others.pop()} on another"
            )


def settings_of(params: Iterable[Parameter]) -> Settings:
    """What the update rules of parameters have set for themselves, by their order."""
    found = {}
    for i, param in enumerate(params):
        rule = param.update_rule
        if rule is None:
            continue
        own = {k: v for k, v in vars(rule.hyperparam).items() if k != "_parent"}
        settings = [f"{name} = {value}" for name, value in sorted(own.items())]
        settings += [f"hook {name}" for _, name, _ in rule.timed_hooks()]
        settings += [] if rule.enabled else ["disabled"]
        if settings:
            found[i] = settings
    return found


def require_known_to_owners(
    comm: Communicator,
    settings: Settings,
    before: Sequence[Settings],
    params: Sequence[Parameter],
) -> list[Settings]:
    """Checks that what a rank sets of a parameter, the rank that updates it sets, too.

    Every rank calls it.

    Args:
        comm: the ranks of a pipeline.
        settings: of this rank, by :func:`settings_of`.
        before: of all ranks at the last check; a rank that has left its own as they
            were may have others than the owner.
        params: of all stages.

    Returns:
        The settings of all ranks.

    Raises:
        RuntimeError: on every rank, if the owner of a parameter has not set the same.
    """
    all_settings = comm.allgather_obj(settings)
    for rank, found in enumerate(all_settings):
        for i, own in found.items():
            owner = rank_of_stage(params[i].stage, comm.size)
            others = all_settings[owner].get(i, [])
            is_new = own != before[rank].get(i)
            if is_new and not set(own) <= set(others):
                raise RuntimeError(
                    f"Pipeline: expected the update rule of {params[i].name} "
                    f"{params[i].shape} to be set on rank {owner}, which updates it, "
                    f"as on rank {rank}, got {', '.join(others) or 'nothing'} and "
                    f"{', '.join(own)}"
                )
    return all_settings


def _difference(calls: Sequence[str]) -> str:
    rank = next(i for i, each in enumerate(calls) if each != calls[0])
    return (
        f"Pipeline: expected every rank to call the same, got {calls[0]} on rank 0 and "
        f"{calls[rank]} on rank {rank}"
    )


def hyperparameters_of(optimizer: Optimizer) -> str:
    """The hyperparameters, the hooks and the loss scale of an optimizer, as text."""
    hyperparam = getattr(optimizer, "hyperparam", None)
    values = sorted(hyperparam.get_dict().items()) if hyperparam is not None else []
    hooks = [name for _, name, _ in optimizer.timed_hooks()]
    return f"{values}, hooks {hooks}, loss scale {optimizer.loss_scale}"
