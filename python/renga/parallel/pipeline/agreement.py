"""What the ranks of a pipeline tell each other before a call that all have to make."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.parallel.pipeline.schedule import rank_of_stage

COMPLETION = "what completes them (a load, a copy, a save, drain)"
_CALLS = ("train_batch", "the model", COMPLETION)  # while batches are on their way

Settings = dict[int, list[str]]  # by the number of a parameter


def agree(
    comm: Communicator, call: str, text: str, numbers: Sequence[int]
) -> list[list[int]]:
    """The numbers of all ranks, which have to make the same call; a short message.

    Args:
        comm: the ranks of a pipeline.
        call: the method that is called.
        text: of its arguments, what has to be the same on all ranks.
        numbers: of this rank.

    Returns:
        For each of the numbers, those of all ranks.

    Raises:
        RuntimeError: on every rank, if the calls differ.
    """
    if comm.size == 1:
        return [[number] for number in numbers]
    digest = hashlib.blake2b(f"{call} {text}".encode(), digest_size=8).digest()
    own = numpy.array([numpy.frombuffer(digest, numpy.int64)[0], *numbers])
    digests, *found = comm.all_gather(own).T
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
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._pending: list[tuple[str, Any]] = []
        self._difference = ""  # once found, it holds for later calls, too

    def tell(self, call: str, needs_all: bool) -> None:
        """Tells the other ranks of a call, one of ``_CALLS``.

        Raises:
            RuntimeError: some make, or have made, another one.
        """
        if self._difference:
            raise RuntimeError(self._difference)
        number = _CALLS.index(call)
        told = self._comm.all_reduce(numpy.array([number, -number]), "max", wait=False)
        self._pending.append((call, told))
        while len(self._pending) > (not needs_all):
            self._compare(*self._pending.pop(0))

    def _compare(self, call: str, told: Any) -> None:
        most, least = told.wait()
        others = {_CALLS[most], _CALLS[-least]} - {call}
        if others:
            self._difference = (
                "Pipeline: expected every rank to call the same while batches are on "
                f"their way, got {call} on rank {self._comm.rank} and "
                f"{others.pop()} on another"
            )
            raise RuntimeError(self._difference)


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
