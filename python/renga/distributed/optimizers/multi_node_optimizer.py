"""An optimizer that updates by the mean of all ranks' gradients."""

from __future__ import annotations

from typing import Any, Callable

from renga.communicators import NativeCommunicator, packing
from renga.configuration import no_backprop_mode, using_config
from renga.distributed.optimizers.notice import (
    GIVEN,
    JOINED,
    LOSS,
    News,
    Notice,
    number_of_samples,
)
from renga.distributed.optimizers.overlapped_mean import OverlappedMean
from renga.distributed.optimizers.shared_updates import (
    MOVABLE,
    READY,
    UNABLE,
    SharedUpdates,
)
from renga.methods import is_method_of
from renga.serializer import Deserializer


class MultiNodeOptimizer:
    """Has the attributes of ``actual_optimizer``, on which setting one sets it.

    Gradients of a loss travel while ``backward()`` computes others. Where the ranks'
    numbers of samples differ (the length of the first argument of ``update`` that has
    one), gradients are weighted by them. Whenever a rank has parameters that the others
    do not share, all get those of rank 0.
    """

    def __init__(
        self, actual_optimizer: Any, communicator: Any, zero_fill: bool = True
    ) -> None:
        vars(self).update(
            actual_optimizer=actual_optimizer,
            communicator=communicator,
            zero_fill=zero_fill,
            _shared=None,
            _loaded=False,
            _mean=None,
            _shares=None,
        )

    def __getattr__(self, name: str) -> Any:
        if name == "actual_optimizer":  # while a copy is being made
            raise AttributeError(name)
        return getattr(self.actual_optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.actual_optimizer, name, value)

    def setup(self, link: Any) -> MultiNodeOptimizer:
        """Sets the actual optimizer up with ``link``."""
        self.actual_optimizer.setup(link)
        return self

    def update(
        self, lossfun: Callable[..., Any] | None = None, *args: Any, **kwds: Any
    ) -> None:
        """Updates by the mean of the ranks' gradients of ``lossfun(*args, **kwds)``.

        Without ``lossfun`` the gradients are those the parameters have; they are
        dropped where they belong to parameters that rank 0's have just replaced.
        """
        if lossfun is None:
            self._update_as_given()
        else:
            samples = number_of_samples(args, kwds)
            self._update_by_loss(lambda: lossfun(*args, **kwds), samples)

    def join(self) -> None:
        """Takes part with zeros in the others' updates, until all ranks have joined.

        It is for a rank that has no more data while others may have some.
        """
        while True:
            notice = self._tell(0, JOINED)
            news = notice.wait()
            if news.over:
                return
            if news.given:
                if news.changed and self._share_given():
                    continue
                self.target.cleargrads()
                self._apply_given(news)
            elif news.changed:
                self._initialize(lambda: None)
                self._share()
            else:
                self.target.cleargrads()
                if self._mean is not None:
                    self._mean.begin(notice)
                self._apply(news)

    def _update_by_loss(self, forward: Callable[[], Any], samples: int | None) -> None:
        while True:
            # Without shapes or rank 0's parameters a forward pass would be for nothing.
            loss = None if self._is_changed() else forward()
            notice = self._tell(samples, LOSS)
            changed = self._is_changed()
            news = notice.wait() if changed else self._differentiate(loss, notice)
            del loss  # the graph must not outlive its use
            if not news.changed:
                break
            self._initialize(forward)
            self._share()
        self._apply(news)

    def _differentiate(self, loss: Any, notice: Notice) -> News:
        self.target.cleargrads()
        scale = self.actual_optimizer._loss_scale
        if self._mean is not None:
            return self._mean.backward(loss, scale, notice)
        loss.backward(loss_scale=scale)
        return notice.wait()

    def _apply(self, news: News) -> None:
        """Updates by the ranks' gradients of a loss."""
        if self._mean is None:
            self._apply_given(news)
        elif news.stage == READY:
            self._shares.update(news.weight)
        else:
            self._mean.finish(self.actual_optimizer._loss_scale)
            self._update_alone(news)
            self._mean.lay_out(self._shares.places)

    def _update_alone(self, news: News) -> None:
        """Updates by the parameters' gradients, and prepares for sharing that out."""
        self.actual_optimizer.update(None)
        if news.stage == MOVABLE:
            self._shares.move()

    def _update_as_given(self) -> None:
        news = self._tell(None, GIVEN).wait()
        if not (news.changed and self._share_given()):
            self._apply_given(news)

    def _share_given(self) -> bool:
        """Whether rank 0's parameters have replaced those that gradients belong to."""
        checksums = self.communicator.allgather_obj(packing.checksum(self._arrays()))
        self._share()
        return len(set(checksums)) > 1

    def _apply_given(self, news: News) -> None:
        """Updates by the ranks' gradients, which the parameters have."""
        if news.stage == READY:
            self._shares.update(1.0)
            return
        self.communicator.multi_node_mean_grad(self.target, self.zero_fill)
        self._update_alone(news)

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual optimizer.

        Where all ranks load the same parameters, none are sent at the next update, and
        what else the ranks have loaded remains as it is.
        """
        self.actual_optimizer.serialize(serializer)
        vars(self)["_loaded"] = isinstance(serializer, Deserializer)

    def _tell(self, samples: int | None, way: int) -> Notice:
        changed = self._is_changed()
        checksum = packing.checksum(self._arrays()) if self._loaded else 0
        vars(self)["_loaded"] = False
        stage = UNABLE if self._shares is None else self._shares.stage()
        return Notice(self.communicator, changed, checksum, samples, way, stage)

    def _is_changed(self) -> bool:
        """Whether there are parameters that the ranks do not share yet."""
        if self._loaded:
            self._adopt()
        return self._shared != self._params()

    def _named(self) -> list[tuple[str, Any]]:
        """The parameters that have arrays, in the order of names."""
        return sorted(self.target.namedparams(include_uninit=False))

    def _arrays(self) -> list[Any]:
        return [param.array for _, param in self._named()]

    def _params(self) -> list[tuple[str, int]]:
        return [(name, id(param)) for name, param in self._named()]

    def _share(self) -> None:
        self.communicator.bcast_data(self.target)
        self._adopt()

    def _adopt(self) -> None:
        """Takes the parameters for what all ranks have."""
        vars(self).update(_shared=self._params(), _mean=None, _shares=None)
        if self._averages_itself():
            comm, params = self.communicator, [param for _, param in self._named()]
            vars(self).update(
                _mean=OverlappedMean(comm, params, self.zero_fill),
                _shares=SharedUpdates(comm, self.actual_optimizer, params),
            )

    def _averages_itself(self) -> bool:
        """Whether gradients are averaged here, and not as the communicator does."""
        return is_method_of(
            self.communicator, NativeCommunicator, "multi_node_mean_grad"
        )

    def _initialize(self, forward: Callable[[], Any]) -> None:
        """Lets a forward pass find the shapes, in test mode: it leaves no trace."""
        missing = any(not param.is_initialized for param in self.target.params())
        if any(self.communicator.allgather_obj(missing)):
            with no_backprop_mode(), using_config("train", False):
                forward()
