"""An optimizer that updates by the mean of all ranks' gradients."""

from __future__ import annotations

import zlib
from typing import Any, Callable

import numpy

from renga.configuration import no_backprop_mode, using_config


class MultiNodeOptimizer:
    """Has the attributes of ``actual_optimizer``, on which setting one sets it.

    The first update gives all ranks the parameters of rank 0.
    """

    def __init__(
        self, actual_optimizer: Any, communicator: Any, zero_fill: bool = True
    ) -> None:
        vars(self).update(
            actual_optimizer=actual_optimizer,
            communicator=communicator,
            zero_fill=zero_fill,
            _shared=None,
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
        if lossfun is not None:
            loss = self._loss(lambda: lossfun(*args, **kwds))
            self.target.cleargrads()
            loss.backward(loss_scale=self.actual_optimizer._loss_scale)
            del loss  # the graph must not outlive its use
        elif self._is_changed():
            checksums = self.communicator.allgather_obj(_checksum(self.target))
            self._share()
            if len(set(checksums)) > 1:
                return
        self._apply()

    def _apply(self) -> None:
        """Updates by the ranks' gradients, which the parameters have."""
        self.communicator.multi_node_mean_grad(self.target, self.zero_fill)
        self.actual_optimizer.update(None)

    def _is_changed(self) -> bool:
        """Whether there are parameters that the ranks do not share yet."""
        return self._shared != _names(self.target)

    def _share(self) -> None:
        self.communicator.bcast_data(self.target)
        vars(self)["_shared"] = _names(self.target)

    def _loss(self, forward: Callable[[], Any]) -> Any:
        """The loss by parameters that the ranks share."""
        if self._is_changed():
            self._initialize(forward)
            self._share()
        loss = forward()
        if self._is_changed():  # by parameters that are used in training only
            self._share()
            loss = forward()
        return loss

    def _initialize(self, forward: Callable[[], Any]) -> None:
        """Lets a forward pass find the shapes, in test mode: it leaves no trace."""
        missing = any(not param.is_initialized for param in self.target.params())
        if any(self.communicator.allgather_obj(missing)):
            with no_backprop_mode(), using_config("train", False):
                forward()


def _names(target: Any) -> list[str]:
    named = target.namedparams(include_uninit=False)
    return sorted(name for name, _ in named)


def _checksum(target: Any) -> int:
    value = 0
    for _, param in sorted(target.namedparams(include_uninit=False)):
        value = zlib.crc32(numpy.ascontiguousarray(param.array).data, value)
    return value
