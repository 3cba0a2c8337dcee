"""The models of all optimizers of the same ranks, which losses may use together."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.optimizer import Optimizer
from renga.parallel.data.replicas.states import checksum_of

# A key is the communicator that the communicators of the models are groups of; the
# models are in the order in which their optimizers were made.
_of_origin: weakref.WeakKeyDictionary[Any, list[weakref.ref[SharedModel]]] = (
    weakref.WeakKeyDictionary()
)


class SharedModel:
    """The model of an optimizer, which begins with rank 0's parameters on all ranks.

    Args:
        comm: of the ranks that begin together; None if this one does not.
        optimizer: which each of them has.
        keeps_loaded: whether the ranks may go on from different parameters if all of
            them have loaded some.
    """

    def __init__(
        self, comm: Communicator, optimizer: Optimizer, keeps_loaded: bool = False
    ) -> None:
        self.comm: Communicator | None = comm
        self._origin = comm.origin
        self._optimizer = optimizer
        self._keeps_loaded = keeps_loaded
        self._given: Link | None = None  # what all ranks got for another one's loss
        self.has_begun = False
        self.has_loaded = False  # from a file, since the last step
        _of_origin.setdefault(self._origin, []).append(weakref.ref(self))

    @property
    def target(self) -> Link | None:
        """The model, once the optimizer has one."""
        target: Link | None = self._optimizer.target
        return target

    def checksum_of_params(self) -> int:
        """Of the parameters' arrays."""
        params = distinct_params(self._optimizer.target, include_uninit=False)
        return checksum_of(distinct.param.array for distinct in params)

    def beginning(self) -> list[Link]:
        """The optimizer's model, then those of others that have not begun."""
        begun = self._begun()
        others = [other.target for other in self._others()]
        found = [m for m in others if m is not None and id(m) not in begun]
        return [self._optimizer.target, *found]

    def share(self, has_run: bool) -> bool:
        """Gives all ranks the parameters of rank 0; every rank calls it.

        Persistent arrays are rank 0's, too, unless the ranks have run forward passes
        with equal parameters, in which they have computed statistics of their own.

        Args:
            has_run: whether gradients were set by the caller, who has run the model.

        Returns:
            Whether a rank had other parameters.
        """
        comm, model = self._present_comm(), self._optimizer.target
        has_run = has_run or self._given is model or id(model) in self._begun()
        self._given = None
        said = comm.allgather_obj((has_run, self.checksum_of_params()))
        has_run, checksums = any(run for run, _ in said), {c for _, c in said}
        if len(checksums) > 1 or not has_run:
            comm.bcast_data(model)
        return len(checksums) > 1

    def _others(self) -> list[SharedModel]:
        """The models of other optimizers."""
        return [
            other
            for other in self._all()
            if other.comm is not None
            if other.target is not None and other.target is not self.target
        ]

    def _all(self) -> list[SharedModel]:
        found = [ref() for ref in _of_origin[self._origin]]
        return [model for model in found if model is not None]

    def _begun(self) -> set[int]:
        """The ``id`` of each model of which an optimizer has begun."""
        return {id(model.target) for model in self._all() if model.has_begun}

    def share_others(self, have_loaded: bool) -> None:
        """Gives all ranks rank 0's models of other optimizers; every rank calls it.

        A loss may use them before their own optimizer's first update.

        Args:
            have_loaded: whether a rank has loaded parameters; otherwise models whose
                optimizers have begun are left alone.
        """
        comm = self._present_comm()
        begun = set() if have_loaded else self._begun()
        others = _by_kinds([x for x in self._others() if id(x.target) not in begun])
        said = comm.allgather_obj({k: x._description() for k, x in others.items()})
        for kind, other in sorted(others.items(), key=lambda item: item[0]):
            descriptions = [of_rank.get(kind) for of_rank in said]
            if None in descriptions:
                continue
            places, loaded, checksums = zip(*descriptions)
            if places != tuple((rank, comm.size) for rank in range(comm.size)):
                continue  # of other groups of ranks
            if all(loaded) and (other._keeps_loaded or len(set(checksums)) == 1):
                continue
            # All ranks find out alike that models have no shapes yet, or other ones.
            with contextlib.suppress(RuntimeError):
                comm.bcast_data(other._optimizer.target)
                other._given = other.target

    def _description(self) -> tuple[tuple[int, int], bool, int]:
        comm = self._present_comm()
        place = comm.rank, comm.size
        return place, self.has_loaded, self.checksum_of_params()

    def _present_comm(self) -> Communicator:
        assert self.comm is not None, "this rank does not begin with others"
        return self.comm


def _by_kinds(models: list[SharedModel]) -> dict[tuple[str, int], SharedModel]:
    """Models by the names of their parameters, and how many alike came later.

    A rank may have made further optimizers, or still have former ones: so those of all
    ranks that belong together are the last ones alike.
    """
    found: dict[tuple[str, int], SharedModel] = {}
    for model in reversed(models):
        assert model.target is not None
        kind = " ".join(sorted(name for name, _ in model.target.namedparams()))
        later = sum(1 for other, _ in found if other == kind)
        found[kind, later] = model
    return found
