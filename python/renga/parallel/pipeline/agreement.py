"""What the ranks of a pipeline tell each other before a call that all have to make."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from renga.communicators import Communicator, Work
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.parallel.pipeline.schedule import rank_of_stage
from renga.utils.exceptions import describe

COMPLETION = "what completes them (a load, a copy, a save, drain)"
_CALLS = ("train_batch", "the model", COMPLETION)  # while batches are on their way
_SECONDS = 10.0  # for which a rank waits for the others after a batch has failed on it

Settings = dict[int, list[str]]  # by the number of a parameter


def agree(
    comm: Communicator,
    call: str,
    text: str,
    numbers: Sequence[int],
    has_failed: bool,
) -> list[list[int]]:
    """The numbers of all ranks, which have to make the same call; a short message.

    Args:
        comm: the ranks of a pipeline.
        call: the method that is called.
        text: of its arguments, what has to be the same on all ranks.
        numbers: of this rank.
        has_failed: whether a batch has failed on this rank since the last call; the
            others may wait for what it has not sent.

    Returns:
        For each of the numbers, those of all ranks.

    Raises:
        RuntimeError: on every rank, if the calls differ; or if a batch has failed on
            this one alone.
    """
    if comm.size == 1:
        return [[number] for number in numbers]
    digest = hashlib.blake2b(f"{call} {text}".encode(), digest_size=8).digest()
    own = numpy.array([numpy.frombuffer(digest, numpy.int64)[0], *numbers])
    gathered = comm.all_gather(own, wait=not has_failed)
    if has_failed:
        gathered = _wait_briefly(gathered, call)
    digests, *found = gathered.T
    if (digests == digests[0]).all():  # on all ranks, or on none
        return [each.tolist() for each in found]
    calls = comm.allgather_obj((call, text))
    names = [each for each, _ in calls]
    if len(set(names)) == 1:
        names = [f"{each} with {described}" for each, described in calls]
    raise RuntimeError(_difference(names))


def _wait_briefly(work: Work, call: str) -> Any:
    """The result of a collective that ranks may not take part in any more."""
    try:
        return work.wait(_SECONDS)
    except TimeoutError as error:
        raise RuntimeError(
            f"Pipeline: expected all ranks to call {call} after a batch has failed on "
            f"this one, got none from another within {_SECONDS:.0f} s"
        ) from error


class CallsOnTheWay:
    """Finds out that ranks make different calls while batches are on their way.

    Ranks are not in step then. So each tells the others what it calls, and waits for
    what they tell one call later; or at once, where the call needs all of them.

    Args:
        comm: the ranks of a pipeline.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._pending: list[tuple[str, Work]] = []
        self._refusal = ""  # once there is a reason, it holds for later calls, too

    def end(self, error: BaseException) -> None:
        """Refuses later calls: the batches on their way are lost by an error."""
        self._refusal = (
            "Pipeline: expected no error while batches are on their way, which are "
            f"lost by it, got {describe(error)}: make the pipeline again"
        )

    @property
    def are_refused(self) -> bool:
        """Whether later calls are."""
        return bool(self._refusal)

    def tell(self, call: str, needs_all: bool, has_failed: bool = False) -> None:
        """Tells the other ranks of a call, one of ``_CALLS``.

        Args:
            call: that this rank makes.
            needs_all: whether it cannot begin before all ranks make it.
            has_failed: whether another batch has failed on this rank, as for ``agree``.

        Raises:
            RuntimeError: some make, or have made, another one; or batches are lost.
        """
        if self._refusal:
            raise RuntimeError(self._refusal)
        number = _CALLS.index(call)
        told = self._comm.all_reduce(numpy.array([number, -number]), "max", wait=False)
        self._pending.append((call, told))
        while len(self._pending) > (not needs_all):
            made, told = self._pending.pop(0)
            found = _wait_briefly(told, made) if has_failed else told.wait()
            self._compare(made, *found)

    def _compare(self, call: str, most: int, least: int) -> None:
        others = {_CALLS[most], _CALLS[-least]} - {call}
        if others:
            self._refusal = (
                "Pipeline: expected every rank to call the same while batches are on "
                f"their way, got {call} on rank {self._comm.rank} and "
                f"{others.pop()} on another"
            )
            raise RuntimeError(self._refusal)


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
