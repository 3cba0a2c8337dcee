"""Local SGD: ranks train alone and average their parameters every few updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from renga.distributed.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.distributed.asynchronous.packed import reduce
from renga.distributed.optimizers.multi_node_optimizer import MultiNodeOptimizer
from renga.link import Link
from renga.optimizers.sgd import SGD
from renga.parameter import Parameter
from renga.serializer import Deserializer

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.communicators.communicator import Array


class LocalSGDOptimizer(AsynchronousOptimizer):
    """Updates this rank's parameters; every few updates, averages them over ranks.

    The negated mean of the ranks' changes since the last average is the gradient that
    an outer optimizer applies to the parameters of that average. Until ``begin``, all
    updates are those of a MultiNodeOptimizer.

    Source: Stich, Local SGD converges fast and communicates little, ICLR 2019; Lin et
    al., Don't use large mini-batches, use local SGD, ICLR 2020, for ``begin``; Wang et
    al., SlowMo, ICLR 2020, and Douillard et al., DiLoCo, arXiv 2311.08105, for
    ``outer``.
    """

    _anchor: Link
    _updates: int

    def __init__(
        self,
        actual_optimizer: Any,
        communicator: Communicator,
        every: int,
        begin: tuple[int, str],
        outer: Any,
    ) -> None:
        super().__init__(actual_optimizer, communicator)
        vars(self).update(
            _every=every,
            _first=begin,
            _outer=SGD(1.0) if outer is None else outer,
            _anchor=Link(),  # the parameters at the last average
            _synchronous=MultiNodeOptimizer(actual_optimizer, communicator),
            _updates=0,  # since the last average
        )

    def update(
        self, lossfun: Callable[..., Any] | None = None, *args: Any, **kwds: Any
    ) -> None:
        """Makes one update, of all ranks before ``begin`` and of this one after."""
        count, unit = self._first
        so_far = self.epoch if unit == "epoch" else self.t
        if so_far < count:
            self._synchronous.update(lossfun, *args, **kwds)
        else:
            super().update(lossfun, *args, **kwds)

    def _after_begin(self, resumes: bool) -> None:
        if not (resumes and self._anchors()):
            self._set_anchor(self._packed.pack())
            self._updates = 0

    def _set_anchor(self, flats: list[Array]) -> None:
        self._anchor = Link()
        with self._anchor.init_scope():
            for i, flat in enumerate(flats):
                setattr(self._anchor, f"flat_{i}", Parameter(flat))
        self._outer.setup(self._anchor)

    def _anchors(self) -> list[Parameter]:
        return [param for _, param in sorted(self._anchor.namedparams())]

    def _update(self, forward: Callable[[], Any] | None) -> None:
        self._compute_gradients(forward)
        self.actual_optimizer.update()
        self._updates += 1
        if self._updates == self._every:
            self._synchronize()

    def _synchronize(self) -> None:
        """Averages the ranks' changes and applies the outer optimizer."""
        flats = self._packed.pack()
        anchors = self._anchors()
        for param, flat in zip(anchors, flats):
            flat -= param.array
            flat *= -1
        reduce(self.communicator, flats, "mean")
        for param, flat in zip(anchors, flats):
            param.grad = flat
        self._outer.update()
        self._packed.unpack([param.array for param in anchors])
        self._updates = 0

    def join(self) -> None:
        """Averages the changes since the last average; every rank calls it."""
        if self._packed is None:
            return
        # Without changes, the momentum of the outer optimizer would move the average.
        if any(self.communicator.allgather_obj(self._updates)):
            self._synchronize()

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the optimizers, the anchor and the count of local updates."""
        super().serialize(serializer)
        own = serializer["local_sgd"]
        anchors = [param.array for param in self._anchors()]
        count = own("anchors", len(anchors))
        self._updates = own("updates", self._updates)
        outer_updates = own("outer_updates", self._outer.t)
        if count and isinstance(serializer, Deserializer):
            self._set_anchor([own(f"anchor_{i}", None) for i in range(count)])
        else:
            for i, x in enumerate(anchors):
                own(f"anchor_{i}", x)
        if outer_updates:
            self._outer.serialize(own["outer"])
