"""Local SGD: ranks train alone and average their parameters every few updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, TypeVar

import numpy

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.optimizer import GradientMethod
from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Array
from renga.optimizers.sgd import SGD
from renga.parallel.asynchronous.packed import reduce
from renga.parallel.asynchronous.periodic import (
    Meeting,
    PeriodicOptimizer,
    serialize_arrays,
)
from renga.parallel.data.optimizers.multi_node_optimizer import MultiNodeOptimizer
from renga.parallel.data.sample_weighting import GradientWeight

_Self = TypeVar("_Self", bound="LocalSGDOptimizer")


class LocalSGDOptimizer(PeriodicOptimizer):
    """Updates this rank's parameters; every few updates, averages them over ranks.

    The negated mean of the ranks' changes since the last average, weighted by their
    samples, is the gradient that an outer optimizer applies to the parameters of that
    average. Until ``begin``, all updates are those of a MultiNodeOptimizer.

    Source: Stich, Local SGD converges fast and communicates little, ICLR 2019; McMahan
    et al., Communication-efficient learning of deep networks from decentralized data,
    AISTATS 2017, for the weights; Lin et al., Don't use large mini-batches, use local
    SGD, ICLR 2020, for ``begin``; Wang et al., SlowMo, ICLR 2020, and Douillard et al.,
    DiLoCo, arXiv 2311.08105, for ``outer``.
    """

    _name = "local_sgd"
    _anchor: Link
    _is_local: bool

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        every: int,
        begin: tuple[int, str],
        outer: object,
    ) -> None:
        super().__init__(actual_optimizer, communicator, every)
        vars(self).update(
            _first=begin,
            _is_local=begin[0] == 0,  # whether updates are no longer synchronous
            _outer=SGD(1.0) if outer is None else outer,
            _anchor=Link(),  # the parameters at the last average
            _synchronous=MultiNodeOptimizer(actual_optimizer, communicator),
        )

    @property
    def _saved_optimizer(self) -> Any:
        return self._synchronous

    def _is_synchronous(self) -> bool:
        """Whether the next update is one of those before ``begin``.

        Every rank asks before each of them, and before it takes part in others'. All
        begin together, although they may not complete an epoch in the same update.
        """
        if not self._is_local:
            count, unit = self._first
            done = numpy.array([self.epoch if unit == "epoch" else self.t])
            most = self.communicator.all_reduce(done, "max")
            self._is_local = int(most[0]) >= count
        return not self._is_local

    def setup(self: _Self, link: Link) -> _Self:
        """Sets the actual optimizer up with ``link``, in which the ranks begin anew."""
        self._is_local = self._first[0] == 0
        return super().setup(link)

    def update(
        self,
        lossfun: Callable[..., object] | None = None,
        *args: Array,
        samples: int | None = None,
        **kwds: object,
    ) -> None:
        """Makes one update, of all ranks before ``begin`` and of this one after."""
        if self._is_synchronous():
            self._synchronous.samples = self.samples
            self._synchronous.update(lossfun, *args, samples=samples, **kwds)
        else:
            super().update(lossfun, *args, samples=samples, **kwds)

    def _after_begin(self, resumes: bool) -> None:
        arrays = [param.array for param in self._packed.params]
        shapes = [param.shape for param in self._anchors()]
        # Files of other optimizers have no parameters of an average.
        resumes = resumes and shapes == [x.shape for x in arrays]
        if not resumes:
            self._set_anchor([x.copy() for x in arrays])
        else:
            for anchor, param in zip(self._anchors(), self._packed.params):
                anchor.to_device(param.device)  # those of a file are in the main memory
        super()._after_begin(resumes)

    def _set_anchor(self, arrays: Sequence[Array]) -> None:
        self._anchor = Link()
        with self._anchor.init_scope():
            for i, x in enumerate(arrays):
                setattr(self._anchor, f"param_{i:06}", Parameter(x))
        self._outer.setup(self._anchor)

    def _anchors(self) -> list[Parameter]:
        return [param for _, param in sorted(self._anchor.namedparams())]

    def _change(self, arrays: list[Array], masks: list[Array]) -> None:
        for param, x, mask in zip(self._anchors(), arrays, masks):
            param.array[mask] = x[mask]

    def _meet(self, meeting: Meeting) -> None:
        """Averages the ranks' changes and applies the outer optimizer."""
        moves = self._packed.pack()
        views, anchors = self._packed.views(moves), self._anchors()
        for view, anchor in zip(views, anchors):
            numpy.subtract(anchor.array, view, out=view)
        if meeting.changed.any():
            self._share_anchor(int(meeting.changed.argmax()))
        self._weight(moves, meeting)
        reduce(self.communicator, moves, "mean")
        for view, anchor, is_trained in zip(views, anchors, meeting.trained):
            anchor.grad = view
            # What is frozen does not go on by the momentum of the outer optimizer.
            rule: Any = anchor.update_rule
            rule.enabled = bool(is_trained)
        self._outer.update()
        for param, anchor in zip(self._packed.params, anchors):
            param.array[...] = anchor.array

    def _weight(self, moves: Sequence[Array], meeting: Meeting) -> None:
        """Multiplies this rank's moves, so that their mean is one over samples."""
        samples, rank = meeting.samples, self.communicator.rank
        own = int(samples[rank])
        weight = GradientWeight(own, own).factor(samples, rank)
        for move in moves:
            if weight != 1:
                move *= move.dtype.type(weight)

    def _share_anchor(self, root: int) -> None:
        """Gives all ranks the last average, and states of the outer optimizer."""
        comm = self.communicator
        for anchor in self._anchors():
            comm.broadcast(anchor.array, root)
        rules: list[Any] = [anchor.update_rule for anchor in self._anchors()]
        states = [rule.get_values() for rule in rules]
        self._outer.t, states = comm.bcast_obj((self._outer.t, states), root=root)
        for rule, values in zip(rules, states):
            rule.set_values(values)

    def _join(self) -> None:
        """Averages with the other ranks until all of them call this."""
        while self._is_synchronous():
            if self._synchronous.contribute_zeros():
                return
        super()._join()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the optimizers, the anchor and the count of local updates."""
        super().serialize(serializer)
        own = serializer[self._name]
        anchors = [param.array for param in self._anchors()]
        found = serialize_arrays(own, "anchor", anchors)
        outer_updates = own("outer_updates", self._outer.t)
        if found and isinstance(serializer, Deserializer):
            self._set_anchor(found)
        if outer_updates:
            self._outer.serialize(own["outer"])
